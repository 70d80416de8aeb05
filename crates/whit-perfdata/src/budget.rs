//! The history of a recording's settings, where the recorder kept its cost within a budget (`WHIT_BUDGET`).

use std::fmt;

use whit_types::TimestampNs;

use crate::bytes::Cursor;

/// Version of the encoding; the first word of the section.
const VERSION: u32 = 1;
/// A change of settings takes so much.
const ENTRY_BYTES: u32 = 24;
/// Changes that a recording states at most.
pub const CHANGES_MAX: usize = 1 << 16;

/// How waits are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordedWaits {
    /// By every context switch, or as it was asked for.
    #[default]
    AsAsked,
    /// By samples in place of every context switch.
    Sampled,
    /// No wait is recorded.
    None,
}

/// The largest part of the cost that a change was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CostCause {
    /// Taking samples, and writing them.
    #[default]
    Samples,
    /// Recording context switches or waits.
    Switches,
    /// Other work of the recorder: new processes and their code.
    Other,
}

/// The settings from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsChange {
    /// On the clock of the records; 0 where they were so before this output began.
    pub from: TimestampNs,
    /// The distance between samples is so many times the one that was asked for.
    pub stretch: u32,
    /// How waits are recorded.
    pub waits: RecordedWaits,
    /// Nothing is recorded.
    pub is_paused: bool,
    /// The reason for the change.
    pub cause: CostCause,
    /// The cost that was expected of the settings before, in millionths of the capacity.
    pub cost_ppm: u32,
}

/// The budget, and the settings by which it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetHistory {
    /// The cost that was allowed, in millionths of the capacity.
    pub budget_ppm: u32,
    /// CPUs that this is a share of, in thousandths, at the end.
    pub capacity_millicpus: u32,
    /// When the output began, on the clock of the records.
    pub begin: TimestampNs,
    /// When it ended.
    pub end: TimestampNs,
    /// In order of time; the first one is that of the beginning.
    pub changes: Vec<SettingsChange>,
    /// Later changes that were left out.
    pub left_out: u64,
    /// The cost over time.
    pub costs: CostOverTime,
}

/// Intervals of a cost over time at most. Where there are more, two become one of twice the length.
pub const INTERVALS_MAX: usize = 4096;

/// The cost in intervals of the same length, from the begin of the output on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CostOverTime {
    /// The length of an interval.
    pub interval_ms: u32,
    /// The mean cost in each, in millionths of the capacity.
    pub costs_ppm: Vec<u32>,
}

impl CostOverTime {
    /// Adds the cost of the next interval.
    pub fn push(&mut self, cost_ppm: u32) {
        self.costs_ppm.push(cost_ppm);
        if self.costs_ppm.len() < INTERVALS_MAX {
            return;
        }
        let mean = |pair: &[u32; 2]| u64::midpoint(pair[0].into(), pair[1].into()) as u32;
        self.costs_ppm = self.costs_ppm.as_chunks::<2>().0.iter().map(mean).collect();
        self.interval_ms = self.interval_ms.saturating_mul(2);
    }

    /// The mean of all.
    pub fn mean_ppm(&self) -> u32 {
        let sum: u64 = self.costs_ppm.iter().map(|cost| u64::from(*cost)).sum();
        sum.checked_div(self.costs_ppm.len() as u64).unwrap_or(0) as u32
    }
}

/// The section: version (4), size of an entry (4), budget (4), capacity (4), begin (8), end (8), entries left out (8),
/// number of entries (8), then the entries. Behind them are the length of an interval in ms (4), number of intervals (4), and the cost in
/// each (4). Later versions append fields to the entry.
pub(crate) fn encode(history: &BudgetHistory) -> Vec<u8> {
    let mut out = Vec::new();
    let words = [VERSION, ENTRY_BYTES, history.budget_ppm, history.capacity_millicpus];
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
    out.extend(history.begin.0.to_le_bytes());
    out.extend(history.end.0.to_le_bytes());
    out.extend(history.left_out.to_le_bytes());
    out.extend((history.changes.len() as u64).to_le_bytes());
    for change in &history.changes {
        out.extend(change.from.0.to_le_bytes());
        out.extend(change.stretch.to_le_bytes());
        let (waits, cause) = (change.waits as u8, change.cause as u8);
        out.extend([waits, u8::from(change.is_paused), cause, 0]);
        out.extend(change.cost_ppm.to_le_bytes());
        out.extend([0; 4]);
    }
    out.extend(history.costs.interval_ms.to_le_bytes());
    out.extend((history.costs.costs_ppm.len() as u32).to_le_bytes());
    history.costs.costs_ppm.iter().for_each(|cost| out.extend(cost.to_le_bytes()));
    out
}

