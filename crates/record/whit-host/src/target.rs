//! Targets of recording and counting: which threads, on which CPUs.

use whit_types::{CpuId, Pid, Tid, format_cpu_list};

use crate::cpus;
use crate::error::HostError;
use crate::named::Chosen;
use crate::processes;
use crate::roots::Roots;

/// The target of a recording or count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The command that is started, and its children.
    Command,
    /// Everything, on these CPUs or (`None`) on all.
    SystemWide(Option<Vec<CpuId>>),
    /// All threads of these processes.
    Processes(Vec<Pid>),
    /// These threads.
    Threads(Vec<Tid>),
    /// All processes of a user that run now.
    User(u32),
    /// Threads that are chosen by name, as long as they are, on these CPUs or (`None`) on all.
    Named(Chosen, Option<Vec<CpuId>>),
}

impl Target {
    /// Whether events are opened on CPUs, and not for threads.
    pub fn covers_cpus(&self) -> bool {
        matches!(self, Target::SystemWide(_) | Target::Named(..))
    }

    /// The CPUs, where they are named.
    pub fn cpus(&self) -> Option<&[CpuId]> {
        match self {
            Target::SystemWide(cpus) | Target::Named(_, cpus) => cpus.as_deref(),
            _ => None,
        }
    }

    /// Those that are chosen by name, where they are.
    pub fn chosen(&self) -> Option<&Chosen> {
        match self {
            Target::Named(chosen, _) => Some(chosen),
            _ => None,
        }
    }
}

/// The CPUs that events are opened on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuScope {
    /// One event follows its thread to any CPU.
    Any,
    /// One event on each of these.
    Each(Vec<CpuId>),
}

impl CpuScope {
    /// The CPUs to open an event on, one after the other; `None` is any CPU.
    pub fn iter(&self) -> impl Iterator<Item = Option<CpuId>> {
        let (any, each) = match self {
            CpuScope::Any => (Some(None), &[][..]),
            CpuScope::Each(cpus) => (None, &cpus[..]),
        };
        any.into_iter().chain(each.iter().copied().map(Some))
    }

    /// The CPUs, where they are named.
    pub fn named(&self) -> &[CpuId] {
        match self {
            CpuScope::Any => &[],
            CpuScope::Each(cpus) => cpus,
        }
    }

    fn len(&self) -> usize {
        self.iter().count()
    }
}

/// The threads that events are opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadScope {
    /// One event for all threads.
    All,
    /// One event for each of these.
    Each(Vec<Tid>),
}

impl ThreadScope {
    /// The threads to open an event for, one after the other; `None` is any thread that runs.
    pub fn iter(&self) -> impl Iterator<Item = Option<Tid>> {
        let (all, each) = match self {
            ThreadScope::All => (Some(None), &[][..]),
            ThreadScope::Each(threads) => (None, &threads[..]),
        };
        all.into_iter().chain(each.iter().copied().map(Some))
    }

    /// The threads, where they are named.
    pub fn named(&self) -> &[Tid] {
        match self {
            ThreadScope::All => &[],
            ThreadScope::Each(threads) => threads,
        }
    }

    fn len(&self) -> usize {
        self.iter().count()
    }
}

/// The events are opened for each pair of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// On which CPUs.
    pub cpus: CpuScope,
    /// For which threads.
    pub threads: ThreadScope,
    /// Children inherit the events.
    pub inherit: bool,
}

impl Plan {
    /// Resolves a target. `command` is the forked command, when there is one.
    ///
    /// # Errors
    ///
    /// If the target names something that does not exist.
    pub fn resolve(
        target: &Target,
        command: Option<Pid>,
        inherit: bool,
        per_thread: bool,
        roots: &Roots,
    ) -> Result<Plan, HostError> {
        let online = cpus::online(roots)?;
        let threads = threads_of(target, command, roots)?;
        let cpus = match target.cpus() {
            Some(wanted) => check_cpus(wanted, &online)?,
            None => online,
        };
        let is_system_wide = target.covers_cpus();
        let inherit = inherit && !matches!(target, Target::Threads(_));
        if per_thread && !is_system_wide {
            // The kernel maps no ring for an inherited event that is on any CPU.
            return Ok(Plan { cpus: CpuScope::Any, threads, inherit: false });
        }
        Ok(Plan { cpus: CpuScope::Each(cpus), threads, inherit })
    }

