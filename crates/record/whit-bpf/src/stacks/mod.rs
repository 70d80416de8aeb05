//! Samples and context switches with stacks that are unwound in the kernel.
//!
//! [`Stacks`] loads `bpf/stacks.bpf.c` and keeps the data that its programs look up: unwind tables,
//! the mappings of processes, the events that records go out by. [`record`] describes the records.

mod blocked;
pub mod channel;
mod chosen;
mod functions;
mod interpreters;
mod layout;
mod needs;
mod program;
pub(crate) use blocked::OBJECT as BLOCKED_OBJECT;
pub(crate) use program::OBJECT;
pub mod record;
mod runs;
mod sockets;
mod tables;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use whit_sys::Errno;
pub use whit_sys::bpf::RunStatistics;
use whit_sys::clock::ClockId;
use whit_types::ServerSocket;
/// Why a walk in the kernel ended: `enum unwind_reason`.
pub use whit_types::StackEnd as StopReason;

use crate::error::BpfError;
use crate::run_timer::RunTimer;
pub use blocked::{BLOCKED_THREADS_MAX, Blocked, BlockedThread, BlockedThreads};
use channel::Channels;
pub use chosen::{
    CgroupHierarchy, ChosenBy, NAME_BYTES, NAMES_MAX, OF_VERSION_1, cgroup_subsystem,
};
pub use functions::{Announcement, Functions, MetFunction, identity};
pub use interpreters::{
    INTERPRETERS_MAX, Interpreter, InterpreterNumber, PythonIdentity, PythonLayout, PythonRunEnd,
};
pub use layout::TABLE_MEMORY_MAX_BYTES;
pub use needs::{FIND_VMA, lacking};
use needs::{SCHED_EXIT, SOCK_RECV_LENGTH};
use program::Program;
use runs::{Run, Runs};
pub use sockets::{SOCKETS_MAX, SocketEdge};
pub use tables::TableParts;

/// Mappings of all processes together.
pub const MAPPINGS_MAX: u32 = 1 << 17;
/// Mappings of one process: the number that fits into its value and that the walk's search reaches.
pub const PROCESS_MAPPINGS_MAX: usize = (1 << 14) - 1;
/// Files whose mappings programs find without an announcement.
pub const FILES_MAX: usize = 16384;
/// Processes that are known at a time.
pub const PROCESSES_MAX: usize = 16384;
/// Most frames of a user stack, and of a kernel's.
pub const FRAMES_MAX: usize = 127;

/// Number of a table in the kernel, with its generation above it: numbers of removed tables are given out again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableNumber(pub(crate) u64);

impl TableNumber {
    pub(crate) fn new(number: u32, generation: u32) -> TableNumber {
        TableNumber(u64::from(generation) << 32 | u64::from(number))
    }

    pub(crate) fn number(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// There will be one, which is not there yet.
    pub const NOT_YET: TableNumber = TableNumber(0);
    /// There is none: code that does not describe itself.
    pub const NONE: TableNumber = TableNumber(1);
    /// There is none, since the binary could not be opened.
    pub const NOT_OPENED: TableNumber = TableNumber(2);
}

/// Executable memory of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Addresses less this are those that the file states.
    pub bias: u64,
    /// How to unwind there.
    pub table: TableNumber,
}

/// Counts of one of the programs, on all CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples or switches.
    pub runs: u64,
    /// Records that did not fit into the ring or channel.
    pub lost: u64,
    /// Stacks that did not fit; their records name none.
    pub lost_stacks: u64,
    /// Emitted stacks.
    pub announced: u64,
    /// User stacks that were walked.
    pub walks: u64,
    /// User stacks that were known to be the thread's last one again.
    pub memo_hits: u64,
    /// Frames of all walks.
    pub frames: u64,
    /// Stacks of the kernel that it would not give.
    pub kernel_failures: u64,
    /// Stacks of the kernel that were known to be the thread's last one again.
    pub kernel_memo_hits: u64,
    /// Switches out of the idle thread that the tracepoint shows, of recorded threads and others.
    pub from_idle: u64,
    /// Threads that nobody saw coming, only later: at a sample, or as they went.
    pub late: u64,
    /// Mappings that the programs found without an announcement ([`Stacks::set_file`]).
    pub learned: u64,
    /// Ends of walks, by the number of the reason.
    pub reasons: [u64; StopReason::ALL.len()],
    /// Frames of interpreted functions.
    pub interpreted: u64,
    /// Walks in which native frames of an interpreter stayed, by [`NativeStayed`].
    pub native_stayed: [u64; NativeStayed::ALL.len()],
}

