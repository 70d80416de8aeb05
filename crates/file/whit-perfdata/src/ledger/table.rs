//! The table of the ledger: each field once. The structs, the words of the file, JSON, the page,
//! `whit report --ledger` and `docs/ledger.md` come from it.
//!
//! A new field is one row here, with a number of its own. Numbers never change and are never given to
//! another field. Numbers that no row has are zero in the file (68 and 69 have never been in use).

use whit_types::{OpenFailure, StackEnd};

use super::field::{Field, Group, Line, Measurement, Unit, Words, ledger_fields, numbered};
use super::kernel_side::{BpfMeasurement, PmiMeasurement};
use Line::{Always, Elsewhere, If, Noted};

/// All groups, in the order in which they are shown.
pub static GROUPS: [Group; 8] = [
    plain("Time", TIME),
    plain("Samples and rings", RINGS),
    plain("Output", OUTPUT),
    plain("Losses", LOSSES),
    plain("Not recorded", MISSING),
    Group {
        member: Some("pmi"),
        measurement: Some(|ledger| {
            let how = ledger.pmi.measurement;
            Measurement { name: how.name(), reason: how.reason() }
        }),
        ..plain("Interrupts of the PMU", PMI)
    },
    Group {
        member: Some("bpf"),
        measurement: Some(|ledger| {
            let how = ledger.bpf.measurement;
            Measurement { name: how.name(), reason: how.reason() }
        }),
        known: &["programs"],
        ..plain("BPF programs of the recorder", BPF)
    },
    Group {
        member: Some("stacks"),
        is_optional: true,
        ..plain("Stacks unwound in the kernel", STACKS)
    },
];

/// Members of the ledger itself, which are always known.
const fn plain(title: &'static str, fields: &'static [Field<Ledger>]) -> Group {
    Group { member: None, title, fields, is_optional: false, measurement: None, known: &[] }
}

/// Fields of one reader's ledger, in the order of the file.
pub static READER_FIELDS: &[Field<ReaderLedger>] = READER;

