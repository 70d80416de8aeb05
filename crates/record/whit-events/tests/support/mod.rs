//! A machine that is not this one: PMUs in a directory tree, tracepoints in a table.
#![allow(dead_code)] // Each test program uses its own part.

use std::fs;
use std::path::Path;

use whit_events::*;

/// Writes `(path, content)` pairs below a new temporary directory.
pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }
    dir
}

pub(crate) const INTEL: &[(&str, &str)] = &[
    ("software/type", "1\n"),
    ("tracepoint/type", "2\n"),
    ("breakpoint/type", "5\n"),
    ("cpu/type", "4\n"),
    ("cpu/format/event", "config:0-7\n"),
    ("cpu/format/umask", "config:8-15\n"),
    ("cpu/format/edge", "config:18\n"),
    ("cpu/format/inv", "config:23\n"),
    ("cpu/format/cmask", "config:24-31\n"),
    ("cpu/format/ldlat", "config1:0-15\n"),
    ("cpu/caps/max_precise", "3\n"),
    ("cpu/events/cpu-cycles", "event=0x3c\n"),
    ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
    ("cpu/events/cycles-ct", "event=0x3c,in_tx=1\n"),
    ("cpu/events/topdown-retiring", "event=0x0,umask=0x80\n"),
    ("power/type", "20\n"),
    ("power/cpumask", "0\n"),
    ("power/format/event", "config:0-7\n"),
    ("power/events/energy-pkg", "event=0x02\n"),
    ("power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n"),
    ("power/events/energy-pkg.unit", "Joules\n"),
    ("uncore_imc_0/type", "21\n"),
    ("uncore_imc_0/cpumask", "0,8\n"),
    ("uncore_imc_0/format/event", "config:0-7,32-35\n"),
    ("uncore_imc_0/events/cas_count_read", "event=0x04\n"),
    ("uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5\n"),
    ("uncore_imc_0/events/cas_count_read.unit", "MiB\n"),
    ("uncore_imc_1/type", "22\n"),
    ("uncore_imc_1/cpumask", "0,8\n"),
    ("uncore_imc_1/format/event", "config:0-7,32-35\n"),
    ("uncore_imc_1/events/cas_count_read", "event=0x04\n"),
    ("uncore_imc_free_running/type", "23\n"),
    ("uncore_imc_free_running/cpumask", "0,8\n"),
    ("ccn_5e6a0/type", "25\n"),
    ("ccn_5e6a0/cpumask", "3\n"),
    ("ccn_5e6a0/format/event", "config:0-7\n"),
    ("hv_24x7/type", "24\n"),
    ("hv_24x7/format/domain", "config:0-3\n"),
    ("hv_24x7/format/core", "config:16-31\n"),
    ("hv_24x7/events/PM_CYC", "domain=2,core=?\n"),
];

pub(crate) const HYBRID: &[(&str, &str)] = &[
    ("cpu_core/type", "4\n"),
    ("cpu_core/cpus", "0-3\n"),
    ("cpu_core/format/event", "config:0-7\n"),
    ("cpu_atom/type", "8\n"),
    ("cpu_atom/cpus", "4-7\n"),
    ("cpu_atom/format/event", "config:0-7\n"),
    ("software/type", "1\n"),
];

pub(crate) fn table(files: &[(&str, &str)]) -> PmuTable {
    read_table(tree(files).path())
}

fn read_table(path: &Path) -> PmuTable {
    PmuTable::from_sysfs(path).expect("a readable tree")
}

/// Tracepoints that need no tracefs.
pub(crate) struct Tracepoints(&'static [(&'static str, &'static str, u64)]);

impl TracepointIds for Tracepoints {
    fn systems(&mut self) -> Result<Vec<String>, TracepointError> {
        let mut systems: Vec<String> = self.0.iter().map(|(system, ..)| (*system).into()).collect();
        systems.dedup();
        Ok(systems)
    }

    fn names(&mut self, system: &str) -> Result<Vec<String>, TracepointError> {
        let of_system = self.0.iter().filter(|(known, ..)| *known == system);
        Ok(of_system.map(|(_, name, _)| (*name).into()).collect())
    }

    fn id(&mut self, system: &str, name: &str) -> Result<Option<u64>, TracepointError> {
        let found = self.0.iter().find(|(s, n, _)| *s == system && *n == name);
        Ok(found.map(|(_, _, id)| *id))
    }
}

pub(crate) const TRACEPOINTS: Tracepoints = Tracepoints(&[
    ("irq", "irq_handler_entry", 100),
    ("sched", "sched_switch", 372),
    ("sched", "sched_wakeup", 374),
    ("sched", "sched_stat_wait", 375),
]);
