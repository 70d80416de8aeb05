//! Where readers run: which threads there are, on which CPUs each of them runs, and whose rings it
//! drains.

use whit_host::cpus;
use whit_host::roots::{Roots, read_number};
use whit_types::{CpuId, CpuListError, parse_cpu_list};

use crate::error::CaptureError;

/// `--affinity`: where a reader runs while it drains a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Wherever its thread may run.
    #[default]
    Thread,
    /// Anywhere.
    System,
    /// On the NUMA node of the ring's CPU.
    Node,
    /// On the ring's CPU.
    Cpu,
}

/// `--threads`: which CPUs share a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadSpec {
    /// Each CPU has its own.
    Cpu,
    /// The hardware threads of a core share one.
    Core,
    /// The CPUs of a package share one.
    Package,
    /// The CPUs of a NUMA node share one.
    Numa,
    /// As listed: the CPUs whose rings are drained, and those that the reader runs on.
    Sets(Vec<(Vec<CpuId>, Vec<CpuId>)>),
}

/// The error in a thread specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ThreadSpecError {
    #[error(
        "'{0}' is no thread specification: write cpu, core, package, numa, or sets of \
         CPUS/AFFINITY separated by colons, such as 0-3/0:4-7/4"
    )]
    Unknown(String),
    #[error(transparent)]
    List(#[from] CpuListError),
    #[error("CPU {0} is in two sets of the thread specification")]
    Twice(u32),
    #[error("a set of the thread specification has no CPU")]
    Empty,
}

impl std::str::FromStr for ThreadSpec {
    type Err = ThreadSpecError;

    fn from_str(text: &str) -> Result<Self, ThreadSpecError> {
        match text {
            "" | "cpu" => return Ok(ThreadSpec::Cpu),
            "core" => return Ok(ThreadSpec::Core),
            "package" => return Ok(ThreadSpec::Package),
            "numa" => return Ok(ThreadSpec::Numa),
            _ if text.contains('/') => {}
            _ => return Err(ThreadSpecError::Unknown(text.to_owned())),
        }
        let mut sets = Vec::new();
        let mut seen = Vec::new();
        for set in text.split(':') {
            let (rings, runs) =
                set.split_once('/').ok_or_else(|| ThreadSpecError::Unknown(text.to_owned()))?;
            let (rings, runs) = (parse_cpu_list(rings)?, parse_cpu_list(runs)?);
            if rings.is_empty() || runs.is_empty() {
                return Err(ThreadSpecError::Empty);
            }
            if let Some(&twice) = rings.iter().find(|cpu| seen.contains(*cpu)) {
                return Err(ThreadSpecError::Twice(twice.0));
            }
            seen.extend(&rings);
            sets.push((rings, runs));
        }
        Ok(ThreadSpec::Sets(sets))
    }
}

/// One reader's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderPlan {
    /// CPUs whose rings it drains.
    pub rings: Vec<CpuId>,
    /// CPUs that it runs on.
    pub runs_on: Vec<CpuId>,
}

/// The readers for rings of `cpus`, in the order of their first CPU. CPUs that no set of the
/// specification names fall to the first reader: nothing that is recorded is left in its ring.
pub fn reader_plans(
    spec: &ThreadSpec,
    cpus: &[CpuId],
    roots: &Roots,
) -> Result<Vec<ReaderPlan>, CaptureError> {
    let sets: Vec<(Vec<CpuId>, Vec<CpuId>)> = match spec {
        ThreadSpec::Sets(sets) => sets.clone(),
        ThreadSpec::Cpu => same(cpus.iter().map(|&cpu| vec![cpu]).collect()),
        ThreadSpec::Core => same(by_file(roots, cpus, &["core_cpus_list", "thread_siblings_list"])),
        ThreadSpec::Package => {
            same(by_file(roots, cpus, &["package_cpus_list", "core_siblings_list"]))
        }
        ThreadSpec::Numa => same(nodes(roots, cpus)),
    };
    let mut plans = Vec::new();
    for (rings, runs_on) in sets {
        let rings: Vec<CpuId> = rings.into_iter().filter(|cpu| cpus.contains(cpu)).collect();
        if !rings.is_empty() {
            plans.push(ReaderPlan { rings, runs_on });
        }
    }
    let named = |cpu: &CpuId| plans.iter().any(|plan: &ReaderPlan| plan.rings.contains(cpu));
    let unnamed: Vec<CpuId> = cpus.iter().copied().filter(|cpu| !named(cpu)).collect();
    match plans.first_mut() {
        Some(first) => first.rings.extend(unnamed),
        None => plans.push(ReaderPlan { runs_on: unnamed.clone(), rings: unnamed }),
    }
    Ok(plans)
}

fn same(sets: Vec<Vec<CpuId>>) -> Vec<(Vec<CpuId>, Vec<CpuId>)> {
    sets.into_iter().map(|set| (set.clone(), set)).collect()
}

/// CPUs grouped by the list in the first of these files of their topology that exists; a CPU
/// without one is alone.
fn by_file(roots: &Roots, cpus: &[CpuId], files: &[&str]) -> Vec<Vec<CpuId>> {
    group(cpus, |cpu| {
        let directory = roots.sys.join(format!("devices/system/cpu/cpu{}/topology", cpu.0));
        let list = files.iter().find_map(|file| cpus::read_list(&directory.join(file)).ok());
        list.unwrap_or_else(|| vec![cpu])
    })
}

