//! Writing events down so that they read back equal.

use std::fmt::{self, Display, Formatter};

use crate::ast::{Access, Breakpoint, Event, EventKind, EventList, Group, Item};
use crate::modifiers::MODIFIER_LETTERS;
use crate::parse_term::is_term_char;
use crate::term::{Term, TermValue};

impl Display for EventList {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        comma_list(f, &self.items)
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Item::Event(event) => event.fmt(f),
            Item::Group(group) => group.fmt(f),
        }
    }
}

impl Display for Group {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.name.as_deref().unwrap_or(""))?;
        comma_list(f, &self.events)?;
        f.write_str("}")?;
        if self.modifiers.is_empty() { Ok(()) } else { write!(f, ":{}", self.modifiers) }
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        let slashes = !self.terms.is_empty() || self.needs_slashes();
        if slashes {
            f.write_str("/")?;
            comma_list(f, &self.terms)?;
            f.write_str("/")?;
        }
        match (self.modifiers.is_empty(), slashes) {
            (true, _) => Ok(()),
            (false, true) => write!(f, "{}", self.modifiers),
            (false, false) => write!(f, ":{}", self.modifiers),
        }
    }
}

impl Event {
    /// Whether the event would read as something else without (empty) terms: a PMU as a bare
    /// name, a tracepoint called `up` as modifiers.
    fn needs_slashes(&self) -> bool {
        match &self.kind {
            EventKind::Pmu(_) => true,
            EventKind::Tracepoint { name, .. } => {
                name.chars().all(|c| MODIFIER_LETTERS.contains(c))
            }
            _ => false,
        }
    }
}

impl Display for EventKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::Hardware(event) => f.write_str(event.name()),
            EventKind::Software(event) => f.write_str(event.name()),
            EventKind::Tool(event) => f.write_str(event.name()),
            EventKind::Cache(event) => event.fmt(f),
            EventKind::Raw(config) => write!(f, "r{config:x}"),
            EventKind::Numeric { event_type, config } => write!(f, "{event_type}:{config:#x}"),
            EventKind::Pmu(name) | EventKind::Named(name) => f.write_str(name),
            EventKind::Tracepoint { system, name } => write!(f, "{system}:{name}"),
            EventKind::Breakpoint(breakpoint) => breakpoint.fmt(f),
        }
    }
}

impl Display for Breakpoint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "mem:{:#x}", self.address)?;
        if let Some(len) = self.len {
            write!(f, "/{len}")?;
        }
        if self.access.is_empty() { Ok(()) } else { write!(f, ":{}", self.access) }
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let letters = [(self.read, "r"), (self.write, "w"), (self.execute, "x")];
        letters.iter().filter(|(set, _)| *set).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Config(value) => write!(f, "config={value:#x}"),
            Term::Config1(value) => write!(f, "config1={value:#x}"),
            Term::Config2(value) => write!(f, "config2={value:#x}"),
            Term::Config3(value) => write!(f, "config3={value:#x}"),
            Term::Name(text) => write!(f, "name={}", Quoted(text)),
            Term::Period(value) => write!(f, "period={value}"),
            Term::Frequency(value) => write!(f, "freq={value}"),
            Term::BranchType(text) => write!(f, "branch_type={}", Quoted(text)),
            Term::Time(set) => f.write_str(if *set { "time" } else { "no-time" }),
            Term::CallGraph(mode) => write!(f, "call-graph={}", mode.name()),
            Term::StackSize(value) => write!(f, "stack-size={value}"),
            Term::MaxStack(value) => write!(f, "max-stack={value}"),
            Term::Inherit(set) => f.write_str(if *set { "inherit" } else { "no-inherit" }),
            Term::Overwrite(set) => f.write_str(if *set { "overwrite" } else { "no-overwrite" }),
            Term::MaxEvents(value) => write!(f, "nr={value}"),
            Term::PerCore(set) => write!(f, "percore={}", u8::from(*set)),
            Term::AuxOutput(set) => write!(f, "aux-output={}", u8::from(*set)),
            Term::AuxAction(text) => write!(f, "aux-action={}", Quoted(text)),
            Term::AuxSampleSize(value) => write!(f, "aux-sample-size={value}"),
            Term::MetricId(text) => write!(f, "metric-id={}", Quoted(text)),
            Term::DriverConfig(setting) => write!(f, "@{setting}"),
            Term::Pmu { name, value } => write!(f, "{name}{value}"),
        }
    }
}

impl Display for TermValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TermValue::Flag => Ok(()),
            TermValue::Number(value) => write!(f, "={value:#x}"),
            TermValue::Text(text) => write!(f, "={}", Quoted(text)),
        }
    }
}

/// A text value: bare where that reads back the same, else in single quotes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number_like = self.0.starts_with(|c: char| c.is_ascii_digit());
        if !self.0.is_empty() && self.0.chars().all(is_term_char) && !number_like {
            return f.write_str(self.0);
        }
        f.write_str("'")?;
        for c in self.0.chars() {
            if matches!(c, '\'' | '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        f.write_str("'")
    }
}

fn comma_list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(i, item)| {
        if i > 0 {
            f.write_str(",")?;
        }
        item.fmt(f)
    })
}
