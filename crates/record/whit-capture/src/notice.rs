//! Messages for the user while recording: each names a request that this machine could not fulfil.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use whit_host::advice::meaning;
use whit_host::level::Level;
use whit_host::list_cut::ListCut;
use whit_host::moved_text::UnnamedText;
use whit_host::named::NameNote;
use whit_perfdata::budget_history::Reduction;
use whit_perfdata::ledger::no_thread_ran_text;
use whit_sys::Errno;
use whit_types::{CpuId, Pid, Runtime, Tid};

use crate::kept_files::KEPT_MAX_BYTES;
use crate::options::CallGraph;
use crate::summary::Summary;

/// Paths of cgroups that a notice lists.
const PATHS_SHOWN: usize = 8;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Notice {
    /// The kernel allows no such frequency.
    FrequencyLowered { asked_hz: u64, limit_hz: u64 },
    /// The kernel does not know a field of the attributes.
    FeatureMissing { feature: &'static str, since: &'static str },
    /// User call chains are taken at each sample.
    ChainsNotDeferred,
    /// The kernel may take a probe out of a process when another one ends that was forked by the same process.
    ProbesMayEnd,
    /// There is no hardware counter for cycles.
    CyclesReplaced { event: String, errno: Errno },
    /// Only user mode may be sampled.
    UserModeOnly { event: String, paranoid: i64 },
    /// The PMU refused a level of precision.
    PrecisionLowered { event: String, level: u8 },
    /// The PMU cannot leave guests out.
    GuestsIncluded { event: String },
    /// A weak group does not fit onto the PMU.
    GroupBroken { leader: String },
    /// More descriptors were needed.
    OpenFilesRaised { from: Option<u64>, to: Option<u64> },
    /// There are not enough descriptors for every thread on every CPU.
    PerThreadRings { needed: usize, limit: u64 },
    /// The ring size is no power of two pages.
    RingRounded { pages: usize, size_bytes: usize },
    /// More was asked for than a ring may have.
    RingLimited { pages: usize, size_bytes: usize },
    /// So many rings of the usual size would take too much memory.
    RingsShared { rings: usize, size_bytes: usize },
    /// Locked memory did not suffice.
    RingsShrunk { asked_bytes: usize, size_bytes: usize, cause: Errno },
    /// An event that this machine does not have.
    EventLeftOut { event: String, why: String },
    /// Recording has begun, and no command ends it.
    Recording,
    /// `--engine=auto` takes the BPF engine.
    BpfChosen,
    /// It takes the ring engine: why, what call chains are made from then, and whether switches lack them.
    RingChosen { why: String, call_graph: CallGraph, bare_switches: bool },
    /// A name of the target that chooses several cgroups, or that no thread has yet.
    Name(NameNote),
    /// A thread ended before its events were open.
    ThreadGone { tid: Tid },
    /// A CPU went offline before its events were open.
    CpuGone { cpu: CpuId },
    /// A CPU went offline while it was recorded, so long after recording began.
    CpuLost { cpu: CpuId, after: Option<Duration> },
    /// A CPU came online after events were open.
    CpuLate { cpu: CpuId },
    /// `kptr_restrict` gives zeros for addresses, so samples in the kernel have no names.
    KernelAddressesHidden,
    /// Memory at the place of a binary's text has no name. The first such mapping, and how many more there are.
    TextWithoutName { first: UnnamedText, more: usize },
    /// Mappings of processes are missing: reading them took too long. The first of them, and how many.
    MappingsCut { pid: Pid, lines: usize, processes: usize, timeout: Duration },
    /// Those that are recorded had more CPU time than samples stand for.
    TimeWithoutSamples { samples: u64, expected: u64, period_ns: u64 },
    /// The hierarchy that perf events count by has its root alone, and this one has others.
    RootCgroupAlone { mount: PathBuf, controllers: String },
    /// Names of cgroups are missing: only so many are listed.
    CgroupsCut { listed: usize, cut: ListCut },
    /// None of those that are recorded ran. A process or thread of theirs, where one was named.
    NoThreadRan { threads: u64, id: Option<Tid>, has_stacks: bool },
    /// Less was recorded than was asked for.
    Reduced(Reduction),
    /// Unwinding needs more registers than were asked for.
    RegistersAdded,
    /// Branch records that were asked for cannot be the call chain as well.
    BranchesNotCallChain { event: String },
    /// Branch records hold calls of user mode only.
    NoKernelLbr { event: String },
    /// The old output was kept.
    OutputRenamed { from: String, to: String },
    /// A file that is no recording was in the way.
    FileRenamed { from: String, to: String },
    /// The stacks of threads that are blocked when recording begins or ends are not in the recording.
    BlockedNotRead { why: String },
    /// The command ran on without events.
    EventsTakenOff,
    /// Events start switched off and nothing will switch them on.
    StartsDisabled,
    /// Measuring begins after the delay.
    Enabled { after_ms: u64 },
    /// A range of time has ended.
    Disabled { after_ms: u64 },
    /// Events were switched by a command; `None` for all.
    EventsSwitched { event: Option<String>, on: bool },
    /// A command names an event that is not recorded.
    NoSuchEvent { event: String },
    /// A command that is none.
    UnknownCommand { line: String },
    /// The events, because a command asked for them.
    EventList { text: String },
    /// Nothing is overwritten, and outputs are not switched.
    NothingToSnapshot,
    /// The recording has the size that it may have.
    SizeReached,
    /// An output is complete, and recording goes on in the next.
    Switched { summary: Box<Summary> },
    /// There is no next output.
    NotSwitched { why: String },
    /// An output keeps its name.
    NotRenamed { output: String, why: String },
    /// Writing failed; recording has stopped.
    WriteFailed { output: String, errno: String },
    /// Asynchronous writes are done by a thread.
    WritesByThread { pipe: bool },
    /// Reading an event's lost count, or another part that only adds to the picture.
    Skipped { what: String, why: String },
    /// Binaries were copied for reports.
    BinariesKept { count: u64, bytes: u64, directory: String },
    /// There was no room for all of them.
    BinariesNotKept { count: u64, max_bytes: u64, directory: String },
    /// Older copies went for the new ones.
    BinariesEvicted { count: u64, bytes: u64, max_bytes: u64, directory: String },
    /// Some could not be opened any more.
    BinariesGone { count: u64 },
    /// Nothing can be copied.
    CacheUnusable { directory: String, why: String },
    /// Functions of a language runtime have no names, in this process for one.
    RuntimeWithoutNames { runtime: Runtime, pid: Pid },
    /// A Java virtual machine has written no names.
    JavaWithoutMap { pid: Pid, why: String },
    /// There is none that could.
    NoJava,
    /// More files were mapped as code than are described.
    FilesCut { described: usize },
    /// File systems of mapped files do not answer.
    FilesSilent { paths: Vec<String> },
    /// A feature is too long for the format of pipes.
    FeatureLeftOut { feature: u8 },
}