/// Why native frames of an interpreter stayed in a walk: `enum interpreter_reason`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NativeStayed {
    /// No state of the interpreter is the thread's.
    NoThread,
    /// Its memory could not be read without a fault.
    Unreadable,
    /// The thread was about to enter the interpreter's loop, or to leave it.
    NotEntered,
}

impl NativeStayed {
    /// In the order of the programs' numbers, which begin with 1.
    pub const ALL: [NativeStayed; 3] =
        [NativeStayed::NoThread, NativeStayed::Unreadable, NativeStayed::NotEntered];

    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            NativeStayed::NoThread => "no state of the interpreter is the thread's",
            NativeStayed::Unreadable => "the interpreter's memory could not be read",
            NativeStayed::NotEntered => "the interpreter's loop was being entered or left",
        }
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.runs += other.runs;
        self.lost += other.lost;
        self.lost_stacks += other.lost_stacks;
        self.announced += other.announced;
        self.walks += other.walks;
        self.memo_hits += other.memo_hits;
        self.frames += other.frames;
        self.kernel_failures += other.kernel_failures;
        self.kernel_memo_hits += other.kernel_memo_hits;
        self.from_idle += other.from_idle;
        self.late += other.late;
        self.learned += other.learned;
        self.reasons.iter_mut().zip(other.reasons).for_each(|(sum, count)| *sum += count);
        self.interpreted += other.interpreted;
        let stayed = self.native_stayed.iter_mut().zip(other.native_stayed);
        stayed.for_each(|(sum, count)| *sum += count);
    }

    /// Ends of walks for a reason.
    pub fn ended(&self, reason: StopReason) -> u64 {
        self.reasons[reason as usize]
    }
}

/// Which of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramKind {
    /// At overflows of perf events.
    Samples,
    /// Context switches.
    Switches,
    /// Hits of tracepoints.
    Traces,
    /// Wake-ups.
    Wakes,
    /// Hits of probes.
    Probes,
    /// Samples of waits.
    Waits,
    /// Data of chosen sockets. These programs have no [`Counts`].
    Sockets,
}

/// The records to emit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackOptions {
    /// Everybody's switches; else those of processes that were made known as targets, and of their
    /// children.
    pub is_system_wide: bool,
    /// Records only the threads that are made known, and not their children.
    pub by_thread: bool,
    /// The PID namespace whose numbers processes and threads have here and in records: what
    /// `/proc/self/ns/pid` has. `None` for the first one of the machine.
    pub pid_namespace: Option<u32>,
    /// In place of processes: threads that are chosen by cgroup or name, as long as they are.
    pub chosen: ChosenBy,
    /// A hierarchy of version 1 with the cgroups of threads that are in the root of version 2: samples have these numbers
    /// with the bit [`OF_VERSION_1`]. Those of version 2 are the kernel's own.
    pub sampled_cgroups: CgroupHierarchy,
    /// Stacks in kernel mode are recorded, too.
    pub kernel_stacks: bool,
    /// With stacks of user mode.
    pub user_stacks: bool,
    /// Remember each thread's last stack. Without, every stack is walked.
    pub memo: bool,
    /// perf writes its own sample as well, behind the program's record.
    pub perf_samples: bool,
    /// Hits of tracepoints are recorded.
    pub traces: bool,
    /// Probes are (uprobes, kprobes).
    pub probes: bool,
    /// Wake-ups are.
    pub wakes: bool,
    /// Data that goes through chosen sockets is.
    pub sockets: bool,
    /// Beginnings of calls that send are recorded as well, on kernels that call programs at functions.
    pub times_sends: bool,
    /// Off-CPU time of a thread for each sample of a wait, in nanoseconds; 0 samples none.
    pub off_cpu_period_ns: u64,
    /// CPUs that the machine may have.
    pub cpus: usize,
    /// Bytes that tables may take, up to [`TABLE_MEMORY_MAX_BYTES`].
    pub table_bytes: usize,
    /// Size of each CPU's channel: about 32 bytes for a waiting switch. 0 if switches are not recorded.
    pub channel_bytes: usize,
}

