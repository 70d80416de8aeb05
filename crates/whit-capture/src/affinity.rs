//! Where readers run: which threads there are, on which CPUs each of them runs, and whose rings it
//! drains.

use std::io;

use whit_host::cpus::{self, CpuListError, parse_list};
use whit_host::roots::{Roots, read_number};

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
    Sets(Vec<(Vec<u32>, Vec<u32>)>),
}

/// What is wrong with a thread specification.
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
            let (rings, runs) = (parse_list(rings)?, parse_list(runs)?);
            if rings.is_empty() || runs.is_empty() {
                return Err(ThreadSpecError::Empty);
            }
            if let Some(&twice) = rings.iter().find(|cpu| seen.contains(*cpu)) {
                return Err(ThreadSpecError::Twice(twice));
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
    pub rings: Vec<u32>,
    /// CPUs that it runs on.
    pub runs_on: Vec<u32>,
}

/// The readers for rings of `cpus`, in the order of their first CPU. CPUs that no set of the
/// specification names fall to the first reader: nothing that is recorded is left in its ring.
pub fn reader_plans(
    spec: &ThreadSpec,
    cpus: &[u32],
    roots: &Roots,
) -> Result<Vec<ReaderPlan>, CaptureError> {
    let sets: Vec<(Vec<u32>, Vec<u32>)> = match spec {
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
        let rings: Vec<u32> = rings.into_iter().filter(|cpu| cpus.contains(cpu)).collect();
        if !rings.is_empty() {
            plans.push(ReaderPlan { rings, runs_on });
        }
    }
    let named = |cpu: &u32| plans.iter().any(|plan: &ReaderPlan| plan.rings.contains(cpu));
    let unnamed: Vec<u32> = cpus.iter().copied().filter(|cpu| !named(cpu)).collect();
    match plans.first_mut() {
        Some(first) => first.rings.extend(unnamed),
        None => plans.push(ReaderPlan { runs_on: unnamed.clone(), rings: unnamed }),
    }
    Ok(plans)
}

fn same(sets: Vec<Vec<u32>>) -> Vec<(Vec<u32>, Vec<u32>)> {
    sets.into_iter().map(|set| (set.clone(), set)).collect()
}

/// CPUs grouped by what the first of these files of their topology lists; alone where it is not
/// there.
fn by_file(roots: &Roots, cpus: &[u32], files: &[&str]) -> Vec<Vec<u32>> {
    group(cpus, |cpu| {
        let directory = roots.sys.join(format!("devices/system/cpu/cpu{cpu}/topology"));
        let text = files.iter().find_map(|f| std::fs::read_to_string(directory.join(f)).ok());
        text.and_then(|text| parse_list(&text).ok()).unwrap_or_else(|| vec![cpu])
    })
}

fn nodes(roots: &Roots, cpus: &[u32]) -> Vec<Vec<u32>> {
    let all = all_nodes(roots);
    group(cpus, |cpu| all.iter().find(|node| node.contains(&cpu)).cloned().unwrap_or_default())
}

/// Groups in the order of their first CPU.
fn group(cpus: &[u32], set_of: impl Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let mut groups: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
    for &cpu in cpus {
        let set = set_of(cpu);
        match groups.iter_mut().find(|(known, _)| *known == set) {
            Some((_, members)) => members.push(cpu),
            None => groups.push((set, vec![cpu])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn all_nodes(roots: &Roots) -> Vec<Vec<u32>> {
    let directory = roots.sys.join("devices/system/node");
    let list = |path: std::path::PathBuf| -> io::Result<Vec<u32>> {
        let text = std::fs::read_to_string(path)?;
        parse_list(&text).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    };
    let numbers = list(directory.join("online")).unwrap_or_default();
    numbers
        .into_iter()
        .filter_map(|node| list(directory.join(format!("node{node}/cpulist"))).ok())
        .collect()
}

/// The CPUs that a reader is to run on while it drains the ring of `cpu`; `None` where that is no
/// matter. A ring that is not of one CPU has no place.
pub fn place(affinity: Affinity, cpu: i32, roots: &Roots) -> Option<Vec<u32>> {
    let cpu = u32::try_from(cpu).ok()?;
    match affinity {
        Affinity::Thread | Affinity::System => None,
        Affinity::Cpu => Some(vec![cpu]),
        Affinity::Node => all_nodes(roots).into_iter().find(|node| node.contains(&cpu)),
    }
}

/// Whether the CPU is online.
pub fn is_online(roots: &Roots, cpu: u32) -> bool {
    let path = roots.sys.join(format!("devices/system/cpu/cpu{cpu}/online"));
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

    fn rings(spec: &str, cpus: &[u32]) -> Vec<Vec<u32>> {
        let (_dir, roots) = machine();
        let plans = reader_plans(&spec.parse().unwrap(), cpus, &roots).unwrap();
        plans.into_iter().map(|plan| plan.rings).collect()
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
    fn sets_say_whose_rings_and_where() {
        let (_dir, roots) = machine();
        let spec: ThreadSpec = "0-1,9/4-5:2/0".parse().unwrap();
        let plans = reader_plans(&spec, &[0, 1, 2, 3], &roots).unwrap();
        let expected = [
            // CPU 3 is in no set and must be drained all the same.
            ReaderPlan { rings: vec![0, 1, 3], runs_on: vec![4, 5] },
            ReaderPlan { rings: vec![2], runs_on: vec![0] },
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
        assert_eq!(place(Affinity::Cpu, 5, &roots), Some(vec![5]));
        assert_eq!(place(Affinity::Node, 5, &roots), Some(vec![0, 1, 4, 5]));
        assert_eq!(place(Affinity::System, 5, &roots), None);
        assert_eq!(place(Affinity::Cpu, whit_host::target::ANY, &roots), None);
    }
}
