//! Whom to record: which threads, on which CPUs.

use crate::cpus;
use crate::error::HostError;
use crate::processes;
use crate::roots::Roots;

/// Whom to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The command that is started, and its children.
    Command,
    /// Everything, on these CPUs or (`None`) on all.
    SystemWide(Option<Vec<u32>>),
    /// All threads of these processes.
    Processes(Vec<i32>),
    /// These threads.
    Threads(Vec<i32>),
    /// All processes of a user that run now.
    User(u32),
}

/// "Any" as `perf_event_open(2)` writes it, for CPUs and threads.
pub const ANY: i32 = -1;

/// The events are opened for each pair of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// CPUs, or [`ANY`] alone.
    pub cpus: Vec<i32>,
    /// Threads, or [`ANY`] alone.
    pub threads: Vec<i32>,
    /// Children inherit the events.
    pub inherit: bool,
}

impl Plan {
    /// Resolves a target. `command_pid` is the forked command's, when there is one.
    pub fn resolve(
        target: &Target,
        command_pid: Option<i32>,
        inherit: bool,
        per_thread: bool,
        roots: &Roots,
    ) -> Result<Plan, HostError> {
        let online = cpus::online(roots).map_err(|source| HostError::Read {
            what: "the list of online CPUs",
            path: roots.sys.join("devices/system/cpu/online"),
            source,
        })?;
        let threads = threads_of(target, command_pid, roots)?;
        let cpus = match target {
            Target::SystemWide(Some(wanted)) => check_cpus(wanted, &online)?,
            _ => online,
        };
        let is_system_wide = matches!(target, Target::SystemWide(_));
        let inherit = inherit && !matches!(target, Target::Threads(_));
        if per_thread && !is_system_wide {
            // The kernel maps no ring for an inherited event that is on any CPU.
            return Ok(Plan { cpus: vec![ANY], threads, inherit: false });
        }
        Ok(Plan { cpus: cpus.into_iter().map(|cpu| cpu as i32).collect(), threads, inherit })
    }

    /// The same threads, each with one event on whatever CPU it runs: needs fewer descriptors,
    /// but threads that start later are not seen.
    #[must_use]
    pub fn without_cpus(&self) -> Plan {
        Plan { cpus: vec![ANY], threads: self.threads.clone(), inherit: false }
    }

    /// Whether it covers CPUs rather than threads.
    pub fn is_system_wide(&self) -> bool {
        self.threads == [ANY]
    }

    /// Number of rings: one per CPU, or one per thread where events are on any CPU.
    pub fn nr_rings(&self) -> usize {
        if self.cpus == [ANY] { self.threads.len() } else { self.cpus.len() }
    }

    /// Number of descriptors that `events` events take.
    pub fn nr_descriptors(&self, events: usize) -> usize {
        self.cpus.len() * self.threads.len() * events
    }
}

/// The other CPUs, where some of a machine's are recorded: of these, the side band is recorded. What runs on
/// the recorded ones may have got its name and mapped its files on any of them.
pub fn beside(target: &Target, roots: &Roots) -> Vec<i32> {
    let Target::SystemWide(Some(recorded)) = target else { return Vec::new() };
    // That these are online was read before.
    let online = cpus::online(roots).unwrap_or_default();
    let others = online.into_iter().filter(|cpu| !recorded.contains(cpu));
    others.map(|cpu| cpu as i32).collect()
}

fn threads_of(
    target: &Target,
    command_pid: Option<i32>,
    roots: &Roots,
) -> Result<Vec<i32>, HostError> {
    match target {
        Target::Command => Ok(vec![command_pid.ok_or(HostError::NothingToRecord)?]),
        Target::SystemWide(_) => Ok(vec![ANY]),
        Target::Processes(pids) => {
            let mut all = Vec::new();
            for &pid in pids {
                let threads = processes::threads(roots, pid);
                if threads.is_empty() {
                    return Err(HostError::NoSuchProcess { id: pid, kind: "process" });
                }
                all.extend(threads);
            }
            Ok(unique(all))
        }
        Target::User(uid) => {
            let all = processes::all(roots).map_err(|source| HostError::Read {
                what: "the list of processes",
                path: roots.proc.clone(),
                source,
            })?;
            let own = all.into_iter().filter(|&pid| processes::owner(roots, pid) == Some(*uid));
            let threads: Vec<i32> = own.flat_map(|pid| processes::threads(roots, pid)).collect();
            match threads.is_empty() {
                true => Err(HostError::NoProcessOfUser { uid: *uid }),
                false => Ok(unique(threads)),
            }
        }
        Target::Threads(tids) => match tids.iter().find(|&&tid| !processes::exists(roots, tid)) {
            Some(&id) => Err(HostError::NoSuchProcess { id, kind: "thread" }),
            None => Ok(unique(tids.clone())),
        },
    }
}