    /// The same threads, each with one event for all CPUs. This needs fewer descriptors, but
    /// threads that start later are not seen.
    #[must_use]
    pub fn without_cpus(&self) -> Plan {
        Plan { cpus: CpuScope::Any, threads: self.threads.clone(), inherit: false }
    }

    /// Whether it covers CPUs rather than threads.
    pub fn is_system_wide(&self) -> bool {
        self.threads == ThreadScope::All
    }

    /// Number of rings: one per CPU, or one per thread where events are on any CPU.
    pub fn nr_rings(&self) -> usize {
        match &self.cpus {
            CpuScope::Any => self.threads.len(),
            CpuScope::Each(cpus) => cpus.len(),
        }
    }

    /// Number of descriptors that `events` events take.
    pub fn nr_descriptors(&self, events: usize) -> usize {
        self.cpus.len() * self.threads.len() * events
    }
}

/// The other CPUs, if only some of a machine's are recorded: their sideband is recorded, too. A thread on a
/// recorded CPU may have got its name and mapped its files on any of them.
pub fn outside(target: &Target, roots: &Roots) -> Vec<CpuId> {
    let Some(recorded) = target.cpus() else { return Vec::new() };
    // That these are online was read before.
    let online = cpus::online(roots).unwrap_or_default();
    online.into_iter().filter(|cpu| !recorded.contains(cpu)).collect()
}

fn threads_of(
    target: &Target,
    command: Option<Pid>,
    roots: &Roots,
) -> Result<ThreadScope, HostError> {
    let threads = match target {
        Target::Command => vec![command.ok_or(HostError::NothingToRecord)?.main_thread()],
        Target::SystemWide(_) | Target::Named(..) => return Ok(ThreadScope::All),
        Target::Processes(pids) => {
            let mut all = Vec::new();
            for &pid in pids {
                let threads = processes::threads(roots, pid);
                if threads.is_empty() {
                    return Err(HostError::NoSuchProcess { pid });
                }
                all.extend(threads);
            }
            unique(all)
        }
        Target::User(uid) => {
            let own = processes::all(roots)?;
            let own = own.into_iter().filter(|&pid| processes::owner(roots, pid) == Some(*uid));
            let threads: Vec<Tid> = own.flat_map(|pid| processes::threads(roots, pid)).collect();
            if threads.is_empty() {
                return Err(HostError::NoProcessOfUser { uid: *uid });
            }
            unique(threads)
        }
        Target::Threads(tids) => match tids.iter().find(|&&tid| !processes::exists(roots, tid)) {
            Some(&tid) => return Err(HostError::NoSuchThread { tid }),
            None => unique(tids.clone()),
        },
    };
    Ok(ThreadScope::Each(threads))
}

