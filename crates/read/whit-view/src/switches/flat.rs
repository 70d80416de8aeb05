//! Tables: by function, binary, command, thread or process.

use super::SwitchViewOptions;
use super::stacks::{ChainEntry, Stacks};
use super::tree::weight;
use super::waits;
use crate::hists::{SortKey, cgroup_part, without_digits};
use rustc_hash::{FxHashMap, FxHashSet};
use whit_profile::model::{Profile, ThreadId};
use whit_profile::switches::{
    NodeClasses, SwitchRow, SwitchSums, Switches, WaitClass, WaitClassSet,
};
use whit_types::OutsideText;

/// A word in a `--sort` list that names no key of context switches.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "context switches are not sorted by `{0}`: the keys are comm, pid, tid, tgid, dso, symbol, cgroup, container, pod, \
     unit, wait_class, wait_object"
)]
pub struct UnsupportedSortKey(String);

/// A key of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlatSortKey {
    /// One that samples have as well.
    OfSamples(SortKey),
    /// By the functions of the call stack: `wait_class`.
    WaitClass,
    /// By the file, lock or the like that the wait is for: `wait_object`.
    WaitObject,
}

impl FlatSortKey {
    /// Its name in `--sort`.
    pub const WAIT_CLASS: &str = "wait_class";
    /// The same of the other key.
    pub const WAIT_OBJECT: &str = "wait_object";
}

/// The keys of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlatSort {
    keys: Vec<FlatSortKey>,
}

impl Default for FlatSort {
    fn default() -> Self {
        FlatSort::of([SortKey::Dso, SortKey::Symbol])
    }
}

impl FlatSort {
    /// One row for each thread.
    pub fn by_thread() -> FlatSort {
        FlatSort::of([SortKey::Tid])
    }

    fn of<const N: usize>(keys: [SortKey; N]) -> FlatSort {
        FlatSort { keys: keys.map(FlatSortKey::OfSamples).to_vec() }
    }

    const KEYS: [SortKey; 7] = [
        SortKey::Comm,
        SortKey::CommNoDigit,
        SortKey::Pid,
        SortKey::Tid,
        SortKey::Tgid,
        SortKey::Dso,
        SortKey::Symbol,
    ];

    /// Whether a key needs the cgroups of samples.
    pub fn has_cgroups(&self) -> bool {
        self.of_samples().any(|key| SortKey::OF_CGROUPS.contains(&key))
    }

    /// From a list as `--sort` takes it.
    ///
    /// # Errors
    /// [`UnsupportedSortKey`] for words that are no keys, and for keys of samples.
    pub fn parse(list: &str) -> Result<FlatSort, UnsupportedSortKey> {
        let mut keys = Vec::new();
        for name in list.split(',') {
            if name.trim() == FlatSortKey::WAIT_CLASS {
                keys.push(FlatSortKey::WaitClass);
                continue;
            }
            if name.trim() == FlatSortKey::WAIT_OBJECT {
                keys.push(FlatSortKey::WaitObject);
                continue;
            }
            let keys_of_samples = SortKey::parse_list(name);
            for key in keys_of_samples.map_err(|unknown| UnsupportedSortKey(unknown.word))? {
                if !FlatSort::KEYS.contains(&key) && !SortKey::OF_CGROUPS.contains(&key) {
                    return Err(UnsupportedSortKey(key.name().to_owned()));
                }
                keys.push(FlatSortKey::OfSamples(key));
            }
        }
        Ok(FlatSort { keys })
    }

    /// The keys, in order.
    pub fn keys(&self) -> &[FlatSortKey] {
        &self.keys
    }

    fn of_samples(&self) -> impl Iterator<Item = SortKey> {
        self.keys.iter().filter_map(|key| match key {
            FlatSortKey::OfSamples(key) => Some(*key),
            FlatSortKey::WaitClass | FlatSortKey::WaitObject => None,
        })
    }

    pub(super) fn has_place(&self) -> bool {
        self.of_samples().any(|key| matches!(key, SortKey::Dso | SortKey::Symbol))
    }

    /// Whether a key needs the objects of waits.
    pub fn has_object(&self) -> bool {
        self.keys.contains(&FlatSortKey::WaitObject)
    }

    fn has_class(&self) -> bool {
        self.keys.contains(&FlatSortKey::WaitClass)
    }
}