fn nodes(roots: &Roots, cpus: &[CpuId]) -> Vec<Vec<CpuId>> {
    let all = all_nodes(roots);
    group(cpus, |cpu| all.iter().find(|node| node.contains(&cpu)).cloned().unwrap_or_default())
}

/// Groups in the order of their first CPU.
fn group(cpus: &[CpuId], set_of: impl Fn(CpuId) -> Vec<CpuId>) -> Vec<Vec<CpuId>> {
    let mut groups: Vec<(Vec<CpuId>, Vec<CpuId>)> = Vec::new();
    for &cpu in cpus {
        let set = set_of(cpu);
        match groups.iter_mut().find(|(known, _)| *known == set) {
            Some((_, members)) => members.push(cpu),
            None => groups.push((set, vec![cpu])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn all_nodes(roots: &Roots) -> Vec<Vec<CpuId>> {
    let directory = roots.sys.join("devices/system/node");
    // Nodes are listed as CPUs are.
    let numbers = cpus::read_list(&directory.join("online")).unwrap_or_default();
    let cpus_of = |node: CpuId| directory.join(format!("node{}/cpulist", node.0));
    numbers.into_iter().filter_map(|node| cpus::read_list(&cpus_of(node)).ok()).collect()
}

/// The CPUs that a reader is to run on while it drains the ring of `cpu`; `None` where that is no
/// matter. A ring that is not of one CPU has no place.
pub fn place(affinity: Affinity, cpu: Option<CpuId>, roots: &Roots) -> Option<Vec<CpuId>> {
    let cpu = cpu?;
    match affinity {
        Affinity::Thread | Affinity::System => None,
        Affinity::Cpu => Some(vec![cpu]),
        Affinity::Node => all_nodes(roots).into_iter().find(|node| node.contains(&cpu)),
    }
}

/// Whether the CPU is online.
pub fn is_online(roots: &Roots, cpu: CpuId) -> bool {
    let path = roots.sys.join(format!("devices/system/cpu/cpu{}/online", cpu.0));
    // CPU 0 has no such file where it cannot be switched off.
    read_number(&path).is_none_or(|online| online == 1)
        && cpus::online(roots).is_ok_and(|cpus| cpus.contains(&cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes and packages of two cores with two hardware threads each; siblings are 4 apart.
    fn machine() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let write = |path: String, text: String| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for cpu in 0..8u32 {
            let topology = format!("devices/system/cpu/cpu{cpu}/topology");
            let core = cpu % 4;
            let package = core / 2 * 2;
            write(format!("{topology}/core_cpus_list"), format!("{core},{}\n", core + 4));
            let list = format!("{}-{},{}-{}\n", package, package + 1, package + 4, package + 5);
            write(format!("{topology}/package_cpus_list"), list.clone());
            write(format!("devices/system/node/node{}/cpulist", package / 2), list);
        }
        write("devices/system/node/online".into(), "0-1\n".into());
        (dir, roots)
    }

    fn ids(cpus: &[u32]) -> Vec<CpuId> {
        cpus.iter().copied().map(CpuId).collect()
    }

    fn rings(spec: &str, cpus: &[u32]) -> Vec<Vec<u32>> {
        let (_dir, roots) = machine();
        let plans = reader_plans(&spec.parse().unwrap(), &ids(cpus), &roots).unwrap();
        let numbers = |plan: ReaderPlan| plan.rings.into_iter().map(|cpu| cpu.0).collect();
        plans.into_iter().map(numbers).collect()
    }

    #[test]
    fn cpus_share_a_reader_as_the_topology_says() {
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(rings("cpu", &all).len(), 8);
        assert_eq!(rings("core", &all), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(rings("package", &all), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(rings("numa", &all), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(rings("numa", &[1, 7]), [[1], [7]]);
        assert_eq!(rings("", &[3]), [[3]]);
    }

    #[test]
    fn sets_have_rings_and_places() {
        let (_dir, roots) = machine();
        let spec: ThreadSpec = "0-1,9/4-5:2/0".parse().unwrap();
        let plans = reader_plans(&spec, &ids(&[0, 1, 2, 3]), &roots).unwrap();
        let expected = [
            // CPU 3 is in no set and must be drained all the same.
            ReaderPlan { rings: ids(&[0, 1, 3]), runs_on: ids(&[4, 5]) },
            ReaderPlan { rings: ids(&[2]), runs_on: ids(&[0]) },
        ];
        assert_eq!(plans, expected);
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["cpus", "0-3", "0/0:0/1", "/0", "0/", "0/x", "0/0:1"] {
            assert!(text.parse::<ThreadSpec>().is_err(), "{text}");
        }
    }

    #[test]
    fn rings_have_places_unless_they_are_of_any_cpu() {
        let (_dir, roots) = machine();
        assert_eq!(place(Affinity::Cpu, Some(CpuId(5)), &roots), Some(ids(&[5])));
        assert_eq!(place(Affinity::Node, Some(CpuId(5)), &roots), Some(ids(&[0, 1, 4, 5])));
        assert_eq!(place(Affinity::System, Some(CpuId(5)), &roots), None);
        assert_eq!(place(Affinity::Cpu, None, &roots), None);
    }
}
