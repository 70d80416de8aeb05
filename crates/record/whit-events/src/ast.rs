//! The syntax tree of an event list.

use whit_types::{HardwareEvent, SoftwareEvent, ToolEvent};

use crate::cache::CacheEvent;
use crate::modifiers::Modifiers;
use crate::term::Term;

/// Contents of one `-e` option: events and groups in order. Several options are several lists.
///
/// Equality compares the items, not their spelling.
#[derive(Clone, Debug, Default)]
pub struct EventList {
    /// The text that was parsed; empty for a list that was built.
    pub text: String,
    /// Events and groups in order; never empty after parsing.
    pub items: Vec<Item>,
}

impl PartialEq for EventList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Eq for EventList {}

/// A lone event or a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// An event that is scheduled by itself.
    Event(Event),
    /// Events that are counted together or not at all.
    Group(Group),
}

/// `name{event,event,…}:modifiers`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The word before the brace.
    pub name: Option<String>,
    /// The members, leader first; never empty after parsing.
    pub events: Vec<Event>,
    /// Modifiers behind the brace, applied to each member after its own.
    pub modifiers: Modifiers,
}

/// One event.
///
/// Equality ignores how it was written (`typed`, `offset`, `term_offsets`): `cs` equals
/// `context-switches`.
#[derive(Clone, Debug)]
pub struct Event {
    /// The counted event.
    pub kind: EventKind,
    /// Terms between slashes, in order.
    pub terms: Vec<Term>,
    /// Modifiers behind the event.
    pub modifiers: Modifiers,
    /// The event as it was written, which is how perf names it; empty for a built event.
    pub typed: String,
    /// Where `typed` starts in the list's text, in bytes.
    pub offset: usize,
    /// Where each term starts in the list's text, in bytes; empty for a built event.
    pub term_offsets: Vec<usize>,
}

impl Event {
    /// An event without terms and modifiers that was never written down.
    pub fn new(kind: EventKind) -> Event {
        Event {
            kind,
            terms: Vec::new(),
            modifiers: Modifiers::default(),
            typed: String::new(),
            offset: 0,
            term_offsets: Vec::new(),
        }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, &self.terms, &self.modifiers) == (&other.kind, &other.terms, &other.modifiers)
    }
}

impl Eq for Event {}

/// The namespace of an event: named, raw, of a PMU, a tracepoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A generic hardware event: `cycles`.
    Hardware(HardwareEvent),
    /// A kernel software event: `context-switches`.
    Software(SoftwareEvent),
    /// Measured by the tool: `duration_time`.
    Tool(ToolEvent),
    /// A hardware-cache event: `L1-dcache-load-misses`.
    Cache(CacheEvent),
    /// `rNNN`: the core PMU's `config`, in hexadecimal.
    Raw(u64),
    /// `TYPE:CONFIG`: `perf_event_attr.type` and `.config` as numbers.
    Numeric {
        /// `perf_event_attr.type`
        event_type: u32,
        /// `perf_event_attr.config`
        config: u64,
    },
    /// `pmu/terms/`: an event of a named PMU, or of all that a pattern matches.
    Pmu(String),
    /// A bare word that is not built in: an event that some PMU names in sysfs (`mem-loads`).
    Named(String),
    /// `system:name`; both may hold `*`, `?` and `[…]`.
    Tracepoint {
        /// The subsystem: `sched`.
        system: String,
        /// The event: `sched_switch`.
        name: String,
    },
    /// `mem:ADDRESS[/LENGTH][:rwx]`
    Breakpoint(Breakpoint),
}

/// A hardware breakpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Breakpoint {
    /// The watched address.
    pub address: u64,
    /// How many bytes are watched, where given.
    pub len: Option<u64>,
    /// Which accesses count; nothing given means read and write.
    pub access: Access,
}

/// Which accesses a breakpoint counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Access {
    /// `r`
    pub read: bool,
    /// `w`
    pub write: bool,
    /// `x`
    pub execute: bool,
}

impl Access {
    /// Whether no access was named.
    pub const fn is_empty(self) -> bool {
        !(self.read || self.write || self.execute)
    }
}