/// The parts of a key before they have names: thread, command, class, object, block and function.
type RowParts = (Option<ThreadId>, Option<u32>, Option<WaitClass>, Option<u32>, u16, ChainEntry);

/// The key of a row; only the requested parts are filled in.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FlatKey {
    /// Command name.
    pub comm: Option<OutsideText>,
    /// The same with `<N>` in the place of numbers.
    pub comm_no_digit: Option<OutsideText>,
    /// Thread, and its last command name.
    pub tid: Option<(i32, OutsideText)>,
    /// Process.
    pub tgid: Option<i32>,
    /// Binary.
    pub dso: Option<OutsideText>,
    /// Function.
    pub symbol: Option<OutsideText>,
    /// The class of the waits; `None` for CPU time.
    pub wait_class: Option<WaitClass>,
    /// The object of the waits; the class of those for a CPU.
    pub wait_object: Option<OutsideText>,
    /// Cgroup, container, pod and unit of the thread; `None` where its path names none.
    pub cgroup: [Option<OutsideText>; SortKey::OF_CGROUPS.len()],
    /// The block of time, of rows that are apart by it.
    pub block: u16,
}

/// The switches with one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlatRow {
    /// The key that its switches share.
    pub key: FlatKey,
    /// Counts and times of its switches.
    pub sums: SwitchSums,
    /// CPU time of the row's functions themselves, without their callees.
    pub self_cpu_ns: u64,
}

/// A table, the row with the longest waits first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlatTable {
    /// The row with the longest waits first.
    pub rows: Vec<FlatRow>,
    /// Sums of all stacks, each once.
    pub total: SwitchSums,
}

impl FlatTable {
    /// Adds up what the filters let pass. With children, a stack counts once for each row that it
    /// passes through; else for that of its innermost function.
    pub fn new(
        stacks: Stacks<'_>,
        switches: &Switches,
        options: &SwitchViewOptions,
        sort: &FlatSort,
    ) -> FlatTable {
        let profile = stacks.profile();
        let mut table = FlatTable::default();
        let mut index: FxHashMap<RowParts, u32> = FxHashMap::default();
        let mut by_key: FxHashMap<FlatKey, u32> = FxHashMap::default();
        let by_thread = sort.has_cgroups()
            || sort
                .of_samples()
                .any(|key| matches!(key, SortKey::Pid | SortKey::Tid | SortKey::Tgid));
        let by_comm =
            sort.of_samples().any(|key| matches!(key, SortKey::Comm | SortKey::CommNoDigit));
        let parts = Parts::of(stacks, switches, sort.has_class() || sort.has_object());
        for (row, mut frames, wait_class, sums) in parts.each(stacks, switches) {
            table.total.add(&sums);
            if !sort.has_place() {
                frames = vec![ChainEntry::NONE];
            } else if !options.children {
                frames.truncate(1);
            }
            let mut seen = FxHashSet::default();
            let cpu_ns = sums.cpu_ns;
            for (depth, place) in frames.into_iter().enumerate() {
                let thread = by_thread.then_some(row.thread);
                let comm = by_comm.then_some(row.comm.0);
                let parts = (thread, comm, wait_class, row.object, row.block, place);
                let slot = *index.entry(parts).or_insert_with(|| {
                    let mut key = flat_key(profile, sort, row.thread, row.comm.index(), place);
                    key.block = row.block;
                    key.wait_class = wait_class.filter(|_| sort.has_class());
                    key.wait_object = wait_class
                        .filter(|_| sort.has_object())
                        .map(|class| object_name(switches, row, class));
                    enter_cgroups(&mut key, sort, switches, row.thread);
                    *by_key.entry(key.clone()).or_insert_with(|| {
                        let (sums, self_cpu_ns) = (SwitchSums::default(), 0);
                        table.rows.push(FlatRow { key, sums, self_cpu_ns });
                        table.rows.len() as u32 - 1
                    })
                });
                let flat = &mut table.rows[slot as usize];
                if depth == 0 {
                    flat.self_cpu_ns = flat.self_cpu_ns.saturating_add(cpu_ns);
                }
                if seen.insert(slot) {
                    flat.sums.add(&sums);
                }
            }
        }
        table.rows.sort_by(|a, b| {
            let key = |row: &FlatRow| std::cmp::Reverse(weight(&row.sums));
            key(a).cmp(&key(b)).then_with(|| a.key.cmp(&b.key))
        });
        table
    }
}

