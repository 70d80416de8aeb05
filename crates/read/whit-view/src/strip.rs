//! The time of samples: their weight in equal stretches of the recording, by command.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use whit_profile::model::{CommId, EventId, Profile};
use whit_types::TimestampNs;

/// Commands that are told apart; the others are one.
pub const MAX_COMMANDS: usize = 6;

/// Weights over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Strip {
    /// Beginning of the first stretch.
    pub start: TimestampNs,
    /// Length of all stretches together.
    pub length_ns: u64,
    /// Commands with the largest sums, the first one with the largest.
    pub commands: Vec<CommId>,
    /// Sum of each command; the last one is that of all others.
    pub sums: Vec<u64>,
    /// Stretches in order of time.
    pub stretches: Vec<Stretch>,
}

/// A stretch of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Stretch {
    /// Weight of each command, in the order of [`Strip::commands`]; the last one is that of all others.
    pub weights: Vec<u64>,
    /// True where records were lost.
    pub is_lossy: bool,
}

impl Stretch {
    /// The weight of all commands.
    pub fn total(&self) -> u64 {
        self.weights.iter().sum()
    }
}

/// Time, command and weight of samples.
type Sample = (TimestampNs, CommId, u64);

impl Strip {
    /// In so many stretches; `None` for a profile that was loaded without the time of samples, and for one without
    /// samples of the event.
    pub fn new(profile: &Profile, event: EventId, stretches: usize) -> Option<Strip> {
        let samples = samples(profile, event)?;
        let first = samples.iter().map(|sample| sample.0).min()?;
        let last = samples.iter().map(|sample| sample.0).max()?;
        let length_ns = last.since(first).saturating_add(1);
        let mut sums: FxHashMap<CommId, u64> = FxHashMap::default();
        for (_, comm, period) in &samples {
            *sums.entry(*comm).or_default() += period;
        }
        let mut commands: Vec<CommId> = sums.keys().copied().collect();
        commands.sort_by_key(|comm| (Reverse(sums[comm]), *comm));
        commands.truncate(MAX_COMMANDS);
        let stretches = stretches.max(1);
        let empty = Stretch { weights: vec![0; commands.len() + 1], is_lossy: false };
        let mut strip = Strip {
            start: first,
            length_ns,
            sums: empty.weights.clone(),
            commands,
            stretches: vec![empty; stretches],
        };
        for (time, comm, period) in samples {
            let rank = strip.commands.iter().position(|known| *known == comm);
            let rank = rank.unwrap_or(strip.commands.len());
            let at = strip.stretch_at(time);
            strip.stretches[at].weights[rank] += period;
            strip.sums[rank] += period;
        }
        for window in profile.singles.iter().flat_map(|singles| &singles.loss_windows) {
            let (from, to) = (strip.stretch_at(window.from), strip.stretch_at(window.to));
            strip.stretches[from..=to].iter_mut().for_each(|stretch| stretch.is_lossy = true);
        }
        Some(strip)
    }

    /// The beginning of a stretch.
    pub fn time_of(&self, stretch: usize) -> TimestampNs {
        let part = u128::from(self.length_ns) * stretch as u128 / self.stretches.len() as u128;
        TimestampNs(self.start.0.saturating_add(part as u64))
    }

    fn stretch_at(&self, time: TimestampNs) -> usize {
        let behind = u128::from(time.0.saturating_sub(self.start.0));
        let at = behind * self.stretches.len() as u128 / u128::from(self.length_ns);
        (at as usize).min(self.stretches.len() - 1)
    }
}

/// Each sample, or the sums of the stretches of time that the profile has.
fn samples(profile: &Profile, event: EventId) -> Option<Vec<Sample>> {
    let singles = profile.singles.as_ref()?;
    let of_row = |row: usize| profile.rows.get(row).filter(|row| row.event == event);
    let samples: Vec<Sample> = match singles.slice_ns {
        None => {
            let single = singles.samples.iter();
            single
                .filter_map(|one| Some((one.time, of_row(one.row as usize)?.comm, one.period)))
                .collect()
        }
        Some(slice_ns) => {
            let rows = profile.rows.iter().filter(|row| row.event == event);
            rows.filter_map(|row| {
                let begin = profile.facets_of(row)?.time?;
                Some((TimestampNs(begin.0 + slice_ns / 2), row.comm, row.period))
            })
            .collect()
        }
    };
    (!samples.is_empty()).then_some(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use whit_profile::model::{SingleSample, Singles};
    use whit_profile::switches::LossWindow;

    fn sampled() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        for comm in ["a", "b"] {
            let who = Who { comm, pid: 1, tid: 1, cpu: None };
            builder.sample(event, who, &[at("main", "a", 1)], 10);
        }
        let mut profile = builder.profile;
        let single =
            |time, row, period| SingleSample { time: TimestampNs(time), row, cpu: None, period };
        let samples =
            vec![single(100, 0, 4), single(150, 1, 7), single(199, 1, 3), single(120, 0, 6)];
        let loss_windows = vec![LossWindow { from: TimestampNs(160), to: TimestampNs(190) }];
        profile.singles = Some(Singles { samples, slice_ns: None, loss_windows });
        profile
    }

    #[test]
    fn samples_are_in_the_stretch_of_their_time() {
        let strip = Strip::new(&sampled(), EventId(0), 4).unwrap();
        let weights: Vec<_> = strip.stretches.iter().map(|it| it.weights.clone()).collect();
        assert_eq!(weights, [[10, 0, 0], [0, 0, 0], [0, 7, 0], [0, 3, 0]]);
        let lossy: Vec<_> = strip.stretches.iter().map(|it| it.is_lossy).collect();
        assert_eq!(lossy, [false, false, true, true]);
        assert_eq!((strip.time_of(2), strip.length_ns), (TimestampNs(150), 100));
    }

    #[test]
    fn a_profile_without_times_has_no_strip() {
        let mut profile = sampled();
        assert_eq!(Strip::new(&profile, EventId(1), 4), None);
        profile.singles = None;
        assert_eq!(Strip::new(&profile, EventId(0), 4), None);
    }

    #[test]
    fn one_sample_fills_the_first_stretch() {
        let mut profile = sampled();
        profile.singles.as_mut().unwrap().samples.truncate(1);
        let strip = Strip::new(&profile, EventId(0), 3).unwrap();
        assert_eq!(strip.stretches.iter().map(Stretch::total).collect::<Vec<_>>(), [4, 0, 0]);
    }
}
