//! Joining parsed events with the machine's PMUs and tracepoints.

mod error;
mod group;
mod pmu_terms;
mod resolved;
mod terms;
mod tracepoints;

pub use error::{ResolveError, ResolveErrorKind};
pub use resolved::{BreakpointAttr, EventTerms, PreciseIp, ResolvedEvent, ResolvedGroup, Sampling};

use whit_types::Avma;

use crate::ast::{Access, Breakpoint, Event, EventKind, EventList, Item};
use crate::glob;
use crate::modifiers::Exclude;
use crate::names::{known_event_names, nearest};
use crate::pmu::{
    Pmu, PmuTable, TYPE_BREAKPOINT, TYPE_HARDWARE, TYPE_HW_CACHE, TYPE_RAW, TYPE_SOFTWARE,
    TYPE_TRACEPOINT,
};
use crate::term::{Term, TermValue};
use crate::tracepoint::TracepointIds;
use resolved::Draft;

/// Most events that one list may resolve to; patterns multiply.
pub const MAX_RESOLVED_EVENTS: usize = 1 << 14;
/// Where a generic event's `config` names the core PMU that is to count it
/// (`PERF_PMU_TYPE_SHIFT` in `include/uapi/linux/perf_event.h`).
const PMU_TYPE_SHIFT: u32 = 32;
/// Default length of a breakpoint: a word, or an instruction.
const BREAKPOINT_LEN_BYTES: u64 = 4;
const EXECUTE_LEN_BYTES: u64 = size_of::<u64>() as u64;
/// `enum` of `include/uapi/linux/hw_breakpoint.h`.
const BREAKPOINT_READ: u32 = 1;
const BREAKPOINT_WRITE: u32 = 2;
const BREAKPOINT_EXECUTE: u32 = 4;

/// Resolves parsed events to attributes of `perf_event_open`.
///
/// Patterns and PMUs that come in several instances give several events; generic events give one
/// per kind of core on a hybrid machine. A group whose members belong to several PMUs is split,
/// since the kernel groups within one PMU only; software events stay with the leader.
///
/// `tracepoints` is asked only when the list holds tracepoints.
///
/// # Errors
///
/// If an event, PMU, term or tracepoint is unknown, or a value does not fit. The error names it,
/// suggests existing names, and marks the place in the list.
pub fn resolve(
    list: &EventList,
    table: &PmuTable,
    tracepoints: &mut dyn TracepointIds,
) -> Result<Vec<ResolvedGroup>, ResolveError> {
    let mut resolver = Resolver { list, table, tracepoints, written: 0 };
    let mut groups = Vec::new();
    let mut count = 0;
    for item in &list.items {
        let (first, resolved) = match item {
            Item::Event(event) => (event, resolver.lone(event)?),
            Item::Group(group) => match group.events.first() {
                Some(first) => (first, resolver.group(group)?),
                None => continue,
            },
        };
        count += resolved.iter().map(|group| group.events.len()).sum::<usize>();
        if count > MAX_RESOLVED_EVENTS {
            return Err(resolver.error(first, ResolveErrorKind::TooManyEvents));
        }
        groups.extend(resolved);
    }
    number_leaders(&mut groups);
    Ok(groups)
}

fn number_leaders(groups: &mut [ResolvedGroup]) {
    let mut leader = 0;
    for group in groups {
        group.events.iter_mut().for_each(|event| event.leader = leader);
        leader += group.events.len();
    }
}

struct Resolver<'a> {
    list: &'a EventList,
    table: &'a PmuTable,
    tracepoints: &'a mut dyn TracepointIds,
    /// Written events that are done.
    written: usize,
}

/// The result for one event; the caller adds the place in the text.
type Outcome<T> = Result<T, ResolveErrorKind>;

