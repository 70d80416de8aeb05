//! Contexts: the part of a row's key that the sample brings.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whit_profile::model::{
    CgroupId, CgroupInfo, CommId, FacetsId, FunctionId, FunctionInfo, Profile, SampleRow, ThreadId,
};
use whit_profile::parallelism::Parallelism;
use whit_profile::{Facets, handle};
use whit_types::{CgroupPath, CpuId, OutsideText, Pid, Tid, TimestampNs};

use super::facet_key::first_facets;
use super::latency::Levels;
use super::options::Filters;
use super::parents::Parents;
use super::sort_key::SortKey;

/// The part of a row's key that the sample brings; what no sort key asks for is blank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Context {
    /// Command name at the time of the sample, where `comm` is a key.
    pub comm: Option<CommId>,
    /// The first command name that differs in numbers alone, where `comm_nodigit` is a key.
    pub comm_no_digit: Option<CommId>,
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
    /// Socket of that CPU, where `socket` is a key and the recording knows it.
    pub socket: Option<u32>,
    /// Cgroup, where `cgroup` is a key.
    pub cgroup: Option<CgroupId>,
    /// The first cgroup of the same container, where `container` is a key and the path names one.
    pub container: Option<CgroupId>,
    /// The same for `pod`.
    pub pod: Option<CgroupId>,
    /// The same for `unit`.
    pub unit: Option<CgroupId>,
    /// Beginning of the stretch of time, where `time` is a key.
    pub time: Option<TimestampNs>,
    /// Weight of one sample, where `weight` or `local_weight` is a key.
    pub weight: Option<u64>,
    /// Threads that ran, where `parallelism` is a key.
    pub parallelism: Option<Parallelism>,
    /// Caller that `--parent` chooses, where `parent` is a key and the call chain has one.
    pub parent: Option<FunctionId>,
    /// The first facets that look the same under the other keys of facets, where there is such a key.
    pub facets: Option<FacetsId>,
}

/// The samples of one context.
pub(super) struct ContextRows<'p> {
    pub(super) context: Arc<Context>,
    pub(super) rows: Vec<&'p SampleRow>,
}

/// Groups samples of one event by context, in the order in which contexts appear, leaving out what
/// the filters refuse.
pub(super) fn group<'r>(
    profile: &Profile,
    rows: impl Iterator<Item = &'r SampleRow>,
    maker: &ContextMaker<'_>,
    filter: &SampleFilter,
) -> Vec<ContextRows<'r>> {
    let mut groups: Vec<ContextRows<'r>> = Vec::new();
    let mut index = FxHashMap::default();
    // Rows in order are mostly of the same thread as those before them: a context takes longer to make and to find.
    let mut last = None;
    for row in rows.filter(|r| filter.passes(profile, maker.parents, r)) {
        let of = (row.thread, row.comm, row.facets);
        let slot = match last {
            Some((known, slot)) if known == of && !maker.by_parent => slot,
            _ => {
                let context = maker.context(row);
                *index.entry(context).or_insert_with(|| {
                    groups.push(ContextRows { context: Arc::new(context), rows: Vec::new() });
                    groups.len() - 1
                })
            }
        };
        last = Some((of, slot));
        groups[slot].rows.push(row);
    }
    groups
}

/// Makes the contexts of samples.
pub(super) struct ContextMaker<'p> {
    profile: &'p Profile,
    by_comm: bool,
    by_thread: bool,
    by_process: bool,
    by_cpu: bool,
    by_socket: bool,
    by_time: bool,
    by_weight: bool,
    by_parallelism: bool,
    by_parent: bool,
    parents: &'p Parents,
    first_facets: Vec<FacetsId>,
    groups: CgroupGroups,
    /// For each command, the first one with its name.
    first_comm: Vec<CommId>,
    /// The same of names without their numbers; empty where no key asks.
    first_no_digit: Vec<CommId>,
    leader: FxHashMap<Pid, CommId>,
    /// The command of the last thread with an id: ids are used again after an exit.
    task: FxHashMap<Tid, CommId>,
}