fn unique(mut ids: Vec<i32>) -> Vec<i32> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn check_cpus(wanted: &[u32], online: &[u32]) -> Result<Vec<u32>, HostError> {
    let offline: Vec<u32> = wanted.iter().copied().filter(|cpu| !online.contains(cpu)).collect();
    if wanted.is_empty() || !offline.is_empty() {
        return Err(HostError::CpusNotOnline {
            wanted: cpus::format_list(if wanted.is_empty() { wanted } else { &offline }),
            online: cpus::format_list(online),
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

    fn resolve(target: Target) -> Result<Plan, HostError> {
        let (_dir, roots) = machine();
        Plan::resolve(&target, Some(42), true, false, &roots)
    }

    #[test]
    fn a_command_is_opened_on_every_cpu_and_inherited() {
        let plan = resolve(Target::Command).unwrap();
        assert_eq!(plan, Plan { cpus: vec![0, 1, 2, 5], threads: vec![42], inherit: true });
        assert_eq!((plan.nr_descriptors(3), plan.nr_rings()), (12, 4));
        assert_eq!(plan.without_cpus().nr_rings(), 1);
    }

    #[test]
    fn processes_have_all_their_threads_and_threads_do_not_inherit() {
        let plan = resolve(Target::Processes(vec![8, 7, 7])).unwrap();
        assert_eq!((plan.threads, plan.inherit), (vec![7, 8, 9], true));
        let plan = resolve(Target::Threads(vec![9])).unwrap();
        assert_eq!((plan.threads, plan.inherit), (vec![9], false));
    }

    #[test]
    fn a_user_has_the_threads_of_all_processes() {
        let (_dir, roots) = machine();
        let resolve = |uid| Plan::resolve(&Target::User(uid), None, true, false, &roots);
        assert_eq!(resolve(whit_sys::system::effective_uid()).unwrap().threads, [7, 8, 9]);
        assert!(matches!(resolve(u32::MAX - 1), Err(HostError::NoProcessOfUser { .. })));
    }

    #[test]
    fn cpus_must_be_online() {
        let plan = resolve(Target::SystemWide(Some(vec![2, 5]))).unwrap();
        assert_eq!((plan.cpus, plan.threads), (vec![2, 5], vec![ANY]));
        let (_dir, roots) = machine();
        assert_eq!(beside(&Target::SystemWide(Some(vec![2, 5])), &roots), [0, 1]);
        assert!(beside(&Target::SystemWide(None), &roots).is_empty());
        let error = resolve(Target::SystemWide(Some(vec![2, 3]))).unwrap_err();
        assert!(matches!(error, HostError::CpusNotOnline { wanted, .. } if wanted == "3"));
        assert!(resolve(Target::SystemWide(Some(vec![]))).is_err());
    }

    #[test]
    fn per_thread_rings_are_on_any_cpu_and_not_inherited() {
        let (_dir, roots) = machine();
        let target = Target::Processes(vec![7]);
        let plan = Plan::resolve(&target, None, true, true, &roots).unwrap();
        assert_eq!(plan, Plan { cpus: vec![ANY], threads: vec![7, 9], inherit: false });
        let all = Target::SystemWide(None);
        assert_eq!(Plan::resolve(&all, None, true, true, &roots).unwrap().cpus.len(), 4);
    }

    #[test]
    fn whoever_is_not_there_is_named() {
        for target in [Target::Processes(vec![7, 99]), Target::Threads(vec![99])] {
            let error = resolve(target).unwrap_err();
            assert!(matches!(error, HostError::NoSuchProcess { id: 99, .. }), "{error}");
        }
        let (_dir, roots) = machine();
        let nothing = Plan::resolve(&Target::Command, None, true, false, &roots);
        assert!(matches!(nothing, Err(HostError::NothingToRecord)));
    }
}
