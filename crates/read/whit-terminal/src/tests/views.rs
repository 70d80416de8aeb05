//! Flame graph, waits and time.

use super::*;
use crate::state::View;
use whit_types::Tid;
use whit_view::hists::SortKey;

#[test]
fn v_cycles_through_the_views_and_asks_for_their_data() {
    let mut state = begin(profile());
    state.set_may_have_waits();
    assert_eq!(press(&mut state, "v"), None);
    assert_eq!(state.view, View::Flame);
    assert_eq!(press(&mut state, "v"), Some(Request::Waits));
    answered(&mut state, Answer::Waits(Ok(waits())));
    assert_eq!(state.view, View::Waits);
    assert_eq!(press(&mut state, "v"), Some(Request::Times));
    answered(&mut state, Answer::Times(Ok(times())));
    assert_eq!(press(&mut state, "v"), None);
    assert_eq!(state.view, View::Table);
    let seen: Vec<_> = (0..3).map(|_| press(&mut state, "v")).collect();
    assert_eq!(seen, [None, None, None], "all is loaded");
}

#[test]
fn a_recording_without_waits_has_no_view_of_them() {
    let mut state = begin(profile());
    assert_eq!(press(&mut state, "vv"), Some(Request::Times));
    answered(&mut state, Answer::Times(Err("cannot be read".into())));
    assert_eq!((state.view, screen(&state)[23].as_str()), (View::Table, "cannot be read"));
    state.set_may_have_waits();
    assert_eq!(press(&mut state, "vv"), Some(Request::Waits));
    answered(&mut state, Answer::Waits(Err("no switches".into())));
    assert_eq!(screen(&state)[23], "no switches");
    assert_eq!(press(&mut state, "vv"), Some(Request::Times), "nobody asks again");
}

#[test]
fn frames_are_as_wide_as_their_shares() {
    let mut state = begin(profile());
    press(&mut state, "v");
    let lines = screen(&state);
    assert_eq!(lines[2], " 80.00% app");
    let width = |line: &str, name: &str| {
        let start = line.find(name).unwrap();
        line[start..].chars().position(|c| c == '▏').unwrap() + 1
    };
    assert_eq!((width(&lines[3], "app"), width(&lines[3], "other")), (64, 16));
    assert_eq!((width(&lines[5], "sort"), width(&lines[6], "compare")), (56, 40));
}

#[test]
fn frames_are_walked_and_zoomed() {
    let mut state = begin(profile());
    press(&mut state, "v");
    let mut head = |it| {
        key(&mut state, it);
        screen(&state)[2].clone()
    };
    assert_eq!(head(Key::Down), " 80.00% main");
    assert_eq!(head(Key::Down), " 70.00% sort");
    assert_eq!(head(Key::Right), " 10.00% vfs_read");
    assert_eq!(head(Key::Left), " 70.00% sort");
    assert_eq!(head(Key::End), " 50.00% compare");
    assert_eq!(head(Key::Up), " 70.00% sort");
    key(&mut state, Key::Enter);
    let zoomed = screen(&state);
    assert_eq!(zoomed[5].chars().count(), 80, "sort fills the width: {}", zoomed[5]);
    assert!(!zoomed.join("").contains("other"));
    assert!(matches!(press(&mut state, "a"), Some(Request::Code(it)) if it.name == "sort"));
    key(&mut state, Key::Esc);
    assert!(text(&state).contains("other"));
    state.handle(Input::Click { x: 70, y: 3 });
    assert_eq!(screen(&state)[2], " 20.00% other");
    press(&mut state, "t");
    assert!(screen(&state)[0].ends_with("command other"));
    assert!(!rows(&state).concat().contains("compare"));
}

#[test]
fn waits_are_shown_at_their_user_function_with_their_callers() {
    let mut state = begin(profile());
    state.set_may_have_waits();
    press(&mut state, "vv");
    answered(&mut state, Answer::Waits(Ok(waits())));
    let lines = screen(&state);
    assert_eq!(lines[2], "    Waited  Longest Switches    Lossy Waits in, called from");
    assert_eq!(lines[3], "   30.0 ms     0 ns       30   2.0 ms + lock [other]");
    assert_eq!(lines[4], "   10.0 ms     0 ns       10     0 ns + sleep [other]");
    press(&mut state, "\n");
    let open = rows(&state);
    assert!(open[0].ends_with("- lock [other]") && open[1].ends_with("  - work"), "{open:?}");
    assert!(open[2].ends_with("      main") && open[3].ends_with("+ sleep [other]"), "{open:?}");
    for it in [Key::Down, Key::Left, Key::Left, Key::Left] {
        key(&mut state, it);
    }
    assert_eq!(rows(&state).len(), 2);
    press(&mut state, "E");
    assert_eq!(rows(&state).len(), 5);
    press(&mut state, "C/lo\n");
    assert_eq!(rows(&state).len(), 1, "the filter is that of the table: {}", text(&state));
}

