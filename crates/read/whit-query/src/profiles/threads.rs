//! The threads of a recording that a selection has.

use super::Reader;
use super::places::Places;
use rusqlite::Result;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use whit_profile::model::{CgroupInfo, CommId, Profile, ThreadInfo};
use whit_types::{Pid, Tid};

/// Threads of the selection by the numbers of the tables.
#[derive(Default)]
pub(super) struct Threads {
    numbers: HashMap<i64, u32>,
    /// By their numbers in the profile; `None` where no sample of the process has one.
    pub(super) cgroups: Vec<Option<CgroupInfo>>,
}

impl Threads {
    /// The number in the profile; `None` for a thread that is not selected.
    pub(super) fn number(&self, utid: i64) -> Option<u32> {
        self.numbers.get(&utid).copied()
    }
}

/// As over recordings: a thread belongs to the cgroup of most of its samples, without samples to that of its process.
#[derive(Default)]
struct CgroupsOfThreads {
    by_thread: HashMap<i64, i64>,
    by_process: HashMap<i64, i64>,
}

impl CgroupsOfThreads {
    fn of(&self, thread: i64, process: i64) -> Option<i64> {
        self.by_thread.get(&thread).or_else(|| self.by_process.get(&process)).copied()
    }
}

impl Reader<'_> {
    /// Fills threads, each with its last name.
    pub(super) fn threads(&self, profile: &mut Profile, places: &Places) -> Result<Threads> {
        let processes = self.processes_of_code(places)?;
        let wanted = self.cgroups()?;
        let paths = self.paths_of_cgroups()?;
        let cgroups = match paths.is_empty() {
            true => CgroupsOfThreads::default(),
            false => self.cgroups_of_threads()?,
        };
        let (mut threads, mut comms) = (Threads::default(), HashMap::new());
        let sql = "SELECT t.utid, t.tid, t.upid, t.name, p.pid FROM thread t JOIN process p USING (recording_id, upid)
                   WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let (thread, process): (i64, i64) = (row.get(0)?, row.get(2)?);
            let cgroup = cgroups.of(thread, process);
            let is_wanted = processes.as_ref().is_none_or(|of| of.contains(&process))
                && wanted.as_ref().is_none_or(|of| cgroup.is_some_and(|id| of.contains(&id)));
            if !is_wanted {
                continue;
            }
            let name = row.get::<_, Option<String>>(3)?.unwrap_or_default();
            let comm = *comms.entry(name).or_insert_with_key(|name| {
                profile.comms.push(name.as_str().into());
                CommId(profile.comms.len() as u32 - 1)
            });
            threads.numbers.insert(thread, profile.threads.len() as u32);
            threads.cgroups.push(cgroup.and_then(|id| paths.get(&id).cloned()));
            let (pid, tid) = (Pid(row.get(4)?), Tid(row.get(1)?));
            profile.threads.push(ThreadInfo { pid, tid, comm });
        }
        Ok(threads)
    }

    /// Processes that run or wait in code of the selected build; `None` where none is selected.
    fn processes_of_code(&self, places: &Places) -> Result<Option<HashSet<i64>>> {
        let Some(mut processes) = self.processes_of_build(places)? else { return Ok(None) };
        let sql = "SELECT DISTINCT t.upid, w.callsite_id FROM wait w JOIN thread t USING (recording_id, utid)
                   WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let node = row.get::<_, Option<i64>>(1)?.and_then(|id| places.nodes.get(&id));
            if node.is_some_and(|node| places.of_build.contains(node)) {
                processes.insert(row.get(0)?);
            }
        }
        Ok(Some(processes))
    }

    fn paths_of_cgroups(&self) -> Result<HashMap<i64, CgroupInfo>> {
        let mut statement =
            self.connection.prepare("SELECT id, path FROM cgroup WHERE recording_id = ?1")?;
        let mut rows = statement.query([self.id])?;
        let mut paths = HashMap::new();
        while let Some(row) = rows.next()? {
            let path: String = row.get(1)?;
            let known = !path.starts_with("[cgroup ");
            paths.insert(row.get(0)?, CgroupInfo { path: path.into(), known });
        }
        Ok(paths)
    }

    fn cgroups_of_threads(&self) -> Result<CgroupsOfThreads> {
        let sql = "SELECT utid, upid, cgroup_id, COUNT(*) FROM sample
                   WHERE recording_id = ?1 AND cgroup_id IS NOT NULL GROUP BY 1, 2, 3";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        let mut counts: Vec<(Option<i64>, Option<i64>, i64, u64)> = Vec::new();
        while let Some(row) = rows.next()? {
            let count = row.get::<_, i64>(3)?.max(0) as u64;
            counts.push((row.get(0)?, row.get(1)?, row.get(2)?, count));
        }
        let by_thread = counts.iter().filter_map(|it| Some((it.0?, it.2, it.3)));
        let by_process = counts.iter().filter_map(|it| Some((it.1?, it.2, it.3)));
        Ok(CgroupsOfThreads { by_thread: most(by_thread), by_process: most(by_process) })
    }
}

/// By key the cgroup with the most samples; of equals the first.
fn most<K: Hash + Ord + Copy>(counts: impl Iterator<Item = (K, i64, u64)>) -> HashMap<K, i64> {
    let mut sums: BTreeMap<(K, i64), u64> = BTreeMap::new();
    for (key, cgroup, count) in counts {
        *sums.entry((key, cgroup)).or_default() += count;
    }
    let mut best: HashMap<K, (u64, Reverse<i64>)> = HashMap::new();
    for ((key, cgroup), sum) in sums {
        let of = best.entry(key).or_insert((sum, Reverse(cgroup)));
        *of = (*of).max((sum, Reverse(cgroup)));
    }
    best.into_iter().map(|(key, (_, Reverse(cgroup)))| (key, cgroup)).collect()
}
