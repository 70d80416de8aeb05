//! Requests as text and as JSON.

mod json;
#[cfg(test)]
mod tests;
mod text;

pub use json::{VERSION, write_json};
pub use text::{TextOptions, slowest_head, slowest_lines, write_text};

use whit_why::Activity;
use whit_why::{Counts, Parts, Requests};

/// Parts of a call with one column each; waits are in one. They add up to its duration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Columns {
    /// The thread runs.
    pub on_cpu_ns: u64,
    /// It could run, and has no CPU.
    pub run_queue_ns: u64,
    /// The quota of its cgroup is used up.
    pub throttled_ns: u64,
    /// It waits for something else.
    pub waiting_ns: u64,
    /// Switches were not recorded, or were lost.
    pub unknown_ns: u64,
}

impl Columns {
    /// Those of a call.
    pub fn of(parts: &Parts) -> Columns {
        let sum = |test: fn(Activity) -> bool| parts.sum_ns(test);
        Columns {
            on_cpu_ns: sum(|it| it == Activity::Running),
            run_queue_ns: sum(|it| matches!(it, Activity::RunQueue(_) | Activity::Runnable)),
            throttled_ns: sum(|it| it == Activity::Throttled),
            waiting_ns: sum(|it| matches!(it, Activity::Waiting(_) | Activity::StillWaiting(_))),
            unknown_ns: sum(|it| matches!(it, Activity::Unknown(_))),
        }
    }
}

/// Sentences about calls that are in no number.
pub fn remarks(requests: &Requests, index: usize) -> Vec<String> {
    use crate::units::counted;
    let of_name = &requests.names[index];
    let mut remarks = Vec::new();
    let others = of_name.nested + of_name.not_asked;
    if of_name.calls.is_empty() && others == 0 && of_name.counts == Counts::default() {
        let text = "no call is recorded: without -a and -p, only those of the command and its children are";
        remarks.push(text.to_owned());
    }
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            remarks.push(format!("{} {what}", counted(count, "call")));
        }
    };
    add(of_name.not_asked, "are left out: another key, or shorter");
    add(of_name.nested, "within others of the same name are a part of those (--nested lists them)");
    add(of_name.counts.open, "had not ended when the recording ended");
    add(
        of_name.counts.left,
        "ended without a return (longjmp, an exception, the end of the thread)",
    );
    add(of_name.counts.without_begin, "ended whose beginning is not recorded");
    add(of_name.counts.uncertain, "are left out: records were lost meanwhile");
    add(
        of_name.counts.ambiguous,
        "are left out: another thread answered than the one that read them, and this kernel does not say when its call began",
    );
    add(
        of_name.counts.handed_over,
        "were read by another thread than the one that answered: their parts are those of the latter",
    );
    remarks
}
