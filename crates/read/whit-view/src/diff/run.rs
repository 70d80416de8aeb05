//! One recording, reduced to the sums that a comparison needs.
//!
//! The profile itself is dropped before the next recording is loaded: a comparison takes the memory of one report.

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use whit_estimate::{Parts, RatioSum};
use whit_profile::model::{DsoId, EventId, FunctionId, NodeId, Profile};
use whit_profile::warning::Warning;
use whit_types::OutsideText;

use super::DiffError;
use super::options::{DiffOptions, Per};
use crate::hists::{self, HistsOptions, RowSums, SortKey};

/// A recording.
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) path: OutsideText,
    pub(super) machine: Vec<(&'static str, OutsideText)>,
    pub(super) warnings: Vec<Warning>,
    pub(super) events: Vec<RunEvent>,
    /// Short names of all mapped binaries, where they are known.
    pub(super) binaries: Option<BTreeSet<OutsideText>>,
}

/// One event of a recording, if it has samples.
#[derive(Clone, Debug)]
pub(super) struct RunEvent {
    pub(super) name: OutsideText,
    pub(super) samples: u64,
    pub(super) period: u64,
    /// Samples that may be missing.
    pub(super) lost: u64,
    /// Sum of the weights that the event is divided by.
    pub(super) divisor: f64,
    /// The same by block; `None` where there are too few blocks.
    pub(super) parts: Option<Parts>,
    pub(super) block_length_ns: u64,
    /// Sums over blocks of the event as a whole.
    pub(super) total: RatioSum,
    pub(super) has_children: bool,
    pub(super) functions: Vec<RunFunction>,
}

/// Name of a function and of its binary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionName {
    /// As the symbols have it.
    pub function: OutsideText,
    /// Last component of the binary's path.
    pub binary: OutsideText,
}

/// One function.
#[derive(Clone, Debug)]
pub(super) struct RunFunction {
    pub(super) name: FunctionName,
    /// True where the name is an address: it means the same in the same build alone.
    pub(super) is_address: bool,
    pub(super) build_id: Option<String>,
    /// Addresses with samples, or with calls to functions that have them.
    pub(super) addresses: Vec<u64>,
    pub(super) sums: RowSums,
    pub(super) own_period: u64,
    pub(super) own_samples: u64,
    pub(super) children_period: u64,
    pub(super) children_samples: u64,
    /// The function that most of its samples were called from.
    pub(super) caller: Option<FunctionName>,
}

impl Run {
    /// Reduces a profile, which was loaded with blocks.
    ///
    /// # Errors
    /// It has no samples, or none of the event to divide by.
    pub fn of(mut profile: Profile, options: &DiffOptions) -> Result<Run, DiffError> {
        join_functions(&mut profile);
        let path = profile.recording.path.clone();
        let ids = (0..profile.events.len()).map(|id| EventId(id as u32));
        let with_samples: Vec<_> =
            ids.filter(|id| profile.events[id.index()].samples > 0).collect();
        if with_samples.is_empty() {
            return Err(DiffError::NoSamples(path));
        }
        let divisor = match &options.per {
            Per::Event(name) => Some(find(&profile, &with_samples, name)?),
            Per::Share | Per::Units(..) => None,
        };
        let names = Names::new(&profile);
        let compared = with_samples.iter().filter(|id| divisor.is_none_or(|other| other != **id));
        let events = compared.map(|id| RunEvent::of(&profile, &names, *id, divisor, options));
        let events = events.collect();
        let info = &profile.recording;
        let machine = vec![
            ("CPU", info.cpu_desc.clone()),
            ("architecture", info.arch.clone()),
            ("kernel", info.os_release.clone()),
        ];
        let binaries = mapped_binaries(&profile);
        Ok(Run { path, machine, events, warnings: profile.warnings, binaries })
    }
}