impl Resolver<'_> {
    fn error(&self, event: &Event, kind: ResolveErrorKind) -> ResolveError {
        ResolveError::new(self.list, event, kind)
    }

    fn lone(&mut self, event: &Event) -> Result<Vec<ResolvedGroup>, ResolveError> {
        let drafts = self.event(event)?;
        Ok(drafts.into_iter().map(|draft| ResolvedGroup::lone(draft.event)).collect())
    }

    /// All events that one written event stands for, with its own modifiers applied.
    fn event(&mut self, event: &Event) -> Result<Vec<Draft>, ResolveError> {
        let drafts = self.counted(event).map_err(|kind| self.error(event, kind))?;
        let written = self.written;
        self.written += 1;
        let finish = |mut draft: Draft| {
            draft.event.written = written;
            with_modifiers(draft, event)
        };
        Ok(drafts.into_iter().map(finish).collect())
    }

    fn counted(&mut self, event: &Event) -> Outcome<Vec<Draft>> {
        match &event.kind {
            EventKind::Hardware(hardware) => self.generic(event, TYPE_HARDWARE, hardware.config()),
            EventKind::Cache(cache) => self.generic(event, TYPE_HW_CACHE, cache.config()),
            EventKind::Raw(config) => self.generic(event, TYPE_RAW, *config),
            EventKind::Software(software) => {
                self.plain(event, TYPE_SOFTWARE, software.config()).map(|draft| vec![draft])
            }
            EventKind::Tool(tool) => {
                let dummy = whit_types::SoftwareEvent::Dummy.config();
                let mut draft = self.plain(event, TYPE_SOFTWARE, dummy)?;
                draft.event.tool = Some(*tool);
                (draft.event.scale, draft.event.unit) = (1.0, "ns".to_owned());
                Ok(vec![draft])
            }
            EventKind::Numeric { event_type, config } => {
                self.plain(event, *event_type, *config).map(|draft| vec![draft])
            }
            EventKind::Pmu(pattern) => self.pmu_events(event, pattern),
            EventKind::Named(name) => self.named(event, name),
            EventKind::Tracepoint { system, name } => self.tracepoint(event, system, name),
            EventKind::Breakpoint(breakpoint) => {
                self.breakpoint(event, breakpoint).map(|draft| vec![draft])
            }
        }
    }

    /// An event that needs nothing from sysfs.
    fn plain(&self, event: &Event, pmu_type: u32, config: u64) -> Outcome<Draft> {
        let mut draft = Draft::new(event, pmu_type);
        draft.event.config[0] = config;
        draft.event.pmu = match pmu_type {
            TYPE_HARDWARE | TYPE_HW_CACHE | TYPE_RAW => self.core_name(),
            _ => self.pmu_name_of_type(pmu_type),
        };
        terms::apply_common(&mut draft.event, &event.terms)?;
        draft.event.scale_clock();
        Ok(draft)
    }

    /// An event of the core PMU, or of each where the machine has several kinds of core.
    fn generic(&self, event: &Event, pmu_type: u32, config: u64) -> Outcome<Vec<Draft>> {
        let cores: Vec<&Pmu> = self.table.core_pmus().collect();
        if cores.len() < 2 {
            return Ok(vec![self.plain(event, pmu_type, config)?]);
        }
        let on_core = |pmu: &&Pmu| {
            let (pmu_type, config) = match pmu_type {
                TYPE_RAW => (pmu.pmu_type, config),
                _ => (pmu_type, config | u64::from(pmu.pmu_type) << PMU_TYPE_SHIFT),
            };
            let mut draft = self.plain(event, pmu_type, config)?;
            draft.event.use_pmu(pmu);
            if !draft.event.name_given {
                draft.event.name = hybrid_name(&pmu.name, event);
            }
            Ok(draft)
        };
        cores.iter().map(on_core).collect()
    }

    fn core_name(&self) -> String {
        self.table.core_pmus().next().map_or("cpu", |pmu| &pmu.name).to_owned()
    }

    fn pmu_name_of_type(&self, pmu_type: u32) -> String {
        let known = self.table.pmus.iter().find(|pmu| pmu.pmu_type == pmu_type);
        match (known, pmu_type) {
            (Some(pmu), _) => pmu.name.clone(),
            (None, TYPE_SOFTWARE) => "software".to_owned(),
            (None, TYPE_TRACEPOINT) => "tracepoint".to_owned(),
            (None, TYPE_BREAKPOINT) => "breakpoint".to_owned(),
            (None, other) => format!("type {other}"),
        }
    }

    /// Events of the PMU that is called `pattern`, or of all that it matches. As in perf, PMUs
    /// that a pattern matches but that lack the event's terms are left out if any has them.
    fn pmu_events(&self, event: &Event, pattern: &str) -> Outcome<Vec<Draft>> {
        if let Some(pmu) = self.table.find(pattern) {
            return Ok(vec![pmu_terms::event_of_pmu(event, pmu)?]);
        }
        let matching = self.table.pmus.iter().filter(|pmu| pmu_matches(pattern, pmu));
        let (mut drafts, mut refusal) = (Vec::new(), None);
        for pmu in matching {
            match pmu_terms::event_of_pmu(event, pmu) {
                Ok(draft) => drafts.push(one_of_several(draft, pmu)),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        match (drafts.is_empty(), refusal) {
            (false, _) => Ok(drafts),
            (true, Some(error)) => Err(error),
            (true, None) => {
                let drafts = self.events_named(event, pattern)?;
                if drafts.is_empty() { Err(self.unknown_pmu(pattern)) } else { Ok(drafts) }
            }
        }
    }

    fn unknown_pmu(&self, name: &str) -> ResolveErrorKind {
        let events = self.table.events().map(|(_, event, _)| event).chain(known_event_names());
        let without_instance = self.table.names().map(without_instance);
        let nearest = nearest(name, without_instance)
            .or_else(|| nearest(name, self.table.names()))
            .or_else(|| nearest(name, events));
        ResolveErrorKind::UnknownPmu {
            name: name.to_owned(),
            no_core: name.starts_with("cpu") && self.table.core_pmus().next().is_none(),
            known: self.table.names().map(str::to_owned).collect(),
            nearest: nearest.map(str::to_owned),
        }
    }

    /// A bare name.
    fn named(&mut self, event: &Event, name: &str) -> Outcome<Vec<Draft>> {
        let drafts = self.events_named(event, name)?;
        if drafts.is_empty() { Err(self.unknown_event(name)) } else { Ok(drafts) }
    }

    /// The event of that name of every PMU that has it, with the terms that were written.
    fn events_named(&self, event: &Event, name: &str) -> Outcome<Vec<Draft>> {
        let term = Term::Pmu { name: name.to_owned(), value: TermValue::Flag };
        let terms = [term].into_iter().chain(event.terms.iter().cloned()).collect();
        let expanded = Event { terms, ..event.clone() };
        let having = self.table.pmus.iter().filter(|pmu| pmu.event(name).is_some());
        having
            .map(|pmu| Ok(one_of_several(pmu_terms::event_of_pmu(&expanded, pmu)?, pmu)))
            .collect()
    }

    fn unknown_event(&mut self, name: &str) -> ResolveErrorKind {
        let of_pmus = self.table.events().map(|(_, event, _)| event);
        let known = known_event_names().into_iter().chain(of_pmus);
        let similar = || nearest(name, known).map(str::to_owned);
        ResolveErrorKind::UnknownEvent {
            name: name.to_owned(),
            is_pmu: self.table.pmus.iter().any(|pmu| pmu_matches(name, pmu)),
            nearest: self.tracepoint_called(name).or_else(similar),
        }
    }

    fn breakpoint(&self, event: &Event, breakpoint: &Breakpoint) -> Outcome<Draft> {
        let Access { read, write, execute } = match breakpoint.access {
            access if access.is_empty() => Access { read: true, write: true, execute: false },
            access => access,
        };
        let only_execute = execute && !read && !write;
        let default_len = if only_execute { EXECUTE_LEN_BYTES } else { BREAKPOINT_LEN_BYTES };
        let mut draft = self.plain(event, TYPE_BREAKPOINT, 0)?;
        draft.event.default_period = Some(1);
        draft.event.breakpoint = Some(BreakpointAttr {
            address: Avma(breakpoint.address),
            len: breakpoint.len.filter(|&len| len > 0).unwrap_or(default_len),
            bp_type: [
                (read, BREAKPOINT_READ),
                (write, BREAKPOINT_WRITE),
                (execute, BREAKPOINT_EXECUTE),
            ]
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |bits, (_, bit)| bits | bit),
        });
        Ok(draft)
    }
}

