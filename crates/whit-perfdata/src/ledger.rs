//! The overhead ledger: what a recording cost, carried in the recording itself.

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
}
