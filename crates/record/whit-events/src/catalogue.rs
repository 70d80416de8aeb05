//! Everything that can be written after `-e`, as a list.
//!
//! The order, the classes and their descriptors are those of `perf list` (6.1), with two
//! differences. Events of the hardware are listed whether or not the machine has them. The
//! instances of a PMU (`uncore_imc_0`, `uncore_imc_1`, …) that have an event alike are listed once,
//! under their common name.

use std::collections::BTreeMap;

use whit_types::{HardwareEvent, SoftwareEvent, ToolEvent};

use crate::cache::cache_event_names;
use crate::names::is_known_event_name;
use crate::pmu::{Pmu, PmuEvent, PmuTable};
use crate::resolve::without_instance;
use crate::term::{Term, TermValue};
use crate::tracepoint::{TracepointError, TracepointIds};

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EventClass {
    /// A generic hardware event.
    Hardware,
    /// A software event of the kernel.
    Software,
    /// Values that the tool measures itself.
    Tool,
    /// A hardware-cache event.
    Cache,
    /// A named event of a PMU, from sysfs or a vendor's table.
    Pmu,
    /// How a raw event is written.
    Raw,
    /// How a breakpoint is written.
    Breakpoint,
    /// An event of `tracefs`: `sched:sched_switch`.
    Tracepoint,
}

impl EventClass {
    /// Every class, in the order of a list.
    pub const ALL: [EventClass; 8] = [
        EventClass::Hardware,
        EventClass::Software,
        EventClass::Tool,
        EventClass::Cache,
        EventClass::Pmu,
        EventClass::Raw,
        EventClass::Breakpoint,
        EventClass::Tracepoint,
    ];

    /// perf's words for it.
    pub const fn descriptor(self) -> &'static str {
        match self {
            EventClass::Hardware => "Hardware event",
            EventClass::Software => "Software event",
            EventClass::Tool => "Tool event",
            EventClass::Cache => "Hardware cache event",
            EventClass::Pmu => "Kernel PMU event",
            EventClass::Raw => "Raw hardware event descriptor",
            EventClass::Breakpoint => "Hardware breakpoint",
            EventClass::Tracepoint => "Tracepoint event",
        }
    }

    /// The classes that perf calls by this word (`hw`, `cache`, …).
    pub fn from_word(word: &str) -> Option<&'static [EventClass]> {
        Some(match word {
            "hw" | "hardware" => &[EventClass::Hardware],
            "sw" | "software" => &[EventClass::Software, EventClass::Tool],
            "tool" => &[EventClass::Tool],
            "cache" | "hwcache" => &[EventClass::Cache],
            "pmu" => &[EventClass::Pmu],
            "raw" => &[EventClass::Raw],
            "breakpoint" => &[EventClass::Breakpoint],
            "tracepoint" => &[EventClass::Tracepoint],
            _ => return None,
        })
    }
}

/// One line of the list.
#[derive(Clone, PartialEq, Debug)]
pub struct CatalogueEntry {
    /// Kind of the entry.
    pub class: EventClass,
    /// As it is written after `-e`; for [`EventClass::Raw`] and [`EventClass::Breakpoint`], the
    /// syntax.
    pub name: String,
    /// Other spellings.
    pub aliases: Vec<String>,
    /// The PMUs that have it, for [`EventClass::Pmu`].
    pub pmus: Vec<String>,
    /// The terms that it stands for, as text; may be empty.
    pub terms: String,
    /// Terms that have to be given a value.
    pub parameters: Vec<String>,
    /// Description in a phrase; may be empty.
    pub description: String,
    /// The same at length; may be empty.
    pub long_description: String,
    /// Factor of a count for display.
    pub scale: f64,
    /// Unit of the scaled count; may be empty.
    pub unit: String,
    /// Whether it counts once for a whole package.
    pub per_package: bool,
    /// Whether a reading stands for itself.
    pub snapshot: bool,
    /// Whether its vendor has given it another name since.
    pub deprecated: bool,
}

