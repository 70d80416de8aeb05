//! The interface of whole programs, on terminals that tmux makes.

mod screen;
mod top;

use screen::{Screen, whit};
use std::fs;
use whit_testing::{Skip, check, run};

fn golden(name: &str) -> String {
    let folder = run::repository().join("tests/recordings/golden");
    let (recording, root) = (folder.join(name).join("recording.data"), folder.join("root"));
    format!("-i {} --symfs {}", recording.display(), root.display())
}

/// The interface of a report.
fn report(name: &str) -> Result<Screen, Skip> {
    let screen = Screen::start(&format!("{} report {}", whit(), golden(name)), 80, 24)?;
    screen.shows("? keys");
    Ok(screen)
}

#[test]
fn every_key_of_the_table_does_what_the_help_says() {
    check("interface::every_key_of_the_table_does_what_the_help_says", || {
        let screen = report("perf-fp")?;
        let first = screen.shows("Children");
        assert!(first.contains("[.] burn") && first.contains("samples of 'cpu-clock"), "{first}");
        screen.after("h", " Keys");
        screen.after("Escape", "[.] burn");
        screen.after("?", " Keys");
        screen.after("q", "[.] burn");
        screen.after("F1", " Keys");
        screen.after("Left", "[.] burn");
        // Moving shows in the place at the right of the last line.
        let rows = first.lines().filter(|line| line.starts_with('+')).count();
        let place = |at: usize| format!("{at}/{rows}");
        screen.after("Down", &place(2));
        screen.after("Up", &place(1));
        screen.after("End", &place(rows));
        screen.after("Home", &place(1));
        screen.after("NPage", &place(rows));
        screen.after("PPage", &place(1));
        screen.after("Space", &place(rows));
        screen.press(["Home"]);
        screen.after("Enter", "- 100.00% 0");
        screen.after("C", &place(1));
        screen.after("Right", "- 100.00% 0");
        screen.after("Left", &place(1));
        screen.after("e", "- 100.00% 0");
        screen.after("e", &place(1));
        screen.after("+", "- 100.00% 0");
        screen.after("+", &place(1));
        screen.after("E", "- 100.00% outer");
        screen.after("C", &place(1));
        screen.after("d", "binary spin");
        screen.after("Escape", &place(1));
        screen.after("t", "command spin");
        screen.after("Escape", &place(1));
        screen.after("k", "No row passes the filters");
        screen.after("Escape", &place(1));
        screen.after("/", "Functions with this in their names");
        screen.after("o u t Enter", "/out");
        screen.after("F", "shares are of the samples that zooms and filters leave");
        screen.after("F", "shares are of all samples");
        screen.after("Escape", &place(1));
        screen.after("L", "Leave out rows below this percentage");
        screen.after("C-u 1 0 1 Enter", "a limit is a percentage");
        screen.after("V", "burn in /");
        screen.after("V", &place(1));
        let header = screen.after("i", " Recording");
        assert!(header.contains("hostname"), "{header}");
        screen.after("q", &place(1));
        screen.after("q", "ended with 0");
        Ok(())
    });
}

/// By the shipped recording, in which a request waits for a lock, and sleeps for 20 ms.
#[test]
fn requests_and_threads_are_explained_by_their_paths() {
    check("interface::requests_and_threads_are_explained_by_their_paths", || {
        let data = run::repository().join("tests/recordings/requests/requests.data");
        let line = format!("{} report -i {}", whit(), data.display());
        let screen = Screen::start(&line, 120, 40)?;
        screen.shows("? keys");
        screen.after("R", " Requests");
        let second = screen.after("Down Enter", "Why request call:2 took its time");
        assert!(second.contains("waits: sleep in handle for 20ms"), "{second}");
        assert!(second.contains("holder (10149)"), "the thread that had the lock: {second}");
        screen.after("End", "on CPU");
        screen.after("Escape", " Requests");
        screen.after("Escape", "? keys");
        let path = screen.after("w", "Why: critical path");
        assert!(path.contains("Interval: 108.5 ms of thread server (10137)"), "{path}");
        screen.after("Escape", "? keys");
        screen.after("q", "ended with 0");
        // The message begins with the path.
        let line = format!("{} report {}", whit(), golden("perf-fp"));
        let screen = Screen::start(&line, 300, 24)?;
        screen.shows("? keys");
        screen.after("R", "has no requests: record with whit record --request");
        screen
            .after("w", "has no context switches: record with whit record --engine=bpf --wakeups");
        Ok(())
    });
}