/// Applies the event's own modifiers. An event without modifiers excludes guests and nothing else.
/// With any modifier, the exclusions start empty: perf's `cpu-clock:D` counts guests, `cpu-clock`
/// does not.
fn with_modifiers(mut draft: Draft, event: &Event) -> Draft {
    let modifiers = &event.modifiers;
    let resolved = &mut draft.event;
    resolved.exclude = match modifiers.is_empty() {
        true => Exclude::WITHOUT_MODIFIERS,
        false => modifiers.apply(Exclude::default(), &mut draft.guest_host_chosen),
    };
    resolved.precise_ip = match modifiers.precise_max {
        true => PreciseIp::Max,
        false => PreciseIp::Level(modifiers.precise),
    };
    resolved.sample_read = modifiers.sample_read;
    resolved.weak_group = modifiers.weak;
    resolved.bpf = modifiers.bpf;
    resolved.pinned = modifiers.pinned;
    resolved.exclusive = modifiers.exclusive;
    draft
}

/// Counts of different kinds of core are never added up, since they mean different things.
fn one_of_several(mut draft: Draft, pmu: &Pmu) -> Draft {
    draft.event.auto_merge = !pmu.core;
    draft
}

/// Whether `pattern` means this PMU: as a pattern, or as the name of a PMU that comes in numbered
/// instances (`uncore_imc` for `uncore_imc_0`), either without the `uncore_` in front; and `cpu`
/// means every kind of core.
pub(crate) fn pmu_matches(pattern: &str, pmu: &Pmu) -> bool {
    let short = pmu.name.strip_prefix("uncore_");
    [Some(pmu.name.as_str()), short].into_iter().flatten().any(|name| {
        if glob::is_glob(pattern) {
            return glob::glob_matches(pattern, name);
        }
        name == pattern || name.strip_prefix(pattern).is_some_and(is_instance)
    }) || (pattern == "cpu" && pmu.core)
}

