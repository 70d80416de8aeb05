//! Which fields are printed: perf's defaults and `-F`.

use std::fmt;
use std::ops::BitOr;
use whit_perfdata::attr::{SampleType, pmu_type};
use whit_perfdata::feature::EventDesc;

/// `PERF_COUNT_SW_DUMMY`.
const DUMMY: u64 = 9;

/// Fields of the branch stack.
const BRANCH_FIELDS: Fields = Fields::BRSTACK.with(Fields::BRSTACKSYM).with(Fields::BRSTACKINSN);

/// A set of fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fields(u32);

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        impl Fields {
            fields!(@consts 0u32; $($(#[$doc])* $name,)*);

            /// Every field with its name in `-F`.
            const NAMED: &'static [(&'static str, Fields)] = &[$(($text, Fields::$name)),*];
        }
    };
    (@consts $bit:expr; $(#[$doc:meta])* $name:ident, $($rest:tt)*) => {
        $(#[$doc])*
        pub const $name: Fields = Fields(1 << $bit);
        fields!(@consts $bit + 1; $($rest)*);
    };
    (@consts $bit:expr;) => {};
}

fields! {
    /// Command name.
    COMM = "comm",
    /// Thread id.
    TID = "tid",
    /// Process id.
    PID = "pid",
    /// Time stamp.
    TIME = "time",
    /// The CPU that the sample was taken on.
    CPU = "cpu",
    /// Event name.
    EVENT = "event",
    /// A tracepoint's fields.
    TRACE = "trace",
    /// Address of the code, or call chain.
    IP = "ip",
    /// Symbol.
    SYM = "sym",
    /// Binary.
    DSO = "dso",
    /// Data address.
    ADDR = "addr",
    /// Distance from the symbol's start.
    SYMOFF = "symoff",
    /// Source file and line.
    SRCLINE = "srcline",
    /// Events since the sample before.
    PERIOD = "period",
    /// Branch flags.
    FLAGS = "flags",
    /// Weight by the hardware: for a memory access, its latency.
    WEIGHT = "weight",
    /// Physical data address.
    PHYS_ADDR = "phys_addr",
    /// Registers at the interrupt.
    IREGS = "iregs",
    /// User registers.
    UREGS = "uregs",
    /// Branch stack, by address.
    BRSTACK = "brstack",
    /// Branch stack, by symbol.
    BRSTACKSYM = "brstacksym",
    /// Instructions between the branches, as bytes.
    BRSTACKINSN = "brstackinsn",
    /// Path of the task's control group.
    CGROUP = "cgroup",
    /// Mode of the CPU, and marks of the record.
    MISC = "misc",
    /// Where the data of an access came from.
    DATA_SRC = "data_src",
    /// Bytes that a BPF program wrote.
    BPF_OUTPUT = "bpf-output",
    /// Size of the page of the data address.
    DATA_PAGE_SIZE = "data_page_size",
    /// Size of the page of the instruction.
    CODE_PAGE_SIZE = "code_page_size",
    /// Latency of the instruction.
    INS_LAT = "ins_lat",
}

impl Fields {
    /// No field.
    pub const NONE: Fields = Fields(0);

    /// True where any of `other` is in the set.
    pub const fn has(self, other: Fields) -> bool {
        self.0 & other.0 != 0
    }

    /// The set and `other`.
    pub const fn with(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }

    /// The set without `other`.
    pub const fn without(self, other: Fields) -> Fields {
        Fields(self.0 & !other.0)
    }

    const fn and(self, other: Fields) -> Fields {
        Fields(self.0 & other.0)
    }

    fn named(name: &str) -> Option<Fields> {
        Fields::NAMED.iter().find(|(n, _)| *n == name).map(|&(_, field)| field)
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        Fields::NAMED.iter().filter(move |(_, f)| self.has(*f)).map(|(name, _)| *name)
    }
}

impl BitOr for Fields {
    type Output = Fields;

    fn bitor(self, other: Fields) -> Fields {
        Fields(self.0 | other.0)
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// Kind of an event, as far as fields depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// `PERF_TYPE_HARDWARE`.
    Hardware,
    /// `PERF_TYPE_SOFTWARE`.
    Software,
    /// `PERF_TYPE_TRACEPOINT`.
    Tracepoint,
    /// `PERF_TYPE_RAW`.
    Raw,
    /// Any other type.
    Other,
}

impl EventKind {
    /// perf's default fields, before what samples do not carry is taken out.
    fn default_fields(self, has_callchain: bool) -> Fields {
        let who = Fields::COMM | Fields::TID | Fields::CPU | Fields::TIME | Fields::EVENT;
        let code = Fields::IP | Fields::SYM | Fields::SYMOFF | Fields::DSO;
        match self {
            EventKind::Tracepoint if has_callchain => who | Fields::TRACE | code,
            EventKind::Tracepoint => who | Fields::TRACE,
            EventKind::Raw => {
                let access = Fields::ADDR | Fields::WEIGHT | Fields::DATA_SRC | Fields::INS_LAT;
                let pages = Fields::PHYS_ADDR | Fields::DATA_PAGE_SIZE | Fields::CODE_PAGE_SIZE;
                who | code | Fields::PERIOD | access | pages
            }
            EventKind::Software => who | code | Fields::PERIOD | Fields::BPF_OUTPUT,
            _ => who | code | Fields::PERIOD,
        }
    }

    fn prefix(self) -> Option<&'static str> {
        match self {
            EventKind::Hardware => Some("hw"),
            EventKind::Software => Some("sw"),
            EventKind::Tracepoint => Some("trace"),
            EventKind::Raw => Some("raw"),
            EventKind::Other => None,
        }
    }
}

/// The fields that an event's samples have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventTraits<'a> {
    /// Name, for messages.
    pub name: &'a str,
    /// Decides the default fields.
    pub kind: EventKind,
    /// The fields that come from `perf_event_attr.sample_type`. Others need nothing recorded: the period is the
    /// attribute's where samples have none.
    pub recorded: Fields,
    /// True where samples carry call chains.
    pub has_callchain: bool,
}