#[test]
fn code_is_shown_at_its_hottest_instruction() {
    check("interface::code_is_shown_at_its_hottest_instruction", || {
        let screen = report("perf-fp")?;
        let code = screen.after("a", " Code of burn");
        assert!(code.contains("%") && code.lines().any(|line| line.contains(" : ")), "{code}");
        screen.after("Escape", "[.] burn");
        Ok(())
    });
}

#[test]
fn v_cycles_through_table_flame_graph_and_time() {
    check("interface::v_cycles_through_table_flame_graph_and_time", || {
        let screen = report("perf-fp")?;
        screen.after("v", "100.00% spin");
        screen.after("Down Down", "100.00% _start");
        screen.after("Enter Left Right Up", "100.00% 0");
        let time = screen.after("v", "A 100.00% spin");
        assert!(time.contains("At ") && time.contains("\nA "), "{time}");
        screen.after("v", "Children");
        Ok(())
    });
}

/// Samples in the title.
fn samples(screen: &str) -> u64 {
    screen.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn all_views_follow_a_range_of_time() {
    check("interface::all_views_follow_a_range_of_time", || {
        let screen = report("perf-fp")?;
        let all = samples(&screen.text());
        screen.after("v", "100.00% spin");
        screen.after("v", "At ");
        screen.after("r", "Enter: in all views");
        screen.press(["Right"; 20]);
        // The title of a range; the progress of reading it has "time" as well.
        let shown = screen.after("Enter", "\u{2013}");
        let title = shown.lines().next().unwrap();
        let (from, to) = title.rsplit_once("time ").unwrap().1.split_once('\u{2013}').unwrap();
        let time = format!("{from},{}", to.trim_end_matches(" s"));
        let line = format!("report --json --time {time} {}", golden("perf-fp"));
        let json = run::text(run::whit(&whit()).args(line.split(' ')));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let expected = json["events"][0]["samples"].as_u64().unwrap();
        assert!(expected > 0 && expected < all, "{expected} of {all}");
        assert_eq!(samples(&shown), expected, "{shown}");
        assert_eq!(samples(&screen.after("v", "Children")), expected);
        assert_eq!(samples(&screen.after("v", "100.00% spin")), expected);
        screen.press(["Escape"]);
        assert!(whit_testing::wait::is_soon(|| samples(&screen.text()) == all));
        // The mouse: pressed in column 5 of line 6, drawn to column 40, let go.
        screen.after("v", "At ");
        screen.send("\x1b[<0;5;6M\x1b[<32;40;6M");
        screen.shows("Enter: in all views");
        screen.send("\x1b[<0;40;6m");
        let shown = screen.shows("\u{2013}");
        assert!((1..all).contains(&samples(&shown)), "{shown}");
        Ok(())
    });
}

#[test]
fn tab_selects_the_next_event() {
    check("interface::tab_selects_the_next_event", || {
        let screen = report("perf-tracepoint")?;
        let first = screen.shows("(event 1 of ");
        let second = screen.after("Tab", "(event 2 of ");
        assert_ne!(first.lines().next(), second.lines().next());
        screen.after("BTab", "(event 1 of ");
        Ok(())
    });
}

#[test]
fn switches_begin_with_waits() {
    check("interface::switches_begin_with_waits", || {
        let line = format!("{} switches {}", whit(), golden("perf-switches"));
        let screen = Screen::start(&line, 80, 24)?;
        let waits = screen.shows("Waits in, called from");
        assert!(waits.contains("[no call stack]"), "{waits}");
        screen.after("i", "Context switches: 4");
        screen.after("q q", "ended with 0");
        Ok(())
    });
}

#[test]
fn losses_are_shown_below_the_title() {
    check("interface::losses_are_shown_below_the_title", || {
        let screen = report("losses")?;
        let text = screen.text();
        let third = text.lines().nth(2).unwrap_or_default();
        assert!(third.starts_with("Lost: "), "{text}");
        Ok(())
    });
}

#[test]
fn a_report_is_saved_to_a_new_file_alone() {
    check("interface::a_report_is_saved_to_a_new_file_alone", || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("saved.txt");
        let screen = report("perf-fp")?;
        screen.after("P C-u", "Write the report as text to this new file: _");
        screen.send(file.to_str().unwrap());
        screen.after("Enter", "wrote ");
        let saved = fs::read_to_string(&file).unwrap();
        assert!(saved.contains("[.] burn\n") && saved.contains("---outer\n"), "{saved}");
        screen.after("P C-u", "file: _");
        screen.send(file.to_str().unwrap());
        screen.after("Enter", "cannot write ");
        assert_eq!(fs::read_to_string(&file).unwrap(), saved);
        Ok(())
    });
}

