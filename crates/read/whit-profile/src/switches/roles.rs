//! The meaning of each event of a recording for context switches.

use super::contention::Contention;
use super::interval::Task;
use super::model::Sources;
use super::object::ObjectReader;
use super::object_key::ObjectKey;
use super::switch_event::{Source, StackRef, SwitchEvent, TaskState, TimedSwitchEvent, Wake};
use crate::trace_number::Number;
use crate::warning::Warning;
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::blocked;
use whit_perfdata::feature::Feature;
use whit_perfdata::off_cpu;
use whit_perfdata::reader::Recording;
use whit_perfdata::tracing_data::{TraceEvent, TracingData};
use whit_perfdata::wait_object;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];
/// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
const CONTEXT_SWITCHES: u64 = 3;
/// `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` in the field `common_flags`.
const IN_INTERRUPT: u64 = 0x08 | 0x10;
/// Bytes of a socket's description; the padding of raw data is shorter.
const SOCKET_BYTES: usize = 7 * 8;

/// The facts about threads that an event's samples give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Where CPU time goes.
    CpuTime,
    /// Only that the thread ran.
    Running,
    /// The call chain of a thread that is about to leave its CPU.
    SwitchStack,
    /// `sched:sched_switch`.
    Switch(SwitchFields),
    /// `sched:sched_waking` and its like.
    Wake(WakeFields),
    /// `lock:contention_begin` or `lock:contention_end`.
    Contention(ContentionFields),
    /// A thread that is on no CPU.
    Blocked,
    /// Samples of the event say nothing about switches.
    None,
}

/// Where `sched:sched_switch` has what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SwitchFields {
    prev_state: Number,
    next_pid: Number,
}

impl SwitchFields {
    /// Both threads' halves of a switch; `by` is what the sample says of the one that leaves.
    pub(crate) fn read(
        self,
        raw: &[u8],
        by: TimedSwitchEvent,
        stack: StackRef,
    ) -> Option<[TimedSwitchEvent; 2]> {
        let state = TaskState::from_prev_state(self.prev_state.read(raw)?);
        let source = Source::Tracepoint;
        let event = SwitchEvent::Out { source, kind: state.kind(), state: Some(state), stack };
        let next = self.next_pid.tid(raw)?;
        let comes =
            TimedSwitchEvent { pid: Pid(-1), tid: next, event: SwitchEvent::In { source }, ..by };
        Some([TimedSwitchEvent { event, ..by }, comes])
    }

    /// The thread that comes.
    pub(crate) fn next(self, raw: &[u8]) -> Option<Tid> {
        self.next_pid.tid(raw)
    }
}

/// Where `sched:sched_waking` has what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WakeFields {
    pid: Number,
    common_flags: Option<Number>,
    /// Where raw data has the socket of the waker's call.
    socket_at: usize,
    /// `sched:sched_wakeup_new`.
    is_new: bool,
}

impl WakeFields {
    pub(super) fn read(
        self,
        raw: &[u8],
        by: TimedSwitchEvent,
        stack: StackRef,
        objects: &mut ObjectReader<'_>,
    ) -> Option<TimedSwitchEvent> {
        let flags = self.common_flags.and_then(|flags| flags.read(raw)).unwrap_or(0);
        let from_interrupt = flags & IN_INTERRUPT != 0;
        let wakee = self.pid.tid(raw)?;
        let socket = raw.get(self.socket_at..).filter(|words| words.len() >= SOCKET_BYTES);
        let sends_to = socket.map_or(ObjectKey::None, |words| objects.described(words));
        let wake = Wake { wakee, stack, from_interrupt, sends_to, is_new: self.is_new };
        Some(TimedSwitchEvent { event: SwitchEvent::Wake(wake), ..by })
    }
}

/// Offsets of the fields of `lock:contention_begin` and `lock:contention_end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContentionFields {
    address: Number,
    /// Absent at the end.
    flags: Option<Number>,
}

impl ContentionFields {
    pub(crate) fn read(
        self,
        raw: &[u8],
        by: TimedSwitchEvent,
        stack: StackRef,
    ) -> Option<Contention> {
        let flags = match self.flags {
            Some(flags) => Some(flags.read(raw)? as u32),
            None => None,
        };
        let TimedSwitchEvent { time, cpu, pid, tid, .. } = by;
        let address = self.address.read(raw)?;
        Some(Contention { time, cpu, task: Task { pid, tid }, address, flags, stack })
    }
}

/// The roles of all events, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles {
    roles: Vec<Role>,
    /// About tracepoints of switches and wake-ups that cannot be used in full.
    pub(crate) warnings: Vec<Warning>,
}