/// A `-F` list that cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldError {
    /// A word names no field.
    #[error("cannot print field `{word}`: no such field; the fields are {}", all_names())]
    Unknown {
        /// As the user wrote it.
        word: String,
    },
    /// The list names no field.
    #[error(
        "cannot print samples without any field: name at least one after -F, of {}",
        all_names()
    )]
    Empty,
    /// `+x` or `-x` beside plain names.
    #[error(
        "cannot mix `{word}` with plain field names in -F: name all fields, or only add (+x) to and \
         remove (-x) from the default ones"
    )]
    Mixed {
        /// The first word of the other kind.
        word: String,
    },
    /// The samples lack the requested field.
    #[error(
        "cannot print field `{field}`: samples of `{event}` were recorded without it; leave the \
         field out, or record again{}", how_to_record(.field)
    )]
    NotRecorded {
        /// As `-F` names it.
        field: &'static str,
        /// As the recording names it.
        event: String,
    },
    /// A field needs another one.
    #[error("cannot print field `{field}` without {needed}: add it to -F")]
    Needs {
        /// The field that cannot stand alone.
        field: &'static str,
        /// The field that is missing.
        needed: &'static str,
    },
}

fn all_names() -> String {
    Fields::NAMED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn how_to_record(field: &str) -> &'static str {
    match field {
        "addr" => " with -d",
        "phys_addr" => " with --phys-data",
        "weight" | "ins_lat" => " with -W",
        "data_src" => " with -d",
        "data_page_size" => " with --data-page-size",
        "code_page_size" => " with --code-page-size",
        "bpf-output" => " an event bpf-output",
        "iregs" => " with --intr-regs",
        "uregs" => " with --user-regs",
        "brstack" | "brstacksym" => " with -b",
        "cgroup" => " with --all-cgroups",
        "cpu" => " with --sample-cpu",
        "time" => " with -T",
        "trace" => " with -R",
        _ => "",
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Set,
    Modify,
}

/// A parsed `-F` list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldSpec {
    /// Prefix such as `sw`; `None` concerns all events.
    kind: Option<String>,
    change: Change,
    add: Fields,
    remove: Fields,
}

impl FieldSpec {
    /// Parses `[hw:|sw:|trace:|raw:]field,…` or `[..:]+field,-field,…`.
    ///
    /// # Errors
    /// A field of no such name, no field at all, or both forms in one list.
    pub fn parse(text: &str) -> Result<FieldSpec, FieldError> {
        let (kind, list) = match text.split_once(':') {
            Some((kind @ ("hw" | "sw" | "trace" | "raw"), list)) => (Some(kind.to_owned()), list),
            Some(_) => return Err(FieldError::Unknown { word: text.to_owned() }),
            None => (None, text),
        };
        let (mut add, mut remove, mut change) = (Fields::NONE, Fields::NONE, None);
        for word in list.split(',').filter(|w| !w.is_empty()) {
            let (this, name) = match word.strip_prefix(['+', '-']) {
                Some(name) => (Change::Modify, name),
                None => (Change::Set, word),
            };
            if *change.get_or_insert(this) != this {
                return Err(FieldError::Mixed { word: word.to_owned() });
            }
            let field =
                Fields::named(name).ok_or_else(|| FieldError::Unknown { word: name.to_owned() })?;
            if word.starts_with('-') {
                (add, remove) = (add.without(field), remove | field);
            } else {
                (add, remove) = (add | field, remove.without(field));
            }
        }
        let change = change.ok_or(FieldError::Empty)?;
        Ok(FieldSpec { kind, change, add, remove })
    }

