//! Counting by BPF, and beside the kernel's cgroup events on the same work at the same time.

use super::support::{Skip, counted, whit};
use super::table::{Row, assert_close, rows, unseen};

/// BPF or nothing.
pub(crate) const ON: &str = "--bpf-counters=on";

/// Counts until the kernel has shown all switches, at most so often.
const ATTEMPTS_MAX: usize = 8;
/// Switches that the kernel may hide from a count that is still compared. Each brings what ran next to it to
/// another cgroup; with more of them the slack below would hide real errors.
const UNSEEN_MAX: f64 = 2.0;
/// One such switch: a time slice on a busy CPU, and the faults of one short process.
const UNSEEN_MS: f64 = 15.0;
const UNSEEN_EVENTS: f64 = 400.0;

/// How much a count of events may be off for switches that the kernel has hidden.
///
/// # Errors
///
/// Where it has hidden too many for a comparison.
pub(crate) fn slack_of_events(unseen: f64) -> Result<f64, Skip> {
    match unseen <= UNSEEN_MAX {
        true => Ok(UNSEEN_EVENTS * unseen),
        false => Err(Skip(format!("the kernel hid {unseen} switches from a comparison"))),
    }
}

/// Counts both ways: whit with BPF around whit with the kernel's events around the work.
fn both_ways(options: &[&str], script: &str) -> ([Vec<Row>; 2], f64) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kernel");
    let kernel = whit(&[&["--bpf-counters=off", "-o", file.to_str().unwrap()], options].concat());
    let program = kernel.get_program().to_str().unwrap().to_owned();
    let inside: Vec<_> = kernel.get_args().map(|arg| arg.to_str().unwrap().to_owned()).collect();
    let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
    let line = [&[ON], options, &[&program], &inside, &["sh", "-c", script]].concat();
    let text = counted(&line);
    let kernel = std::fs::read_to_string(&file).unwrap();
    ([rows(&text), rows(&kernel)], unseen(&text))
}

/// Compares each row. It compares the first count in which the kernel has shown all switches. If there is
/// none of so many, it compares the last one with slack for a few hidden switches.
pub(crate) fn assert_agreement(options: &[&str], script: &str) -> Result<(), Skip> {
    let mut attempts = (0..ATTEMPTS_MAX).map(|_| both_ways(options, script));
    let mut last = attempts.next().expect("there is an attempt");
    while last.1 > 0.0 {
        let Some(next) = attempts.next() else { break };
        last = next;
    }
    let ([ours, kernels], unseen) = last;
    let slack_of_events = slack_of_events(unseen)?;
    assert_eq!(ours.len(), kernels.len(), "{ours:?}\n{kernels:?}");
    for (our, kernel) in ours.iter().zip(&kernels).filter(|(row, _)| !row.cgroup.is_empty()) {
        assert_eq!((&our.event, &our.cgroup), (&kernel.event, &kernel.cgroup));
        assert!(kernel.count > 0.0, "{kernel:?}");
        let is_time = our.event.contains("clock");
        let slack = if is_time { UNSEEN_MS * unseen + 1.0 } else { slack_of_events + 4.0 };
        assert_close(&format!("{our:?}"), [our.count, kernel.count], 0.03, slack);
    }
    Ok(())
}
