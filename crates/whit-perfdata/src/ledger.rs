//! The overhead ledger: what a recording cost, carried in the recording itself.

use crate::bytes::Cursor;
use crate::loss::DataLoss;

mod kernel_side;
mod stacks;

pub use kernel_side::{BpfLedger, BpfMeasurement, PmiLedger, PmiMeasurement};
pub use stacks::StackLedger;

/// What the recording cost. Zero where a figure was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// From the first event opened to the last byte written.
    pub wall_ns: u64,
    /// Opening events, mapping rings, synthesizing existing processes.
    pub setup_ns: u64,
    /// From the end of the target to the last byte written.
    pub teardown_ns: u64,
    /// The recorder's own CPU time in user mode.
    pub user_cpu_ns: u64,
    /// The recorder's own CPU time in kernel mode.
    pub system_cpu_ns: u64,
    /// Bytes taken out of the rings.
    pub ring_bytes: u64,
    /// Bytes written to the recording.
    pub written_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Time spent in writes.
    pub write_ns: u64,
    /// Times that a reader was woken.
    pub wakeups: u64,
    /// Samples recorded.
    pub samples: u64,
    /// Records that the kernel reported as lost.
    pub lost_records: u64,
    /// Time during which rings were full, summed over rings.
    pub paused_ns: u64,
    /// Recorded time summed over rings.
    pub elapsed_ns: u64,
    /// Number of rings.
    pub rings: u64,
    /// Size of one ring's data area.
    pub ring_size_bytes: u64,
    /// Bytes of records that were compressed.
    pub compressed_from_bytes: u64,
    /// Bytes that they became.
    pub compressed_to_bytes: u64,
    /// Times that a reader had to wait until a block was written.
    pub stalls: u64,
    /// Time that readers waited.
    pub stall_ns: u64,
    /// Records that were taken from rings and could not be written; part of `lost_records`.
    pub unwritten_records: u64,
    /// Processes whose mappings were not read to the end when recording began: that took too long.
    pub cut_processes: u64,
    /// Fields 68 and 69: not in use.
    pub reserved: [u64; 2],
    /// The recorder's CPU time, in both modes, up to the end of set-up; 0 in files of versions that did not tell.
    pub setup_cpu_ns: u64,
    /// The recorder's CPU time, in both modes, since the rings were emptied behind the end of the target.
    pub teardown_cpu_ns: u64,
    /// Threads that existed when recording began and were watched: those of processes or threads that were
    /// given. 0 where that was not done.
    pub watched_threads: u64,
    /// Of these, those that ran while they were recorded.
    pub ran_threads: u64,
    /// CPUs that went offline while they were recorded; the kernel takes their events off for good.
    pub lost_cpus: u64,
    /// CPUs that came online after events were open, and have none.
    pub late_cpus: u64,
    /// Interrupts of the PMU.
    pub pmi: PmiLedger,
    /// The recorder's BPF programs.
    pub bpf: BpfLedger,
    /// Stacks that were unwound in the kernel.
    pub stacks: StackLedger,
    /// Each reader's share.
    pub readers: Vec<ReaderLedger>,
}

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
    pub fn nobody_ran(&self) -> bool {
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

/// Says that none of so many threads ran, and what shows more of a process or thread that goes by `id`.
pub fn nobody_ran_text(threads: u64, id: &str) -> String {
    let who = match threads {
        1 => "the thread that was recorded never ran meanwhile: it".to_owned(),
        threads => format!("none of the {threads} threads that were recorded ran meanwhile: they"),
    };
    format!(
        "{who} waited all the time (gdb -p {id} --batch -ex 'thread apply all backtrace' shows where; whit record \
         --engine=bpf --switch-events shows waits of threads that run and wait again)"
    )
}

/// What one reader's thread did and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderLedger {
    /// CPU time in user mode.
    pub user_cpu_ns: u64,
    /// CPU time in kernel mode.
    pub system_cpu_ns: u64,
    /// Times that it was woken.
    pub wakeups: u64,
    /// Rings that it drained.
    pub rings: u64,
    /// Bytes that it took out of them.
    pub ring_bytes: u64,
    /// Bytes written to its stream.
    pub written_bytes: u64,
    /// Number of writes.
    pub writes: u64,
    /// Time that it spent in writes, or in starting them.
    pub write_ns: u64,
    /// Times that it had to wait until a block was written.
    pub stalls: u64,
    /// Time that it waited.
    pub stall_ns: u64,
}

/// What a 64-bit field of the file stands for.
trait Field {
    fn to_word(&self) -> u64;
    fn set_word(&mut self, word: u64);
}

impl Field for u64 {
    fn to_word(&self) -> u64 {
        *self
    }

    fn set_word(&mut self, word: u64) {
        *self = word;
    }
}

impl Field for PmiMeasurement {
    fn to_word(&self) -> u64 {
        self.code()
    }

    fn set_word(&mut self, word: u64) {
        *self = PmiMeasurement::from_code(word);
    }
}

