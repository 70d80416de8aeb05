//! Odd recordings, odd names and odd sizes.

use super::*;
use proptest::prelude::*;
use whit_view::stdio::Colour;

#[test]
fn a_recording_with_nothing_in_it_says_so_in_every_view() {
    let mut empty = Profile::default();
    empty.recording.path = "a\x1b[2J.data".into();
    let mut state = begin(empty);
    state.set_may_have_waits();
    assert!(text(&state).contains(r"The recording a\x1b[2J.data has no samples."));
    for it in "e+ECadtkFViP\n?qvv".chars() {
        key(&mut state, if it == '\n' { Key::Esc } else { Key::Char(it) });
        text(&state);
    }
}

#[test]
fn one_sample_is_a_profile() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, Who { comm: "a", pid: 1, tid: 1, cpu: None }, &[main()], 1);
    let mut state = begin(builder.profile);
    assert!(rows(&state)[0].contains("100.00% a"), "{}", text(&state));
    press(&mut state, "v");
    assert_eq!(screen(&state)[2], "100.00% a");
}

#[test]
fn names_reach_the_terminal_escaped_and_cut() {
    let mut builder = Builder::default();
    let event = builder.event("cyc\x1b[31mles");
    let template = format!("ns::Tree<{}>::insert\u{202e}", "int, ".repeat(2000));
    let who = Who { comm: "\x1b]0;x\x07", pid: 1, tid: 1, cpu: None };
    builder.sample(event, who, &[main(), at(&template, "/bin/\u{2066}evil", 1)], 10);
    let mut state = begin(builder.profile);
    for keys in ["", "E", "V", "v"] {
        press(&mut state, keys);
        let shown = text(&state);
        assert!(!shown.chars().any(|c| c != '\n' && whit_types::is_escaped(c)), "{shown:?}");
    }
    press(&mut state, "v");
    answered(&mut state, Answer::Times(Err("\x1b[2J".into())));
    let shown = text(&state);
    assert!(shown.contains(r"Tree<…>::insert\u{202e}") && shown.ends_with(r"\x1b[2J"), "{shown}");
}

#[test]
fn thousands_of_threads_are_rows() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for tid in 1..=5000 {
        builder.sample(event, Who { comm: "t", pid: 1, tid, cpu: None }, &[main()], 1);
    }
    let mut options = options();
    options.hists.sort = vec![whit_view::hists::SortKey::Tid];
    let mut state = sized(State::new(Begin::report(builder.profile, options)), 80, 24);
    key(&mut state, Key::End);
    assert!(screen(&state)[23].ends_with("5000/5000"), "{}", text(&state));
}

#[test]
fn colours_are_only_used_where_they_are_wanted() {
    let coloured = |colour| {
        let mut state = State::new(Begin::report(profile(), StdioOptions { colour, ..options() }));
        state = sized(state, 80, 24);
        let mut seen = false;
        for keys in ["", "v"] {
            press(&mut state, keys);
            let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
            terminal.draw(|frame| draw(&state, frame.area(), frame.buffer_mut())).unwrap();
            let cells = terminal.backend().buffer().content();
            let reset = ratatui::style::Color::Reset;
            seen |= cells.iter().any(|cell| cell.fg != reset || cell.bg != reset);
        }
        seen
    };
    assert!(!coloured(Colour::Never));
    assert!(coloured(Colour::Ansi));
}

fn any_key() -> impl Strategy<Value = Key> {
    let keys =
        "hqvae+ECdtkFVLPi/ 05\n".chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) });
    let moves = [Key::Up, Key::Down, Key::Left, Key::Right, Key::Home, Key::End];
    let others = [Key::PageUp, Key::PageDown, Key::Esc, Key::Tab, Key::BackTab, Key::Backspace];
    let all: Vec<Key> = keys.chain(moves).chain(others).collect();
    proptest::sample::select(all)
}

proptest! {
    #[test]
    fn no_keys_and_no_size_break_it(
        keys in prop::collection::vec(any_key(), 0..60),
        sizes in prop::collection::vec((0u16..130, 0u16..40), 1..4),
        x in 0u16..130,
        y in 0u16..40,
    ) {
        let mut state = begin(profile());
        state.set_may_have_waits();
        for (number, it) in keys.iter().enumerate() {
            let request = key(&mut state, *it);
            match request {
                Some(Request::Waits) => state.answer(Answer::Waits(Ok(waits()))),
                Some(Request::Times) => state.answer(Answer::Times(Ok(times()))),
                _ => {}
            }
            let (width, height) = sizes[number % sizes.len()];
            state.handle(Input::Resize { width, height });
            state.handle(Input::Click { x, y });
            state.handle(Input::Scroll(if number % 2 == 0 { 3 } else { -3 }));
            if width > 0 && height > 0 {
                screen(&state);
            }
        }
    }
}
