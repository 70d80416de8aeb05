//! Terms: the text between the slashes of `pmu/term,term=value/`.

/// One term. All but `Pmu` and `DriverConfig` are understood by every event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Term {
    /// `config=`: the whole word, before terms of the PMU.
    Config(u64),
    /// `config1=`: the second word.
    Config1(u64),
    /// `config2=`: the third word.
    Config2(u64),
    /// `config3=`: the fourth word (Linux 6.3).
    Config3(u64),
    /// `name=`, exactly as it is to be shown.
    Name(String),
    /// `period=`: events between samples.
    Period(u64),
    /// `freq=`: samples per second.
    Frequency(u64),
    /// `branch_type=`: as `--branch-filter`, or `no`.
    BranchType(String),
    /// `time`, `time=0|1`, `no-time`: whether samples carry a time.
    Time(bool),
    /// `call-graph=`: the kind of call chain for this event.
    CallGraph(CallGraph),
    /// `stack-size=`: bytes of user stack dumped for `call-graph=dwarf`.
    StackSize(u64),
    /// `max-stack=`: frames.
    MaxStack(u64),
    /// `inherit`, `no-inherit`: whether children are measured.
    Inherit(bool),
    /// `overwrite`, `no-overwrite`: whether the ring keeps the newest records.
    Overwrite(bool),
    /// `nr=`: stop after this many events.
    MaxEvents(u64),
    /// `percore`: add up the threads of a core.
    PerCore(bool),
    /// `aux-output`: write into the leader's AUX area.
    AuxOutput(bool),
    /// `aux-action=`: pause or resume the leader's AUX area.
    AuxAction(String),
    /// `aux-sample-size=`: bytes of AUX area per sample.
    AuxSampleSize(u64),
    /// `metric-id=`: how a metric refers to the event.
    MetricId(String),
    /// `@setting[=value]`, handed to the PMU's driver.
    DriverConfig(String),
    /// A term of the PMU itself: one of its `format/` fields, one of its `events/`, or a
    /// parameter of such an event.
    Pmu {
        /// The field or event.
        name: String,
        /// The text behind `=`; 1 if there is none.
        value: TermValue,
    },
}

impl Term {
    /// The name as it stands before the `=`; for a driver's setting, the whole of it.
    pub fn name(&self) -> &str {
        match self {
            Term::Config(_) => "config",
            Term::Config1(_) => "config1",
            Term::Config2(_) => "config2",
            Term::Config3(_) => "config3",
            Term::Name(_) => "name",
            Term::Period(_) => "period",
            Term::Frequency(_) => "freq",
            Term::BranchType(_) => "branch_type",
            Term::Time(_) => "time",
            Term::CallGraph(_) => "call-graph",
            Term::StackSize(_) => "stack-size",
            Term::MaxStack(_) => "max-stack",
            Term::Inherit(_) => "inherit",
            Term::Overwrite(_) => "overwrite",
            Term::MaxEvents(_) => "nr",
            Term::PerCore(_) => "percore",
            Term::AuxOutput(_) => "aux-output",
            Term::AuxAction(_) => "aux-action",
            Term::AuxSampleSize(_) => "aux-sample-size",
            Term::MetricId(_) => "metric-id",
            Term::DriverConfig(setting) => setting,
            Term::Pmu { name, .. } => name,
        }
    }
}

/// Value of a PMU's own term.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TermValue {
    /// Nothing given (`inv`, `mem-loads`): 1 for a field.
    Flag,
    /// Decimal or hexadecimal, up to 64 bits.
    Number(u64),
    /// Anything else: an event's name, or `?` in sysfs for a parameter.
    Text(String),
}

/// How call chains are taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallGraph {
    /// By frame pointers, in the kernel.
    FramePointer,
    /// From a dump of the stack, later.
    Dwarf,
    /// From the branch records of the CPU.
    Lbr,
    /// Samples have no call chains.
    None,
}

impl CallGraph {
    /// All modes.
    pub const ALL: &'static [CallGraph] =
        &[CallGraph::FramePointer, CallGraph::Dwarf, CallGraph::Lbr, CallGraph::None];

    /// The mode's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            CallGraph::FramePointer => "fp",
            CallGraph::Dwarf => "dwarf",
            CallGraph::Lbr => "lbr",
            CallGraph::None => "no",
        }
    }

    /// The mode with this spelling.
    pub fn from_name(name: &str) -> Option<CallGraph> {
        Self::ALL.iter().copied().find(|mode| mode.name() == name)
    }
}

/// The kind of value that a common term takes, and the constructor of the term.
#[derive(Clone, Copy)]
pub(crate) enum TermShape {
    Number(fn(u64) -> Term),
    Text(fn(String) -> Term),
    /// A switch: alone it means yes; 0 and 1 may be assigned.
    Switch(fn(bool) -> Term),
    CallGraph,
}

/// The terms that every event understands.
pub(crate) const COMMON_TERMS: &[(&str, TermShape)] = &[
    ("config", TermShape::Number(Term::Config)),
    ("config1", TermShape::Number(Term::Config1)),
    ("config2", TermShape::Number(Term::Config2)),
    ("config3", TermShape::Number(Term::Config3)),
    ("name", TermShape::Text(Term::Name)),
    ("period", TermShape::Number(Term::Period)),
    ("freq", TermShape::Number(Term::Frequency)),
    ("branch_type", TermShape::Text(Term::BranchType)),
    ("time", TermShape::Switch(Term::Time)),
    ("no-time", TermShape::Switch(|set| Term::Time(!set))),
    ("call-graph", TermShape::CallGraph),
    ("stack-size", TermShape::Number(Term::StackSize)),
    ("max-stack", TermShape::Number(Term::MaxStack)),
    ("inherit", TermShape::Switch(Term::Inherit)),
    ("no-inherit", TermShape::Switch(|set| Term::Inherit(!set))),
    ("overwrite", TermShape::Switch(Term::Overwrite)),
    ("no-overwrite", TermShape::Switch(|set| Term::Overwrite(!set))),
    ("nr", TermShape::Number(Term::MaxEvents)),
    ("percore", TermShape::Switch(Term::PerCore)),
    ("aux-output", TermShape::Switch(Term::AuxOutput)),
    ("aux-action", TermShape::Text(Term::AuxAction)),
    ("aux-sample-size", TermShape::Number(Term::AuxSampleSize)),
    ("metric-id", TermShape::Text(Term::MetricId)),
];

/// Names of the terms that every event understands, for completion and suggestions.
pub fn common_term_names() -> impl Iterator<Item = &'static str> {
    COMMON_TERMS.iter().map(|(name, _)| *name)
}
