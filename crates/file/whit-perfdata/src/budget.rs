//! The settings by which a recorder keeps its cost within a budget, as records of the stream.
//!
//! Each is a LOST_SAMPLES record of no loss that has more words than the kernel gives it. So every reader of perf.data steps over
//! it, and each part of a stream has the settings that were in force. [`crate::budget_history`] is all of them together.
//! `docs/format.md` has the layout.

use crate::bytes::Cursor;

/// Tells such a record from one of a loss.
const MARK: u64 = u64::from_le_bytes(*b"WHITSETS");

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

/// The settings in force, and why they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSettings {
    /// The distance between samples is so many times the one that was asked for.
    pub stretch: u32,
    /// How waits are recorded.
    pub waits: RecordedWaits,
    /// Stacks are recorded to one part in so many of the depth that was asked for.
    pub stack_divisor: u32,
    /// Nothing is recorded.
    pub is_paused: bool,
    /// The reason for the last change to less.
    pub cause: CostCause,
    /// The cost that was expected of the settings before it, in millionths of the capacity.
    pub cost_ppm: u32,
}

impl Default for RecordedSettings {
    fn default() -> RecordedSettings {
        RecordedSettings {
            stretch: 1,
            waits: RecordedWaits::AsAsked,
            stack_divisor: 1,
            is_paused: false,
            cause: CostCause::Samples,
            cost_ppm: 0,
        }
    }
}

impl RecordedSettings {
    /// Less is recorded than was asked for.
    pub fn is_reduced(&self) -> bool {
        let is_waiting = self.waits == RecordedWaits::AsAsked;
        self.stretch > 1 || self.is_paused || !is_waiting || self.stack_divisor > 1
    }
}

/// The body of a record: the budget, the settings from its time on, and the cost since the record before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetRecord {
    /// The cost that is allowed, in millionths of the capacity.
    pub budget_ppm: u32,
    /// CPUs that this is a share of, in thousandths.
    pub capacity_millicpus: u32,
    /// In force from the time of the record on.
    pub settings: RecordedSettings,
    /// The mean cost in the time that the record states, in millionths of the capacity.
    pub mean_ppm: u32,
    /// The length of that time, which ends at the time of the record; 0 where no cost is stated.
    pub mean_over_ms: u32,
}

impl BudgetRecord {
    /// Fields of the record, behind its number of lost samples.
    pub(crate) fn fields(&self) -> Vec<u8> {
        let settings = &self.settings;
        let kinds = [settings.waits as u8, u8::from(settings.is_paused), settings.cause as u8, 0];
        let words = [
            self.budget_ppm,
            self.capacity_millicpus,
            settings.stretch,
            u32::from_le_bytes(kinds),
            settings.cost_ppm,
            settings.stack_divisor,
            self.mean_ppm,
            self.mean_over_ms,
        ];
        let mut fields = MARK.to_le_bytes().to_vec();
        fields.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        fields
    }

    /// From the body of a LOST_SAMPLES record; `None` where it states a loss. Later versions append fields.
    pub(crate) fn parse(body: &[u8]) -> Option<BudgetRecord> {
        if !is_marked(body) {
            return None;
        }
        let mut c = Cursor::new(body.get(16..)?);
        let (budget_ppm, capacity_millicpus) = (c.u32()?, c.u32()?);
        let (stretch, kinds) = (c.u32()?.max(1), c.u32()?.to_le_bytes());
        let (cost_ppm, stack_divisor) = (c.u32()?, c.u32()?.max(1));
        let (mean_ppm, mean_over_ms) = (c.u32()?, c.u32()?);
        let waits = match kinds[0] {
            0 => RecordedWaits::AsAsked,
            1 => RecordedWaits::Sampled,
            _ => RecordedWaits::None,
        };
        let cause = match kinds[2] {
            0 => CostCause::Samples,
            1 => CostCause::Switches,
            _ => CostCause::Other,
        };
        let is_paused = kinds[1] & 1 != 0;
        let settings =
            RecordedSettings { stretch, waits, stack_divisor, is_paused, cause, cost_ppm };
        Some(BudgetRecord { budget_ppm, capacity_millicpus, settings, mean_ppm, mean_over_ms })
    }
}

/// Whether the body of a LOST_SAMPLES record states settings, and no loss.
#[inline]
pub(crate) fn is_marked(body: &[u8]) -> bool {
    let words = body.first_chunk::<48>().map(|body| body.split_at(8));
    words.is_some_and(|(lost, rest)| lost == [0; 8] && rest.starts_with(&MARK.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags, SampleType};
    use crate::encode::RecordEncoder;
    use crate::record::{RawRecord, SideBand};
    use crate::sample::{SampleId, SampleLayout};
    use whit_types::TimestampNs;

    fn layout() -> SampleLayout {
        let sample_type = SampleType::TID | SampleType::TIME | SampleType::IDENTIFIER;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() })
    }

    fn bytes(written: &BudgetRecord) -> Vec<u8> {
        let id = SampleId { time: Some(TimestampNs(77)), id: Some(9), ..SampleId::default() };
        let mut out = Vec::new();
        RecordEncoder::new(layout()).budget(&mut out, written, id);
        out
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let waits = [RecordedWaits::AsAsked, RecordedWaits::Sampled, RecordedWaits::None];
        let causes = [CostCause::Samples, CostCause::Switches, CostCause::Other];
        for (at, (waits, cause)) in waits.into_iter().zip(causes).enumerate() {
            let (is_paused, cost_ppm) = (at == 1, 12_345);
            let settings = RecordedSettings {
                stretch: 8,
                waits,
                stack_divisor: 4,
                is_paused,
                cause,
                cost_ppm,
            };
            let (budget_ppm, capacity_millicpus) = (10_000, 2500);
            let (mean_ppm, mean_over_ms) = (777, 1000);
            let written =
                BudgetRecord { budget_ppm, capacity_millicpus, settings, mean_ppm, mean_over_ms };
            let out = bytes(&written);
            let (record, rest) = RawRecord::split(&out).unwrap();
            assert!(rest.is_empty());
            assert!(record.is_budget());
            assert_eq!(SideBand::parse(record), Some(SideBand::Budget(written)));
            let id = layout().parse_id_trailer(record.body).unwrap();
            assert_eq!((id.time, id.id), (Some(TimestampNs(77)), Some(9)));
        }
    }

    #[test]
    fn a_loss_is_none() {
        let out = bytes(&BudgetRecord::default());
        fn parse(bytes: &[u8]) -> Option<SideBand<'_>> {
            SideBand::parse(RawRecord::split(bytes).unwrap().0)
        }
        let mut other = out.clone();
        other[8] = 1;
        assert_eq!(parse(&other), Some(SideBand::LostSamples { lost: 1 }));
        let mut other = out.clone();
        other[16] ^= 1;
        assert_eq!(parse(&other), Some(SideBand::LostSamples { lost: 0 }));
        // Too short for all fields.
        let mut cut = out[..48].to_vec();
        cut[6..8].copy_from_slice(&48u16.to_le_bytes());
        assert_eq!(parse(&cut), Some(SideBand::LostSamples { lost: 0 }));
    }
}
