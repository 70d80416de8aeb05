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
        cpu_percent: 1.25,
        memory_bytes: 40 << 20,
        refused: None,
    };
    let mut result = Measured { system: System::default(), bytes_max: 256 << 20, rows: vec![row] };
    let text = markdown(&result);
    assert!(text.contains("256M of records") && text.contains("| 7.00 (5.00–9.00) |"), "{text}");
    assert!(text.contains("0 of 250"), "{text}");
    assert!(result.whit_succeeded());
    result.rows[0].events.push(event(5.0, 100, 99));
    assert!(markdown(&result).contains("1 of 350"));
    assert!(!result.whit_succeeded());
    result.rows[0].refused = Some("no right".to_owned());
    assert!(markdown(&result).contains("no right"));
}

#[test]
fn threads_that_wake_each_other_end() {
    drop(PingPong::start());
}