impl Roles {
    /// CPU time goes by the first event that counts it and has samples.
    pub(crate) fn of(recording: &Recording, samples_by_event: &[u64]) -> Roles {
        let section = recording.features.get(Feature::TRACING_DATA).unwrap_or_default();
        let tracing = TracingData::parse(section).unwrap_or_default();
        let mut roles = Roles::default();
        let mut has_cpu_time = false;
        for (index, event) in recording.events.iter().enumerate() {
            let has_samples = samples_by_event.get(index).is_some_and(|count| *count > 0);
            let mut role = match event.attr.pmu_type {
                pmu_type::TRACEPOINT => {
                    roles.tracepoint(&event.name, tracing.event(event.attr.config))
                }
                _ if blocked::is_blocked(event) => Role::Blocked,
                // Made of waits that were recorded anyway.
                _ if off_cpu::is_off_cpu(event) => Role::None,
                _ => role_of(&event.attr),
            };
            if matches!(
                role,
                Role::SwitchStack | Role::Switch(_) | Role::Wake(_) | Role::Contention(_)
            ) && (event.attr.has(AttrFlags::FREQ) || event.attr.sample_period_or_freq > 1)
            {
                let event = event.name.as_str().into();
                roles.warnings.push(Warning::SampledTracepoint { event });
            }
            if role == Role::CpuTime {
                role = if has_cpu_time || !has_samples { Role::Running } else { role };
                has_cpu_time |= role == Role::CpuTime;
            }
            roles.roles.push(role);
        }
        roles
    }

    fn tracepoint(&mut self, name: &str, format: Option<&TraceEvent>) -> Role {
        let full_name = format.map_or(name.to_owned(), TraceEvent::full_name);
        let role = match (full_name.as_str(), format) {
            ("sched:sched_switch", Some(format)) => switch_fields(format).map(Role::Switch),
            ("sched:sched_waking" | "sched:sched_wakeup", Some(format)) => {
                wake_fields(format, false).map(Role::Wake)
            }
            ("sched:sched_wakeup_new", Some(format)) => wake_fields(format, true).map(Role::Wake),
            ("lock:contention_begin" | "lock:contention_end", Some(format)) => {
                contention_fields(format).map(Role::Contention)
            }
            (
                "lock:contention_begin"
                | "lock:contention_end"
                | "sched:sched_switch"
                | "sched:sched_waking"
                | "sched:sched_wakeup"
                | "sched:sched_wakeup_new",
                None,
            ) => None,
            _ => Some(Role::None),
        };
        role.unwrap_or_else(|| {
            self.warnings.push(Warning::UnknownFields { tracepoint: full_name.into() });
            Role::None
        })
    }

    pub(crate) fn role(&self, event: usize) -> Role {
        self.roles.get(event).copied().unwrap_or(Role::None)
    }

    /// True where waits for locks of the kernel have beginnings and ends.
    pub(crate) fn has_contention(&self) -> bool {
        let has = |begins: bool| {
            self.roles.iter().any(
                |role| matches!(role, Role::Contention(fields) if fields.flags.is_some() == begins),
            )
        };
        has(true) && has(false)
    }

    /// The kinds of records about switches in the recording. `switch_records` counts SWITCH and SWITCH_CPU_WIDE.
    pub(crate) fn sources(&self, recording: &Recording, switch_records: u64) -> Sources {
        let has = |test: fn(&Role, &Attr) -> bool| {
            let mut all = self.roles.iter().zip(&recording.events);
            all.any(|(role, event)| test(role, &event.attr))
        };
        // A thread that never switched is an answer, too.
        let asked = recording.events.iter().any(|event| event.attr.has(AttrFlags::CONTEXT_SWITCH));
        let cpu_time = self.roles.iter().position(|role| *role == Role::CpuTime);
        Sources {
            records: asked || switch_records > 0,
            tracepoint: has(|role, _| matches!(role, Role::Switch(_))),
            // The first pass finds out.
            interrupts: false,
            stolen: false,
            stacks: has(|role, attr| match role {
                Role::SwitchStack => true,
                Role::Switch(_) => {
                    let chains = SampleType::CALLCHAIN;
                    attr.sample_type.contains(chains)
                        || attr.sample_type.contains(SampleType::STACK_USER)
                }
                _ => false,
            }),
            wakeups: has(|role, _| matches!(role, Role::Wake(_))),
            samples: cpu_time.map(|event| crate::model::EventId(event as u32)),
        }
    }
}

fn role_of(attr: &Attr) -> Role {
    match attr.pmu_type {
        pmu_type::SOFTWARE if attr.config == CONTEXT_SWITCHES => Role::SwitchStack,
        pmu_type::SOFTWARE if CLOCKS.contains(&attr.config) => Role::CpuTime,
        pmu_type::SOFTWARE | pmu_type::BREAKPOINT => Role::Running,
        _ => Role::CpuTime,
    }
}

fn switch_fields(format: &TraceEvent) -> Option<SwitchFields> {
    Some(SwitchFields {
        prev_state: Number::of(format, "prev_state")?,
        next_pid: Number::of(format, "next_pid")?,
    })
}

fn wake_fields(format: &TraceEvent, is_new: bool) -> Option<WakeFields> {
    let common_flags = Number::of(format, "common_flags");
    let socket_at = wait_object::at_wake_up(format);
    Some(WakeFields { pid: Number::of(format, "pid")?, common_flags, socket_at, is_new })
}

fn contention_fields(format: &TraceEvent) -> Option<ContentionFields> {
    let address = Number::of(format, "lock_addr")?;
    let is_begin = format.full_name() == "lock:contention_begin";
    let flags = match is_begin {
        true => Some(Number::of(format, "flags")?),
        false => None,
    };
    Some(ContentionFields { address, flags })
}

/// A statement without a fact yet: who, where and when.
pub(crate) fn timed_event(
    time: TimestampNs,
    cpu: Option<CpuId>,
    pid: Pid,
    tid: Tid,
) -> TimedSwitchEvent {
    TimedSwitchEvent { time, cpu, pid, tid, event: SwitchEvent::Running }
}
