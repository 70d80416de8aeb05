//! Code that the tests share.

pub(crate) mod counting;
pub(crate) mod group;
pub(crate) mod load;

pub(crate) use whit_testing::{Skip, check, probe};

/// Whether two counts are the same but for this share of the larger one, and for `slack`.
pub(crate) fn assert_close(what: &str, a: u64, b: u64, share: f64, slack: u64) {
    let allowed = (a.max(b) as f64 * share) as u64 + slack;
    assert!(a.abs_diff(b) <= allowed, "{what}: {a} and {b} differ by more than {allowed}");
}

/// Attempts to compare counts while the kernel shows all switches.
const ATTEMPTS_MAX: usize = 8;
/// Switches that the kernel may hide from a count that is still compared: with more of them, the slack would
/// hide real errors.
const UNSEEN_MAX: u64 = 2;
/// The most that one unseen switch may bring to another cgroup: time, and faults or switches.
const UNSEEN_NS: u64 = 15_000_000;
const UNSEEN_EVENTS: u64 = 400;

/// How exactly counts must agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack {
    pub(crate) time_ns: u64,
    pub(crate) events: u64,
}

/// Compares when the kernel has shown all switches. Some kernels do not show switches of some tasks of the
/// system's own, and the counts of the task that ran next cannot be compared exactly. After some attempts, the
/// comparison has slack for a few such switches, and with more of them the test is skipped with a message. The
/// body counts, and gives the number of unseen switches and the comparison.
pub(crate) fn undisturbed<C: FnOnce(Slack)>(
    mut body: impl FnMut() -> Result<(u64, C), Skip>,
) -> Result<(), Skip> {
    for attempt in 1.. {
        let (unseen, compare) = body()?;
        if unseen > UNSEEN_MAX && attempt == ATTEMPTS_MAX {
            return Err(Skip(format!("the kernel hid {unseen} switches from a comparison")));
        }
        if unseen == 0 || attempt == ATTEMPTS_MAX {
            compare(Slack { time_ns: unseen * UNSEEN_NS, events: unseen * UNSEEN_EVENTS });
            break;
        }
    }
    Ok(())
}
