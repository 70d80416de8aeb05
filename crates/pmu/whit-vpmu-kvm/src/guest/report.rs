//! The guest's report, word by word.

/// The guest's report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Samples taken.
    pub samples: u64,
    /// Count of the event.
    pub count: u64,
    /// Interrupts that the guest could not explain.
    pub not_ours: u64,
    /// Interrupts that the guest handled.
    pub interrupts: u64,
    /// Length of each handler in cycles of the time stamp counter.
    pub lengths_tsc: Vec<u32>,
}

/// First word of a report, as `guest/main.rs` has it.
const SAMPLED: u32 = 1;
const NO_MODEL: u32 = 2;
const NOT_STARTED: u32 = 3;
const PANICKED: u32 = 4;
/// Most words that a guest may report.
const WORDS_MAX: usize = 1 << 16;

/// The words that have come.
#[derive(Debug, Default)]
pub(super) struct Words(Vec<u32>);

impl Words {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if let Ok(word) = bytes.try_into()
            && self.0.len() < WORDS_MAX
        {
            self.0.push(u32::from_le_bytes(word));
        }
    }

    pub(super) fn report(&self) -> Result<Report, &'static str> {
        const HEADER_WORDS: usize = 8;
        let (outcome, words) = self.0.split_first().ok_or("halted without a report")?;
        match *outcome {
            SAMPLED if words.len() >= HEADER_WORDS => {}
            SAMPLED => return Err("reported too little"),
            NO_MODEL => return Err("found no PMU that it can drive by CPUID"),
            NOT_STARTED => return Err("could not start its event"),
            PANICKED => return Err("met an exception or panicked"),
            _ => return Err("reported what means nothing"),
        }
        let (header, lengths) = words.split_at(HEADER_WORDS);
        let long = |at: usize| u64::from(header[at]) | (u64::from(header[at + 1]) << 32);
        let lengths_tsc = lengths.to_vec();
        let report = Report {
            samples: long(0),
            count: long(2),
            not_ours: long(4),
            interrupts: long(6),
            lengths_tsc,
        };
        let complete = report.lengths_tsc.len() as u64 == report.interrupts.min(4096);
        if complete { Ok(report) } else { Err("reported less than it began") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_whole_or_not_at_all() {
        let words = |words: &[u32]| {
            let mut read = Words::default();
            words.iter().for_each(|word| read.push(&word.to_le_bytes()));
            read.push(&[1, 2]);
            read.report()
        };
        let report = words(&[1, 5, 0, 7, 1, 0, 0, 2, 0, 30, 40]).unwrap();
        assert_eq!((report.samples, report.count, report.interrupts), (5, (1 << 32) + 7, 2));
        assert_eq!(report.lengths_tsc, [30, 40]);
        assert!(words(&[1, 5, 0, 7, 1, 0, 0, 2, 0, 30]).is_err());
        assert!(words(&[1, 5]).is_err() && words(&[]).is_err() && words(&[9]).is_err());
        assert!(words(&[2]).unwrap_err().contains("CPUID"));
    }
}