#[test]
fn the_strip_has_a_bar_for_each_stretch_of_time() {
    let mut state = begin(profile());
    press(&mut state, "vv");
    answered(&mut state, Answer::Times(Ok(times())));
    let lines = screen(&state);
    assert_eq!(lines[2], "At 1.000000 s, for 12.5 ms: 55.56% of all");
    let bars = &lines[3..18];
    assert!(bars[0].starts_with('A') && bars[0].len() == 1, "the largest is full: {bars:?}");
    assert!(bars[14].contains('B') && bars[14].ends_with('A'), "{bars:?}");
    assert!(lines[18].starts_with('^'));
    assert!(lines[19].starts_with("1.000000 s") && lines[19].ends_with("2.000000 s"));
    assert_eq!(lines[20..22], ["A  77.78% app", "B  22.22% other"]);
    key(&mut state, Key::End);
    assert!(screen(&state)[2].ends_with(": 22.22% of all"), "{}", screen(&state)[2]);
    state.handle(Input::Click { x: 39, y: 5 });
    assert!(screen(&state)[2].ends_with(": 22.22% of all"), "{}", screen(&state)[2]);
}

/// The strip of time, with the range of its first six columns asked for.
fn with_range() -> (State, Span) {
    let mut state = begin(profile());
    press(&mut state, "vv");
    answered(&mut state, Answer::Times(Ok(times())));
    press(&mut state, "r");
    (0..5).for_each(|_| assert_eq!(key(&mut state, Key::Right), None));
    let lines = screen(&state);
    assert_eq!(lines[2], "At 1.000000 s, for 75.0 ms: 55.56% of all; Enter: in all views");
    assert!(lines[18].starts_with("=====^-"), "{}", lines[18]);
    let Some(Request::Span(span)) = key(&mut state, Key::Enter) else { panic!("no request") };
    (state, span)
}

/// The samples of a range.
fn part() -> Arc<Profile> {
    let mut part = profile();
    part.rows.retain(|row| row.period == 50);
    Arc::new(part)
}

#[test]
fn all_views_follow_a_range_of_time() {
    let (mut state, span) = with_range();
    let (from, to) = (TimestampNs(1_000_000_000), TimestampNs(1_074_999_999));
    assert_eq!(span, Span { from, to });
    answered(&mut state, Answer::Span(span, Ok(part())));
    let lines = screen(&state);
    assert!(lines[0].ends_with("time 1.000000\u{2013}1.074999 s"), "{}", lines[0]);
    assert!(lines[18].starts_with("=====^-"), "the range stays: {}", lines[18]);
    press(&mut state, "v");
    assert!(text(&state).contains("compare") && !text(&state).contains("spin"));
    press(&mut state, "v");
    assert!(text(&state).contains("compare") && !text(&state).contains("other"));
    key(&mut state, Key::Esc);
    assert!(text(&state).contains("other"), "{}", text(&state));
    assert!(!screen(&state)[0].contains("time "), "{}", screen(&state)[0]);
}

#[test]
fn waits_of_another_range_are_read_again() {
    let (mut state, span) = with_range();
    state.set_may_have_waits();
    press(&mut state, "vvv");
    answered(&mut state, Answer::Waits(Ok(waits())));
    press(&mut state, "v");
    answered(&mut state, Answer::Span(span, Ok(part())));
    assert_eq!(press(&mut state, "vvv"), Some(Request::Waits));
    assert_eq!(state.span(), Some(span));
    answered(&mut state, Answer::Waits(Ok(waits())));
    key(&mut state, Key::Esc);
    assert_eq!((state.span(), state.view), (None, View::Table));
    assert_eq!(press(&mut state, "vv"), Some(Request::Waits));
}

