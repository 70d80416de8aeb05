//! Contexts: the part of a row's key that the sample brings.

use rustc_hash::FxHashMap;
use whit_profile::model::{CommId, EventId, Profile, SampleRow, ThreadId};
use whit_types::{CpuId, OutsideText, Pid, Tid};

use super::options::Filters;
use super::sort_key::SortKey;

/// The part of a row's key that the sample brings; what no sort key asks for is blank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Context {
    /// Command name at the time of the sample, where `comm` is a key.
    pub comm: Option<CommId>,
    /// Thread, where `pid` or `tid` is a key.
    pub tid: Option<Tid>,
    /// Process, where `tgid` is a key.
    pub pid: Option<Pid>,
    /// That thread's last command name.
    pub thread_comm: Option<CommId>,
    /// The last command name of that process's first thread.
    pub process_comm: Option<CommId>,
    /// CPU, where `cpu` is a key and the profile tells CPUs apart.
    pub cpu: Option<CpuId>,
}

/// The samples of one context.
pub(super) struct ContextRows<'p> {
    pub(super) context: Context,
    pub(super) rows: Vec<&'p SampleRow>,
}

/// Groups the event's samples by context, in the order in which contexts appear, leaving out what
/// the filters refuse.
pub(super) fn group<'p>(
    profile: &'p Profile,
    event: EventId,
    keys: &[SortKey],
    filter: &SampleFilter,
) -> Vec<ContextRows<'p>> {
    let maker = ContextMaker::new(profile, keys);
    let mut groups: Vec<ContextRows<'p>> = Vec::new();
    let mut index = FxHashMap::default();
    let rows = profile.rows.iter().filter(|r| r.event == event);
    for row in rows.filter(|r| filter.passes(profile, r)) {
        let context = maker.context(row);
        let slot = *index.entry(context).or_insert_with(|| {
            groups.push(ContextRows { context, rows: Vec::new() });
            groups.len() - 1
        });
        groups[slot].rows.push(row);
    }
    groups
}

struct ContextMaker<'p> {
    profile: &'p Profile,
    by_comm: bool,
    by_thread: bool,
    by_process: bool,
    by_cpu: bool,
    /// Of several commands with one name, the first.
    first_comm: Vec<CommId>,
    leader: FxHashMap<Pid, CommId>,
    /// Of several threads with one id (used again after an exit), the last one's command.
    task: FxHashMap<Tid, CommId>,
}

impl<'p> ContextMaker<'p> {
    fn new(profile: &'p Profile, keys: &[SortKey]) -> ContextMaker<'p> {
        let mut first = FxHashMap::default();
        let comms = profile.comms.iter().enumerate();
        let first_comm = comms.map(|(i, c)| *first.entry(c).or_insert(CommId(i as u32))).collect();
        let mut leader = FxHashMap::default();
        for thread in &profile.threads {
            let slot = leader.entry(thread.pid).or_insert(thread.comm);
            if thread.tid.0 == thread.pid.0 {
                *slot = thread.comm;
            }
        }
        ContextMaker {
            profile,
            by_comm: keys.contains(&SortKey::Comm),
            by_thread: keys.contains(&SortKey::Pid) || keys.contains(&SortKey::Tid),
            by_process: keys.contains(&SortKey::Tgid),
            by_cpu: keys.contains(&SortKey::Cpu),
            first_comm,
            leader,
            task: profile.threads.iter().map(|t| (t.tid, t.comm)).collect(),
        }
    }

    fn context(&self, row: &SampleRow) -> Context {
        let mut context = Context::default();
        if self.by_comm {
            context.comm = Some(self.first_comm[row.comm.index()]);
        }
        if self.by_thread || self.by_process {
            self.add_task(&mut context, row.thread);
        }
        if self.by_cpu {
            context.cpu = row.cpu;
        }
        context
    }

    fn add_task(&self, context: &mut Context, thread: ThreadId) {
        let thread = &self.profile.threads[thread.index()];
        if self.by_process {
            context.pid = Some(thread.pid);
            context.process_comm = self.leader.get(&thread.pid).copied();
        }
        if self.by_thread {
            context.tid = Some(thread.tid);
            context.thread_comm = self.task.get(&thread.tid).copied();
        }
    }
}

/// The filters that no sort key answers, which therefore look at samples.
pub(super) struct SampleFilter {
    comms: Vec<String>,
    dsos: Vec<String>,
    symbols: Vec<String>,
}

impl SampleFilter {
    pub(super) fn new(filters: &Filters, keys: &[SortKey]) -> SampleFilter {
        let by_symbol = keys.contains(&SortKey::Symbol);
        let by_dso = by_symbol || keys.contains(&SortKey::Dso);
        let unless = |answered: bool, list: &[String]| {
            if answered { Vec::new() } else { list.to_vec() }
        };
        SampleFilter {
            comms: filters.comms.clone(),
            dsos: unless(by_dso, &filters.dsos),
            symbols: unless(by_symbol, &filters.symbols),
        }
    }

    fn passes(&self, profile: &Profile, row: &SampleRow) -> bool {
        if !listed(&self.comms, &profile.comms[row.comm.index()]) {
            return false;
        }
        if self.dsos.is_empty() && self.symbols.is_empty() {
            return true;
        }
        let mut node = &profile.nodes[row.node.index()];
        while profile.frames[node.frame.index()].inlined {
            match profile.nodes.get(node.parent.index()) {
                Some(parent) => node = parent,
                None => break,
            }
        }
        let function = &profile.functions[profile.frames[node.frame.index()].function.index()];
        let dso = &profile.dsos[function.dso.index()];
        listed(&self.symbols, &function.name)
            && (listed(&self.dsos, &dso.short_name) || listed(&self.dsos, &dso.path))
    }
}

/// True where `list` is empty or has `name`, exactly or as it is printed.
pub(crate) fn listed(list: &[String], name: &OutsideText) -> bool {
    list.is_empty() || list.iter().any(|l| name == l.as_str() || name.escaped() == l.as_str())
}
