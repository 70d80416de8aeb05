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

/// The toy kernel's report.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TasksReport {
    /// Interrupts that the kernel could not explain.
    pub not_ours: u64,
    /// Interrupts that it handled.
    pub interrupts: u64,
    /// Samples and counts of both.
    pub tasks: [TaskReport; 2],
}

/// A task of the toy kernel.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TaskReport {
    /// Samples taken while it ran.
    pub samples: u64,
    /// Count of its event.
    pub count: u64,
}

/// First word of a report, as `guest/main.rs` and `guest/kernel.rs` have it.
const SAMPLED: u32 = 1;
const NO_MODEL: u32 = 2;
const NOT_STARTED: u32 = 3;
const PANICKED: u32 = 4;
const TASKS: u32 = 5;
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

    /// The words behind an outcome.
    fn after(&self, expected: u32, words_min: usize) -> Result<&[u32], &'static str> {
        let (outcome, words) = self.0.split_first().ok_or("halted without a report")?;
        match *outcome {
            outcome if outcome == expected && words.len() >= words_min => Ok(words),
            outcome if outcome == expected => Err("reported too little"),
            NO_MODEL => Err("found no PMU that it can drive by CPUID"),
            NOT_STARTED => Err("could not start its event"),
            PANICKED => Err("met an exception or panicked"),
            _ => Err("reported what means nothing"),
        }
    }

    pub(super) fn tasks(&self) -> Result<TasksReport, &'static str> {
        let words = self.after(TASKS, 12)?;
        let long = |at: usize| u64::from(words[2 * at]) | (u64::from(words[2 * at + 1]) << 32);
        let task = |at| TaskReport { samples: long(at), count: long(at + 1) };
        Ok(TasksReport { not_ours: long(0), interrupts: long(1), tasks: [task(2), task(4)] })
    }

    pub(super) fn report(&self) -> Result<Report, &'static str> {
        const HEADER_WORDS: usize = 8;
        let words = self.after(SAMPLED, HEADER_WORDS)?;
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
        let tasks = Words(vec![5, 0, 0, 3, 0, 1, 0, 10, 0, 2, 0, 20, 1]).tasks().unwrap();
        let task = |samples, count| TaskReport { samples, count };
        assert_eq!(tasks.tasks, [task(1, 10), task(2, (1 << 32) + 20)]);
        assert_eq!(Words(vec![5, 0]).tasks(), Err("reported too little"));
    }
}
