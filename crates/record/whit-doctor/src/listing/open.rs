//! Opens each event for each target, and checks whether it counts.

use std::fmt;

use serde::Serialize;
use whit_events::{
    CatalogueEntry, EventClass, EventList, HardwareEvent, PmuTable, ResolvedEvent, SoftwareEvent,
    TYPE_HARDWARE, TYPE_HW_CACHE, TYPE_RAW, TYPE_SOFTWARE, TYPE_TRACEPOINT, TracepointIds, parse,
    resolve,
};
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat};
use whit_sys::Errno;

use crate::checks::{Side, usual_side};
use crate::finding::Status;
use crate::machine::{Machine, Privileges};
use crate::probe::{Count, Target};
use crate::refusal::{Needs, allow, explain};

/// The result of opening an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Openable {
    /// It opens and runs.
    Opens,
    /// The tool measures it.
    ByTool,
    /// It opens for user space alone.
    UserOnly {
        /// The command or setting that lifts the refusal.
        remedy: Option<String>,
    },
    /// The machine or the kernel does not have it.
    NotSupported {
        /// How that was found out.
        detail: String,
    },
    /// It is there, but not for this user.
    NotPermitted {
        /// The reason of the refusal.
        detail: String,
        /// The command or setting that lifts the refusal.
        remedy: Option<String>,
    },
    /// It opens and never runs, or runs and counts nothing.
    DoesNotCount {
        /// The observed behaviour.
        detail: String,
        /// A change that may help.
        remedy: Option<String>,
    },
    /// It has to be given values first.
    NeedsParameters {
        /// Names of the terms without a value.
        parameters: Vec<String>,
    },
    /// It was not opened.
    NotTried,
    /// It stands for many, or says how something is written.
    Syntax,
}

impl Openable {
    /// The outcome in a word or three.
    pub const fn state(&self) -> &'static str {
        match self {
            Openable::Opens | Openable::ByTool => "ok",
            Openable::UserOnly { .. } => "user space only",
            Openable::NotSupported { .. } => "not supported",
            Openable::NotPermitted { .. } => "not permitted",
            Openable::DoesNotCount { .. } => "does not count",
            Openable::NeedsParameters { .. } => "needs values",
            Openable::NotTried => "not tried",
            Openable::Syntax => "",
        }
    }

    /// Details that the state does not include.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Openable::ByTool => Some("measured by whit itself"),
            Openable::NotSupported { detail }
            | Openable::NotPermitted { detail, .. }
            | Openable::DoesNotCount { detail, .. } => Some(detail),
            _ => None,
        }
    }

    /// The command that changes it, where there is one.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Openable::UserOnly { remedy }
            | Openable::NotPermitted { remedy, .. }
            | Openable::DoesNotCount { remedy, .. } => remedy.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Openable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.state())?;
        match self {
            Openable::NotPermitted { detail, remedy } => {
                write!(f, ": {}", remedy.as_ref().unwrap_or(detail))
            }
            Openable::DoesNotCount { detail, .. } => write!(f, ": {detail}"),
            Openable::NeedsParameters { parameters } => write!(f, ": {}", parameters.join(", ")),
            _ => Ok(()),
        }
    }
}

/// Opens events.
pub(super) struct Opener<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) table: &'a PmuTable,
    pub(super) tracepoints: &'a mut dyn TracepointIds,
    pub(super) privileges: Privileges,
}

