//! Windows in which the kernel times BPF programs, in the running kernel.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::time::{Duration, Instant};

use whit_bpf::RunTimer;

use crate::support::{check, probe};

/// Longest wait for an event that comes twice a second.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(5);

#[test]
fn runs_are_timed_for_a_part_of_the_time() {
    check("runs_are_timed_for_a_part_of_the_time", || {
        probe::bpf_statistics()?;
        let begin = Instant::now();
        // Where they are timed anyway there is no pause.
        let always = RunTimer::start(true).expect("nothing is asked for");
        let timer = RunTimer::start(false).expect("keep statistics");
        let (timed, began) = (always.timed(), Instant::now());
        // A window, a pause, and another window.
        let wait_until = |is_growing: bool| {
            while (timer.timed() < timer_later(&timer)) != is_growing {
                assert!(begin.elapsed() < PATIENCE, "{timer:?}");
            }
        };
        wait_until(true);
        wait_until(false);
        let one = timer.timed();
        // A later timer has the same windows, and none of the earlier sums.
        let second = RunTimer::start(false).expect("as before");
        assert!(second.timed() <= timer.timed() - one, "{second:?}");
        wait_until(true);
        wait_until(false);
        assert!(second.timed() > Duration::ZERO && second.timed() <= timer.timed() - one);
        assert!(one > Duration::ZERO && timer.timed() > one);
        assert!(timer.timed() < begin.elapsed(), "{timer:?}");
        let elapsed = began.elapsed();
        assert!(always.timed() >= timed + elapsed, "{always:?} {elapsed:?}");
        Ok(())
    });
}

fn timer_later(timer: &RunTimer) -> Duration {
    std::thread::sleep(LOOK);
    timer.timed()
}