ledger_fields! {
    /// The cost of the recording. A figure that was not measured is zero.
    struct Ledger in Ledger, ledger => ledger;
    list TIME {
        [0] wall_ns: u64, Ns, "0.1", Always("wall time"), "Wall time",
            "From the first event opened to the last byte written.";
        [1] setup_ns: u64, Ns, "0.1", Always("  setting up"), "Set-up",
            "Opening events, mapping rings, synthesizing existing processes.";
        [] recorded_ns, Ns, "0.1", Always("  recording"), "Recording",
            "From the end of set-up to the end of the target.";
        [2] teardown_ns: u64, Ns, "0.1", Always("  tearing down"), "Tear-down",
            "From the end of the target to the last byte written.";
        [] cpu_ns, Ns, "0.1", Always("recorder CPU"), "CPU",
            "The recorder's own CPU time, in both modes.";
        [3] user_cpu_ns: u64, Ns, "0.1", Always("  user"), "CPU, user mode",
            "The recorder's own CPU time in user mode.";
        [4] system_cpu_ns: u64, Ns, "0.1", Always("  system"), "CPU, kernel mode",
            "The recorder's own CPU time in kernel mode.";
        [70] setup_cpu_ns: u64, Ns, "0.1", Elsewhere, "CPU of set-up",
            "The recorder's CPU time, in both modes, up to the end of set-up; 0 in files of versions that did not tell.";
        [71] teardown_cpu_ns: u64, Ns, "0.1", Elsewhere, "CPU of tear-down",
            "The recorder's CPU time, in both modes, since the rings were emptied behind the end of the target.";
        [98] kept_ns: u64, Ns, "0.1", If("  keeping binaries", "kept_binaries"), "Keeping binaries",
            "Time for copies of binaries in perf's cache, part of tear-down. Binaries that have a copy are only looked at.";
        [99] kept_binaries: u64, Count, "0.1", If("binaries kept", "kept_binaries"), "Binaries kept",
            "Binaries that processes with samples mapped, and that have a copy.";
        [100] kept_bytes: u64, Bytes, "0.1", If("  copied", "kept_bytes"), "Bytes of binaries copied",
            "Bytes of those that this recording copied: 0 where all were there.";
        [90] peak_memory_bytes: u64, Bytes, "0.1", If("peak memory", "peak_memory_bytes"), "Peak memory",
            "The most memory that the recorder had resident, from its start to the end of this output; 0 in files of versions that did not tell.";
    }
    list RINGS {
        [10] samples: u64, Count, "0.1", Always("samples"), "Samples",
            "Samples recorded.";
        [14] rings: u64, Count, "0.1", Always("rings"), "Rings",
            "Number of rings.";
        [15] ring_size_bytes: u64, Bytes, "0.1", Elsewhere, "Size of a ring",
            "Size of one ring's data area.";
        [5] ring_bytes: u64, Bytes, "0.1", Always("taken from rings"), "Taken out of rings",
            "Bytes taken out of the rings.";
        [9] wakeups: u64, Count, "0.1", Always("wake-ups"), "Wake-ups",
            "Times that a reader was woken.";
        [76] reads_blocked: u64, Count, "0.1", Elsewhere, "Blocked threads are read",
            "1 where the recorder reads the stacks of threads that are blocked when recording begins and ends, else 0.";
        [77] blocked_at_begin: u64, Count, "0.1", If("blocked at first", "reads_blocked"),
            "Blocked when recording began",
            "Threads that were on no CPU when recording began, and whose stacks were read; summed over all times that it began.";
        [78] blocked_at_end: u64, Count, "0.1", If("blocked at last", "reads_blocked"),
            "Blocked when recording ended",
            "The same when recording ended.";
    }
    list OUTPUT {
        [6] written_bytes: u64, Bytes, "0.1", Always("written"), "Written",
            "Bytes written to the recording.";
        [7] writes: u64, Count, "0.1", Always("  writes"), "Writes",
            "Number of writes.";
        [8] write_ns: u64, Ns, "0.1", Elsewhere, "Time in writes",
            "Time spent in writes.";
        [18] stalls: u64, Count, "0.1", Always("  stalls"), "Stalls",
            "Times that a reader had to wait until a block was written.";
        [19] stall_ns: u64, Ns, "0.1", Elsewhere, "Time in stalls",
            "Time that readers waited.";
        [16] compressed_from_bytes: u64, Bytes, "0.1",
            If("compressed from", "compressed_from_bytes"), "Compressed from",
            "Bytes of records that were compressed.";
        [17] compressed_to_bytes: u64, Bytes, "0.1",
            If("compressed to", "compressed_from_bytes"), "Compressed to",
            "Bytes that they became.";
    }
    list LOSSES {
        [11] lost_records: u64, Count, "0.1", Always("lost records"), "Lost records",
            "Records that the kernel reported as lost.";
        [20] unwritten_records: u64, Count, "0.1", Elsewhere, "Records not written",
            "Records that were taken from rings and could not be written; part of `lost_records`.";
        [12] paused_ns: u64, Ns, "0.1", Always("rings full"), "Rings full",
            "Time during which rings were full, summed over rings.";
        [13] elapsed_ns: u64, Ns, "0.1", Elsewhere, "Recorded time of all rings",
            "Recorded time summed over rings.";
    }
    list MISSING {
        [66] cut_processes: u64, Count, "0.1", Noted("mappings missing", "cut_processes",
                "processes whose mappings took too long to read (--proc-map-timeout)"),
            "Processes with mappings missing",
            "Processes whose mappings were not read to the end when recording began: that took too long.";
        [73] ran_threads: u64, Count, "0.1", If("threads that ran", "watched_threads"),
            "Threads that ran",
            "Of the threads that were watched, those that ran while they were recorded.";
        [72] watched_threads: u64, Count, "0.1", Elsewhere, "Threads that were watched",
            "Threads that existed when recording began and were watched: those of processes or threads that were given. 0 where that was not done.";
        [96] names_chosen: u64, Count, "0.1", Elsewhere, "Names of the target",
            "Cgroups and names of threads that chose whom to record (--cgroup, --container, --unit, --comm). 0 where processes, threads or CPUs did.";
        [97] period_redraws: u64, Count, "0.1", Elsewhere, "Periods drawn",
            "Times that the periods of clocks on CPUs were drawn anew, so that samples do not keep step with the recorded program.";
        [74] lost_cpus: u64, Count, "0.1",
            Noted("CPUs gone", "lost_cpus", "went offline and were not recorded from then on"),
            "CPUs gone",
            "CPUs that went offline while they were recorded; the kernel takes their events off for good.";
        [75] late_cpus: u64, Count, "0.1",
            Noted("CPUs come", "late_cpus", "came online later and were not recorded"), "CPUs come",
            "CPUs that came online after events were open, and have none.";
        [79] blocked_left_out: u64, Count, "0.1",
            Noted("blocked threads", "blocked_left_out", "more were blocked than are read at a time"),
            "Blocked threads without stacks",
            "Threads that were blocked when recording began or ended, beyond the number that is read at a time.";
    }
    and {
        /// Interrupts of the PMU.
        pmi: PmiLedger,
        /// The recorder's BPF programs.
        bpf: BpfLedger,
        /// Stacks that were unwound in the kernel.
        stacks: StackLedger,
        /// Each reader's share.
        readers: Vec<ReaderLedger>,
    }
}

ledger_fields! {
    /// The PMU's interrupts on all CPUs, by the events of all users.
    #[derive(Copy)]
    struct PmiLedger in Ledger, ledger => ledger.pmi;
    list PMI {
        [21] measurement: PmiMeasurement, Code, "0.1", Elsewhere, "How",
            "How they were measured, or why not.";
        [22] count: u64, Count, "0.1", Always("PMIs"), "Interrupts",
            "Interrupts.";
        [23] time_ns: u64, Ns, "0.1", Elsewhere, "Time",
            "Time in their handlers, summed over CPUs; the way there and back is not in it.";
        [24] longest_ns: u64, Ns, "0.1", Elsewhere, "Longest",
            "The longest of them since recording began.";
        [25] measured_ns: u64, Ns, "0.1", Elsewhere, "Measured for",
            "For how long they were measured.";
    }
}

