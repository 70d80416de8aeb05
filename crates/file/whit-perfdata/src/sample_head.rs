//! Samples all of whose fields have a length of their own: those that most readers want stand at the same places in each.

use crate::attr::SampleType;
use crate::bytes::u64_at;
use crate::sample::thread;
use whit_types::{Avma, Pid, Tid, TimestampNs};

/// The fields of one word each, in their order in a sample.
const FIXED: [SampleType; 9] = [
    SampleType::IDENTIFIER,
    SampleType::IP,
    SampleType::TID,
    SampleType::TIME,
    SampleType::ADDR,
    SampleType::ID,
    SampleType::STREAM_ID,
    SampleType::CPU,
    SampleType::PERIOD,
];

/// The place of a field of one word in the bodies of samples that have these fields. `None` where it is not among them, or
/// takes no word of its own.
pub fn place_of(sample_type: SampleType, field: SampleType) -> Option<usize> {
    let has = |one: &&SampleType| sample_type.contains(**one);
    let front = FIXED.iter().position(|one| *one == field).map(|at| &FIXED[..at])?;
    has(&&field).then(|| 8 * front.iter().filter(has).count())
}

/// Bytes of the fields of one word that samples with these fields have.
pub(crate) fn fixed_bytes(sample_type: SampleType) -> usize {
    8 * FIXED.iter().filter(|field| sample_type.contains(**field)).count()
}

/// Fields in front of those of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleHead {
    /// Instruction pointer.
    pub ip: Avma,
    /// Process and thread.
    pub pid_tid: (Pid, Tid),
    /// By the clock of the recording.
    pub time: TimestampNs,
    /// Events since the sample before.
    pub period: Option<u64>,
}

/// The places of these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLayout {
    ip: usize,
    pid_tid: usize,
    time: usize,
    period: Option<usize>,
    size_bytes: usize,
}

impl HeadLayout {
    /// `None` where samples have other fields too, or lack one of address, thread and time.
    pub fn new(sample_type: SampleType) -> Option<HeadLayout> {
        let others = FIXED.iter().fold(sample_type, |rest, field| rest.with(*field, false));
        (others == SampleType::default()).then_some(())?;
        let at = |field| place_of(sample_type, field);
        Some(HeadLayout {
            ip: at(SampleType::IP)?,
            pid_tid: at(SampleType::TID)?,
            time: at(SampleType::TIME)?,
            period: at(SampleType::PERIOD),
            size_bytes: fixed_bytes(sample_type),
        })
    }

    /// Decodes the body of a sample. `None` where it is shorter than its fields say.
    #[inline]
    pub fn parse(&self, body: &[u8]) -> Option<SampleHead> {
        let body = body.get(..self.size_bytes)?;
        let task = u64_at(body, self.pid_tid)?;
        Some(SampleHead {
            ip: Avma(u64_at(body, self.ip)?),
            pid_tid: thread(task),
            time: TimestampNs(u64_at(body, self.time)?),
            period: self.period.and_then(|at| u64_at(body, at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attr;
    use crate::sample::SampleLayout;
    use proptest::prelude::*;

    const NEEDED: [SampleType; 3] = [SampleType::IP, SampleType::TID, SampleType::TIME];

    proptest! {
        #[test]
        fn agrees_with_the_whole_layout(fields: u16, body in prop::collection::vec(any::<u8>(), 0..90)) {
            let chosen = FIXED.iter().enumerate().filter(|(index, _)| fields >> index & 1 == 1);
            let chosen = chosen.fold(SampleType::default(), |all, (_, field)| all | *field);
            let sample_type = NEEDED.iter().fold(chosen, |all, field| all | *field);
            let layout = SampleLayout::new(&Attr { sample_type, ..Attr::default() });
            let expected = layout.parse(&body).map(|sample| SampleHead {
                ip: sample.ip.unwrap(),
                pid_tid: sample.pid_tid.unwrap(),
                time: sample.time.unwrap(),
                period: sample.period,
            });
            prop_assert_eq!(HeadLayout::new(sample_type).unwrap().parse(&body), expected);
        }
    }

    #[test]
    fn other_fields_and_missing_ones_have_no_such_layout() {
        let all = NEEDED.iter().fold(SampleType::default(), |all, field| all | *field);
        assert!(HeadLayout::new(all).is_some());
        for missing in NEEDED {
            assert_eq!(HeadLayout::new(all.with(missing, false)), None);
        }
        for other in [SampleType::READ, SampleType::CALLCHAIN, SampleType::WEIGHT] {
            assert_eq!(HeadLayout::new(all | other), None);
        }
        assert_eq!(HeadLayout::new(SampleType(u64::MAX)), None);
    }
}
