//! Tests that measure the running machine: all repetitions count.
//!
//! A figure that depends on the load of the machine is measured several times, and its median is compared with
//! the bound. Neither the best nor the worst repetition decides: one moment without a CPU does not fail a test,
//! and one lucky moment does not pass it. Such tests stand in modules of the name `measured`, which `make test`
//! runs alone, one after the other.
//!
//! Where other programs took CPUs in most repetitions, a median above the bound says nothing of the code: the test is
//! skipped, with the figures. `make test` allows [`TOO_BUSY`] few times.

use crate::Skip;
use std::path::Path;
use std::time::{Duration, Instant};

/// In the reason of a skip; `scripts/test.sh` counts these.
pub const TOO_BUSY: &str = "too busy to judge";

/// CPUs that others may take in a repetition. The kernel's own threads take less on a quiet machine.
const OTHERS_MAX: f64 = 0.2;

/// Generations of children that are looked for.
const DEPTH_MAX: usize = 8;

/// `/proc` counts CPU time in such steps (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// Repetitions of each measurement: the median stands two disturbed ones. No more are made once the others cannot
/// change on which side of the bound it lies.
pub const REPETITIONS: usize = 5;

/// Repeats a measurement; holds the median against a bound.
///
/// # Errors
///
/// Where the machine lacks something that a repetition needs.
///
/// # Panics
///
/// Where the median is above the bound.
pub fn assert_median_at_most(
    what: &str,
    bound: f64,
    mut measure: impl FnMut() -> Result<f64, Skip>,
) -> Result<(), Skip> {
    let (mut figures, mut others) = (Vec::new(), Vec::new());
    let is_within = loop {
        let load = OtherLoad::begin();
        figures.push(measure()?);
        others.push(load.cpus());
        if let Some(is_within) = median_is_within(bound, &figures) {
            break is_within;
        }
    };
    if is_within {
        return Ok(());
    }
    let judgement = format!("{what}: the median of {REPETITIONS} is above {bound}: {figures:?}");
    excuse(&judgement, &others).map_or_else(|| panic!("{judgement}"), Err)
}

/// Why figures above the bound say nothing of the code; `None` where others had few CPUs in most repetitions.
fn excuse(judgement: &str, others: &[f64]) -> Option<Skip> {
    let disturbed = others.iter().filter(|cpus| **cpus > OTHERS_MAX).count();
    let reason = || format!("{TOO_BUSY}: {judgement}, while others had so many CPUs: {others:?}");
    (disturbed * 2 > others.len()).then(|| Skip(reason()))
}

/// CPU time of all programs but this one and those that it started.
struct OtherLoad {
    since: Instant,
    ticks: u64,
}

impl OtherLoad {
    fn begin() -> OtherLoad {
        OtherLoad { since: Instant::now(), ticks: other_ticks().unwrap_or(0) }
    }

    /// CPUs that they had on average.
    fn cpus(&self) -> f64 {
        let ticks = other_ticks().unwrap_or(0).saturating_sub(self.ticks);
        ticks as f64 * TICK.as_secs_f64() / self.since.elapsed().as_secs_f64()
    }
}

fn other_ticks() -> Option<u64> {
    let all = all_ticks(&std::fs::read_to_string("/proc/stat").ok()?)?;
    Some(all.saturating_sub(ticks_of_tree(Path::new("/proc/self"), 0)?))
}

/// Those of a process, of children that it has waited for, and of all that run.
fn ticks_of_tree(process: &Path, depth: usize) -> Option<u64> {
    let own = own_ticks(&std::fs::read_to_string(process.join("stat")).ok()?)?;
    let threads = std::fs::read_dir(process.join("task")).ok()?.flatten();
    let lists = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let children: Vec<String> = lists
        .flatten()
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|_| depth < DEPTH_MAX)
        .collect();
    let of_child = |child: &String| ticks_of_tree(&Path::new("/proc").join(child), depth + 1);
    Some(own + children.iter().filter_map(of_child).sum::<u64>())
}

/// The first line has user, nice, system, then idle and iowait, irq, softirq, steal. The rest is a part of these.
fn all_ticks(stat: &str) -> Option<u64> {
    let fields: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).flat_map(str::parse).collect();
    let busy = fields.get(..8)?;
    Some(busy.iter().sum::<u64>() - busy[3] - busy[4])
}

/// Fields 14 to 17: user and system time, and those of children that were waited for.
fn own_ticks(stat: &str) -> Option<u64> {
    // The name may have blanks.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
}

/// Whether the median of all repetitions is at most the bound; the answer comes as soon as the repetitions so far
/// decide it. A value that is no number is above every bound.
fn median_is_within(bound: f64, figures: &[f64]) -> Option<bool> {
    let within = figures.iter().filter(|figure| **figure <= bound).count();
    let most = REPETITIONS / 2 + 1;
    match (within >= most, figures.len() - within >= most) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(figures: &[f64]) -> (Result<(), Skip>, usize) {
        let mut rest = figures.iter();
        let mut made = 0;
        let result = assert_median_at_most("a figure", 1.0, || {
            made += 1;
            rest.next().copied().ok_or_else(|| Skip("no PMU".to_owned()))
        });
        (result, made)
    }

    #[test]
    fn two_of_five_may_be_off() {
        let (result, made) = judged(&[9.0, 0.5, 1.0, 8.0, 0.2]);
        result.unwrap();
        assert_eq!(made, REPETITIONS);
        assert_eq!(judged(&[0.1, 0.2, 1.0]).1, 3, "the others cannot change it");
    }

    #[test]
    #[should_panic(expected = "[9.0, 0.5, 1.1, 0.2, NaN]")]
    fn three_of_five_may_not() {
        let _ = judged(&[9.0, 0.5, 1.1, 0.2, f64::NAN]);
    }

    #[test]
    fn only_others_in_most_repetitions_excuse_a_figure() {
        let excused = |others: &[f64]| excuse("above", others).map(|Skip(reason)| reason);
        assert_eq!(excused(&[0.1, 0.3, 0.1]), None);
        assert_eq!(excused(&[0.1, 0.3, 0.3, 0.1]), None);
        let reason = excused(&[0.1, 0.3, 0.3]).expect("an excuse");
        assert!(reason.starts_with("too busy to judge: above, "), "{reason}");
    }

    #[test]
    fn times_of_others_are_all_but_those_of_this_process() {
        assert_eq!(
            all_ticks("cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 1"),
            Some(1 + 2 + 4 + 32 + 64 + 128)
        );
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 200 400 800 20 0";
        assert_eq!(own_ticks(stat), Some(1500));
        assert_eq!((all_ticks("cpu 1"), own_ticks("7 (a)")), (None, None));
        assert!(other_ticks().is_some());
    }

    #[test]
    fn a_skip_ends_the_repetitions() {
        let (result, made) = judged(&[0.1]);
        assert_eq!((result.unwrap_err().0.as_str(), made), ("no PMU", 2));
    }
}