    /// The fields to print for samples of `event`, after all of `specs` in their order.
    ///
    /// # Errors
    /// A field that was asked for by name and is not in the samples, or that needs another one.
    pub fn resolve(specs: &[FieldSpec], event: &EventTraits<'_>) -> Result<Fields, FieldError> {
        let mut fields = event.kind.default_fields(event.has_callchain);
        let mut asked = Fields::NONE;
        let concerns =
            |s: &&FieldSpec| s.kind.as_deref().is_none_or(|k| event.kind.prefix() == Some(k));
        for spec in specs.iter().filter(concerns) {
            if spec.change == Change::Set {
                (fields, asked) = (Fields::NONE, Fields::NONE);
            }
            fields = (fields | spec.add).without(spec.remove);
            asked = (asked | spec.add).without(spec.remove);
        }
        fields = recorded_only(fields, asked, event)?;
        check_needs(fields, asked)
    }
}

fn recorded_only(
    fields: Fields,
    asked: Fields,
    event: &EventTraits<'_>,
) -> Result<Fields, FieldError> {
    let need_recording = Fields::IP
        | Fields::TID
        | Fields::TIME
        | Fields::CPU
        | Fields::ADDR
        | Fields::WEIGHT
        | Fields::PHYS_ADDR
        | Fields::IREGS
        | Fields::UREGS
        | Fields::BRSTACK
        | Fields::BRSTACKSYM
        | Fields::BRSTACKINSN
        | Fields::CGROUP
        | Fields::DATA_SRC
        | Fields::INS_LAT
        | Fields::DATA_PAGE_SIZE
        | Fields::CODE_PAGE_SIZE
        | Fields::BPF_OUTPUT
        | Fields::TRACE;
    let mut recorded = event.recorded;
    if recorded.has(Fields::TID) {
        recorded = recorded | Fields::PID;
    }
    let missing = fields.and(need_recording | Fields::PID).without(recorded);
    match missing.and(asked).names().next() {
        Some(field) => Err(FieldError::NotRecorded { field, event: event.name.to_owned() }),
        None => Ok(fields.without(missing)),
    }
}

/// A field that needs a field without being printed is dropped, or refused if it was asked for.
fn check_needs(mut fields: Fields, asked: Fields) -> Result<Fields, FieldError> {
    let code = Fields::IP | Fields::ADDR;
    let branches = Fields::BRSTACK | Fields::BRSTACKSYM;
    let needs = [
        ("sym", Fields::SYM, code, "`ip` or `addr`"),
        ("symoff", Fields::SYMOFF, Fields::SYM, "`sym`"),
        ("dso", Fields::DSO, code | branches, "`ip`, `addr` or a branch stack"),
        ("srcline", Fields::SRCLINE, Fields::IP, "`ip`"),
    ];
    for (field, of, on, needed) in needs {
        if fields.has(of) && !fields.has(on) {
            if asked.has(of) {
                return Err(FieldError::Needs { field, needed });
            }
            fields = fields.without(of);
        }
    }
    Ok(fields)
}

/// An event that never counts: it has no sample that could lack a field.
fn is_dummy(event: &EventDesc) -> bool {
    event.attr.pmu_type == pmu_type::SOFTWARE && event.attr.config == DUMMY
}

