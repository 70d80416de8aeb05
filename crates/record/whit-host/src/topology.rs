//! Where each CPU sits: package, die, core, node, cache. From
//! `/sys/devices/system/cpu/cpuN` (`Documentation/ABI/testing/sysfs-devices-system-cpu`).

use std::collections::HashMap;
use std::path::Path;

use whit_types::CpuId;

use crate::roots::{Roots, read_number};

/// Most levels of cache that are looked at.
const CACHES_MAX: usize = 16;

/// The place of a CPU. A number that sysfs does not give is 0, or -1 for the node and the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuPlace {
    /// Package.
    pub socket: i64,
    /// Die in the package.
    pub die: i64,
    /// Core in the die.
    pub core: i64,
    /// NUMA node.
    pub node: i64,
    /// Level and number of the cache that is furthest from the core.
    pub cache: (i64, i64),
}

/// The places of CPUs, read when first asked for.
#[derive(Debug)]
pub struct Topology {
    roots: Roots,
    known: HashMap<CpuId, CpuPlace>,
}

impl Topology {
    /// Reads the machine with these roots.
    pub fn new(roots: &Roots) -> Topology {
        Topology { roots: roots.clone(), known: HashMap::new() }
    }

    /// The place of a CPU.
    pub fn place(&mut self, cpu: CpuId) -> CpuPlace {
        let directory = self.roots.sys.join(format!("devices/system/cpu/cpu{}", cpu.0));
        *self.known.entry(cpu).or_insert_with(|| read(&directory))
    }
}

fn read(directory: &Path) -> CpuPlace {
    let topology = |file: &str| read_number(&directory.join("topology").join(file));
    // -1 stands for "unknown" in sysfs; perf takes it for 0.
    let number = |file| topology(file).unwrap_or(0).max(0);
    CpuPlace {
        socket: number("physical_package_id"),
        die: number("die_id"),
        core: number("core_id"),
        node: node(directory).unwrap_or(-1),
        cache: cache(directory).unwrap_or((0, -1)),
    }
}

/// The link `nodeN` in the CPU's directory.
fn node(directory: &Path) -> Option<i64> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    entries.into_iter().find_map(|e| e.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}

/// The cache of the highest level.
fn cache(directory: &Path) -> Option<(i64, i64)> {
    let index = |number| directory.join(format!("cache/index{number}"));
    let read = |number| {
        let level = read_number(&index(number).join("level"))?;
        Some((level, read_number(&index(number).join("id")).unwrap_or(-1)))
    };
    (0..CACHES_MAX).map_while(read).max_by_key(|(level, _)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_sysfs() {
        let dir = whit_testing::machine::two_sockets();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let mut topology = Topology::new(&roots);
        let place = CpuPlace { socket: 1, die: 0, core: 1, node: 1, cache: (3, 1) };
        assert_eq!((topology.place(CpuId(3)), topology.place(CpuId(7))), (place, place));
        let unknown = CpuPlace { node: -1, cache: (0, -1), ..CpuPlace::default() };
        assert_eq!(topology.place(CpuId(99)), unknown);
    }
}