/// The programs with the data that they look up.
#[derive(Debug)]
pub struct Stacks {
    program: Program,
    channels: Channels,
    tables: tables::Tables,
    interpreters: u32,
    runs: Runs,
    processes: HashMap<u32, Run>,
    /// How often processes were changed.
    changes: u64,
    /// CPUs that the machine may have.
    cpus: usize,
    /// Makes the kernel time the programs.
    timer: Option<RunTimer>,
}

/// The largest channel where an array's elements may not exceed one allocation of the kernel, 4 MiB: at
/// least up to Linux 5.15.
const CHANNEL_PIECE_BYTES: usize = 2 << 20;

/// Replaces a refusal by the list of features that the kernel lacks, if that is its cause.
fn named(error: BpfError) -> BpfError {
    if error.is_permission() {
        return error;
    }
    let needs = lacking();
    if needs.is_empty() { error } else { BpfError::Lacking { needs, source: Box::new(error) } }
}

impl Stacks {
    /// Loads the programs. They do nothing before they are attached.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: [`BpfError::is_permission`], [`BpfError::is_unsupported`].
    pub fn load(options: &StackOptions) -> Result<Stacks, BpfError> {
        let mut options = *options;
        let mut program = Program::load(&options);
        let is_refused = |error: &BpfError| !error.is_permission();
        if options.channel_bytes > CHANNEL_PIECE_BYTES && program.as_ref().is_err_and(is_refused) {
            options.channel_bytes = CHANNEL_PIECE_BYTES;
            program = Program::load(&options);
        }
        // Some kernels let nobody have a program at a function.
        if options.sockets && options.times_sends && program.is_err() {
            let untimed = StackOptions { times_sends: false, ..options };
            program = Program::load(&untimed).or(program);
        }
        // All else may be there but a tracepoint.
        let without = [
            (
                options.off_cpu_period_ns > 0,
                StackOptions { off_cpu_period_ns: 0, ..options },
                SCHED_EXIT,
            ),
            (options.sockets, StackOptions { sockets: false, ..options }, SOCK_RECV_LENGTH),
        ];
        for (is_wanted, without, need) in without {
            let is_cause = is_wanted && program.as_ref().is_err_and(is_refused);
            if is_cause && Program::load(&without).is_ok() {
                let lacks =
                    |source| BpfError::Lacking { needs: vec![need], source: Box::new(source) };
                program = program.map_err(lacks);
                break;
            }
        }
        let program = program.map_err(named)?;
        let channels = program.channels(&options)?;
        Ok(Stacks {
            program,
            channels,
            tables: tables::Tables::within(options.table_bytes),
            interpreters: 0,
            runs: Runs::new(MAPPINGS_MAX),
            processes: HashMap::new(),
            changes: 0,
            cpus: options.cpus.max(1),
            timer: None,
        })
    }

    /// Loads what reads the stacks of blocked threads, by the tables and processes that were made known here. The
    /// options are those that this was loaded with. It counts threads beyond `threads_max`.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: Linux before 5.18, for one.
    pub fn load_blocked(
        &self,
        options: &StackOptions,
        threads_max: usize,
    ) -> Result<BlockedThreads, BpfError> {
        BlockedThreads::load(&self.program, options, threads_max)
    }

    /// Has the kernel take the programs' time from here on, for a part of the time: [`RunTimer::start`].
    ///
    /// # Errors
    ///
    /// Where the kernel does not let us.
    pub fn time_runs(&mut self, are_on: bool) -> Result<(), Errno> {
        if self.timer.is_none() {
            self.timer = Some(RunTimer::start(are_on)?);
        }
        Ok(())
    }

    /// For how long the programs' time was taken.
    pub fn timed(&self) -> Duration {
        self.timer.as_ref().map(RunTimer::timed).unwrap_or_default()
    }

