//! The inputs and outputs of a controller.

use std::time::Duration;

/// How waits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// Every context switch.
    Exact,
    /// Samples of waits, in proportion to their duration.
    Sampled,
    /// No wait is recorded.
    #[default]
    None,
}

/// The settings of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The distance between two samples is so many times the one that was asked for. A power of two.
    pub stretch: u32,
    /// Context switches.
    pub waits: Waits,
    /// Stacks are taken to one part in so many of their depth. A power of two.
    pub stack_divisor: u32,
    /// Nothing is recorded.
    pub is_paused: bool,
}

/// The settings that a recording can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levers {
    /// The largest stretch, a power of two; 1 where the frequency cannot be changed.
    pub stretch_max: u32,
    /// How waits can be recorded: first as it was asked for, then with less and less cost.
    pub waits: Vec<Waits>,
    /// The largest divisor of the depth of stacks, a power of two; 1 where the depth cannot be changed.
    pub stack_divisor_max: u32,
}

impl Levers {
    /// The settings that were asked for.
    pub fn full(&self) -> Settings {
        let waits = self.waits.first().copied().unwrap_or_default();
        Settings { stretch: 1, waits, stack_divisor: 1, is_paused: false }
    }

    /// Those with the least cost without a pause.
    pub(crate) fn least(&self) -> Settings {
        let waits = self.waits.last().copied().unwrap_or_default();
        let (stretch, stack_divisor) = (self.stretch_max.max(1), self.stack_divisor_max.max(1));
        Settings { stretch, waits, stack_divisor, is_paused: false }
    }

    /// All settings but pauses, in the order in which they are tried: the frequency before the waits, and these before the
    /// depth of stacks.
    pub(crate) fn all(&self) -> impl Iterator<Item = Settings> {
        let waits = if self.waits.is_empty() { &[Waits::None][..] } else { &self.waits[..] };
        let (full, least) = (self.full(), self.least());
        let by_frequency = waits.iter().flat_map(move |waits| {
            let stretches = powers(1, least.stretch);
            stretches.map(move |stretch| Settings { stretch, waits: *waits, ..full })
        });
        let depths = powers(2, least.stack_divisor);
        by_frequency.chain(depths.map(move |stack_divisor| Settings { stack_divisor, ..least }))
    }
}

/// The powers of two from one number to another.
fn powers(first: u32, last: u32) -> impl Iterator<Item = u32> {
    let all = (0..32).map(|power| 1 << power);
    all.skip_while(move |power| *power < first).take_while(move |power| *power <= last)
}

/// The cost of a recording since the reading before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// The time between the two.
    pub elapsed: Duration,
    /// CPU time that the recorded CPUs had in that time, or that the recorded threads may use.
    pub capacity_ns: f64,
    /// CPU time for samples: where they were taken, and in the recorder.
    pub samples_ns: f64,
    /// CPU time for context switches.
    pub waits_ns: f64,
    /// All other CPU time of the recorder.
    pub other_ns: f64,
    /// Context switches, whether they were recorded or not.
    pub switches: f64,
}

impl Reading {
    /// All of the cost.
    pub fn cost_ns(&self) -> f64 {
        self.samples_ns + self.waits_ns + self.other_ns
    }
}

/// The largest part of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Taking samples, and writing them.
    Samples,
    /// Recording context switches or waits.
    Waits,
    /// The recorder's other work.
    Other,
}
