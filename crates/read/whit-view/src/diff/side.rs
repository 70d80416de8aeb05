//! One side of a comparison: estimates from the blocks of one recording, or from several recordings.

use std::collections::BTreeMap;

use whit_estimate::{Estimate, Loss, Parts, RatioSum, Tested};
use whit_types::OutsideText;

use super::DiffError;
use super::options::Per;
use super::run::{FunctionName, Run, RunEvent, RunFunction};
use crate::hists::RowSums;

/// Source of a side's errors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scatter {
    /// So many blocks of so many nanoseconds.
    Blocks(usize, u64),
    /// So many recordings.
    Runs(usize),
}

/// One event on one side.
#[derive(Debug)]
pub(super) struct Side<'r> {
    pub(super) scatter: Scatter,
    pub(super) samples: u64,
    pub(super) period: u64,
    pub(super) lost: u64,
    /// The event as a whole, unless it is its own divisor.
    pub(super) total: Option<Tested>,
    pub(super) functions: BTreeMap<&'r FunctionName, Function<'r>>,
    values: Values,
}

/// Estimates of a function.
#[derive(Clone, Debug)]
pub(super) struct Function<'r> {
    pub(super) own: Tested,
    pub(super) own_samples: u64,
    pub(super) children: Tested,
    pub(super) children_samples: u64,
    /// The function in the side's first recording that has it.
    pub(super) of_run: &'r RunFunction,
}

/// From weights to values, with their losses.
#[derive(Clone, Copy, Debug)]
struct Values {
    scale: f64,
    /// Squared standard error of a function that has one sample.
    least_variance: f64,
    lost: Lost,
    freedom: f64,
}

#[derive(Clone, Copy, Debug)]
enum Lost {
    /// A share of all samples.
    Share(Loss),
    /// So much would be added.
    Added(f64),
}

impl Values {
    fn tested(&self, estimate: Estimate) -> Tested {
        let estimate = estimate.with_least_variance(self.least_variance);
        let range = match self.lost {
            Lost::Share(loss) => loss.widen((estimate.value, estimate.value)),
            Lost::Added(lost) => (estimate.value, estimate.value + lost),
        };
        let range = (range.0 * self.scale, range.1 * self.scale);
        Tested { estimate: estimate.scaled(self.scale), range }
    }

    /// A function without any sample.
    fn nothing(&self) -> Tested {
        self.tested(Estimate { value: 0.0, variance: 0.0, freedom: self.freedom })
    }
}

/// A percentage is a share times that.
const PERCENT: f64 = 100.0;

impl<'r> Side<'r> {
    /// Joins the recordings of one side.
    pub(super) fn of(
        runs: &[(&'r Run, &'r RunEvent)],
        per: &Per,
        units: f64,
    ) -> Result<Self, DiffError> {
        let path = || runs.first().map_or_else(OutsideText::default, |(run, _)| run.path.clone());
        let events: Vec<&RunEvent> = runs.iter().map(|(_, event)| *event).collect();
        let sum =
            |value: fn(&RunEvent) -> u64| events.iter().map(|event| value(event)).sum::<u64>();
        let (samples, period, lost) =
            (sum(|event| event.samples), sum(|event| event.period), sum(|event| event.lost));
        let divisors: Vec<f64> = events.iter().map(|event| divisor(event, per, units)).collect();
        let (parts, scatter) = match &events[..] {
            [event] => {
                let parts = event.parts.clone().ok_or_else(|| DiffError::TooShort(path()))?;
                let scatter = Scatter::Blocks(parts.count(), event.block_length_ns);
                (parts, scatter)
            }
            _ => {
                let parts =
                    Parts::new(divisors.clone()).ok_or_else(|| DiffError::Unequal(path()))?;
                (parts, Scatter::Runs(events.len()))
            }
        };
        let sample = period as f64 / samples.max(1) as f64;
        let values = Values {
            scale: if *per == Per::Share { PERCENT } else { 1.0 },
            least_variance: (sample / parts.total()).powi(2),
            lost: match per {
                Per::Share => Lost::Share(Loss::new(lost as f64 * sample, period as f64)),
                _ => Lost::Added(lost as f64 * sample / parts.total()),
            },
            freedom: parts.freedom(),
        };
        let total = match per {
            Per::Share => None,
            _ => Some(match &events[..] {
                [event] => event.total,
                _ => over_runs(&parts, events.iter().map(|event| event.period)),
            }),
        };
        let total = total.map(|sum| values.tested(sum.estimate(&parts)));
        let functions = functions(&events, &parts, &values);
        Ok(Side { scatter, samples, period, lost, total, functions, values })
    }

    /// The estimates of a function that this side does not have.
    pub(super) fn nothing(&self) -> Tested {
        self.values.nothing()
    }
}

/// The weight that a recording's samples are divided by.
fn divisor(event: &RunEvent, per: &Per, units: f64) -> f64 {
    match per {
        Per::Units(..) => units,
        Per::Share | Per::Event(_) => event.divisor,
    }
}

fn over_runs(parts: &Parts, values: impl Iterator<Item = u64>) -> RatioSum {
    let mut sum = RatioSum::default();
    values.enumerate().for_each(|(run, value)| sum.add(parts, run, value as f64));
    sum
}

/// Sums of a function over all recordings of a side.
#[derive(Default)]
struct Sums {
    rows: RowSums,
    own_samples: u64,
    children_samples: u64,
    /// Variances of the weights, from the blocks of each recording.
    own_in_blocks: f64,
    children_in_blocks: f64,
}

impl Sums {
    fn add_blocks(&mut self, event: &RunEvent, function: &RunFunction) {
        let Some(parts) = &event.parts else { return };
        let variance = |sum: &RatioSum| sum.estimate(parts).variance * parts.total().powi(2);
        self.own_in_blocks += variance(&function.sums.own);
        self.children_in_blocks += variance(&function.sums.children);
    }
}

fn functions<'r>(
    events: &[&'r RunEvent],
    parts: &Parts,
    values: &Values,
) -> BTreeMap<&'r FunctionName, Function<'r>> {
    let mut all: BTreeMap<&FunctionName, (Sums, &RunFunction)> = BTreeMap::new();
    for (run, event) in events.iter().enumerate() {
        for function in &event.functions {
            let (sums, _) = all.entry(&function.name).or_insert((Sums::default(), function));
            if events.len() == 1 {
                sums.rows = function.sums;
            } else {
                sums.rows.own.add(parts, run, function.own_period as f64);
                sums.rows.children.add(parts, run, function.children_period as f64);
                sums.add_blocks(event, function);
            }
            sums.own_samples += function.own_samples;
            sums.children_samples += function.children_samples;
        }
    }
    // Recordings scatter by chance too little now and then; never truly less than their own blocks do.
    let estimate = |sum: &RatioSum, in_blocks: f64| {
        let least = in_blocks / parts.total().powi(2);
        values.tested(sum.estimate(parts).with_least_variance(least))
    };
    let function = |(name, (sums, of_run)): (_, (Sums, _))| {
        let function = Function {
            own: estimate(&sums.rows.own, sums.own_in_blocks),
            own_samples: sums.own_samples,
            children: estimate(&sums.rows.children, sums.children_in_blocks),
            children_samples: sums.children_samples,
            of_run,
        };
        (name, function)
    };
    all.into_iter().map(function).collect()
}