/// `uncore_imc` of `uncore_imc_0`.
pub(crate) fn without_instance(name: &str) -> &str {
    let end = name.rfind('_').filter(|&at| is_instance(&name[at..]));
    &name[..end.unwrap_or(name.len())]
}

/// Whether this follows a PMU's name in the name of one instance: a number (`_0`, `3`), or the
/// address of a device (`_5e6a0000`).
fn is_instance(suffix: &str) -> bool {
    const SHORTEST_ADDRESS: usize = 3;
    let behind = suffix.strip_prefix('_');
    let digits = behind.unwrap_or(suffix);
    let is_address = behind.is_some() && digits.len() >= SHORTEST_ADDRESS;
    !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_digit() || (is_address && c.is_ascii_hexdigit()))
}

/// How perf names a generic event on one kind of core: `cpu_core/cycles/u`.
fn hybrid_name(pmu: &str, event: &Event) -> String {
    let written = if event.typed.is_empty() { event.to_string() } else { event.typed.clone() };
    match written.split_once(['/', ':']) {
        Some((word, rest)) if written.contains('/') => format!("{pmu}/{word},{rest}"),
        Some((word, modifiers)) => format!("{pmu}/{word}/{modifiers}"),
        None => format!("{pmu}/{written}/"),
    }
}