/// A dataset has binaries with samples alone, and no sizes of mappings.
fn mapped_binaries(profile: &Profile) -> Option<BTreeSet<OutsideText>> {
    let names = || profile.dsos.iter().map(|dso| stable_binary(&dso.short_name)).collect();
    (!profile.mapped_bytes.is_empty()).then(names)
}

/// Beginnings of the names of binaries that stand for the code that a process compiled. The number of the process follows.
const OF_PROCESSES: [&str; 2] = ["perf-", "jitted-"];

/// The name of a binary that means the same in another run.
pub fn stable_binary(name: &OutsideText) -> OutsideText {
    let text = name.exact();
    let of_process = |begin: &&&str| {
        let rest = text.strip_prefix(**begin);
        rest.is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()))
    };
    match OF_PROCESSES.iter().find(of_process) {
        None => name.clone(),
        Some(begin) => {
            let number = |it: char| it.is_ascii_digit() || it == '-';
            format!("{begin}…{}", text[begin.len()..].trim_start_matches(number)).into()
        }
    }
}

/// A function is the same whether or not the compiler inlined it, and in each copy of a binary.
pub(crate) fn join_functions(profile: &mut Profile) {
    let mut first: FxHashMap<(&OutsideText, &OutsideText), FunctionId> = FxHashMap::default();
    let binaries: Vec<_> = profile.dsos.iter().map(|dso| stable_binary(&dso.short_name)).collect();
    let ids = profile.functions.iter().enumerate().map(|(id, function)| {
        let binary = &binaries[function.dso.index()];
        *first.entry((binary, &function.name)).or_insert(FunctionId(id as u32))
    });
    let joined: Vec<FunctionId> = ids.collect();
    for frame in &mut profile.frames {
        frame.inlined = false;
        frame.function = joined[frame.function.index()];
    }
}

/// The event to divide by, with or without its modifiers.
fn find(profile: &Profile, ids: &[EventId], name: &str) -> Result<EventId, DiffError> {
    let matches = |id: &&EventId| {
        let event = profile.events[id.index()].name.exact();
        event == name || event.split(':').next() == Some(name)
    };
    ids.iter().find(matches).copied().ok_or_else(|| DiffError::NoSuchEvent {
        path: profile.recording.path.clone(),
        event: name.into(),
        recorded: list(ids.iter().map(|id| &profile.events[id.index()].name)),
    })
}

/// Names in one line.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a OutsideText>) -> OutsideText {
    names.map(OutsideText::exact).collect::<Vec<_>>().join(", ").into()
}

impl RunEvent {
    fn of(
        profile: &Profile,
        names: &Names<'_>,
        id: EventId,
        divisor: Option<EventId>,
        options: &DiffOptions,
    ) -> RunEvent {
        let info = &profile.events[id.index()];
        let by_block = hists::block_totals(profile, divisor.unwrap_or(id));
        let parts = Parts::new(by_block);
        let mut total = RatioSum::default();
        if let Some(parts) = &parts {
            let periods = hists::block_totals(profile, id).into_iter().enumerate();
            periods.for_each(|(block, period)| total.add(parts, block, period));
        }
        let hists_options = HistsOptions {
            sort: vec![SortKey::Dso, SortKey::Symbol],
            chains: hists::ChainOptions {
                mode: hists::ChainMode::None,
                ..hists::ChainOptions::default()
            },
            filters: options.filters.clone(),
            ..HistsOptions::default()
        };
        let (hists, sums) = match &parts {
            Some(parts) => hists::hists_by_block(profile, id, &hists_options, parts),
            None => {
                let hists = hists::hists(profile, id, &hists_options);
                let none = vec![RowSums::default(); hists.rows.len()];
                (hists, none)
            }
        };
        let callers = callers(profile, names, id);
        let function = |(row, sums): (&hists::HistRow, RowSums)| {
            let function = row.place.function?;
            let caller = callers.get(&function).map(|caller| names.of(*caller));
            Some(RunFunction {
                sums,
                own_period: row.self_period,
                own_samples: row.self_samples,
                children_period: row.children_period,
                children_samples: row.children_samples,
                caller,
                ..names.function(function)
            })
        };
        RunEvent {
            name: info.name.clone(),
            samples: info.samples,
            period: info.period,
            lost: hists::lost_samples(profile, id),
            divisor: divisor.map_or(info.period, |id| profile.events[id.index()].period) as f64,
            parts,
            block_length_ns: profile.blocks.as_ref().map_or(0, |blocks| blocks.length_ns),
            total,
            has_children: hists.children,
            functions: hists.rows.iter().zip(sums).filter_map(function).collect(),
        }
    }
}