fn unique(mut ids: Vec<Tid>) -> Vec<Tid> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn check_cpus(wanted: &[CpuId], online: &[CpuId]) -> Result<Vec<CpuId>, HostError> {
    let offline: Vec<CpuId> = wanted.iter().copied().filter(|cpu| !online.contains(cpu)).collect();
    if wanted.is_empty() || !offline.is_empty() {
        return Err(HostError::CpusNotOnline {
            wanted: format_cpu_list(&offline),
            online: format_cpu_list(online),
        });
    }
    Ok(wanted.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            ..Roots::default()
        };
        std::fs::create_dir_all(roots.sys.join("devices/system/cpu")).unwrap();
        std::fs::write(roots.sys.join("devices/system/cpu/online"), "0-2,5\n").unwrap();
        for path in ["7/task/7", "7/task/9", "8/task/8", "9"] {
            std::fs::create_dir_all(roots.proc.join(path)).unwrap();
        }
        (dir, roots)
    }

    fn on(cpus: &[u32]) -> CpuScope {
        CpuScope::Each(cpus.iter().copied().map(CpuId).collect())
    }

    fn of(threads: &[i32]) -> ThreadScope {
        ThreadScope::Each(threads.iter().copied().map(Tid).collect())
    }

    fn resolve(target: Target) -> Result<Plan, HostError> {
        let (_dir, roots) = machine();
        Plan::resolve(&target, Some(Pid(42)), true, false, &roots)
    }

    #[test]
    fn a_command_is_opened_on_every_cpu_and_inherited() {
        let plan = resolve(Target::Command).unwrap();
        let expected = Plan { cpus: on(&[0, 1, 2, 5]), threads: of(&[42]), inherit: true };
        assert_eq!(plan, expected);
        assert_eq!((plan.nr_descriptors(3), plan.nr_rings()), (12, 4));
        assert_eq!(plan.without_cpus().nr_rings(), 1);
    }

    #[test]
    fn processes_have_all_their_threads_and_threads_do_not_inherit() {
        let plan = resolve(Target::Processes([8, 7, 7].map(Pid).to_vec())).unwrap();
        assert_eq!((plan.threads, plan.inherit), (of(&[7, 8, 9]), true));
        let plan = resolve(Target::Threads(vec![Tid(9)])).unwrap();
        assert_eq!((plan.threads, plan.inherit), (of(&[9]), false));
    }

    #[test]
    fn a_user_has_the_threads_of_all_processes() {
        let (_dir, roots) = machine();
        let resolve = |uid| Plan::resolve(&Target::User(uid), None, true, false, &roots);
        assert_eq!(resolve(whit_sys::system::effective_uid()).unwrap().threads, of(&[7, 8, 9]));
        assert!(matches!(resolve(u32::MAX - 1), Err(HostError::NoProcessOfUser { .. })));
    }

    #[test]
    fn cpus_must_be_online() {
        let plan = resolve(Target::SystemWide(Some([2, 5].map(CpuId).to_vec()))).unwrap();
        assert_eq!((plan.cpus, plan.threads), (on(&[2, 5]), ThreadScope::All));
        let (_dir, roots) = machine();
        assert_eq!(
            outside(&Target::SystemWide(Some([2, 5].map(CpuId).to_vec())), &roots),
            [0, 1].map(CpuId)
        );
        assert!(outside(&Target::SystemWide(None), &roots).is_empty());
        let error = resolve(Target::SystemWide(Some([2, 3].map(CpuId).to_vec()))).unwrap_err();
        assert!(matches!(error, HostError::CpusNotOnline { wanted, .. } if wanted == "3"));
        assert!(resolve(Target::SystemWide(Some(vec![]))).is_err());
    }

    #[test]
    fn names_are_recorded_on_cpus_whoever_runs_there() {
        let plan = resolve(Target::Named(Chosen::default(), Some(vec![CpuId(2)]))).unwrap();
        assert_eq!((plan.cpus, plan.threads), (on(&[2]), ThreadScope::All));
        let all = Target::Named(Chosen::default(), None);
        assert_eq!(resolve(all.clone()).unwrap().cpus, on(&[0, 1, 2, 5]));
        assert!(all.covers_cpus() && all.chosen().is_some() && !Target::Command.covers_cpus());
    }

    #[test]
    fn per_thread_rings_are_on_any_cpu_and_not_inherited() {
        let (_dir, roots) = machine();
        let target = Target::Processes(vec![Pid(7)]);
        let plan = Plan::resolve(&target, None, true, true, &roots).unwrap();
        assert_eq!(plan, Plan { cpus: CpuScope::Any, threads: of(&[7, 9]), inherit: false });
        assert_eq!(plan.cpus.iter().collect::<Vec<_>>(), [None]);
        assert_eq!(plan.threads.iter().collect::<Vec<_>>(), [Some(Tid(7)), Some(Tid(9))]);
        let all = Target::SystemWide(None);
        assert_eq!(Plan::resolve(&all, None, true, true, &roots).unwrap().cpus.len(), 4);
    }

    #[test]
    fn missing_targets_are_named() {
        let said = |target| resolve(target).unwrap_err().to_string();
        let processes = Target::Processes([7, 99].map(Pid).to_vec());
        assert_eq!(said(processes), "there is no process 99");
        assert_eq!(said(Target::Threads(vec![Tid(99)])), "there is no thread 99");
        let (_dir, roots) = machine();
        let nothing = Plan::resolve(&Target::Command, None, true, false, &roots);
        assert!(matches!(nothing, Err(HostError::NothingToRecord)));
    }
}