impl Field for BpfMeasurement {
    fn to_word(&self) -> u64 {
        self.code()
    }

    fn set_word(&mut self, word: u64) {
        *self = BpfMeasurement::from_code(word);
    }
}

/// Most readers that are read from a recording.
const MAX_READERS: usize = 1 << 16;

impl ReaderLedger {
    /// The fields in the order of the file; new ones go to the end.
    fn fields(&mut self) -> [&mut dyn Field; 10] {
        [
            &mut self.user_cpu_ns,
            &mut self.system_cpu_ns,
            &mut self.wakeups,
            &mut self.rings,
            &mut self.ring_bytes,
            &mut self.written_bytes,
            &mut self.writes,
            &mut self.write_ns,
            &mut self.stalls,
            &mut self.stall_ns,
        ]
    }
}

/// Ends of walks that the first version with stacks had.
const FIRST_ENDS: usize = 16;

/// Version of the encoding; the first word of the section.
const VERSION: u32 = 1;

impl Ledger {
    /// The fields in the order of the file. New ones go to the end: a reader takes what it knows
    /// and leaves the rest.
    fn fields(&mut self) -> Vec<&mut dyn Field> {
        let mut fields: Vec<&mut dyn Field> = vec![
            &mut self.wall_ns,
            &mut self.setup_ns,
            &mut self.teardown_ns,
            &mut self.user_cpu_ns,
            &mut self.system_cpu_ns,
            &mut self.ring_bytes,
            &mut self.written_bytes,
            &mut self.writes,
            &mut self.write_ns,
            &mut self.wakeups,
            &mut self.samples,
            &mut self.lost_records,
            &mut self.paused_ns,
            &mut self.elapsed_ns,
            &mut self.rings,
            &mut self.ring_size_bytes,
            &mut self.compressed_from_bytes,
            &mut self.compressed_to_bytes,
            &mut self.stalls,
            &mut self.stall_ns,
            &mut self.unwritten_records,
            &mut self.pmi.measurement,
            &mut self.pmi.count,
            &mut self.pmi.time_ns,
            &mut self.pmi.longest_ns,
            &mut self.pmi.measured_ns,
            &mut self.bpf.measurement,
            &mut self.bpf.programs,
            &mut self.bpf.runs,
            &mut self.bpf.run_time_ns,
            &mut self.stacks.walks,
            &mut self.stacks.known_again,
            &mut self.stacks.frames,
            &mut self.stacks.tables,
            &mut self.stacks.cached_tables,
            &mut self.stacks.without_table,
            &mut self.stacks.refused_tables,
            &mut self.stacks.rows,
            &mut self.stacks.rules,
            &mut self.stacks.table_bytes,
            &mut self.stacks.build_ns,
        ];
        let (first, later) = self.stacks.ended.split_at_mut(FIRST_ENDS);
        fields.extend(first.iter_mut().map(|walks| walks as &mut dyn Field));
        fields.push(&mut self.bpf.timed_ns);
        fields.extend(later.iter_mut().map(|walks| walks as &mut dyn Field));
        fields.extend(self.stacks.unopened.iter_mut().map(|files| files as &mut dyn Field));
        fields.push(&mut self.cut_processes);
        fields.push(&mut self.stacks.unknown_mappings);
        fields.extend(self.reserved.iter_mut().map(|word| word as &mut dyn Field));
        fields.push(&mut self.setup_cpu_ns);
        fields.push(&mut self.teardown_cpu_ns);
        fields.push(&mut self.watched_threads);
        fields.push(&mut self.ran_threads);
        fields.push(&mut self.lost_cpus);
        fields.push(&mut self.late_cpus);
        fields
    }

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
        let mut copy = self.clone();
        let fields = copy.fields();
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend((fields.len() as u32).to_le_bytes());
        out.extend(fields.iter().flat_map(|field| field.to_word().to_le_bytes()));
        let width = ReaderLedger::default().fields().len() as u32;
        out.extend((self.readers.len() as u32).to_le_bytes());
        out.extend(width.to_le_bytes());
        for reader in &mut copy.readers {
            out.extend(reader.fields().iter().flat_map(|field| field.to_word().to_le_bytes()));
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
        fill(&mut c, &mut ledger.fields(), count)?;
        // The first version had no readers.
        let (Some(readers), Some(width)) = (c.u32(), c.u32()) else { return Some(ledger) };
        for _ in 0..(readers as usize).min(MAX_READERS) {
            let mut reader = ReaderLedger::default();
            fill(&mut c, &mut reader.fields(), width as usize)?;
            ledger.readers.push(reader);
        }
        Some(ledger)
    }
}

/// Fills fields from `count` words; what there is more is stepped over.
fn fill(c: &mut Cursor<'_>, fields: &mut [&mut dyn Field], count: usize) -> Option<()> {
    for field in fields.iter_mut().take(count) {
        field.set_word(c.u64()?);
    }
    c.take(count.saturating_sub(fields.len()).checked_mul(8)?)?;
    Some(())
}

#[cfg(test)]
mod tests;