impl CatalogueEntry {
    fn new(class: EventClass, name: &str, description: &str) -> CatalogueEntry {
        CatalogueEntry {
            class,
            name: name.to_owned(),
            aliases: Vec::new(),
            pmus: Vec::new(),
            terms: String::new(),
            parameters: Vec::new(),
            description: description.to_owned(),
            long_description: String::new(),
            scale: 1.0,
            unit: String::new(),
            per_package: false,
            snapshot: false,
            deprecated: false,
        }
    }

    fn of_pmu(pmu: &str, name: &str, event: &PmuEvent) -> CatalogueEntry {
        let terms: Vec<String> = event.terms.iter().map(ToString::to_string).collect();
        // A name that means a generic event when it stands alone is no other spelling.
        let alias = (!is_known_event_name(name)).then(|| name.to_owned());
        CatalogueEntry {
            aliases: alias.into_iter().collect(),
            terms: terms.join(","),
            parameters: event.terms.iter().filter_map(parameter).collect(),
            long_description: event.long_description.clone(),
            scale: event.scale,
            unit: event.unit.clone(),
            per_package: event.per_package,
            snapshot: event.snapshot,
            deprecated: event.deprecated,
            ..CatalogueEntry::new(EventClass::Pmu, &format!("{pmu}/{name}/"), &event.description)
        }
    }
}

fn parameter(term: &Term) -> Option<String> {
    match term {
        Term::Pmu { name, value: TermValue::Text(text) } if text == "?" => Some(name.clone()),
        _ => None,
    }
}

/// Everything but tracepoints, which no table of PMUs knows.
pub fn catalogue(table: &PmuTable) -> Vec<CatalogueEntry> {
    let mut entries = symbols();
    entries.extend(pmu_entries(table));
    entries.extend(syntax(table));
    entries
}

/// All tracepoints.
///
/// # Errors
///
/// Where they cannot be listed.
pub fn tracepoint_entries(
    tracepoints: &mut dyn TracepointIds,
) -> Result<Vec<CatalogueEntry>, TracepointError> {
    let mut entries = Vec::new();
    for system in tracepoints.systems()? {
        entries.extend(tracepoints.names(&system)?.into_iter().map(|name| {
            CatalogueEntry::new(EventClass::Tracepoint, &format!("{system}:{name}"), "")
        }));
    }
    Ok(entries)
}

/// Built-in events.
fn symbols() -> Vec<CatalogueEntry> {
    let entry = |class, names: &[&str], description| CatalogueEntry {
        aliases: names.iter().skip(1).map(|name| (*name).to_owned()).collect(),
        ..CatalogueEntry::new(class, names.first().copied().unwrap_or_default(), description)
    };
    let hardware = HardwareEvent::ALL
        .iter()
        .map(|event| entry(EventClass::Hardware, event.names(), event.description()));
    let software = SoftwareEvent::ALL
        .iter()
        .map(|event| entry(EventClass::Software, event.names(), event.description()));
    let tool = ToolEvent::ALL.iter().map(|event| CatalogueEntry {
        unit: "ns".to_owned(),
        ..entry(EventClass::Tool, event.names(), event.description())
    });
    let cache = cache_event_names().map(|name| CatalogueEntry::new(EventClass::Cache, name, ""));
    let mut entries: Vec<CatalogueEntry> =
        hardware.chain(software).chain(tool).chain(cache).collect();
    entries.sort_by(|a, b| (a.class, &a.name).cmp(&(b.class, &b.name)));
    entries
}

