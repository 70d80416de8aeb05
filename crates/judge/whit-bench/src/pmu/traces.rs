//! Context switches, as different loads make them.

use serde::Serialize;

use crate::random::Random;

/// The next task of a CPU: a thread, or idle.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Switch {
    /// Process, from 1 on, and thread within it; `None`: idle.
    pub(crate) to: Option<(u64, u64)>,
}

/// A load.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) enum Trace {
    /// Two threads of one process in turn.
    PingPong,
    /// A thread and idle in turn.
    Idle,
    /// Threads of so many processes at random, two of each.
    Mix(u64),
    /// Six processes of eight threads, each in a cgroup of its own; a quarter of the switches to idle.
    Cgroups,
}

impl Trace {
    /// Those that are compared.
    pub(crate) const ALL: [Trace; 6] = [
        Trace::PingPong,
        Trace::Idle,
        Trace::Mix(2),
        Trace::Mix(8),
        Trace::Mix(32),
        Trace::Cgroups,
    ];

    /// Name of the trace in tables.
    pub(crate) fn name(self) -> String {
        match self {
            Trace::PingPong => "threads of one process".into(),
            Trace::Idle => "thread and idle".into(),
            Trace::Mix(processes) => format!("random mix of {processes} processes"),
            Trace::Cgroups => "6 cgroups of 8 threads, idle".into(),
        }
    }

    /// The first `count` switches; always the same.
    pub(crate) fn switches(self, count: u64) -> Vec<Switch> {
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
        let mut now = None;
        let mut next = |turn: u64| {
            now = loop {
                let to = self.next(turn, &mut random);
                // A switch is to another; idle is followed by somebody.
                if to != now {
                    break to;
                }
            };
            Switch { to: now }
        };
        (0..count).map(&mut next).collect()
    }

    fn next(self, turn: u64, random: &mut Random) -> Option<(u64, u64)> {
        match self {
            Trace::PingPong => Some((1, turn % 2)),
            Trace::Idle => turn.is_multiple_of(2).then_some((1, 0)),
            Trace::Mix(processes) => Some((1 + random.remainder(processes), random.remainder(2))),
            Trace::Cgroups if random.remainder(4) == 0 => None,
            Trace::Cgroups => Some((1 + random.remainder(6), random.remainder(8))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_is_to_another_and_traces_repeat() {
        for trace in Trace::ALL {
            let switches = trace.switches(1000);
            assert!(switches.windows(2).all(|pair| pair[0] != pair[1]), "{trace:?}");
            assert_eq!(switches, trace.switches(1000));
            assert_eq!(switches[..10], trace.switches(10));
        }
    }
}