impl<'a> EventTraits<'a> {
    /// As the event was recorded.
    pub fn of(event: &'a EventDesc) -> Self {
        let recorded = [
            (SampleType::IP, Fields::IP),
            (SampleType::TID, Fields::TID),
            (SampleType::TIME, Fields::TIME),
            (SampleType::CPU, Fields::CPU),
            (SampleType::ADDR, Fields::ADDR),
            (SampleType::WEIGHT, Fields::WEIGHT),
            (SampleType::PHYS_ADDR, Fields::PHYS_ADDR),
            (SampleType::REGS_INTR, Fields::IREGS),
            (SampleType::REGS_USER, Fields::UREGS),
            (SampleType::BRANCH_STACK, BRANCH_FIELDS),
            (SampleType::CGROUP, Fields::CGROUP),
            (SampleType::WEIGHT_STRUCT, Fields::WEIGHT | Fields::INS_LAT),
            (SampleType::WEIGHT, Fields::INS_LAT),
            (SampleType::DATA_SRC, Fields::DATA_SRC),
            (SampleType::DATA_PAGE_SIZE, Fields::DATA_PAGE_SIZE),
            (SampleType::CODE_PAGE_SIZE, Fields::CODE_PAGE_SIZE),
            (SampleType::RAW, Fields::TRACE | Fields::BPF_OUTPUT),
        ];
        let is_recorded = |kind| event.attr.sample_type.contains(kind) || is_dummy(event);
        let recorded = recorded
            .into_iter()
            .filter(|(recorded, _)| is_recorded(*recorded))
            .fold(Fields::NONE, |all, (_, field)| all | field);
        let kind = match event.attr.pmu_type {
            pmu_type::HARDWARE => EventKind::Hardware,
            pmu_type::SOFTWARE => EventKind::Software,
            pmu_type::TRACEPOINT => EventKind::Tracepoint,
            pmu_type::RAW => EventKind::Raw,
            _ => EventKind::Other,
        };
        let has_callchain = event.attr.sample_type.contains(SampleType::CALLCHAIN);
        EventTraits { name: &event.name, kind, recorded, has_callchain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: EventTraits<'static> = EventTraits {
        name: "cpu-clock",
        kind: EventKind::Software,
        recorded: Fields(Fields::IP.0 | Fields::TID.0 | Fields::TIME.0),
        has_callchain: true,
    };

    fn resolve(lists: &[&str], event: &EventTraits<'_>) -> Result<String, FieldError> {
        let specs: Result<Vec<_>, _> = lists.iter().map(|l| FieldSpec::parse(l)).collect();
        let fields = FieldSpec::resolve(&specs?, event)?;
        Ok(fields.names().collect::<Vec<_>>().join(","))
    }

    #[test]
    fn defaults_follow_the_kind_and_the_recorded_fields() {
        assert_eq!(resolve(&[], &CLOCK).unwrap(), "comm,tid,time,event,ip,sym,dso,symoff,period");
        let all_cpus = EventTraits { recorded: CLOCK.recorded | Fields::CPU, ..CLOCK };
        assert!(resolve(&[], &all_cpus).unwrap().contains("time,cpu,event"));
        let trace = EventTraits {
            kind: EventKind::Tracepoint,
            recorded: CLOCK.recorded | Fields::TRACE,
            has_callchain: false,
            ..CLOCK
        };
        assert_eq!(resolve(&[], &trace).unwrap(), "comm,tid,time,event,trace");
        let nothing = EventTraits { recorded: Fields::NONE, ..CLOCK };
        assert_eq!(resolve(&[], &nothing).unwrap(), "comm,event,period");
    }

    #[test]
    fn lists_set_add_and_remove() {
        assert_eq!(resolve(&["comm,ip"], &CLOCK).unwrap(), "comm,ip");
        let changed = resolve(&["+srcline,-period,-comm"], &CLOCK).unwrap();
        assert_eq!(changed, "tid,time,event,ip,sym,dso,symoff,srcline");
        assert_eq!(resolve(&["comm", "+pid"], &CLOCK).unwrap(), "comm,pid");
        assert_eq!(resolve(&["hw:comm"], &CLOCK), resolve(&[], &CLOCK));
        assert_eq!(resolve(&["sw:comm"], &CLOCK).unwrap(), "comm");
    }

    #[test]
    fn dropping_ip_drops_its_dependents() {
        assert_eq!(resolve(&["-ip"], &CLOCK).unwrap(), "comm,tid,time,event,period");
    }

    #[test]
    fn refusals_name_the_word_and_the_way_out() {
        let message = |lists: &[&str]| resolve(lists, &CLOCK).unwrap_err().to_string();
        assert!(message(&["bogus"]).contains("`bogus`"));
        assert!(message(&["x:comm"]).contains("`x:comm`"));
        assert_eq!(FieldSpec::parse(""), Err(FieldError::Empty));
        assert!(message(&["+srcline,comm"]).contains("mix `comm`"));
        assert!(message(&["comm,-ip"]).contains("mix `-ip`"));
        assert!(message(&["+addr"]).contains("record again with -d"));
        assert!(message(&["comm,sym"]).contains("without `ip` or `addr`"));
        assert!(message(&["ip,symoff"]).contains("without `sym`"));
        assert!(message(&["comm,srcline"]).contains("without `ip`"));
    }
}
