//! Each key.

use super::*;
use crate::source::{CodeText, Function};
use whit_profile::model::{EventId, LossReport};
use whit_view::hists::SortKey;

#[test]
fn the_first_screen_has_the_table() {
    let state = begin(profile());
    let lines = screen(&state);
    assert_eq!(lines[0], " 4 samples of 'cycles' (event 1 of 2)");
    assert_eq!(lines[1], " hot: compare 50%, sort 20%, spin 20%");
    assert_eq!(lines[2], "  Children   Self Command Shared Object     Symbol");
    assert_eq!(lines[3], "+   80.00%  0.00% app     app               [.] main");
    assert_eq!(lines[4], "+   70.00% 20.00% app     app               [.] sort");
    assert_eq!(lines[5], "+   50.00% 50.00% app     cmp.so            [.] compare");
    assert_eq!(
        lines[23],
        format!("{:<76}1/5", "? keys  v view  / filter  Enter open  a code  q quit")
    );
}

#[test]
fn the_first_rows_are_where_time_is_spent() {
    let mut state = sized(State::new(Begin::report(profile(), StdioOptions::default())), 80, 24);
    let own = [
        "    Self Children Command Shared Object     Symbol",
        "+ 50.00%   50.00% app     cmp.so            [.] compare",
        "+ 20.00%   70.00% app     app               [.] sort",
    ];
    assert_eq!(screen(&state)[2..5], own);
    press(&mut state, "o");
    let lines = screen(&state);
    assert!(lines[3].ends_with("[.] main") && lines[4].ends_with("[.] sort"), "{lines:?}");
    press(&mut state, "o");
    assert_eq!(screen(&state)[2..5], own);
}

/// A program whose first functions call each other alone.
fn chain() -> State {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let app = Who { comm: "app", pid: 7, tid: 7, cpu: None };
    let below = |name: &str, address| {
        let way = ["_start", "main", "serve"].into_iter().zip(1..);
        let way = way.map(|(name, address)| at(name, "/bin/app", address));
        way.chain([at(name, "/bin/app", address)]).collect::<Vec<_>>()
    };
    builder.sample(event, app, &below("parse", 8), 60);
    builder.sample(event, app, &below("a_function_with_a_long_name", 9), 40);
    begin(builder.profile)
}

#[test]
fn functions_that_call_each_other_alone_are_one_row() {
    let mut state = chain();
    let shown = rows(&state);
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].ends_with("[.] _start -> … -> serve"), "{shown:?}");
    assert!(shown[1].ends_with("[.] parse"), "{shown:?}");
    press(&mut state, "V");
    assert_eq!(screen(&state)[22], "_start -> main -> serve in /bin/app");
    // The name comes first where there is no room for the way to it.
    let narrow = rows(&sized(state, 48, 24));
    assert!(narrow[0].ends_with("[.] … -> serve"), "{narrow:?}");
}

#[test]
fn columns_without_facts_are_not_drawn() {
    let mut state = chain();
    press(&mut state, "/serve\n");
    let lines = screen(&state);
    assert_eq!(lines[2], "  Children Command Shared Object Symbol", "its own share is zero");
}

#[test]
fn keys_move_the_choice() {
    let mut state = sized(begin(profile()), 80, 7);
    let mut at = |it| {
        key(&mut state, it);
        state.table.cursor.at
    };
    assert_eq!([at(Key::Down), at(Key::Down), at(Key::Up), at(Key::End)], [1, 2, 1, 4]);
    assert_eq!(
        [at(Key::PageUp), at(Key::PageDown), at(Key::Home), at(Key::Char(' '))],
        [2, 4, 0, 2]
    );
}

#[test]
fn enter_and_arrows_open_and_close_call_chains() {
    let mut state = begin(profile());
    let closed = rows(&state);
    press(&mut state, "\n");
    let open = rows(&state);
    assert_eq!(open[0], "-   80.00%  0.00% app     app               [.] main");
    assert_eq!(open[1], "    -  80.00% main");
    assert_eq!(open[2], "      +  70.00% sort");
    assert_eq!(open[3], "         10.00% vfs_read");
    // To the branch, open it, and back to the row that it hangs below.
    for it in [Key::Down, Key::Down, Key::Right] {
        key(&mut state, it);
    }
    assert_eq!(rows(&state)[2..4], ["      -  70.00% sort", "           50.00% compare"]);
    for it in [Key::Left, Key::Left, Key::Left, Key::Left] {
        key(&mut state, it);
    }
    assert_eq!(state.table.cursor.at, 0);
    key(&mut state, Key::Left);
    assert_eq!(rows(&state), closed);
    press(&mut state, "+");
    assert_eq!(rows(&state).len(), open.len());
}

