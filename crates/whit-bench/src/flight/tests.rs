//! The table, and the verdict.

use super::*;

fn event(took_ms: f64, counted: u64, recorded: u64) -> Event {
    Event { took_ms, bytes: 3 << 20, covered_s: 10.5, counted, recorded }
}

#[test]
fn a_missing_switch_is_shown_and_is_a_failure() {
    let row = Row {
        machine: Machine::Idle,
        seconds: 10,
        events: vec![event(5.0, 100, 100), event(9.0, 100, 101), event(7.0, 50, 50)],
        switches_per_s: 228_000.0,
        cpu_percent: 1.25,
        memory_bytes: 40 << 20,
        refused: None,
    };
    let mut result = Measured { system: System::default(), bytes_max: 256 << 20, rows: vec![row] };
    let text = markdown(&result);
    assert!(text.contains("256M of records") && text.contains("| 7.00 (5.00–9.00) |"), "{text}");
    assert!(text.contains("0 of 250") && text.contains(" 228000 |"), "{text}");
    assert!(result.whit_succeeded());
    result.rows[0].events.push(event(5.0, 100, 99));
    assert!(markdown(&result).contains("1 of 350"));
    assert!(!result.whit_succeeded());
    result.rows[0].refused = Some("no right".to_owned());
    assert!(markdown(&result).contains("no right"));
}

#[test]
fn one_of_a_hundred_files_may_be_later() {
    let events: Vec<Event> = (0..200).map(|number| event(f64::from(number), 1, 1)).collect();
    let late = [&events[..], &events[..10], &[]].map(late_ms);
    assert!(late == [197.0, 9.0, 0.0], "{late:?}");
}

#[test]
fn context_switches_of_the_machine_are_counted() {
    let before = switches();
    std::thread::sleep(std::time::Duration::from_millis(10));
    assert!(switches() > before && before > 0);
}

#[test]
fn threads_that_wake_each_other_end() {
    drop(PingPong::start());
}