/// Named events of all PMUs. Instances that have an event alike share its entry.
fn pmu_entries(table: &PmuTable) -> Vec<CatalogueEntry> {
    let mut by_event: BTreeMap<(&str, &str), Vec<(&Pmu, &PmuEvent)>> = BTreeMap::new();
    for (pmu, name, event) in table.events() {
        by_event.entry((without_instance(&pmu.name), name)).or_default().push((pmu, event));
    }
    let mut entries = Vec::new();
    for ((family, name), having) in by_event {
        let alike = having.windows(2).all(|pair| pair[0].1 == pair[1].1);
        if let ([_, _, ..], true, Some((_, event))) = (&having[..], alike, having.first()) {
            let pmus = having.iter().map(|(pmu, _)| pmu.name.clone()).collect();
            entries.push(CatalogueEntry { pmus, ..CatalogueEntry::of_pmu(family, name, event) });
            continue;
        }
        entries.extend(having.into_iter().map(|(pmu, event)| CatalogueEntry {
            pmus: vec![pmu.name.clone()],
            ..CatalogueEntry::of_pmu(&pmu.name, name, event)
        }));
    }
    entries
}

/// Spellings of events that cannot be listed.
fn syntax(table: &PmuTable) -> [CatalogueEntry; 3] {
    let core = table.core_pmus().next().map_or("cpu", |pmu| pmu.name.as_str());
    let terms = format!("{core}/t1=v1[,t2=v2,t3 ...]/modifier");
    [
        CatalogueEntry::new(EventClass::Raw, "rNNN", "The core PMU's config word in hexadecimal"),
        CatalogueEntry::new(EventClass::Raw, &terms, "Terms of any PMU: whit list --details pmu"),
        CatalogueEntry::new(
            EventClass::Breakpoint,
            "mem:<addr>[/len][:access]",
            "Accesses to memory: r, w and x, read and write without",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse;

    fn pmu(name: &str, events: &[(&str, PmuEvent)]) -> Pmu {
        let events = events.iter().map(|(name, event)| ((*name).to_owned(), event.clone()));
        Pmu { name: name.to_owned(), events: events.collect(), ..Pmu::default() }
    }

    fn names(table: &PmuTable, class: EventClass) -> Vec<String> {
        let entries = catalogue(table).into_iter().filter(|entry| entry.class == class);
        entries.map(|entry| entry.name).collect()
    }

    #[test]
    fn every_name_can_be_written_after_e() {
        for entry in catalogue(&PmuTable::default()) {
            let syntax = matches!(entry.class, EventClass::Raw | EventClass::Breakpoint);
            for name in entry.aliases.iter().chain([&entry.name]).filter(|_| !syntax) {
                assert!(parse(name).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn instances_that_are_alike_are_listed_once() {
        let (one, other) = (PmuEvent::new(vec![Term::Config(1)]), PmuEvent::new(Vec::new()));
        let table = PmuTable {
            pmus: vec![
                pmu("imc_0", &[("reads", one.clone()), ("writes", one.clone())]),
                pmu("imc_1", &[("reads", one.clone()), ("writes", other)]),
                pmu("power", &[("cycles", one)]),
            ],
            problems: Vec::new(),
        };
        let listed = names(&table, EventClass::Pmu);
        assert_eq!(listed, ["imc/reads/", "imc_0/writes/", "imc_1/writes/", "power/cycles/"]);
        let entries = catalogue(&table);
        let find = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap();
        assert_eq!(find("imc/reads/").pmus, ["imc_0", "imc_1"]);
        assert_eq!(find("imc/reads/").aliases, ["reads"]);
        assert!(find("power/cycles/").aliases.is_empty(), "cycles alone is the generic event");
        assert_eq!(find("imc/reads/").terms, "config=0x1");
    }

    #[test]
    fn classes_are_in_perfs_order_and_sorted() {
        let table = PmuTable::default();
        let software = names(&table, EventClass::Software);
        assert!(software.is_sorted() && software.len() == SoftwareEvent::ALL.len());
        let classes: Vec<_> = catalogue(&table).iter().map(|entry| entry.class).collect();
        assert!(classes.is_sorted());
        assert_eq!(EventClass::from_word("hw"), Some(&[EventClass::Hardware][..]));
        assert_eq!(EventClass::from_word("cycles"), None);
    }
}