impl<'p> ContextMaker<'p> {
    pub(super) fn new(
        profile: &'p Profile,
        keys: &[SortKey],
        parents: &'p Parents,
    ) -> ContextMaker<'p> {
        let first_comm = first_with_name(profile.comms.iter().map(OutsideText::exact));
        let first_no_digit = match keys.contains(&SortKey::CommNoDigit) {
            true => first_with_name(profile.comms.iter().map(|comm| without_digits(comm.exact()))),
            false => Vec::new(),
        };
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
            by_socket: keys.contains(&SortKey::Socket),
            by_time: keys.contains(&SortKey::Time),
            by_weight: keys.contains(&SortKey::Weight) || keys.contains(&SortKey::LocalWeight),
            by_parallelism: keys.contains(&SortKey::Parallelism),
            by_parent: keys.contains(&SortKey::Parent),
            parents,
            first_facets: first_facets(profile, keys),
            groups: CgroupGroups::new(profile, keys),
            first_comm,
            first_no_digit,
            leader,
            task: profile.threads.iter().map(|t| (t.tid, t.comm)).collect(),
        }
    }

    pub(super) fn context(&self, row: &SampleRow) -> Context {
        let mut context = Context::default();
        if self.by_comm {
            context.comm = Some(self.first_comm[row.comm.index()]);
        }
        context.comm_no_digit = self.first_no_digit.get(row.comm.index()).copied();
        if self.by_thread || self.by_process {
            self.add_task(&mut context, row.thread);
        }
        if self.by_parent {
            context.parent = self.parents.of_node(row.node);
        }
        context.facets = self.first_facets.get(row.facets.index()).copied();
        if let Some(facets) = self.profile.facets_of(row) {
            self.add_facets(&mut context, facets);
        }
        context
    }

    fn add_facets(&self, context: &mut Context, facets: &Facets) {
        context.cpu = facets.cpu.filter(|_| self.by_cpu);
        if self.by_socket {
            let sockets = &self.profile.recording.sockets;
            context.socket = facets.cpu.and_then(|cpu| *sockets.get(cpu.0 as usize)?);
        }
        context.time = facets.time.filter(|_| self.by_time);
        context.weight = facets.weight.filter(|_| self.by_weight);
        context.parallelism = facets.parallelism.filter(|_| self.by_parallelism);
        if let Some(cgroup) = facets.cgroup {
            self.groups.add(context, cgroup);
        }
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

/// For each name, the first one that equals it.
fn first_with_name<T: Eq + Hash>(names: impl Iterator<Item = T>) -> Vec<CommId> {
    let mut first = FxHashMap::default();
    names.zip(0..).map(|(name, number)| *first.entry(name).or_insert(CommId(number))).collect()
}

/// A command name with `<N>` in the place of each number, as perf has it.
pub(crate) fn without_digits(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        text.push_str(&rest[..at]);
        text.push_str("<N>");
        rest = rest[at..].trim_start_matches(|letter: char| letter.is_ascii_digit());
    }
    text + rest
}

/// The cgroups that stand for others of the same container, pod or unit.
struct CgroupGroups {
    by_cgroup: bool,
    /// By cgroup; empty where no key asks.
    containers: Vec<Option<CgroupId>>,
    pods: Vec<Option<CgroupId>>,
    units: Vec<Option<CgroupId>>,
}

impl CgroupGroups {
    fn new(profile: &Profile, keys: &[SortKey]) -> CgroupGroups {
        let firsts = |key: SortKey| {
            if !keys.contains(&key) {
                return Vec::new();
            }
            let mut first = FxHashMap::default();
            let cgroups = profile.cgroups.iter().enumerate();
            let of = |(i, cgroup): (usize, &CgroupInfo)| {
                let name = cgroup_part(key, cgroup)?.to_owned();
                Some(*first.entry(name).or_insert(CgroupId(i as u32)))
            };
            cgroups.map(of).collect()
        };
        CgroupGroups {
            by_cgroup: keys.contains(&SortKey::Cgroup),
            containers: firsts(SortKey::Container),
            pods: firsts(SortKey::Pod),
            units: firsts(SortKey::Unit),
        }
    }

    fn add(&self, context: &mut Context, cgroup: CgroupId) {
        let first = |of: &[Option<CgroupId>]| of.get(cgroup.index()).copied().flatten();
        context.cgroup = self.by_cgroup.then_some(cgroup);
        context.container = first(&self.containers);
        context.pod = first(&self.pods);
        context.unit = first(&self.units);
    }
}

/// The part of a cgroup's path that a key asks for.
pub(crate) fn cgroup_part(key: SortKey, cgroup: &CgroupInfo) -> Option<&str> {
    let path = CgroupPath(cgroup.path.exact());
    match key {
        SortKey::Cgroup => Some(path.0),
        _ if !cgroup.known => None,
        SortKey::Container => path.container(),
        SortKey::Pod => path.pod(),
        SortKey::Unit => path.unit(),
        _ => None,
    }
}

impl Context {
    /// The cgroup, container, pod or unit that `key` asks for; `None` where there is none.
    pub fn cgroup_name<'p>(&self, profile: &'p Profile, key: SortKey) -> Option<&'p str> {
        let cgroup = match key {
            SortKey::Cgroup => self.cgroup,
            SortKey::Container => self.container,
            SortKey::Pod => self.pod,
            SortKey::Unit => self.unit,
            _ => None,
        };
        cgroup_part(key, profile.cgroups.get(cgroup?.index())?)
    }
}