/// Rows, each as it is or taken apart by the class of its waits.
struct Parts(Option<NodeClasses>);

impl Parts {
    fn of(stacks: Stacks<'_>, switches: &Switches, by_class: bool) -> Parts {
        let nodes = switches.rows.iter().map(|row| row.node);
        Parts(by_class.then(|| NodeClasses::of(stacks.profile(), nodes)))
    }

    fn each<'a>(
        &'a self,
        stacks: Stacks<'a>,
        switches: &'a Switches,
    ) -> impl Iterator<Item = (&'a SwitchRow, Vec<ChainEntry>, Option<WaitClass>, SwitchSums)> {
        stacks.rows(switches).flat_map(move |(_, row, frames)| {
            let parts: Vec<_> = match &self.0 {
                Some(classes) => classes.split(row).collect(),
                None => vec![(None, row.sums)],
            };
            parts.into_iter().map(move |(class, sums)| (row, frames.clone(), class, sums))
        })
    }
}

/// The object of the waits of a row. Waits for a CPU have the name of their class.
fn object_name(switches: &Switches, row: &SwitchRow, class: WaitClass) -> OutsideText {
    let text = match waits::object(switches, row.object) {
        Some(object) => object.to_string(),
        None if WaitClassSet::CPU.has(class) => class.name().to_owned(),
        None => "unknown (not recorded)".to_owned(),
    };
    text.into()
}

fn flat_key(
    profile: &Profile,
    sort: &FlatSort,
    thread: ThreadId,
    comm: usize,
    place: ChainEntry,
) -> FlatKey {
    let info = &profile.threads[thread.index()];
    let mut flat = FlatKey::default();
    for key in sort.of_samples() {
        match key {
            SortKey::Comm => flat.comm = Some(profile.comms[comm].clone()),
            SortKey::CommNoDigit => {
                flat.comm_no_digit = Some(without_digits(profile.comms[comm].exact()).into());
            }
            SortKey::Pid | SortKey::Tid => {
                flat.tid = Some((info.tid.0, profile.comms[info.comm.index()].clone()));
            }
            SortKey::Tgid => flat.tgid = Some(info.pid.0),
            SortKey::Dso => flat.dso = Some(place.dso(profile)),
            SortKey::Symbol => flat.symbol = Some(place.name(profile)),
            _ => {}
        }
    }
    flat
}

fn enter_cgroups(flat: &mut FlatKey, sort: &FlatSort, switches: &Switches, thread: ThreadId) {
    let Some(Some(info)) = switches.cgroups.get(thread.index()) else { return };
    for (name, key) in flat.cgroup.iter_mut().zip(SortKey::OF_CGROUPS) {
        let part = sort.of_samples().any(|of| of == key).then(|| cgroup_part(key, info)).flatten();
        *name = part.map(|part| OutsideText::from(part.to_owned()));
    }
}

impl FlatKey {
    /// The text of one key.
    pub(crate) fn cell(&self, key: FlatSortKey) -> String {
        match key {
            FlatSortKey::OfSamples(key) => self.cell_of_samples(key),
            FlatSortKey::WaitClass => self.wait_class.map_or("on-cpu", WaitClass::name).to_owned(),
            FlatSortKey::WaitObject => {
                self.wait_object.as_ref().map_or_else(|| "on-cpu".to_owned(), ToString::to_string)
            }
        }
    }

    fn cell_of_samples(&self, key: SortKey) -> String {
        let shown = |name: &Option<OutsideText>| name.iter().map(ToString::to_string).collect();
        match key {
            SortKey::Comm => shown(&self.comm),
            SortKey::CommNoDigit => shown(&self.comm_no_digit),
            SortKey::Pid | SortKey::Tid => match &self.tid {
                Some((tid, comm)) => format!("{tid:>7}:{comm}"),
                None => String::new(),
            },
            SortKey::Tgid => format!("{:>7}", self.tgid.unwrap_or(-1)),
            SortKey::Dso => shown(&self.dso),
            SortKey::Symbol => shown(&self.symbol),
            SortKey::Cgroup | SortKey::Container | SortKey::Pod | SortKey::Unit => {
                let mut names = self.cgroup.iter().zip(SortKey::OF_CGROUPS);
                let name = names.find(|(_, of)| *of == key).and_then(|(name, _)| name.as_ref());
                name.map_or_else(|| "N/A".to_owned(), ToString::to_string)
            }
            _ => String::new(),
        }
    }
}
