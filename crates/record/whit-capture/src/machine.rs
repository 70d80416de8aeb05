//! Header features: what a recording says of the machine that it was made on.
//!
//! Layouts: `write_*` in `tools/perf/util/header.c`. A part of `/proc` or `/sys` that is missing
//! leaves its feature out; readers cope without.

use std::path::Path;

use whit_host::cpus::{online, present, read_list};
use whit_host::roots::{Roots, read_number};
use whit_perfdata::feature::{BuildIdEntry, Feature, Features, encode_string};
use whit_perfdata::record::misc;
use whit_sys::system::uname;
use whit_types::{CpuId, Pid, format_cpu_list};

use crate::kernel;

/// The kernel's name among build ids.
const KERNEL_NAME: &str = "[kernel.kallsyms]";

/// Adds the machine's description of itself.
pub fn describe(features: &mut Features, roots: &Roots) {
    let names = uname();
    features.set_string(Feature::HOSTNAME, &names.hostname);
    features.set_string(Feature::OSRELEASE, &names.release);
    features.set_string(Feature::ARCH, &names.machine);
    let present = present(roots).unwrap_or_default();
    if let Ok(online) = online(roots) {
        features.set_nr_cpus(online.len() as u32, present.len().max(online.len()) as u32);
    }
    let cpuinfo = std::fs::read_to_string(roots.proc.join("cpuinfo")).unwrap_or_default();
    if let Some(model) = cpu_field(&cpuinfo, "model name") {
        features.set_string(Feature::CPUDESC, model);
    }
    if let Some(id) = cpu_id(&cpuinfo, roots) {
        features.set_string(Feature::CPUID, &id);
    }
    if let Some(kib) = meminfo(&roots.proc.join("meminfo"), "MemTotal:") {
        features.set_word(Feature::TOTAL_MEM, kib);
    }
    if !present.is_empty() {
        features.set(Feature::CPU_TOPOLOGY, cpu_topology(roots, &present));
    }
    if let Some(numa) = numa_topology(roots) {
        features.set(Feature::NUMA_TOPOLOGY, numa);
    }
    let pmus = pmus(roots);
    if !pmus.is_empty() {
        features.set_pmu_mappings(&pmus);
    }
}

/// Build ids of the kernel and its loaded modules. Those of user binaries are in the mappings.
pub fn kernel_build_ids(roots: &Roots, modules: &[kernel::Module]) -> Vec<BuildIdEntry> {
    let entry = |id, path: &str| BuildIdEntry {
        misc: misc::KERNEL,
        pid: Pid(-1),
        id,
        path: path.to_owned(),
    };
    let of_module =
        |m: &kernel::Module| Some(entry(kernel::module_build_id(roots, &m.name)?, &m.path));
    let kernel = kernel::build_id(roots).map(|id| entry(id, KERNEL_NAME));
    kernel.into_iter().chain(modules.iter().filter_map(of_module)).collect()
}

fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// As perf writes it: vendor, family, model and stepping, or arm64's main id register.
fn cpu_id(cpuinfo: &str, roots: &Roots) -> Option<String> {
    let of_x86 = || {
        let field = |name| cpu_field(cpuinfo, name);
        let (vendor, family) = (field("vendor_id")?, field("cpu family")?);
        Some(format!("{vendor},{family},{},{}", field("model")?, field("stepping")?))
    };
    let of_arm = || {
        let path = "devices/system/cpu/cpu0/regs/identification/midr_el1";
        Some(std::fs::read_to_string(roots.sys.join(path)).ok()?.trim().to_owned())
    };
    of_x86().or_else(of_arm)
}

/// The most memory that this process has had resident, in bytes; 0 where the kernel does not say.
///
/// Unlike `getrusage(2)`, it does not count what ran in this process before its last exec.
pub(crate) fn own_peak_memory_bytes(roots: &Roots) -> u64 {
    meminfo(&roots.proc.join("self/status"), "VmHWM:").map_or(0, |kib| kib.saturating_mul(1024))
}

fn meminfo(path: &Path, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    // "MemTotal:  8 kB", in a node's file behind "Node 0".
    text.lines().find_map(|line| {
        let at = line.find(field)?;
        line[at + field.len()..].split_ascii_whitespace().next()?.parse().ok()
    })
}

/// Sibling lists of packages and cores, then core and package of every CPU, then dies.
fn cpu_topology(roots: &Roots, cpus: &[CpuId]) -> Vec<u8> {
    let topology = |cpu: CpuId, file: &str| {
        roots.sys.join(format!("devices/system/cpu/cpu{}/topology", cpu.0)).join(file)
    };
    let lists = |names: &[&str]| {
        let mut lists: Vec<String> = Vec::new();
        for &cpu in cpus {
            let read = |name: &&str| std::fs::read_to_string(topology(cpu, name)).ok();
            let list = names.iter().find_map(read).map(|text| text.trim().to_owned());
            lists.extend(list.filter(|list| !lists.contains(list)));
        }
        lists
    };
    let id = |cpu, file| read_number(&topology(cpu, file)).unwrap_or(-1) as i32;
    let mut out = Vec::new();
    push_strings(&mut out, &lists(&["package_cpus_list", "core_siblings_list"]));
    push_strings(&mut out, &lists(&["core_cpus_list", "thread_siblings_list"]));
    for &cpu in cpus {
        out.extend(id(cpu, "core_id").to_le_bytes());
        out.extend(id(cpu, "physical_package_id").to_le_bytes());
    }
    let dies = lists(&["die_cpus_list"]);
    if !dies.is_empty() {
        push_strings(&mut out, &dies);
        cpus.iter().for_each(|&cpu| out.extend(id(cpu, "die_id").to_le_bytes()));
    }
    out
}

