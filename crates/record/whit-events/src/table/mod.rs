//! Tables of event names that vendors publish: `inst_retired.any` where sysfs knows only bits.
//!
//! A table is a value. [`EventTable::from_json`] parses the text of one file in the format of
//! Linux's `tools/perf/pmu-events/arch` (Intel's perfmon has the same, with a header around it).
//! [`EventTable::read`] reads a directory of such files. A caller with names from elsewhere builds
//! [`TableEvent`]s. [`PmuTable::add_events`] puts them behind the PMUs' own.
//!
//! No tables come with whit. The crates that carry some hold Intel's alone, and of processors of
//! years ago; both publishers keep theirs current.

mod cpu;
mod directory;
mod entry;
mod json;
mod mapfile;

pub use cpu::CpuIdentity;
pub use directory::{EventTableError, MAX_TABLE_FILE_BYTES, MAX_TABLE_FILES};

use crate::pmu::{Pmu, PmuEvent, PmuProblem, PmuTable};
use crate::resolve::pmu_matches;

/// Most events of one table.
pub const MAX_TABLE_EVENTS: usize = 1 << 17;
/// Most problems that are kept; those beyond are counted.
pub const MAX_TABLE_PROBLEMS: usize = 100;

/// Events of one or several PMUs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EventTable {
    /// The events, in the order of their files.
    pub events: Vec<TableEvent>,
    /// Parts that were not understood; the rest is usable without it.
    pub problems: Vec<PmuProblem>,
    /// Problems beyond [`MAX_TABLE_PROBLEMS`].
    pub more_problems: usize,
}

/// A named event and where it belongs.
#[derive(Clone, PartialEq, Debug)]
pub struct TableEvent {
    /// The name; how it is looked up ignores case.
    pub name: String,
    /// Which PMUs have it.
    pub owner: Owner,
    /// Its meaning.
    pub event: PmuEvent,
}

/// Which PMUs an event belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Those of the cores.
    Cores,
    /// The PMU of this name, or all of its instances (`uncore_imc`); tables say `uncore_` of every
    /// unit that they do not know otherwise, so that the name without it counts as well.
    Pmu(String),
    /// Those of this name whose `identifier` in sysfs is the second.
    Device(String, String),
}

impl Owner {
    fn has(&self, pmu: &Pmu) -> bool {
        match self {
            Owner::Cores => pmu.core,
            Owner::Pmu(name) => {
                pmu_matches(name, pmu) || name.strip_prefix("uncore_") == Some(&pmu.name)
            }
            Owner::Device(name, identifier) => {
                pmu_matches(name, pmu) && pmu.identifier.as_ref() == Some(identifier)
            }
        }
    }
}

impl EventTable {
    fn problem(&mut self, path: &str, why: String) {
        if self.problems.len() < MAX_TABLE_PROBLEMS {
            self.problems.push(PmuProblem { path: path.to_owned(), why });
        } else {
            self.more_problems += 1;
        }
    }
}

impl PmuTable {
    /// Adds events to the PMUs that they belong to, and gives the number of those that belong to
    /// none of this machine's. As in perf, an event of the table takes the place of the kernel's of
    /// the same name, whose scale and unit stay where the table has none.
    pub fn add_events(&mut self, events: impl IntoIterator<Item = TableEvent>) -> usize {
        let mut homeless = 0;
        for TableEvent { name, owner, event } in events {
            let mut owners = self.pmus.iter_mut().filter(|pmu| owner.has(pmu)).peekable();
            homeless += usize::from(owners.peek().is_none());
            for pmu in owners {
                pmu.add_event(&name, event.clone());
            }
        }
        homeless
    }
}

impl Pmu {
    fn add_event(&mut self, name: &str, mut event: PmuEvent) {
        let known = self.events.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned();
        if let Some(before) = known.and_then(|known| self.events.remove(&known))
            && event.unit.is_empty()
        {
            (event.scale, event.unit) = (before.scale, before.unit);
        }
        self.events.insert(name.to_owned(), event);
    }
}
