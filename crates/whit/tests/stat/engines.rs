//! Counting by BPF, and beside the kernel's cgroup events on the same work at the same time.

use crate::support::{Skip, counted, said, whit};
use crate::table::{Row, assert_close, rows, unseen};

/// BPF or nothing.
pub(crate) const ON: &str = "--bpf-counters=on";

/// Skips where BPF is refused.
pub(crate) fn need_bpf() -> Result<(), Skip> {
    let output = whit(&[ON, "-a", "-e", "dummy", "-G", "/", "true"]).output().expect("run whit");
    match output.status.success() {
        true => Ok(()),
        false => Err(Skip(format!("BPF is refused: {}", said(&output)))),
    }
}

/// Attempts to compare counts while the kernel shows all switches.
const ATTEMPTS_MAX: usize = 8;
/// What a switch that it does not show may bring to another cgroup.
const UNSEEN_MS: f64 = 15.0;
pub(crate) const UNSEEN_EVENTS: f64 = 400.0;

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

/// Compares each row, when the kernel has shown all switches, or with slack for each that it has not.
pub(crate) fn assert_agreement(options: &[&str], script: &str) {
    for attempt in 1..=ATTEMPTS_MAX {
        let ([ours, kernels], unseen) = both_ways(options, script);
        if unseen > 0.0 && attempt < ATTEMPTS_MAX {
            continue;
        }
        assert_eq!(ours.len(), kernels.len(), "{ours:?}\n{kernels:?}");
        for (our, kernel) in ours.iter().zip(&kernels).filter(|(row, _)| !row.cgroup.is_empty()) {
            assert_eq!((&our.event, &our.cgroup), (&kernel.event, &kernel.cgroup));
            assert!(kernel.count > 0.0, "{kernel:?}");
            let is_time = our.event.contains("clock");
            let slack =
                if is_time { UNSEEN_MS * unseen + 1.0 } else { UNSEEN_EVENTS * unseen + 4.0 };
            assert_close(&format!("{our:?}"), [our.count, kernel.count], 0.03, slack);
        }
        return;
    }
}