impl Notice {
    /// How loud it is.
    pub fn level(&self) -> Level {
        match self {
            Notice::FeatureMissing { .. }
            | Notice::PrecisionLowered { .. }
            | Notice::GuestsIncluded { .. }
            | Notice::OpenFilesRaised { .. }
            | Notice::ThreadGone { .. }
            | Notice::OutputRenamed { .. }
            | Notice::Enabled { .. }
            | Notice::Disabled { .. }
            | Notice::FeatureLeftOut { .. }
            | Notice::WritesByThread { .. }
            | Notice::BinariesKept { .. }
            | Notice::BinariesGone { .. }
            | Notice::RootCgroupAlone { .. }
            | Notice::Skipped { .. } => Level::Verbose,
            Notice::WriteFailed { .. } | Notice::NotSwitched { .. } => Level::Error,
            Notice::CyclesReplaced { .. }
            | Notice::EventsSwitched { .. }
            | Notice::EventList { .. }
            | Notice::Switched { .. }
            | Notice::BpfChosen
            | Notice::Recording
            | Notice::RingChosen { .. }
            | Notice::BinariesEvicted { .. } => Level::Answer,
            _ => Level::Warning,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::FrequencyLowered { asked_hz, limit_hz } => write!(
                f,
                "frequency lowered from {asked_hz} Hz to the kernel's limit of {limit_hz} Hz \
                 (raise it: sysctl kernel.perf_event_max_sample_rate={asked_hz}; refuse instead: \
                 --strict-freq)"
            ),
            Notice::FeatureMissing { feature, since } => {
                write!(f, "{feature} left out: this kernel does not know it (Linux {since} does)")
            }
            Notice::ChainsNotDeferred => f.write_str(
                "this kernel defers no user call chains (Linux 6.19 does): it takes them at each sample, as \
                 --call-graph fp says",
            ),
            Notice::ProbesMayEnd => f.write_str(
                "on this kernel, a probe may miss calls in processes that one process has forked, once one of them has \
                 ended (Linux 6.13 is free of that): record whole CPUs with -a",
            ),
            Notice::CyclesReplaced { event, errno } => write!(
                f,
                "samples come from a timer (cpu-clock): '{event}' is {}",
                meaning(*errno)
            ),
            Notice::UserModeOnly { event, paranoid } => write!(
                f,
                "'{event}': kernel mode left out, kernel.perf_event_paranoid is {paranoid} (allow \
                 it: sysctl kernel.perf_event_paranoid=1, or grant cap_perfmon)"
            ),
            Notice::PrecisionLowered { event, level } => {
                write!(f, "'{event}': precise_ip lowered to {level}")
            }
            Notice::GuestsIncluded { event } => {
                write!(f, "'{event}': this PMU cannot leave guests out")
            }
            Notice::GroupBroken { leader } => {
                write!(f, "the group of '{leader}' does not fit onto the PMU and was broken up")
            }
            Notice::OpenFilesRaised { from, to } => {
                write!(f, "limit of open files raised from {} to {}", limit(*from), limit(*to))
            }
            Notice::PerThreadRings { needed, limit } => write!(
                f,
                "{needed} open files needed, {limit} allowed: one event per thread instead of one \
                 per thread and CPU; threads that start later are not recorded (raise it: \
                 ulimit -n {needed})"
            ),
            Notice::RingRounded { pages, size_bytes } => {
                write!(f, "ring size rounded up to {} KiB ({pages} pages)", size_bytes / 1024)
            }
            Notice::RingLimited { pages, size_bytes } => {
                write!(
                    f,
                    "ring size lowered to {} KiB ({pages} pages), the largest",
                    size_bytes / 1024
                )
            }
            Notice::RingsShared { rings, size_bytes } => write!(
                f,
                "{rings} rings of {} KiB each, to bound memory (choose with -m)",
                size_bytes / 1024
            ),
            Notice::RingsShrunk { asked_bytes, size_bytes, cause } => write!(
                f,
                "rings of {} KiB instead of {} KiB: {} (allow more: sysctl \
                 kernel.perf_event_mlock_kb={}, or ulimit -l unlimited)",
                size_bytes / 1024,
                asked_bytes / 1024,
                meaning(*cause),
                asked_bytes / 1024 + 4
            ),
            Notice::EventLeftOut { event, why } => write!(f, "'{event}' left out: {why}"),
            Notice::Recording => f.write_str("recording; Ctrl-C ends it"),
            Notice::BpfChosen => f.write_str("--engine=auto takes the BPF engine"),
            Notice::RingChosen { why, call_graph, bare_switches } => {
                ring_chosen(f, why, *call_graph, *bare_switches)
            }
            Notice::ThreadGone { tid } => {
                write!(f, "thread {} ended before it was recorded", tid.0)
            }
            Notice::CpuGone { cpu } => write!(f, "CPU {} went offline and is not recorded", cpu.0),
            Notice::CpuLost { cpu, after } => {
                write!(f, "CPU {} went offline", cpu.0)?;
                if let Some(after) = after {
                    write!(f, " {:.3} s after recording began", after.as_secs_f64())?;
                }
                write!(
                    f,
                    " and is not recorded since then, even if it is online again: samples and \
                     switches of whatever runs there are missing, and waits are not trusted"
                )
            }
            Notice::CpuLate { cpu } => write!(
                f,
                "CPU {} came online after recording was set up and is not recorded: samples and \
                 switches of whatever runs there are missing, and waits are not trusted",
                cpu.0
            ),
            Notice::Name(note) => name_note(f, note),
            Notice::KernelAddressesHidden => write!(
                f,
                "kernel addresses are hidden: kernel samples will have no symbols (show them: \
                 sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1, or run as root)"
            ),
            Notice::TextWithoutName { first, more } => {
                write!(
                    f,
                    "code of process {} at {:#x} has no names: it lies in anonymous memory at the place of the text of \
                     {}, and {}",
                    first.pid.0,
                    first.start,
                    String::from_utf8_lossy(&first.path),
                    first.why
                )?;
                if *more > 0 { write!(f, " ({more} more such mappings)") } else { Ok(()) }
            }
            Notice::MappingsCut { pid, lines, processes, timeout } => {
                write!(f, "mappings of process {}", pid.0)?;
                if let Some(more @ 1..) = processes.checked_sub(1) {
                    write!(f, " and {more} more")?;
                }
                write!(
                    f,
                    " are missing: reading /proc/{}/maps took longer than {} ms and ended after \
                     {lines} lines; functions in the other mappings have no names, and stacks end \
                     there (allow more time: --proc-map-timeout {})",
                    pid.0,
                    timeout.as_millis(),
                    (timeout.as_millis() * 10).max(10_000),
                )
            }
            Notice::TimeWithoutSamples { samples, expected, period_ns } => write!(
                f,
                "{samples} samples, where the CPU time of those that are recorded is worth {expected}: the \
                 first sample of a thread comes at the end of a period of {:.3} ms, and many threads run for \
                 less (sample CPUs: --engine=bpf, or -a; or sample more often: -F)",
                *period_ns as f64 / 1e6
            ),
            Notice::RootCgroupAlone { mount, controllers } => write!(
                f,
                "cgroups will all be /: the hierarchy that perf events count by has no others. There are cgroups below {} \
                 ({controllers}), and the kernel does not record these with samples (those of cpu: --engine=bpf; one of \
                 another: whit record --cgroup NAME --engine=bpf; all: mount the controller perf_event, and put the \
                 processes into its cgroups)",
                mount.display()
            ),
            Notice::CgroupsCut { listed, cut } => write!(
                f,
                "names of cgroups are missing: {cut}; {listed} are listed, and reports know the others \
                 by number only"
            ),
            Notice::NoThreadRan { threads, id, has_stacks } => {
                let id = id.map_or_else(|| "PID".to_owned(), |id| id.0.to_string());
                f.write_str(&no_thread_ran_text(*threads, &id, *has_stacks))
            }
            Notice::Reduced(reduction) => write!(f, "{reduction}"),
            Notice::RegistersAdded => write!(
                f,
                "unwinding needs the instruction, stack and frame pointers: added to --user-regs"
            ),
            Notice::BranchesNotCallChain { event } => write!(
                f,
                "'{event}': call chains by frame pointers, not by branch records: those hold what \
                 -b or -j asks for"
            ),
            Notice::NoKernelLbr { event } => write!(
                f,
                "'{event}': call chains by frame pointers, not by branch records: those hold \
                 calls of user mode only"
            ),
            Notice::OutputRenamed { from, to } => write!(f, "kept the old {from} as {to}"),
            Notice::FileRenamed { from, to } => {
                write!(f, "{from} was no recording; it is called {to} now")
            }
            Notice::BlockedNotRead { why } => write!(
                f,
                "threads that are blocked when recording begins or ends have no stacks (that takes Linux \
                 5.18): {why}"
            ),
            Notice::EventsTakenOff => write!(
                f,
                "the kernel took the events off the command, which gained rights when it was \
                 executed (set-user-id, set-group-id, file capabilities): what it did from then on \
                 is not recorded; -a records it, with the right to"
            ),
            Notice::StartsDisabled => write!(f, "events start switched off"),
            Notice::Enabled { after_ms } => write!(f, "events switched on after {after_ms} ms"),
            Notice::Disabled { after_ms } => write!(f, "events switched off after {after_ms} ms"),
            Notice::EventsSwitched { event, on } => {
                let what = event.as_ref().map_or_else(|| "Events".to_owned(), |e| format!("'{e}'"));
                write!(f, "{what} {}", if *on { "enabled" } else { "disabled" })
            }
            Notice::NoSuchEvent { event } => write!(
                f,
                "no event '{event}' is recorded (the command 'evlist' lists those that are)"
            ),
            Notice::UnknownCommand { line } => write!(
                f,
                "'{line}' is no command: there are enable, disable, evlist [-v|-g|-F], snapshot, \
                 stop and ping"
            ),
            Notice::EventList { text } => f.write_str(text.trim_end()),
            Notice::SizeReached => write!(f, "size limit reached, recording ended"),
            Notice::NothingToSnapshot => write!(
                f,
                "there is nothing to take a snapshot of: record with --overwrite or --switch-output"
            ),
            Notice::Switched { summary } => write!(f, "{summary}"),
            Notice::NotSwitched { why } => {
                write!(f, "the output is not switched, recording goes on in the old one: {why}")
            }
            Notice::NotRenamed { output, why } => write!(f, "{output} keeps its name: {why}"),
            Notice::WriteFailed { output, errno } => write!(
                f,
                "cannot write {output}: {errno}; recording has stopped, what was written is kept"
            ),
            Notice::WritesByThread { pipe: true } => {
                write!(f, "asynchronous writes by a thread: a pipe is written in order")
            }
            Notice::WritesByThread { pipe: false } => write!(
                f,
                "asynchronous writes by a thread: io_uring is refused (allow it: sysctl \
                 kernel.io_uring_disabled=0, or a sandbox forbids it)"
            ),
            Notice::Skipped { what, why } => write!(f, "{what} left out: {why}"),
            Notice::BinariesKept { count, bytes, directory } => write!(
                f,
                "{} copied to {directory} ({} KiB), so that reports have their names when the files \
                 have changed (not to copy them: -N)",
                binaries(*count, "was", "were"),
                bytes.div_ceil(1024)
            ),
            Notice::BinariesEvicted { count, bytes, max_bytes, directory } => write!(
                f,
                "{} removed from {directory} ({} MiB): the copies there take {} MiB at most, and no \
                 recording has used these for the longest time (--buildid-cache-size)",
                binaries(*count, "was", "were"),
                bytes.div_ceil(1 << 20),
                max_bytes >> 20
            ),
            Notice::BinariesNotKept { count, max_bytes, directory } => write!(
                f,
                "{} not copied to {directory}: a recording copies {} MiB at most, and a twentieth \
                 of the file system (or 1 GiB) stays free. Reports have their names as long as the files stay \
                 as they are (--buildid-cache-size)",
                binaries(*count, "was", "were"),
                (*max_bytes).min(KEPT_MAX_BYTES) >> 20
            ),
            Notice::BinariesGone { count } => write!(
                f,
                "{} not copied: no process leads to the file any more, or it was written while it \
                 was recorded",
                binaries(*count, "was", "were")
            ),
            Notice::CacheUnusable { directory, why } => write!(
                f,
                "binaries are not copied to {directory}: {why}. Reports have their names as long as \
                 the files stay as they are (another place: PERF_BUILDID_DIR; no copies: -N)"
            ),
            Notice::RuntimeWithoutNames { runtime, pid } => write!(
                f,
                "functions of {runtime} have no names (process {}); to get names: {}",
                pid.0,
                runtime.advice()
            ),
            Notice::JavaWithoutMap { pid, why } => write!(
                f,
                "the Java virtual machine of process {} has written no names of its functions: {why}",
                pid.0
            ),
            Notice::NoJava => f.write_str(
                "--perf-map: no Java virtual machine of this recording runs any more; one that ends with the recording writes \
                 its names itself with java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
            ),
            Notice::FilesCut { described } => write!(
                f,
                "more than {described} files were mapped as code: the others have no build id in \
                 the recording and are not copied, so that reports cannot tell whether a file at \
                 the same path is the one that ran"
            ),
            Notice::FilesSilent { paths } => {
                let shown = &paths[..paths.len().min(PATHS_SHOWN)];
                let more = paths.len() - shown.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(
                    f,
                    "the file system of {}{more} does not answer: their functions have no names, unless it answers \
                     when the recording is read",
                    shown.join(", ")
                )
            }
            Notice::FeatureLeftOut { feature } => {
                write!(f, "header feature {feature} left out: too long for a pipe")
            }
        }
    }
}