/// Decodes the section, as far as it is whole; `None` for another version.
pub(crate) fn decode(bytes: &[u8]) -> Option<BudgetHistory> {
    let mut c = Cursor::new(bytes);
    if c.u32()? != VERSION {
        return None;
    }
    let size = c.u32()?;
    let (budget_ppm, capacity_millicpus) = (c.u32()?, c.u32()?);
    let (begin, end) = (TimestampNs(c.u64()?), TimestampNs(c.u64()?));
    let (left_out, count) = (c.u64()?, c.u64()?);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(CHANGES_MAX);
    let changes = std::iter::from_fn(|| decode_one(&mut c, size)).take(count).collect();
    let costs = decode_costs(&mut c).unwrap_or_default();
    Some(BudgetHistory { budget_ppm, capacity_millicpus, begin, end, changes, left_out, costs })
}

fn decode_costs(c: &mut Cursor<'_>) -> Option<CostOverTime> {
    let (interval_ms, count) = (c.u32()?, c.u32()?);
    let count = (count as usize).min(INTERVALS_MAX);
    let costs_ppm = std::iter::from_fn(|| c.u32()).take(count).collect();
    Some(CostOverTime { interval_ms, costs_ppm })
}

fn decode_one(c: &mut Cursor<'_>, size: u32) -> Option<SettingsChange> {
    let more = size.checked_sub(ENTRY_BYTES)?;
    let (from, stretch, kinds) = (TimestampNs(c.u64()?), c.u32()?, c.u32()?.to_le_bytes());
    let (cost_ppm, _) = (c.u32()?, c.u32()?);
    c.take(more as usize)?;
    Some(SettingsChange {
        from,
        stretch: stretch.max(1),
        waits: match kinds[0] {
            0 => RecordedWaits::AsAsked,
            1 => RecordedWaits::Sampled,
            _ => RecordedWaits::None,
        },
        is_paused: kinds[1] & 1 != 0,
        cause: match kinds[2] {
            0 => CostCause::Samples,
            1 => CostCause::Switches,
            _ => CostCause::Other,
        },
        cost_ppm,
    })
}

/// Parts of a time, in millionths, in which less was recorded than was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReducedShares {
    /// Fewer samples, while not paused.
    pub fewer_samples_ppm: u32,
    /// Waits as samples in place of every switch.
    pub sampled_waits_ppm: u32,
    /// Neither switches nor samples of waits.
    pub no_waits_ppm: u32,
    /// Neither samples nor waits.
    pub paused_ppm: u32,
}

impl BudgetHistory {
    /// The shares of the time of the output.
    pub fn shares(&self) -> ReducedShares {
        let (begin, end) = (self.begin, self.end);
        let mut shares = ReducedShares::default();
        let add = |sum: &mut u32, share: u32| *sum = sum.saturating_add(share).min(1_000_000);
        let whole = end.0.saturating_sub(begin.0);
        if whole == 0 {
            return shares;
        }
        let ends = self.changes.iter().skip(1).map(|change| change.from).chain([end]);
        for (change, until) in self.changes.iter().zip(ends) {
            let (from, to) = (change.from.max(begin), until.min(end));
            let share = (to.0.saturating_sub(from.0) as f64 / whole as f64 * 1e6) as u32;
            if change.is_paused {
                add(&mut shares.paused_ppm, share);
                continue;
            }
            if change.stretch > 1 {
                add(&mut shares.fewer_samples_ppm, share);
            }
            match change.waits {
                RecordedWaits::AsAsked => {}
                RecordedWaits::Sampled => add(&mut shares.sampled_waits_ppm, share),
                RecordedWaits::None => add(&mut shares.no_waits_ppm, share),
            }
        }
        shares
    }

    /// How many times longer than asked for the distance between samples was at most.
    pub fn largest_stretch(&self) -> u32 {
        self.changes.iter().map(|change| change.stretch).max().unwrap_or(1)
    }

    /// The first change by which less was recorded.
    pub fn first_reduction(&self) -> Option<&SettingsChange> {
        self.changes.iter().find(|change| {
            change.stretch > 1 || change.is_paused || change.waits != RecordedWaits::AsAsked
        })
    }
}

/// Less was recorded than was asked for; prints as one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The cost that was allowed, in millionths of the capacity.
    pub budget_ppm: u32,
    /// The capacity in thousandths of a CPU.
    pub capacity_millicpus: u32,
    /// The largest distance between samples, in times of the one that was asked for.
    pub stretch: u32,
    /// For which shares of the time.
    pub shares: ReducedShares,
    /// The time from the begin of the recording to the first reduction.
    pub first_after_ns: u64,
    /// Why that was made.
    pub cause: CostCause,
    /// The cost that was measured before it, in millionths of the capacity.
    pub cost_ppm: u32,
}