#[test]
fn letters_open_and_close_whole_rows_and_all_rows() {
    let mut state = begin(profile());
    let closed = rows(&state).len();
    press(&mut state, "e");
    assert!(text(&state).contains("50.00% compare"), "all levels of the row");
    press(&mut state, "e");
    assert_eq!(rows(&state).len(), closed);
    press(&mut state, "E");
    assert!(rows(&state).len() > closed + 6, "{}", text(&state));
    press(&mut state, "C");
    assert_eq!(rows(&state).len(), closed);
}

#[test]
fn tab_cycles_through_the_events() {
    let mut state = begin(profile());
    key(&mut state, Key::Tab);
    assert_eq!(screen(&state)[0], " 1 samples of 'page-faults' (event 2 of 2)");
    key(&mut state, Key::Tab);
    assert!(screen(&state)[0].contains("'cycles'"));
    key(&mut state, Key::BackTab);
    assert!(screen(&state)[0].contains("'page-faults'"));
}

#[test]
fn zooms_filter_and_esc_undoes_the_last_one() {
    let mut state = begin(profile());
    let all = rows(&state);
    key(&mut state, Key::Down);
    press(&mut state, "d");
    assert!(screen(&state)[0].ends_with("binary app"), "{}", screen(&state)[0]);
    assert_eq!(rows(&state).len(), 2);
    press(&mut state, "/sor\n");
    assert!(screen(&state)[0].ends_with("binary app, /sor"));
    assert_eq!(rows(&state), ["+   70.00% 20.00% app     [.] sort"]);
    key(&mut state, Key::Esc);
    assert_eq!(rows(&state).len(), 2);
    key(&mut state, Key::Esc);
    assert_eq!(rows(&state), all);
    key(&mut state, Key::Esc);
    assert_eq!(screen(&state)[23], "press q to quit, ? for the keys");
    press(&mut state, "k");
    assert_eq!(rows(&state).len(), 1, "{}", text(&state));
    assert!(rows(&state)[0].contains("[k] vfs_read"));
}

#[test]
fn a_thread_or_its_command_is_zoomed_into() {
    let mut state = begin(profile());
    press(&mut state, "t");
    assert!(screen(&state)[0].ends_with("command app"));
    assert!(!rows(&state).concat().contains("spin"));
    let mut options = options();
    options.hists.sort = vec![SortKey::Tid, SortKey::Symbol];
    let mut state = sized(State::new(Begin::report(profile(), options)), 80, 24);
    key(&mut state, Key::End);
    press(&mut state, "t");
    assert!(screen(&state)[0].ends_with("thread 7"), "{}", text(&state));
    assert!(!rows(&state).concat().contains("spin"));
}

#[test]
fn shares_become_relative_and_absolute_again() {
    let mut state = begin(profile());
    press(&mut state, "t");
    assert!(rows(&state)[0].contains("80.00%"));
    press(&mut state, "F");
    assert!(rows(&state)[0].contains("100.00%"), "{}", text(&state));
    press(&mut state, "F");
    assert!(rows(&state)[0].contains("80.00%"));
}

#[test]
fn a_limit_leaves_rows_out() {
    let mut state = begin(profile());
    press(&mut state, "L");
    assert!(screen(&state)[23].starts_with("Leave out rows below this percentage: 0_"));
    key(&mut state, Key::Ctrl('u'));
    press(&mut state, "60\n");
    assert_eq!(rows(&state).len(), 2);
    press(&mut state, "L");
    press(&mut state, "x\n");
    assert_eq!(screen(&state)[23], "a limit is a percentage between 0 and 100");
    press(&mut state, "L");
    key(&mut state, Key::Ctrl('u'));
    press(&mut state, "99\n");
    assert!(text(&state).contains("No row reaches 99%: L changes the limit."));
}