/// The filters that no sort key answers, which therefore look at samples.
pub(super) struct SampleFilter {
    comms: Vec<String>,
    tids: Vec<Tid>,
    dsos: Vec<String>,
    symbols: Vec<String>,
    parallelism: Levels,
    /// A part of the function's name.
    symbol_part: Option<String>,
    socket: Option<u32>,
    with_parent: bool,
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
            tids: filters.tids.clone(),
            dsos: unless(by_dso, &filters.dsos),
            symbols: unless(by_symbol, &filters.symbols),
            parallelism: filters.parallelism.clone(),
            symbol_part: filters.symbol_part.clone().filter(|_| !by_symbol),
            socket: filters.socket,
            with_parent: filters.with_parent,
        }
    }

    /// Leaves the choice by command to others.
    pub(super) fn take_all_comms(&mut self) {
        self.comms.clear();
    }

    pub(super) fn passes(&self, profile: &Profile, parents: &Parents, row: &SampleRow) -> bool {
        let tid = profile.threads[row.thread.index()].tid;
        if !listed(&self.comms, &profile.comms[row.comm.index()])
            || !(self.tids.is_empty() || self.tids.contains(&tid))
            || (self.with_parent && parents.of_node(row.node).is_none())
            || self.socket.is_some_and(|socket| socket_of(profile, row) != Some(socket))
        {
            return false;
        }
        if !self.parallelism.is_all() {
            let parallelism = profile.facets_of(row).and_then(|facets| facets.parallelism);
            if !self.parallelism.has(parallelism) {
                return false;
            }
        }
        if self.dsos.is_empty() && self.symbols.is_empty() && self.symbol_part.is_none() {
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
        names_function(&self.symbols, profile, function)
            && has_part(self.symbol_part.as_deref(), function)
            && (listed(&self.dsos, &dso.short_name) || listed(&self.dsos, &dso.path))
    }
}

/// The socket on which a row's samples were taken.
fn socket_of(profile: &Profile, row: &SampleRow) -> Option<u32> {
    let cpu = profile.facets_of(row)?.cpu?;
    *profile.recording.sockets.get(cpu.0 as usize)?
}

/// True where a part of a name is not asked for, or a function with a known name has it.
pub(crate) fn has_part(part: Option<&str>, function: &FunctionInfo) -> bool {
    part.is_none_or(|part| {
        let has = |name: &str| name.contains(part);
        function.known && (has(function.name.exact()) || has(&function.name.escaped()))
    })
}

/// True where `list` is empty or has `name`, exactly or as it is printed.
pub fn listed(list: &[String], name: &OutsideText) -> bool {
    list.is_empty() || list.iter().any(|l| name == l.as_str() || name.escaped() == l.as_str())
}

/// True where `list` is empty or has the function's name, exactly, as it is printed, or without the version that the
/// linker put behind it: `pthread_mutex_lock` is `pthread_mutex_lock@@GLIBC_2.2.5`.
pub fn lists_function<S: AsRef<str>>(list: &[String], name: &OutsideText<S>) -> bool {
    // Asked for each row, mostly without a list.
    if list.is_empty() {
        return true;
    }
    let (exact, escaped) = (name.exact(), name.escaped());
    let unversioned = without_version(exact);
    list.iter().any(|wanted| *wanted == exact || *wanted == escaped || *wanted == unversioned)
}

/// The same by name or by handle.
pub fn names_function(list: &[String], profile: &Profile, function: &FunctionInfo) -> bool {
    lists_function(list, &function.name) || handle::lists(list, profile, function)
}

/// A name without `@VERSION` or `@@VERSION`. Entries of linkage tables keep the part behind the sign,
/// as do functions that have no symbol.
fn without_version(name: &str) -> &str {
    match name.split_once('@') {
        Some((beginning, version))
            if !beginning.is_empty() && version != "plt" && !beginning.starts_with("fun_") =>
        {
            beginning
        }
        _ => name,
    }
}

#[cfg(test)]
mod filter_tests {
    use super::*;

    #[test]
    fn functions_are_listed_with_and_without_their_version() {
        let passes = |wanted: &str, name: &str| {
            lists_function(&[wanted.to_owned()], &OutsideText::new(name))
        };
        for name in
            ["pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock@VERS_1", "pthread_mutex_lock"]
        {
            assert!(passes("pthread_mutex_lock", name) && passes(name, name), "{name}");
        }
        // Neither another version, nor the entry of the linkage table, nor a name that whit made up.
        assert!(!passes("f@V1", "f@V2") && !passes("f@V1", "f"));
        assert!(!passes("malloc", "malloc@plt") && passes("malloc@plt", "malloc@plt"));
        assert!(!passes("fun_1230", "fun_1230@app") && !passes("", "@f") && !passes("f", "@f"));
        assert!(lists_function(&[], &OutsideText::new("f")));
    }
}