impl BudgetHistory {
    /// Its reductions in sum; `None` where nothing was left out.
    pub fn reduction(&self) -> Option<Reduction> {
        let first = self.first_reduction()?;
        Some(Reduction {
            budget_ppm: self.budget_ppm,
            capacity_millicpus: self.capacity_millicpus,
            stretch: self.largest_stretch(),
            shares: self.shares(),
            first_after_ns: first.from.0.saturating_sub(self.begin.0),
            cause: first.cause,
            cost_ppm: first.cost_ppm,
        })
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ppm: u32| f64::from(ppm) / 1e4;
        let shares = &self.shares;
        let fewer = format!("samples at down to 1/{} of their frequency", self.stretch);
        let parts = [
            (shares.fewer_samples_ppm, fewer.as_str()),
            (shares.sampled_waits_ppm, "samples of waits in place of every context switch"),
            (shares.no_waits_ppm, "no waits"),
            (shares.paused_ppm, "nothing at all"),
        ];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(share, _)| *share > 0)
            .map(|(share, what)| format!("{what} for {:.1}% of the time", percent(*share)))
            .collect();
        let cause = match self.cause {
            CostCause::Samples => "samples",
            CostCause::Switches => "context switches",
            CostCause::Other => "new processes and code",
        };
        write!(
            f,
            "less was recorded, to cost no more than {:.2}% of {:.1} CPUs (--max-overhead): {}; first after {:.1} s, \
             when the recording cost {:.2}%, most of it for {cause}",
            percent(self.budget_ppm),
            f64::from(self.capacity_millicpus) / 1e3,
            parts.join(", "),
            self.first_after_ns as f64 / 1e9,
            percent(self.cost_ppm),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(from: u64, stretch: u32, waits: RecordedWaits, is_paused: bool) -> SettingsChange {
        let (cause, cost_ppm) = (CostCause::Switches, 12_345);
        SettingsChange { from: TimestampNs(from), stretch, waits, is_paused, cause, cost_ppm }
    }

    fn history() -> BudgetHistory {
        use RecordedWaits::{AsAsked, None, Sampled};
        let changes = vec![
            change(0, 1, AsAsked, false),
            change(200, 8, Sampled, false),
            change(300, 8, None, true),
            change(400, 1, None, false),
        ];
        BudgetHistory {
            budget_ppm: 10_000,
            capacity_millicpus: 2000,
            begin: TimestampNs(100),
            end: TimestampNs(500),
            changes,
            left_out: 3,
            costs: CostOverTime { interval_ms: 1000, costs_ppm: vec![7000, 12_000, 5000] },
        }
    }

    #[test]
    fn a_history_is_read_as_it_was_written() {
        let bytes = encode(&history());
        assert_eq!(decode(&bytes), Some(history()));
        // A cut section ends with its last whole part.
        let cut = |bytes_less| decode(&bytes[..bytes.len() - bytes_less]).unwrap();
        assert_eq!(cut(1).costs.costs_ppm, [7000, 12_000]);
        assert_eq!(cut(21).changes, history().changes[..3]);
        // Later versions append fields to the entries.
        let mut longer = bytes[..48].to_vec();
        longer[4..8].copy_from_slice(&32u32.to_le_bytes());
        let costs = bytes.len() - 20;
        bytes[48..costs].chunks(24).for_each(|entry| longer.extend([entry, &[9; 8]].concat()));
        longer.extend(&bytes[costs..]);
        assert_eq!(decode(&longer), Some(history()));
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(decode(&other), None);
    }

    #[test]
    fn shares_are_those_of_the_time_that_is_asked_for() {
        let shares = history().shares();
        let wanted = ReducedShares {
            fewer_samples_ppm: 250_000,
            sampled_waits_ppm: 250_000,
            no_waits_ppm: 250_000,
            paused_ppm: 250_000,
        };
        assert_eq!(shares, wanted);
        let empty = BudgetHistory { end: TimestampNs(100), ..history() };
        assert_eq!(empty.shares(), ReducedShares::default());
        assert_eq!(history().first_reduction().unwrap().from, TimestampNs(200));
        assert_eq!(history().largest_stretch(), 8);
    }

    #[test]
    fn a_long_recording_has_longer_intervals_of_the_same_mean() {
        let mut costs = CostOverTime { interval_ms: 1000, ..CostOverTime::default() };
        (0..INTERVALS_MAX as u32).for_each(|at| costs.push(1000 + at % 2 * 2000));
        assert_eq!(costs.costs_ppm, vec![2000; INTERVALS_MAX / 2]);
        assert_eq!((costs.interval_ms, costs.mean_ppm()), (2000, 2000));
    }

    #[test]
    fn a_reduction_is_told_in_one_line() {
        let text = history().reduction().unwrap().to_string();
        assert_eq!(
            text,
            "less was recorded, to cost no more than 1.00% of 2.0 CPUs (--max-overhead): samples at down to 1/8 of \
             their frequency for 25.0% of the time, samples of waits in place of every context switch for 25.0% of \
             the time, no waits for 25.0% of the time, nothing at all for 25.0% of the time; first after 0.0 s, when \
             the recording cost 1.23%, most of it for context switches"
        );
        let whole = BudgetHistory { changes: history().changes[..1].to_vec(), ..history() };
        assert_eq!(whole.reduction(), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(history) = decode(&bytes) {
                let shares = history.shares();
                prop_assert!(shares.paused_ppm <= 1_000_000);
            }
        }
    }
}
