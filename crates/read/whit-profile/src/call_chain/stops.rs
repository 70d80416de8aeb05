//! Counting why unwinding ended.

use crate::warning::Warning;
use whit_perfdata::feature::Features;
use whit_perfdata::unwound::Unwound;
use whit_unwind::StopReason;

/// How many chains ended for which reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopCounts {
    by_reason: [u64; StopReason::ALL.len()],
    /// Samples that are shorter than their fields say.
    pub(crate) unreadable_samples: u64,
    /// Samples whose stack was dumped and is none that whit unwinds.
    pub(crate) foreign_stacks: u64,
    /// Chains that branch records continue.
    pub(crate) continued: u64,
}

impl StopCounts {
    pub(crate) fn count(&mut self, stop: Option<StopReason>) {
        let index = stop.and_then(|stop| StopReason::ALL.iter().position(|r| *r == stop));
        if let Some(index) = index {
            self.by_reason[index] += 1;
        }
    }

    pub(crate) fn add(&mut self, other: &StopCounts) {
        self.by_reason
            .iter_mut()
            .zip(&other.by_reason)
            .for_each(|(a, b)| *a = a.saturating_add(*b));
        for (to, from) in [
            (&mut self.unreadable_samples, other.unreadable_samples),
            (&mut self.foreign_stacks, other.foreign_stacks),
            (&mut self.continued, other.continued),
        ] {
            *to = to.saturating_add(from);
        }
    }

    /// Those of stacks that were unwound when the recording was written again with call chains.
    pub(crate) fn of_chained(features: &Features) -> StopCounts {
        let Some(unwound) = features.unwound() else { return StopCounts::default() };
        let mut stops = StopCounts {
            unreadable_samples: unwound.unreadable_samples,
            foreign_stacks: unwound.foreign_stacks,
            continued: unwound.continued_chains,
            ..StopCounts::default()
        };
        stops.by_reason.iter_mut().zip(&unwound.ended).for_each(|(to, from)| *to = *from);
        stops
    }

    /// For a recording that is written with the chains.
    pub(crate) fn as_unwound(&self) -> Unwound {
        Unwound {
            unreadable_samples: self.unreadable_samples,
            foreign_stacks: self.foreign_stacks,
            continued_chains: self.continued,
            ended: self.by_reason.to_vec(),
        }
    }

    /// Reasons that occurred, with their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StopReason, u64)> + '_ {
        let all = StopReason::ALL.into_iter().zip(self.by_reason);
        all.filter(|(_, count)| *count > 0)
    }

    /// About samples that do not show all that they should.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let (samples, stacks) = (self.unreadable_samples, self.foreign_stacks);
        let unreadable = (samples > 0).then_some(Warning::UnreadableSamples { samples });
        let foreign = (stacks > 0).then_some(Warning::ForeignStacks { stacks });
        [unreadable, foreign].into_iter().flatten()
    }
}