ledger_fields! {
    /// The BPF programs that the recorder loaded.
    #[derive(Copy)]
    struct BpfLedger in Ledger, ledger => ledger.bpf;
    list BPF {
        [26] measurement: BpfMeasurement, Code, "0.1", Elsewhere, "How",
            "How their time was measured, or why not.";
        [27] programs: u64, Count, "0.1", Always("BPF programs"), "Programs",
            "Programs; known where nothing else is.";
        [28] runs: u64, Count, "0.1", Elsewhere, "Runs",
            "Times that they ran while that was timed.";
        [29] run_time_ns: u64, Ns, "0.1", Elsewhere, "Time",
            "Time in these runs, summed over CPUs.";
        [57] timed_ns: u64, Ns, "0.1", Elsewhere, "Timed for",
            "For how long runs were timed; 0 where it was all the time (older versions of whit).";
    }
}

ledger_fields! {
    /// Stacks that BPF programs unwound, and the tables that they did it by. All zero where another engine
    /// recorded.
    #[derive(Copy)]
    struct StackLedger in Ledger, ledger => ledger.stacks;
    list STACKS {
        [30] walks: u64, Count, "0.1", Always("stacks walked"), "Stacks walked",
            "User stacks that were walked.";
        [31] known_again: u64, Count, "0.1", Elsewhere, "Stacks known again",
            "User stacks that were known to be the thread's last one again, and were not walked.";
        [32] frames: u64, Count, "0.1", Elsewhere, "Frames",
            "Frames of all walks.";
        [41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 58]
            ended: [u64; StackEnd::ALL.len()], Count, "0.1", Elsewhere, "Ends of walks",
            "Walks by how they ended, by the number of the `StackEnd`. Their sum is `walks`.",
            by |number| StackEnd::ALL[number].name();
        [33] tables: u64, Count, "0.1", Always("unwind tables"), "Unwind tables",
            "Binaries whose unwind tables were loaded into the kernel.";
        [34] cached_tables: u64, Count, "0.1", Elsewhere, "Tables from the cache",
            "Of these, tables that the cache on disk had; the others were made.";
        [35] without_table: u64, Count, "0.1", Elsewhere, "Without a table",
            "Binaries that have no unwind information.";
        [36] refused_tables: u64, Count, "0.1", Elsewhere, "Tables without room",
            "Tables that did not fit into the kernel's memory for tables.";
        [67] unknown_mappings: u64, Count, "0.1", Elsewhere, "Mappings beyond the bound",
            "Executable mappings beyond the number that the kernel side holds of a process.";
        [37] rows: u64, Count, "0.1", Elsewhere, "Rows",
            "Rows of all tables.";
        [38] rules: u64, Count, "0.1", Elsewhere, "Rules",
            "Distinct rules, table by table.";
        [39] table_bytes: u64, Bytes, "0.1", Elsewhere, "Size of the tables",
            "Memory that rows and their index take in the kernel.";
        [40] build_ns: u64, Ns, "0.1", Elsewhere, "Time for tables",
            "Time to make tables, or to read them from the cache, summed over threads.";
        [59, 60, 61, 62, 63, 64, 65, 101]
            not_opened: [u64; OpenFailure::ALL.len()], Count, "0.1", Elsewhere, "Not opened",
            "Binaries that could not be opened, by the number of the `OpenFailure`.",
            by |number| OpenFailure::ALL[number].name();
    }
}

ledger_fields! {
    /// The work and cost of one reader thread.
    #[derive(Copy)]
    struct ReaderLedger in ReaderLedger, reader => reader;
    list READER {
        [3] rings: u64, Count, "0.1", Always("rings"), "Rings",
            "Rings that it drained.";
        [0] user_cpu_ns: u64, Ns, "0.1", Always("user"), "CPU, user mode",
            "CPU time in user mode.";
        [1] system_cpu_ns: u64, Ns, "0.1", Always("system"), "CPU, kernel mode",
            "CPU time in kernel mode.";
        [2] wakeups: u64, Count, "0.1", Always("wake-ups"), "Wake-ups",
            "Times that it was woken.";
        [4] ring_bytes: u64, Bytes, "0.1", Always("taken"), "Taken out of rings",
            "Bytes that it took out of its rings.";
        [5] written_bytes: u64, Bytes, "0.1", Always("written"), "Written",
            "Bytes written to its stream.";
        [6] writes: u64, Count, "0.1", Elsewhere, "Writes",
            "Number of writes.";
        [7] write_ns: u64, Ns, "0.1", Elsewhere, "Time in writes",
            "Time that it spent in writes, or in starting them.";
        [8] stalls: u64, Count, "0.1", Elsewhere, "Stalls",
            "Times that it had to wait until a block was written.";
        [9] stall_ns: u64, Ns, "0.1", Always("stalled"), "Time in stalls",
            "Time that it waited.";
    }
}