    /// Records of a CPU go out by this event of the kind bpf-output.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn set_output(&self, cpu: u32, event: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.program.set_output(cpu, event)
    }

    /// Switches of a CPU have this event of the kind bpf-output wake their reader, when a quarter of the
    /// channel is new.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn set_wakeup_event(&self, cpu: u32, event: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.program.set_wakeup_event(cpu, event)
    }

    /// The program that records samples, for attaching to perf events.
    ///
    /// # Errors
    ///
    /// The error of `give`.
    pub fn with_sampler<T>(
        &self,
        give: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let program = self.program.part(ProgramKind::Samples).map_err(|_| Errno::BADF)?;
        give(program.as_fd())
    }

    /// The program that records threads that come after a hidden one, for attaching to events that count
    /// each context switch of a CPU. On a kernel that hides nothing, it does nothing.
    ///
    /// # Errors
    ///
    /// The error of `give`.
    pub fn with_switch_ins<T>(
        &self,
        give: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let program = self.program.switch_ins().map_err(|_| Errno::BADF)?;
        give(program.as_fd())
    }

    /// Records switches from here on.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach_switches(&mut self) -> Result<(), BpfError> {
        // Every kernel has this clock.
        let now_ns = ClockId::MONOTONIC.now_ns().unwrap_or_default();
        self.program.set_switches_since(now_ns)?;
        self.program.attach_switches()
    }

    /// Records wake-ups from here on.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach_wakes(&mut self) -> Result<(), BpfError> {
        self.program.attach_wakes()
    }

    /// Has data that threads receive and send through a server's sockets recorded, by these events of the kind
    /// bpf-output: an edge, a CPU and its event. Sockets are numbered below [`SOCKETS_MAX`].
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn choose_socket<'a>(
        &self,
        number: u32,
        socket: &ServerSocket,
        events: impl IntoIterator<Item = (SocketEdge, u32, BorrowedFd<'a>)>,
    ) -> Result<(), BpfError> {
        self.program.choose_socket(number, socket)?;
        let mut events = events.into_iter();
        events.try_for_each(|(edge, cpu, event)| {
            self.program.set_socket_event(cpu, (number, edge as u32), event)
        })
    }

    /// Records data of chosen sockets from here on ([`StackOptions::sockets`]).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach_sockets(&mut self) -> Result<(), BpfError> {
        self.program.attach_sockets()
    }

    /// Ends that. [`Stacks::detach`] does, too.
    pub fn detach_sockets(&mut self) {
        self.program.detach_sockets();
    }

    /// Samples waits from here on ([`StackOptions::off_cpu_period_ns`]).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach_off_cpu(&mut self) -> Result<(), BpfError> {
        let now_ns = ClockId::MONOTONIC.now_ns().unwrap_or_default();
        self.program.set_switches_since(now_ns)?;
        self.program.attach_off_cpu()
    }

    /// Ends walks of user stacks at one part in so many of [`FRAMES_MAX`] from here on.
    pub fn set_stack_divisor(&self, divisor: u32) -> Result<(), BpfError> {
        let frames = FRAMES_MAX.div_ceil(divisor.max(1) as usize);
        self.program.set_frames_max(if divisor > 1 { frames as u64 } else { 0 })
    }

    /// Records the accounts of CPUs at this moment ([`channel::Account`]): `begins` where recording begins, and again before
    /// it ends, since no switch may follow. A CPU that is offline has none.
    pub fn settle_accounts(&self, begins: bool) {
        for cpu in 0..self.cpus as u32 {
            // Without, the account of its last run is missing.
            let _ = self.program.settle_account(cpu, begins);
        }
    }

    /// Records no switches and no wake-ups any more.
    pub fn detach_switches(&mut self) {
        self.program.detach_switches();
    }

    /// Samples no waits any more.
    pub fn detach_off_cpu(&mut self) {
        self.program.detach_off_cpu();
    }

    /// Records the stacks of hits of an event's tracepoint ([`ProgramKind::Traces`]) or probe ([`ProgramKind::Probes`])
    /// from here on, for the events of all threads. Records name it by this number.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach_trace(
        &mut self,
        event: BorrowedFd<'_>,
        number: u32,
        part: ProgramKind,
    ) -> Result<(), BpfError> {
        self.program.attach_trace(event, number, part)
    }

    /// Follows processes that fork and exec.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach_processes(&mut self) -> Result<(), BpfError> {
        self.program.attach_processes()
    }

    /// Stops recording switches, wake-ups and tracepoints.
    pub fn detach(&mut self) {
        self.program.detach();
    }

    /// Makes a thread known, so that its switches and wake-ups are recorded
    /// ([`StackOptions::by_thread`]).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: more than [`PROCESSES_MAX`], for one.
    pub fn add_thread(&self, tid: u32) -> Result<(), BpfError> {
        self.program.add_thread(tid)
    }

    /// Chooses a cgroup, by its id, with all cgroups below it ([`ChosenBy::cgroups`]).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn choose_cgroup(&self, id: u64) -> Result<(), BpfError> {
        self.program.choose_cgroup(id)
    }

    /// Chooses threads by their name or their process's, with zeros behind it ([`ChosenBy::names`]).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: more than [`NAMES_MAX`], for one.
    pub fn choose_name(&self, name: [u8; NAME_BYTES]) -> Result<(), BpfError> {
        self.program.choose_name(name)
    }

    /// Adds the table of a binary.
    ///
    /// # Errors
    ///
    /// [`BpfError::Room`] where [`TABLE_MEMORY_MAX_BYTES`] or another limit is reached; the tables
    /// that are there stay.
    pub fn add_table(
        &mut self,
        parts: &TableParts<'_>,
        now: Instant,
    ) -> Result<TableNumber, BpfError> {
        self.tables.add(&self.program, parts, now)
    }

    /// Takes a table out. Mappings that still name it have no table from here on. No program may name the file of the table
    /// any more ([`Stacks::forget_file`]).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: then it stays.
    pub fn remove_table(&mut self, table: TableNumber, now: Instant) -> Result<(), BpfError> {
        self.tables.remove(&self.program, table, now)
    }

    /// Makes an interpreter known. Its frames are walked in the binary whose table names it.
    ///
    /// # Errors
    ///
    /// [`BpfError::Room`] where there are [`INTERPRETERS_MAX`].
    pub fn add_interpreter(
        &mut self,
        interpreter: &Interpreter,
    ) -> Result<InterpreterNumber, BpfError> {
        let number = self.interpreters + 1;
        let (wanted, room) = (number as usize, INTERPRETERS_MAX - 1);
        if wanted > room {
            return Err(BpfError::Room { what: "interpreters", wanted, room });
        }
        self.program.set_interpreter(number, &interpreter.encode())?;
        self.interpreters = number;
        Ok(InterpreterNumber(number))
    }

    /// Functions of interpreters that the programs meet from here on.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn functions(&self) -> Result<Functions, BpfError> {
        self.program.functions()
    }

    /// Makes known how to unwind in a file that this process has mapped at `address`: stacks go through it
    /// wherever a process maps it, before its mappings are known. `bias`: stated addresses less offsets in
    /// the file. The file has to stay mapped here. Without [`FIND_VMA`] this has no effect.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: more than [`FILES_MAX`], for one.
    pub fn set_file(&self, address: u64, bias: u64, table: TableNumber) -> Result<(), BpfError> {
        self.program.set_file(address, bias, table)
    }

    /// The same for the kernel's own code for user mode, which is no file.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn set_vdso(&self, bias: u64, table: TableNumber) -> Result<(), BpfError> {
        self.program.set_vdso(bias, table)
    }

    /// Has stacks no longer go through the file that is mapped at an address of ours. It may be unmapped from here on.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn forget_file(&self, address: u64) -> Result<(), BpfError> {
        self.program.forget_file(address)
    }

    /// Whether [`Stacks::set_file`] has an effect: the kernel has [`FIND_VMA`].
    pub fn finds_mappings(&self) -> bool {
        self.program.finds_mappings
    }

    /// Bytes that tables take.
    pub fn table_bytes(&self) -> usize {
        self.tables.bytes()
    }

    /// Whether tables take more than three quarters of their room, in bytes, rules or number.
    pub fn tables_are_tight(&self) -> bool {
        self.tables.are_tight()
    }

    /// Makes known what a process has mapped: sorted, without overlap.
    ///
    /// # Errors
    ///
    /// [`BpfError::Room`] if a limit is reached; the entries so far stay.
    pub fn set_process(
        &mut self,
        pid: u32,
        mappings: &[Mapping],
        is_target: bool,
        now: Instant,
    ) -> Result<(), BpfError> {
        let room = |what, wanted, room| BpfError::Room { what, wanted, room };
        if mappings.len() > PROCESS_MAPPINGS_MAX {
            return Err(room("mappings of a process", mappings.len(), PROCESS_MAPPINGS_MAX));
        }
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&pid) {
            return Err(room("processes", self.processes.len() + 1, PROCESSES_MAX));
        }
        let count = mappings.len() as u32;
        let run = self.runs.take(count, now);
        let full = || room("mappings of processes", mappings.len(), MAPPINGS_MAX as usize);
        let run = run.ok_or_else(full)?;
        let set = self.program.set_mappings(run.first, mappings).and_then(|()| {
            self.program.set_process(pid, layout::process(run.first, count, is_target))?;
            self.changes += 1;
            self.program.set_changes(self.changes)
        });
        if let Err(error) = set {
            self.runs.give_back(run, now);
            return Err(error);
        }
        if let Some(old) = self.processes.insert(pid, run) {
            self.runs.give_back(old, now);
        }
        Ok(())
    }

    /// Makes a target known without its mappings, for which the maps are full: it is recorded, with stacks that are cut. A
    /// target that is known stays as it is.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses: more than [`PROCESSES_MAX`], for one.
    pub fn add_target(&mut self, pid: u32) -> Result<(), BpfError> {
        if self.processes.contains_key(&pid) {
            return Ok(());
        }
        self.program.add_process(pid, layout::process(0, 0, true))?;
        self.changes += 1;
        self.program.set_changes(self.changes)
    }

    /// The program emits a target's samples from its exec on, unless it is made known anew before.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn await_exec(&mut self, pid: u32) -> Result<(), BpfError> {
        let (first, count) = self.processes.get(&pid).map_or((0, 0), |run| (run.first, run.count));
        self.program.set_process(pid, layout::awaiting_process(first, count))?;
        self.changes += 1;
        self.program.set_changes(self.changes)
    }

    /// Forgets a process.
    pub fn remove_process(&mut self, pid: u32, now: Instant) {
        if let Some(run) = self.processes.remove(&pid) {
            self.runs.give_back(run, now);
        }
        self.program.remove_process(pid);
        self.changes += 1;
        // Refused, the process is taken for one that is still there, as it was until now.
        let _ = self.program.set_changes(self.changes);
    }

    /// The records of the program of switches.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// The counts of a program so far.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell.
    pub fn counts(&self, part: ProgramKind) -> Result<Counts, BpfError> {
        let mut sum = Counts::default();
        for scratch in self.program.scratches(part)? {
            sum.add(&layout::counts(&scratch));
        }
        Ok(sum)
    }

    /// By CPU, the records of switches that its full channel dropped.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell.
    pub fn lost_switches(&self) -> Result<Vec<u64>, BpfError> {
        let scratches = self.program.scratches(ProgramKind::Switches)?;
        Ok(scratches.iter().map(|scratch| layout::counts(scratch).lost).collect())
    }

    /// Instructions of each program that the verifier has looked at, as often as they came by; of a
    /// million that it would look at. `None` where the kernel does not tell.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell.
    pub fn verified_instructions(&self) -> Result<Vec<(String, Option<u32>)>, Errno> {
        let programs = self.program.loaded().map(|program| {
            let instructions = whit_sys::bpf::verified_instructions(program.as_fd())?;
            Ok((program.name().to_string_lossy().into_owned(), instructions))
        });
        programs.collect()
    }

    /// How often a program ran while its time was taken ([`Stacks::timed`]), and for how long.
    ///
    /// # Errors
    ///
    /// Where the kernel keeps no statistics.
    pub fn run_statistics(&self, part: ProgramKind) -> Result<RunStatistics, Errno> {
        let mut sum = RunStatistics::default();
        for program in self.program.parts(part) {
            let of_program = whit_sys::bpf::run_statistics(program.as_fd())?;
            sum.runs += of_program.runs;
            sum.run_time_ns += of_program.run_time_ns;
            sum.missed += of_program.missed;
        }
        Ok(sum)
    }
}
