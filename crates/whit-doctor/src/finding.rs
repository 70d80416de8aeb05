//! Findings: what was looked at, what was found, what would change it.

use std::fmt;

use serde::Serialize;

/// What a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// What can be recorded.
    Recording,
    /// Which events count.
    Events,
    /// Whether events sample, and with what precision and branch records.
    Sampling,
    /// Capabilities and what stands around them.
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
}

impl Area {
    /// Every area, in the order of a report.
    pub const ALL: [Area; 11] = [
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
        }
    }
}

/// How good what was found is.
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
    /// What it belongs to.
    pub area: Area,
    /// What was looked at: `cycles`, `perf_event_paranoid`.
    pub what: String,
    /// How it stands.
    pub status: Status,
    /// What was found, in a few words.
    pub detail: String,
    /// What to do about it: a command, or a sentence where there is none.
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

/// What an operation costs here, measured.
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
    /// What measuring costs here.
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
