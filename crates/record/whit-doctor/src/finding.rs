//! Findings: a checked thing, its state, and the remedy.

use std::fmt;

use serde::Serialize;

/// The subject of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// Whether this user can record, with which targets.
    Recording,
    /// Which events count.
    Events,
    /// Whether events sample, with which precision, and with branch records.
    Sampling,
    /// Capabilities, and the reasons why some are not in force.
    Privileges,
    /// The kernel's settings.
    Settings,
    /// Limits of this process.
    Limits,
    /// The machine and its kernel.
    Machine,
    /// Performance monitoring units.
    Pmus,
    /// tracefs, BTF and BPF.
    Tracing,
    /// Control groups.
    Cgroups,
    /// Kernel and vdso symbols.
    Symbols,
    /// Language runtimes of processes that were named.
    Runtimes,
}

impl Area {
    /// Every area, in the order of a report.
    pub const ALL: [Area; 12] = [
        Area::Recording,
        Area::Events,
        Area::Sampling,
        Area::Privileges,
        Area::Settings,
        Area::Limits,
        Area::Machine,
        Area::Pmus,
        Area::Tracing,
        Area::Cgroups,
        Area::Symbols,
        Area::Runtimes,
    ];

    /// A heading.
    pub const fn title(self) -> &'static str {
        match self {
            Area::Recording => "What can be recorded",
            Area::Events => "Events",
            Area::Sampling => "Sampling",
            Area::Privileges => "Privileges",
            Area::Settings => "Kernel settings",
            Area::Limits => "Limits",
            Area::Machine => "Machine",
            Area::Pmus => "PMUs",
            Area::Tracing => "Tracing and BPF",
            Area::Cgroups => "Control groups",
            Area::Symbols => "Kernel symbols",
            Area::Runtimes => "Runtimes of processes",
        }
    }
}

/// The judgement of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works in part.
    Degraded,
    /// Not allowed to this user.
    Refused,
    /// Not there on this machine.
    Absent,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Status::Ok => "ok",
            Status::Degraded => "degraded",
            Status::Refused => "refused",
            Status::Absent => "absent",
        })
    }
}

/// One thing looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The heading under which reports show it.
    pub area: Area,
    /// The checked thing: `cycles`, `perf_event_paranoid`.
    pub what: String,
    /// How it stands.
    pub status: Status,
    /// Its state, in a few words.
    pub detail: String,
    /// The remedy: a command, or a sentence where no command helps.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding that needs no remedy.
    pub fn new(area: Area, what: &str, status: Status, detail: impl Into<String>) -> Finding {
        Finding { area, what: what.to_owned(), status, detail: detail.into(), remedy: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<Option<String>>) -> Finding {
        Finding { remedy: remedy.into(), ..self }
    }
}

/// The measured cost of an operation on this machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    /// The operation.
    pub what: String,
    /// Median in nanoseconds.
    pub median_ns: u64,
    /// Fastest in nanoseconds.
    pub min_ns: u64,
    /// Slowest in nanoseconds.
    pub max_ns: u64,
    /// How often it was done.
    pub rounds: usize,
}

/// Everything that was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// Findings in the order of [`Area::ALL`].
    pub findings: Vec<Finding>,
    /// The cost of measurements on this machine.
    pub costs: Vec<Cost>,
}

impl Report {
    /// Findings of one area.
    pub fn of(&self, area: Area) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.area == area)
    }

    /// Number of findings with this status.
    pub fn count(&self, status: Status) -> usize {
        self.findings.iter().filter(|finding| finding.status == status).count()
    }

    /// Whether this process can record itself and its children at all.
    pub fn can_record(&self) -> bool {
        self.of(Area::Recording)
            .any(|finding| matches!(finding.status, Status::Ok | Status::Degraded))
    }
}