impl Opener<'_> {
    /// Opens the entry's event, on the first of the PMUs that have it.
    pub(super) fn try_entry(&mut self, entry: &CatalogueEntry) -> Openable {
        match entry.class {
            EventClass::Raw | EventClass::Breakpoint => return Openable::Syntax,
            EventClass::Tool => return Openable::ByTool,
            _ if !entry.parameters.is_empty() => {
                return Openable::NeedsParameters { parameters: entry.parameters.clone() };
            }
            _ => {}
        }
        match self.resolve(&entry.name) {
            Ok(event) => self.try_event(&event),
            Err(detail) => Openable::NotSupported { detail },
        }
    }

    /// Resolves the name on this machine, or gives the reason why it has no meaning here.
    fn resolve(&mut self, name: &str) -> Result<ResolvedEvent, String> {
        let list: EventList = parse(name).map_err(|error| error.expected)?;
        let groups = resolve(&list, self.table, self.tracepoints);
        let mut groups = groups.map_err(|error| error.kind.to_string())?;
        let event = groups.drain(..).flat_map(|group| group.events).next();
        event.ok_or_else(|| "it stands for no event".to_owned())
    }

    fn try_event(&mut self, event: &ResolvedEvent) -> Openable {
        let (target, needs) = self.target(event);
        let mut attr = attr(event);
        let error = match self.run_somehow(event, &attr, target) {
            Ok(count) => return self.judge(event, count, Side::Both),
            Err(error) => error,
        };
        let denied = matches!(error, Errno::ACCESS | Errno::PERM);
        let may_restrict =
            target == Target::ThisThread && usual_side(&self.privileges) == Side::UserOnly;
        if !denied || !may_restrict {
            return self.refused(error, needs);
        }
        attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
        match self.run_somehow(event, &attr, target) {
            Ok(count) => self.judge(event, count, Side::UserOnly),
            // Not that it is not there: this PMU cannot tell user space from the kernel.
            Err(Errno::INVAL | Errno::OPNOTSUPP) if !self.distinguishes_modes(event) => {
                self.refused(error, Needs::Kernel)
            }
            Err(error) => self.refused(error, needs),
        }
    }

    /// Runs the event, for guests too where the PMU does not know them apart.
    fn run_somehow(
        &mut self,
        event: &ResolvedEvent,
        attr: &Attr,
        target: Target,
    ) -> Result<Count, Errno> {
        let outcome = self.run(event, attr, target);
        if !matches!(outcome, Err(Errno::INVAL | Errno::OPNOTSUPP)) {
            return outcome;
        }
        let flags = attr.flags.with(AttrFlags::EXCLUDE_GUEST, false);
        self.run(event, &Attr { flags, ..attr.clone() }, target)
    }

    /// Those of the cores do, and the kernel's own events.
    fn distinguishes_modes(&self, event: &ResolvedEvent) -> bool {
        let generic = [TYPE_HARDWARE, TYPE_SOFTWARE, TYPE_HW_CACHE, TYPE_RAW, TYPE_TRACEPOINT];
        generic.contains(&event.pmu_type)
            || self.table.core_pmus().any(|pmu| pmu.pmu_type == event.pmu_type)
    }

    /// The target for the trial of an event, and the privileges that it needs.
    fn target(&self, event: &ResolvedEvent) -> (Target, Needs) {
        let cpu = event.cpus.as_ref().and_then(|cpus| cpus.first().copied());
        match (event.uncore, event.pmu_type) {
            (true, _) => (Target::Cpu(cpu.unwrap_or_default()), Needs::SystemWide),
            (false, TYPE_TRACEPOINT) => (Target::ThisThread, Needs::Kernel),
            (false, _) => (Target::ThisThread, Needs::OwnUser),
        }
    }

    /// A tracepoint's opening is what patches the kernel; it says all there is to know.
    fn run(&mut self, event: &ResolvedEvent, attr: &Attr, target: Target) -> Result<Count, Errno> {
        if event.pmu_type == TYPE_TRACEPOINT {
            let running = Count { value: 0, enabled_ns: 1, running_ns: 1 };
            return self.machine.probe.open(attr, target).map(|()| running);
        }
        self.machine.probe.run(attr, target)
    }

    fn judge(&self, event: &ResolvedEvent, count: Count, side: Side) -> Openable {
        let watchdog = self.machine.setting("nmi_watchdog").is_some_and(|on| on != 0);
        if count.enabled_ns > 0 && count.running_ns == 0 {
            return Openable::DoesNotCount {
                detail: "it opens, but is never put on the PMU: its counters are taken".to_owned(),
                remedy: watchdog.then(|| "sudo sysctl kernel.nmi_watchdog=0".to_owned()),
            };
        }
        if count.value == 0 && counts_always(event) {
            let detail = "it opens, but nothing came of work that causes it".to_owned();
            return Openable::DoesNotCount { detail, remedy: None };
        }
        match side {
            Side::Both => Openable::Opens,
            Side::UserOnly => {
                Openable::UserOnly { remedy: Some(allow(Needs::Kernel, &self.privileges)) }
            }
        }
    }

    fn refused(&self, error: Errno, needs: Needs) -> Openable {
        let refusal = explain(error, needs, &self.privileges);
        match refusal.status {
            Status::Absent => Openable::NotSupported { detail: refusal.detail },
            Status::Degraded => {
                Openable::DoesNotCount { detail: refusal.detail, remedy: refusal.remedy }
            }
            Status::Ok | Status::Refused => {
                Openable::NotPermitted { detail: refusal.detail, remedy: refusal.remedy }
            }
        }
    }
}

/// Whether running a few thousand instructions in user space makes it count.
fn counts_always(event: &ResolvedEvent) -> bool {
    const HARDWARE: [HardwareEvent; 3] =
        [HardwareEvent::CpuCycles, HardwareEvent::Instructions, HardwareEvent::BranchInstructions];
    const SOFTWARE: [SoftwareEvent; 2] = [SoftwareEvent::CpuClock, SoftwareEvent::TaskClock];
    let config = event.config[0];
    match event.pmu_type {
        TYPE_HARDWARE => HARDWARE.iter().any(|known| known.config() == config),
        TYPE_SOFTWARE => SOFTWARE.iter().any(|known| known.config() == config),
        _ => false,
    }
}

/// A counter, disabled until told, with the times that tell a running event from one that waits.
fn attr(event: &ResolvedEvent) -> Attr {
    let flags = AttrFlags::DISABLED.with(AttrFlags::EXCLUDE_GUEST, event.exclude.guest);
    let [config, config1, config2, config3] = event.config;
    Attr {
        pmu_type: event.pmu_type,
        config,
        config1,
        config2,
        config3,
        read_format: ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING,
        flags,
        ..Attr::default()
    }
}