fn name_note(f: &mut fmt::Formatter<'_>, note: &NameNote) -> fmt::Result {
    match note {
        NameNote::Several { name, paths } => {
            write!(f, "{} cgroups go by the name {name}, and all are recorded: ", paths.len())?;
            let shown = paths.iter().take(PATHS_SHOWN).map(ToString::to_string);
            f.write_str(&shown.collect::<Vec<_>>().join(", "))?;
            match paths.len().checked_sub(PATHS_SHOWN) {
                Some(more @ 1..) => write!(f, " and {more} more"),
                _ => Ok(()),
            }
        }
        NameNote::NoneYet { name, near } => {
            write!(f, "no thread is called {name} yet: those are recorded that get the name")?;
            if near.is_empty() { Ok(()) } else { write!(f, "; near names: {}", near.join(", ")) }
        }
    }
}

fn ring_chosen(
    f: &mut fmt::Formatter<'_>,
    why: &str,
    call_graph: CallGraph,
    bare_switches: bool,
) -> fmt::Result {
    writeln!(f, "--engine=auto takes the ring engine: {why}")?;
    f.write_str(match call_graph {
        CallGraph::None => "there are no call chains",
        CallGraph::FramePointer => "call chains come from frame pointers",
        CallGraph::Dwarf { .. } => {
            "call chains come from dumps of stacks (--call-graph dwarf); those by frame pointers take \
             less room (--call-graph fp)"
        }
        CallGraph::Lbr => "call chains come from branch records",
    })?;
    if bare_switches {
        f.write_str("; context switches have none")?;
    }
    Ok(())
}