#[test]
fn the_mouse_and_another_size_work() {
    check("interface::the_mouse_and_another_size_work", || {
        let screen = report("perf-fp")?;
        // The left button at column 20 of line 5, which is the second row.
        screen.send("\x1b[<0;20;5M");
        screen.shows("2/");
        screen.send("\x1b[<0;20;5M");
        screen.shows("- 100.00% outer");
        screen.send("\x1b[<65;20;5M");
        screen.shows("5/");
        screen.resize(120, 40);
        let last = |text: &str| text.lines().count();
        let text = screen.shows("Children");
        assert!(whit_testing::wait::is_soon(|| last(&screen.text()) == 40), "{text}");
        let text = screen.text();
        assert!(text.lines().last().unwrap().starts_with("? keys"), "{text}");
        screen.resize(20, 5);
        screen.after("q", "ended with 0");
        Ok(())
    });
}

#[test]
fn colours_are_left_out_where_the_environment_says_so() {
    check("interface::colours_are_left_out_where_the_environment_says_so", || {
        let has_colours = |variables: &str| {
            let line = format!("{variables} {} report {}", whit(), golden("perf-fp"));
            let screen = Screen::start(&line, 80, 24)?;
            screen.shows("Children");
            Ok(screen.painted().contains("\x1b[38;5;1m"))
        };
        assert!(has_colours("env")?);
        assert!(!has_colours("env NO_COLOR=1")?);
        Ok(())
    });
}

#[test]
fn text_is_for_dumb_terminals_and_those_who_ask() {
    check("interface::text_is_for_dumb_terminals_and_those_who_ask", || {
        for (variables, options) in [
            ("PAGER=", "--stdio"),
            ("PAGER= TERM=dumb", ""),
            ("PAGER= TERM=", ""),
            ("", "--no-pager"),
            ("PAGER=", "-q"),
        ] {
            let line = format!("env {variables} {} report {options} {}", whit(), golden("perf-fp"));
            let screen = Screen::start(&line, 80, 60)?;
            let text = screen.shows("ended with 0");
            assert!(text.contains("---outer"), "{variables} {options}: {text}");
        }
        Ok(())
    });
}

#[test]
fn text_is_cut_at_the_width_of_the_terminal() {
    check("interface::text_is_cut_at_the_width_of_the_terminal", || {
        let text_of = |options: &str| {
            let line = format!("PAGER= {} report --stdio {options} {}", whit(), golden("perf-fp"));
            let screen = Screen::start(&line, 70, 80)?;
            Ok(screen.shows("ended with 0"))
        };
        let cut = text_of("")?;
        assert!(
            cut.contains("\n#   recordings (from 6 blocks of 1.0 ms)"),
            "facts go on in a further line: {cut}"
        );
        assert!(cut.contains("[.] 00000…"), "{cut}");
        for whole in ["--width 0", "-w 0"] {
            let text = text_of(whole)?;
            assert!(text.contains("0000000000000000"), "{whole}: {text}");
        }
        Ok(())
    });
}

#[test]
fn without_its_program_the_result_is_text() {
    check("interface::without_its_program_the_result_is_text", || {
        let folder = tempfile::tempdir().unwrap();
        let alone = folder.path().join("whit");
        run::copy_program(whit(), &alone);
        let line = format!("PAGER= {} report {}", alone.display(), golden("perf-fp"));
        let screen = Screen::start(&line, 80, 60)?;
        let text = screen.shows("ended with 0");
        assert!(text.contains("there is no whit-terminal"), "{text}");
        assert!(text.contains("---outer"), "{text}");
        Ok(())
    });
}