#[test]
fn the_mouse_draws_a_range() {
    let (mut state, _) = with_range();
    assert_eq!(state.handle(Input::Click { x: 20, y: 5 }), None);
    assert_eq!(state.handle(Input::Drag { x: 9 }), None);
    assert!(screen(&state)[18].starts_with("---------^===========-"), "{}", screen(&state)[18]);
    let Some(Request::Span(span)) = state.handle(Input::Release) else { panic!("no request") };
    assert_eq!(span.from, TimestampNs(1_112_500_000));
    assert_eq!(span.to, TimestampNs(1_262_499_999));
    assert_eq!(state.handle(Input::Click { x: 20, y: 5 }), None);
    assert_eq!(state.handle(Input::Release), None, "a click alone draws nothing");
}

#[test]
fn a_range_that_is_not_chosen_or_cannot_be_read_changes_nothing() {
    let (mut state, span) = with_range();
    answered(&mut state, Answer::Span(span, Err("cannot be read".into())));
    assert!(text(&state).contains("cannot be read"));
    press(&mut state, "r");
    key(&mut state, Key::Esc);
    assert!(!text(&state).contains("Enter: in all views") && !text(&state).contains('='));
    press(&mut state, "vr");
    assert!(text(&state).contains("r begins a range in the view of time"), "{}", text(&state));
}

fn requests() -> RequestsText {
    let lines = ["# Requests: q (2 calls)", "# The slowest", "   1  9.0 ms", "   2  5.0 ms"];
    let requests = vec![(2, explain(1)), (3, explain(2))];
    RequestsText { lines: lines.map(str::to_owned).to_vec(), requests }
}

fn explain(rank: usize) -> Explain {
    Explain::Request("q".to_owned(), rank)
}

#[test]
fn enter_explains_a_request_and_esc_returns_to_the_requests() {
    let mut state = begin(profile());
    assert_eq!(press(&mut state, "R"), Some(Request::Requests));
    answered(&mut state, Answer::Requests(Ok(requests())));
    assert_eq!(press(&mut state, "\n"), Some(Request::Why(explain(1))), "the slowest is chosen");
    key(&mut state, Key::Down);
    assert_eq!(press(&mut state, "\n"), Some(Request::Why(explain(2))));
    answered(&mut state, Answer::Why(explain(2), Err("records were lost".to_owned())));
    assert!(text(&state).contains("5.0 ms") && text(&state).contains("records were lost"));
    answered(&mut state, Answer::Why(explain(2), Ok(vec!["99.00% waits: lock".to_owned()])));
    let lines = screen(&state);
    assert!(lines[0].contains("q:2") && lines[1] == "99.00% waits: lock", "{lines:?}");
    assert_eq!(press(&mut state, "\n"), None, "a path opens nothing");
    key(&mut state, Key::Esc);
    assert!(text(&state).contains("5.0 ms"));
    assert_eq!(press(&mut state, "\n"), Some(Request::Why(explain(2))), "it is still chosen");
    key(&mut state, Key::Up);
    key(&mut state, Key::Up);
    assert_eq!(press(&mut state, "\n"), None, "a heading opens nothing");
    key(&mut state, Key::Esc);
    assert!(text(&state).contains("sort"), "{}", text(&state));
}

#[test]
fn why_is_asked_of_the_thread_of_the_row_and_of_the_range_of_time() {
    let mut state = begin(profile());
    assert_eq!(press(&mut state, "w"), Some(Request::Why(Explain::Thread(None))));
    let path = vec!["100% runs".to_owned()];
    answered(&mut state, Answer::Why(Explain::Thread(None), Ok(path.clone())));
    assert!(screen(&state)[0].ends_with("Why: critical path"), "{}", text(&state));
    key(&mut state, Key::Esc);
    assert!(text(&state).contains("sort"));
    let span = Span { from: TimestampNs(1_000_000_000), to: TimestampNs(1_500_000_000) };
    answered(&mut state, Answer::Span(span, Ok(Arc::new(profile()))));
    answered(&mut state, Answer::Why(Explain::Thread(None), Ok(path)));
    let title = "critical path of 1.000000\u{2013}1.500000 s";
    assert!(screen(&state)[0].ends_with(title), "{}", text(&state));
    let sort = vec![SortKey::Tid, SortKey::Symbol];
    let by_thread = HistsOptions { sort, ..options().hists };
    let rows = StdioOptions { hists: by_thread, ..options() };
    let mut state = sized(State::new(Begin::report(profile(), rows)), 80, 24);
    assert_eq!(press(&mut state, "w"), Some(Request::Why(Explain::Thread(Some(Tid(7))))));
}