#[test]
fn code_is_asked_for_and_shown_at_its_hottest_line() {
    let mut state = begin(profile());
    key(&mut state, Key::Down);
    let wanted = Function { name: "sort".into(), dso: "/bin/app".into(), event: EventId(0) };
    let Some(Request::Code(function)) = press(&mut state, "a") else { panic!("no request") };
    assert_eq!(function, wanted);
    let lines = (0..100).map(|line| format!("    1.00 :  line {line}")).collect();
    answered(&mut state, Answer::Code(function.clone(), Ok(CodeText { lines, hottest: 60 })));
    let shown = text(&state);
    assert!(shown.starts_with(" Code of sort\n") && shown.contains("line 60\n"), "{shown}");
    assert!(shown.contains("line 50\n") && shown.ends_with("61/100"), "{shown}");
    key(&mut state, Key::Right);
    assert!(text(&state).contains("\n :  line 60\n"), "scrolled to the right: {}", text(&state));
    for it in [Key::Left, Key::Esc] {
        key(&mut state, it);
    }
    assert!(text(&state).contains("[.] sort"));
    answered(&mut state, Answer::Code(function, Err("no such file".into())));
    assert_eq!(screen(&state)[23], "no such file");
}

#[test]
fn a_report_is_saved_where_the_user_says() {
    let mut state = begin(profile());
    press(&mut state, "P");
    key(&mut state, Key::Backspace);
    let request = press(&mut state, "t2\n");
    assert_eq!(request, Some(Request::Save("whit-report.txt2".into())));
    answered(&mut state, Answer::Saved("x\x1b".into(), Ok(())));
    assert_eq!(screen(&state)[23], "wrote x\\x1b");
    press(&mut state, "P");
    assert_eq!(key(&mut state, Key::Esc), None);
    assert!(state.prompt.is_none());
}

#[test]
fn help_and_header_are_texts_over_the_screen() {
    let mut profile = profile();
    profile.losses = LossReport { lost_samples: 3, ..LossReport::default() };
    let mut state = begin(profile);
    assert!(screen(&state)[2].starts_with("Lost: 3 samples"), "{}", text(&state));
    for letter in ["h", "?"] {
        press(&mut state, letter);
        assert!(text(&state).starts_with(" Keys\n"));
        assert_eq!(press(&mut state, "q"), None);
    }
    press(&mut state, "i");
    let shown = text(&state);
    assert!(shown.starts_with(" Recording\n") && shown.contains("\nLost: 3 samples"), "{shown}");
    key(&mut state, Key::Left);
    assert!(text(&state).contains("Symbol"));
    assert_eq!(press(&mut state, "q"), Some(Request::Quit));
    assert_eq!(key(&mut state, Key::Ctrl('c')), Some(Request::Quit));
}

#[test]
fn the_whole_name_of_the_choice_is_shown() {
    let mut state = begin(profile());
    press(&mut state, "V");
    assert_eq!(screen(&state)[22], "main in /bin/app");
    press(&mut state, "V");
    assert_eq!(screen(&state)[22], "");
}

#[test]
fn the_mouse_chooses_opens_and_scrolls() {
    let mut state = begin(profile());
    state.handle(Input::Click { x: 30, y: 4 });
    assert_eq!(state.table.cursor.at, 1);
    let before = rows(&state).len();
    state.handle(Input::Click { x: 30, y: 4 });
    assert!(rows(&state).len() > before, "a click on the choice opens it");
    state.handle(Input::Scroll(3));
    assert_eq!(state.table.cursor.at, 4);
    state.handle(Input::Click { x: 0, y: 23 });
    state.handle(Input::Click { x: 0, y: 0 });
    assert_eq!(state.table.cursor.at, 4, "title and status are no rows");
}

#[test]
fn no_other_key_does_anything() {
    let mut state = begin(profile());
    let before = screen(&state);
    for c in "bcfgjlmnpsuxyzABDGHIJKMNOQSTUWXYZ0123456789".chars() {
        assert_eq!(press(&mut state, &c.to_string()), None, "{c}");
        assert_eq!(screen(&state), before, "{c}");
    }
}
