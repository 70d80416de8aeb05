//! The times of waits beside those of the program's own clock: how far they are apart is the machine's affair as well.

use whit_testing::measure::assert_median_at_most;

use super::{agree, locks, number, row, with_wakeups};
use crate::support::check;

/// The way into and out of the kernel, with its records, and back to the clock, in a virtual machine.
const CALL_NS: u64 = 150_000;

#[test]
fn waits_are_as_long_as_the_calls() {
    check("waits_are_as_long_as_the_calls", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        assert_median_at_most(
            "waits are shorter than the calls, as a share of the tolerance",
            1.0,
            || {
                let all = with_wakeups(&data)?;
                let json = locks(&data, &[]);
                agree(&json, &all);
                let share = all.iter().map(|(name, of_program)| {
                    let total_ns = number(&row(&json, name)["sums"], "total_ns");
                    (of_program.wait_ns - total_ns) as f64 / (of_program.waits * CALL_NS) as f64
                });
                Ok(share.fold(0.0, f64::max))
            },
        )
    });
}