fn push_strings(out: &mut Vec<u8>, strings: &[String]) {
    out.extend((strings.len() as u32).to_le_bytes());
    strings.iter().for_each(|text| encode_string(out, text));
}

/// For each node its number, memory in KiB, free memory in KiB and CPUs.
fn numa_topology(roots: &Roots) -> Option<Vec<u8>> {
    let directory = roots.sys.join("devices/system/node");
    // Nodes are listed as CPUs are.
    let nodes = read_list(&directory.join("online")).ok()?;
    let mut out = (nodes.len() as u32).to_le_bytes().to_vec();
    for CpuId(node) in nodes {
        let path = directory.join(format!("node{node}"));
        let memory = |field| meminfo(&path.join("meminfo"), field).unwrap_or(0);
        out.extend(node.to_le_bytes());
        out.extend(memory("MemTotal:").to_le_bytes());
        out.extend(memory("MemFree:").to_le_bytes());
        encode_string(
            &mut out,
            &format_cpu_list(&read_list(&path.join("cpulist")).unwrap_or_default()),
        );
    }
    Some(out)
}

fn pmus(roots: &Roots) -> Vec<(u32, String)> {
    let Ok(entries) = std::fs::read_dir(roots.sys.join("bus/event_source/devices")) else {
        return Vec::new();
    };
    let mut pmus: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = u32::try_from(read_number(&entry.path().join("type"))?).ok()?;
            Some((kind, entry.file_name().to_str()?.to_owned()))
        })
        .collect();
    pmus.sort();
    pmus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, content) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn a_machine_of_two_nodes_is_described() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            ..Roots::default()
        };
        let mut files: Vec<(String, &str)> = Vec::new();
        for (cpu, package, core) in [("0", "0", "0"), ("1", "1", "0")] {
            let file = |name| format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}");
            files.extend([
                (file("package_cpus_list"), cpu),
                (file("core_cpus_list"), cpu),
                (file("core_id"), core),
                (file("physical_package_id"), package),
            ]);
        }
        let files: Vec<_> = files.iter().map(|(p, c)| (p.as_str(), *c)).collect();
        write(dir.path(), &files);
        write(
            dir.path(),
            &[
                ("sys/devices/system/cpu/online", "0-1\n"),
                ("sys/devices/system/cpu/present", "0-1\n"),
                ("sys/devices/system/node/online", "0-1\n"),
                ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  100 kB\n"),
                ("sys/devices/system/node/node0/cpulist", "0\n"),
                ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  200 kB\n"),
                ("sys/devices/system/node/node1/cpulist", "1\n"),
                ("sys/bus/event_source/devices/software/type", "1\n"),
                ("sys/bus/event_source/devices/cpu/type", "4\n"),
                ("proc/meminfo", "MemTotal:     4096 kB\n"),
                (
                    "proc/cpuinfo",
                    "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: EPYC\nstepping\t: 2\n",
                ),
            ],
        );
        let mut features = Features::default();
        describe(&mut features, &roots);
        assert_eq!(features.string(Feature::CPUID).unwrap(), "AuthenticAMD,25,1,2");
        assert_eq!(features.string(Feature::CPUDESC).unwrap(), "EPYC");
        assert_eq!(features.word(Feature::TOTAL_MEM), Some(4096));
        assert_eq!(features.nr_cpus(), Some((2, 2)));
        let topology = features.get(Feature::CPU_TOPOLOGY).unwrap();
        // Two package lists and two core lists of 68 bytes each, two counts, four ids.
        assert_eq!(topology.len(), 2 * 4 + 4 * 68 + 4 * 4);
        assert_eq!(
            &topology[topology.len() - 16..],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
        );
        let numa = features.get(Feature::NUMA_TOPOLOGY).unwrap();
        assert_eq!(numa.len(), 4 + 2 * (4 + 16 + 68));
        assert!(features.get(Feature::PMU_MAPPINGS).is_some());
    }

    #[test]
    fn a_machine_that_says_nothing_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            ..Roots::default()
        };
        let mut features = Features::default();
        describe(&mut features, &roots);
        assert!(features.string(Feature::HOSTNAME).is_some());
        assert_eq!(features.get(Feature::NUMA_TOPOLOGY), None);
        assert!(kernel_build_ids(&roots, &[]).is_empty());
    }
}