fn limit(value: Option<u64>) -> String {
    value.map_or_else(|| "unlimited".to_owned(), |value| value.to_string())
}

/// Takes notices as they come.
pub trait Listener {
    /// One notice.
    fn notice(&mut self, notice: Notice);

    /// Runs on a thread of its own where the set-up takes long: see [`SLOW_SET_UP`].
    fn when_set_up_is_slow(&mut self) -> Box<dyn FnOnce() + Send> {
        Box::new(|| ())
    }
}

/// A longer set-up is long enough that a user wonders.
pub const SLOW_SET_UP: Duration = Duration::from_millis(300);

impl<F: FnMut(Notice)> Listener for F {
    fn notice(&mut self, notice: Notice) {
        self(notice);
    }
}

/// A number of binaries with its verb.
fn binaries(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 binary {one}"),
        count => format!("{count} binaries {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_the_result_are_warnings_and_details_are_verbose() {
        assert_eq!(Notice::ChainsNotDeferred.level(), Level::Warning);
        let replaced = Notice::CyclesReplaced { event: "cycles:P".into(), errno: Errno::NOENT };
        assert_eq!(replaced.level(), Level::Answer);
        assert!(replaced.to_string().contains("cpu-clock"));
        assert_eq!(Notice::ThreadGone { tid: Tid(1) }.level(), Level::Verbose);
        let failed = Notice::WriteFailed { output: "perf.data".into(), errno: "x".into() };
        assert!(failed.level() > Level::Warning);
    }
}