/// Names and addresses of functions.
struct Names<'p> {
    profile: &'p Profile,
    addresses: Vec<Vec<u64>>,
}

impl<'p> Names<'p> {
    fn new(profile: &'p Profile) -> Names<'p> {
        let mut addresses = vec![Vec::new(); profile.functions.len()];
        for frame in &profile.frames {
            addresses[frame.function.index()].push(frame.address.0);
        }
        Names { profile, addresses }
    }

    fn of(&self, id: FunctionId) -> FunctionName {
        let function = &self.profile.functions[id.index()];
        let binary = stable_binary(&self.profile.dsos[function.dso.index()].short_name);
        FunctionName { function: function.name.clone(), binary }
    }

    /// Everything but its weights.
    fn function(&self, id: FunctionId) -> RunFunction {
        let function = &self.profile.functions[id.index()];
        let name = self.of(id);
        let is_address = !function.known || is_stand_in(&name);
        RunFunction {
            is_address,
            build_id: self.build_id(function.dso),
            addresses: self.addresses[id.index()].clone(),
            name,
            sums: RowSums::default(),
            own_period: 0,
            own_samples: 0,
            children_period: 0,
            children_samples: 0,
            caller: None,
        }
    }

    fn build_id(&self, dso: DsoId) -> Option<String> {
        self.profile.dsos[dso.index()].build_id.map(|id| id.to_string())
    }
}

/// A function without a symbol goes by its start: `fun_1d10@server`.
fn is_stand_in(name: &FunctionName) -> bool {
    let rest = name.function.exact().strip_prefix("fun_");
    let parts = rest.and_then(|rest| rest.split_once('@'));
    parts.is_some_and(|(digits, binary)| {
        u64::from_str_radix(digits, 16).is_ok() && binary == name.binary.exact()
    })
}

/// For each function with samples of its own, the other function that most of them were called from.
fn callers(
    profile: &Profile,
    names: &Names<'_>,
    event: EventId,
) -> FxHashMap<FunctionId, FunctionId> {
    let function =
        |node: NodeId| profile.frames[profile.nodes[node.index()].frame.index()].function;
    let mut periods: FxHashMap<(FunctionId, FunctionId), u64> = FxHashMap::default();
    for row in profile.rows.iter().filter(|row| row.event == event) {
        let own = function(row.node);
        let mut node = profile.nodes[row.node.index()].parent;
        while node != NodeId::NONE && function(node) == own {
            node = profile.nodes[node.index()].parent;
        }
        if node != NodeId::NONE {
            *periods.entry((own, function(node))).or_default() += row.period;
        }
    }
    let mut heaviest: FxHashMap<FunctionId, (u64, FunctionId)> = FxHashMap::default();
    for ((own, caller), period) in periods {
        let best = heaviest.entry(own).or_insert((period, caller));
        // The first by name among equally heavy ones: numbers depend on the order in which samples were read.
        let is_first = || names.of(caller) < names.of(best.1);
        if period > best.0 || (period == best.0 && is_first()) {
            *best = (period, caller);
        }
    }
    heaviest.into_iter().map(|(own, (_, caller))| (own, caller)).collect()
}
