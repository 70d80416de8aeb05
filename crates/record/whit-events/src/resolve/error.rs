//! Why an event cannot be resolved, with the alternatives.

use std::fmt;

use crate::ast::{Event, EventList};
use crate::error::Excerpt;
use crate::format::FormatSpec;
use crate::term::{Term, TermValue};
use crate::tracepoint::TracepointError;

/// Most names that a message lists.
const MAX_LISTED_NAMES: usize = 40;

/// Text in place of a suggestion.
const ALL_EVENTS: &str = "; `whit list` shows the events that there are";

/// Why a parsed event cannot be resolved on this machine.
#[derive(Debug)]
pub struct ResolveError {
    /// The event as it was written.
    pub event: String,
    /// Its place in the list, where the list was parsed from text.
    pub excerpt: Option<Excerpt>,
    /// Kind of the error.
    pub kind: Box<ResolveErrorKind>,
}

/// Kinds of errors in an event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveErrorKind {
    /// No PMU has an event of this name.
    #[error("no PMU of this machine has an event {name}{}{}",
        if *is_pmu { format!("; events of the PMU {name} are written {name}/…/") } else { String::new() },
        if *is_pmu || nearest.is_some() { suggestion(nearest) } else { ALL_EVENTS.to_owned() })]
    UnknownEvent {
        /// As the user wrote it.
        name: String,
        /// Whether a PMU is called so.
        is_pmu: bool,
        /// A known event with a similar name.
        nearest: Option<String>,
    },
    /// There is no such PMU.
    #[error("this machine has no PMU {name}{}; it has {}{}",
        if *no_core { " (nor any other that counts hardware events of the cores: in virtual machines \
            that is the host's to allow)" } else { "" },
        listed(known), suggestion(nearest))]
    UnknownPmu {
        /// The name or pattern.
        name: String,
        /// Whether it is the core PMU's, and the machine has none.
        no_core: bool,
        /// The PMUs that there are.
        known: Vec<String>,
        /// A PMU or an event with a similar name.
        nearest: Option<String>,
    },
    /// The PMU has no such term.
    #[error(
        "PMU {pmu} has no term {term}; its fields are {}; its events are {}{}",
        listed(fields),
        listed(events),
        suggestion(nearest)
    )]
    UnknownTerm {
        /// The named PMU.
        pmu: String,
        /// As the user wrote it.
        term: String,
        /// The PMU's `format/` fields.
        fields: Vec<String>,
        /// The PMU's named events.
        events: Vec<String>,
        /// A term with a similar name.
        nearest: Option<String>,
    },
    /// A value has more bits than its field.
    #[error("{value:#x} is too big for term {term} of PMU {pmu}: at most {max:#x} ({spec})")]
    ValueTooBig {
        /// The PMU that declares the term.
        pmu: String,
        /// As the user wrote it.
        term: String,
        /// The number that does not fit.
        value: u64,
        /// The largest value that fits.
        max: u64,
        /// The field's bits.
        spec: FormatSpec,
    },
    /// A field of several bits was given no value.
    #[error("term {term} of PMU {pmu} has {bits} bits and needs a value: {term}=…")]
    ValueMissing {
        /// The PMU that declares the term.
        pmu: String,
        /// The term without a value.
        term: String,
        /// The field's width.
        bits: u32,
    },
    /// A field was given text that is no event of the PMU either.
    #[error("term {term} of PMU {pmu} takes a number, not `{value}`")]
    NotANumber {
        /// The PMU that declares the term.
        pmu: String,
        /// The term with the text.
        term: String,
        /// The given value.
        value: String,
    },
    /// A named event needs a parameter.
    #[error("event {event} of PMU {pmu} needs {parameter}=…")]
    MissingParameter {
        /// The PMU of the event.
        pmu: String,
        /// The event with a parameter.
        event: String,
        /// Name of the parameter without a value: `event=?`.
        parameter: String,
    },
    /// Two named events in one.
    #[error(
        "{first} and {second} are both events of PMU {pmu}: separate them with a comma outside the slashes"
    )]
    TwoEvents {
        /// The PMU that has both.
        pmu: String,
        /// The event that was named first.
        first: String,
        /// The event that was named after it.
        second: String,
    },
    /// A common term's value is out of its range.
    #[error("{term}={value} is out of range: {min} to {max}")]
    OutOfRange {
        /// The term that the attribute cannot hold.
        term: &'static str,
        /// The refused number.
        value: u64,
        /// Smallest value that is taken.
        min: u64,
        /// Largest value that is taken.
        max: u64,
    },
    /// There is no such tracepoint.
    #[error("there is no tracepoint {system}:{name}{}", suggestion(nearest))]
    UnknownTracepoint {
        /// The subsystem.
        system: String,
        /// The event.
        name: String,
        /// A tracepoint with a similar name.
        nearest: Option<String>,
    },
    /// Tracepoints cannot be looked up.
    #[error(transparent)]
    Tracepoints(#[from] TracepointError),
    /// `D` or `e` on a member of a group.
    #[error("only the first event of a group may be pinned (D) or exclusive (e)")]
    PinnedMember,
    /// The modifiers of event and group together have too many `p`.
    #[error("with its group's, the event has more than 3 modifiers p")]
    TooPrecise,
    /// Patterns matched too much.
    #[error("the list stands for more than {} events", super::MAX_RESOLVED_EVENTS)]
    TooManyEvents,
}

impl ResolveError {
    pub(super) fn new(list: &EventList, event: &Event, kind: ResolveErrorKind) -> ResolveError {
        let offset = kind.place_in(event).unwrap_or(event.offset);
        let before = list.text.get(..offset).filter(|_| !event.typed.is_empty());
        ResolveError {
            event: if event.typed.is_empty() { event.to_string() } else { event.typed.clone() },
            excerpt: before.map(|text| Excerpt::new(&list.text, text.chars().count())),
            kind: Box::new(kind),
        }
    }
}

impl ResolveErrorKind {
    /// Byte offset of the faulty term; `None` if the event itself is at fault, or if the term comes
    /// from the definition of a named event.
    fn place_in(&self, event: &Event) -> Option<usize> {
        let wanted = match self {
            ResolveErrorKind::UnknownTerm { term, .. }
            | ResolveErrorKind::ValueTooBig { term, .. }
            | ResolveErrorKind::ValueMissing { term, .. }
            | ResolveErrorKind::NotANumber { term, .. } => term.as_str(),
            ResolveErrorKind::OutOfRange { term, .. } => term,
            ResolveErrorKind::TwoEvents { second, .. } => second,
            _ => return None,
        };
        let is_it = |term: &Term| match term {
            Term::Pmu { value: TermValue::Text(text), .. } if text == wanted => true,
            term => term.name() == wanted,
        };
        // The last of a name is the one that counts.
        event.term_offsets.get(event.terms.iter().rposition(is_it)?).copied()
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.excerpt {
            Some(excerpt) => {
                let character = excerpt.position + 1;
                write!(f, "event {} at character {character}: {}", self.event, self.kind)?;
                write!(f, "\n{excerpt}")
            }
            None => write!(f, "event {}: {}", self.event, self.kind),
        }
    }
}

impl std::error::Error for ResolveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown = names.iter().take(MAX_LISTED_NAMES).map(String::as_str).collect::<Vec<_>>();
    let more = names.len() - shown.len();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
