//! A recording that goes on: each picture replaces the one before.

use super::*;
use crate::live::{News, Status};

/// The first profile, with other weights: rows, nodes and functions have other numbers.
fn later() -> Profile {
    let mut builder = Builder::default();
    let new = Who { comm: "new", pid: 3, tid: 3, cpu: None };
    let app = Who { comm: "app", pid: 7, tid: 7, cpu: None };
    let cycles = builder.event("cycles");
    let faults = builder.event("page-faults");
    let (sort, compare) = (at("sort", "/bin/app", 0x20), at("compare", "/lib/cmp.so", 0x30));
    builder.sample(cycles, new, &[at("fresh", "/bin/new", 0x99)], 900);
    builder.sample(cycles, app, &[main(), sort.clone(), at("swap", "/bin/app", 0x21)], 60);
    builder.sample(cycles, app, &[main(), sort, compare], 50);
    builder.sample(faults, app, &[main()], 3);
    builder.profile
}

fn picture(profile: Profile) -> News {
    let status = Status { covers: "4 s".into(), cost: "0.4% CPU 31 MiB".into() };
    News::Picture { profile: Arc::new(profile), status }
}

fn live() -> State {
    let mut state = begin(Profile::default());
    state.set_live();
    state
}

#[test]
fn the_title_and_the_last_line_state_time_and_cost() {
    let mut state = live();
    assert!(screen(&state)[0].contains("no samples [being set up]"), "{}", text(&state));
    assert_eq!(state.take_news(picture(profile())), None);
    let lines = screen(&state);
    assert_eq!(lines[0], " 4 samples of 'cycles', last 4 s (event 1 of 2)");
    assert!(lines[23].ends_with("0.4% CPU 31 MiB 1/5"), "{}", lines[23]);
    assert!(lines[3].contains("80.00%"), "{}", lines[3]);
    state.take_news(picture(later()));
    assert!(screen(&state)[3].contains("fresh"), "{}", text(&state));
}

#[test]
fn chosen_and_open_rows_stay_where_they_go() {
    let mut state = live();
    state.take_news(picture(profile()));
    // The row of `sort`, with its call chains.
    key(&mut state, Key::Down);
    key(&mut state, Key::Right);
    let before = text(&state);
    assert!(before.contains("-   70.00% 20.00% app"), "{before}");
    state.take_news(picture(later()));
    let after = text(&state);
    assert!(after.contains("-   10.89%  0.00% app"), "{after}");
    let chosen = &state.table.row(&state.hists).unwrap().place.function.unwrap();
    assert_eq!(state.profile.functions[chosen.index()].name, "sort");
    // The top stays the top.
    key(&mut state, Key::Home);
    state.take_news(picture(profile()));
    assert_eq!(state.table.cursor.at, 0);
}

#[test]
fn filters_limits_and_events_stay() {
    let mut state = live();
    state.take_news(picture(profile()));
    press(&mut state, "/sort\n");
    state.take_news(picture(later()));
    assert!(
        text(&state).contains("/sort") && !rows(&state).concat().contains("fresh"),
        "{}",
        text(&state)
    );
    key(&mut state, Key::Esc);
    key(&mut state, Key::Tab);
    state.take_news(picture(profile()));
    assert!(screen(&state)[0].contains("'page-faults'"), "{}", text(&state));
}

#[test]
fn a_frame_of_the_flame_graph_stays_chosen_and_zoomed() {
    let mut state = live();
    state.take_news(picture(profile()));
    press(&mut state, "v");
    for it in [Key::Down, Key::Down, Key::Enter] {
        key(&mut state, it);
    }
    let name = state.chosen_name();
    assert!(name.as_ref().is_some_and(|name| name.starts_with("sort")), "{name:?}");
    state.take_news(picture(later()));
    assert_eq!(state.chosen_name(), name);
    assert!(state.flame.as_ref().unwrap().zoomed.is_some());
}

#[test]
fn keys_pause_and_zero() {
    let mut state = live();
    state.take_news(picture(profile()));
    for pause in [Key::Char('p'), Key::Char(' ')] {
        key(&mut state, pause);
        assert!(state.is_paused() && screen(&state)[0].contains("[paused]"), "{}", text(&state));
        key(&mut state, pause);
        assert!(!state.is_paused() && !screen(&state)[0].contains("[paused]"));
    }
    assert_eq!(key(&mut state, Key::Char('z')), Some(Request::Zero));
    press(&mut state, "?");
    assert!(text(&state).contains("p Space          pause"), "{}", text(&state));
    // A report has none of them.
    let mut report = begin(profile());
    assert_eq!(press(&mut report, "zp"), None);
    press(&mut report, "?");
    assert!(!text(&report).contains("pause"));
}

#[test]
fn the_end_keeps_the_last_picture() {
    let mut state = live();
    state.take_news(picture(profile()));
    let rows_before = rows(&state);
    state.take_news(News::Ended("ended: \x1b[2J".into()));
    assert_eq!(rows(&state), rows_before);
    assert!(screen(&state)[0].contains(r"[ended: \x1b[2J]"), "{}", text(&state));
    assert_eq!(state.take_news(News::Quit), Some(Request::Quit));
}

#[test]
fn waits_and_times_are_read_anew_with_each_picture() {
    let mut state = live();
    state.set_may_have_waits();
    state.take_news(picture(profile()));
    assert_eq!(press(&mut state, "vv"), Some(Request::Waits));
    answered(&mut state, Answer::Waits(Ok(waits())));
    key(&mut state, Key::Right);
    let open = rows(&state);
    assert_eq!(state.take_news(picture(later())), Some(Request::Waits));
    assert_eq!(rows(&state), open, "the old ones stay until then");
    answered(&mut state, Answer::Waits(Ok(waits())));
    assert_eq!(rows(&state), open, "what was open is open");
    assert_eq!(press(&mut state, "v"), Some(Request::Times));
    answered(&mut state, Answer::Times(Ok(times())));
    assert_eq!(state.take_news(picture(later())), Some(Request::Times));
    press(&mut state, "v");
    state.take_news(picture(later()));
    assert_eq!(press(&mut state, "vv"), Some(Request::Waits), "those of an older picture are gone");
}
