//! The overhead ledger: what a recording cost, carried in the recording itself.

use crate::bytes::{Cursor, u64_at};
use crate::loss::DataLoss;

mod field;
mod kernel_side;
mod stacks;
mod table;

pub use field::{Field, Group, Line, Measurement, Unit};
pub use kernel_side::{BpfMeasurement, PmiMeasurement};
pub use table::{BpfLedger, GROUPS, Ledger, PmiLedger, READER_FIELDS, ReaderLedger, StackLedger};

impl Ledger {
    /// The share of the recorded time during which rings were full.
    pub fn data_loss(&self) -> DataLoss {
        let Ledger { lost_records: lost, paused_ns, elapsed_ns, .. } = *self;
        DataLoss { lost, paused_ns, elapsed_ns }
    }

    /// From the end of set-up to the end of the target.
    pub fn recorded_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.setup_ns).saturating_sub(self.teardown_ns)
    }

    /// Whether it is known that none of the threads that were recorded ran.
    pub fn no_thread_ran(&self) -> bool {
        self.watched_threads > 0 && self.ran_threads == 0
    }

    /// The recorder's CPU time, in both modes.
    pub fn cpu_ns(&self) -> u64 {
        self.user_cpu_ns.saturating_add(self.system_cpu_ns)
    }

    /// The recorder's CPU time from the end of set-up until the rings were empty: the cost that lasts as long as
    /// the recording. `None` in files of versions that did not tell it apart.
    pub fn recording_cpu_ns(&self) -> Option<u64> {
        let before_and_after = self.setup_cpu_ns.saturating_add(self.teardown_cpu_ns);
        (self.setup_cpu_ns > 0).then(|| self.cpu_ns().saturating_sub(before_and_after))
    }
}

/// The sentence that none of so many threads ran, and the command that shows more of a process or thread by
/// `id`. With `has_stacks` the recording has the stacks at which they wait.
pub fn no_thread_ran_text(threads: u64, id: &str, has_stacks: bool) -> String {
    let who = match threads {
        1 => "the thread that was recorded never ran meanwhile: it".to_owned(),
        threads => format!("none of the {threads} threads that were recorded ran meanwhile: they"),
    };
    if has_stacks {
        return format!("{who} waited all the time (whit switches shows where)");
    }
    format!(
        "{who} waited all the time (gdb -p {id} --batch -ex 'thread apply all backtrace' shows where; whit record \
         --engine=bpf --switch-events shows waits of threads that run and wait again)"
    )
}

/// Most readers that are read from a recording.
const MAX_READERS: usize = 1 << 16;

/// Version of the encoding; the first word of the section.
const VERSION: u32 = 1;

impl Ledger {
    /// Bytes before over bytes after compression; 1 where nothing was compressed.
    pub fn compression_ratio(&self) -> f64 {
        if self.compressed_to_bytes == 0 {
            return 1.0;
        }
        self.compressed_from_bytes as f64 / self.compressed_to_bytes as f64
    }

    /// As the feature section holds it: version and number of fields (`u32` each), then the
    /// fields (`u64` each); number of readers and number of fields of each (`u32` each), then
    /// theirs; little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = to_words(fields(), self);
        let width = READER_FIELDS.iter().flat_map(|field| field.numbers).max().map_or(0, |n| n + 1);
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend((words.len() as u32).to_le_bytes());
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.extend((self.readers.len() as u32).to_le_bytes());
        out.extend((width as u32).to_le_bytes());
        for reader in &self.readers {
            let words = to_words(READER_FIELDS.iter(), reader);
            out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        out
    }

    /// Decodes the section; fields that it does not have stay zero. `None` for another version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Ledger> {
        let mut c = Cursor::new(bytes);
        if c.u32()? != VERSION {
            return None;
        }
        let count = c.u32()? as usize;
        let mut ledger = Ledger::default();
        fill(&mut c, fields(), &mut ledger, count)?;
        // The first version had no readers.
        let (Some(readers), Some(width)) = (c.u32(), c.u32()) else { return Some(ledger) };
        for _ in 0..(readers as usize).min(MAX_READERS) {
            let mut reader = ReaderLedger::default();
            fill(&mut c, READER_FIELDS.iter(), &mut reader, width as usize)?;
            ledger.readers.push(reader);
        }
        Some(ledger)
    }
}

/// The fields of all groups, in the order in which they are shown.
pub fn fields() -> impl Iterator<Item = &'static Field<Ledger>> {
    GROUPS.iter().flat_map(|group| group.fields)
}

/// The words in the order of the file; zero where no field has the number.
fn to_words<T: 'static>(fields: impl Iterator<Item = &'static Field<T>>, of: &T) -> Vec<u64> {
    let mut words = Vec::new();
    for field in fields {
        for (index, &number) in field.numbers.iter().enumerate() {
            words.resize(words.len().max(number + 1), 0);
            words[number] = (field.word)(of, index);
        }
    }
    words
}

/// Fills fields from `count` words; those that no field has are stepped over.
fn fill<T: 'static>(
    c: &mut Cursor<'_>,
    fields: impl Iterator<Item = &'static Field<T>>,
    of: &mut T,
    count: usize,
) -> Option<()> {
    let words = c.take(count.checked_mul(8)?)?;
    for field in fields {
        for (index, &number) in field.numbers.iter().enumerate() {
            if let Some(word) = u64_at(words, number * 8) {
                (field.set_word)(of, index, word);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
