//! Language runtimes in running processes, and whether their functions have names.

use std::io::Read;

use whit_sys::maps::MapsLine;
use whit_types::{Pid, Runtime};

use crate::processes::{self, see_others};
use crate::roots::Roots;

/// A runtime of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunningRuntime {
    /// The runtime by its files.
    pub runtime: Runtime,
    /// Whether a perf-map or a jitdump file names functions.
    pub has_names: bool,
    /// Whether there is code that could have names, or may be soon.
    pub has_code: bool,
}

/// The runtimes that a process has mapped, each once. Empty where it is gone.
pub fn of_process(roots: &Roots, pid: Pid) -> Vec<RunningRuntime> {
    let maps = maps_of(roots, pid);
    let lines = || maps.split(|byte| *byte == b'\n').filter_map(MapsLine::parse);
    let has_names = has_perf_map(roots, pid) || lines().any(|line| is_jitdump(line.path));
    let has_nameless = lines().any(|line| line.is_executable() && line.path.is_empty());
    let mut found: Vec<_> = lines()
        .filter(|line| line.is_executable())
        .filter_map(|line| Runtime::of_path(line.path))
        .map(|runtime| RunningRuntime {
            runtime,
            has_names,
            has_code: has_nameless || runtime.is_interpreter() || runtime.always_compiles(),
        })
        .collect();
    found.sort_unstable();
    found.dedup_by_key(|found| found.runtime);
    found
}

/// Whether there is a perf-map of a process: where whit sees it, or the process itself.
pub fn has_perf_map(roots: &Roots, pid: Pid) -> bool {
    let name = |pid: Pid| format!("tmp/perf-{}.map", pid.0);
    let here = std::path::Path::new("/").join(name(pid));
    let inner = processes::inner_pid(roots, pid).unwrap_or(pid);
    let _in_force = see_others();
    here.exists() || roots.living(pid, "root").join(name(inner)).exists()
}

fn maps_of(roots: &Roots, pid: Pid) -> Vec<u8> {
    let mut maps = Vec::new();
    // Where reading fails, the mappings before that count.
    let _ = processes::open_living(roots, pid, "maps").map(|mut file| file.read_to_end(&mut maps));
    maps
}

/// `jit-PID.dump`
pub fn is_jitdump(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.starts_with(b"jit-") && name.ends_with(b".dump")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: Pid = Pid(i32::MAX);

    fn process(maps: &str) -> (tempfile::TempDir, Roots) {
        let proc = tempfile::tempdir().unwrap();
        let directory = proc.path().join(PID.0.to_string());
        std::fs::create_dir_all(directory.join("root/tmp")).unwrap();
        std::fs::write(directory.join("maps"), maps).unwrap();
        std::fs::write(directory.join("status"), format!("Name:\tx\nNSpid:\t{}\t7\n", PID.0))
            .unwrap();
        let roots = Roots { proc: proc.path().to_owned(), ..Roots::default() };
        (proc, roots)
    }

    fn line(protection: &str, path: &str) -> String {
        format!("1000-2000 {protection} 00000000 08:01 5 {path}\n")
    }

    #[test]
    fn a_runtime_has_names_by_the_map_that_it_sees_under_its_own_number() {
        let (proc, roots) =
            process(&[line("r-xp", "/usr/bin/node"), line("r--p", "/x/libjvm.so")].concat());
        let found = of_process(&roots, PID);
        let node = RunningRuntime { runtime: Runtime::Node, has_names: false, has_code: true };
        assert_eq!(found, [node]);
        let map = proc.path().join(PID.0.to_string()).join("root/tmp/perf-7.map");
        std::fs::write(map, "").unwrap();
        assert_eq!(of_process(&roots, PID), [RunningRuntime { has_names: true, ..node }]);
    }

    #[test]
    fn a_mapped_jitdump_file_gives_names() {
        let (_proc, roots) = process(
            &[line("r-xp", "/usr/bin/python3.13"), line("r-xp", "/tmp/jit-7.dump")].concat(),
        );
        assert!(of_process(&roots, PID).iter().all(|found| found.has_names));
        assert!(!is_jitdump(b"/tmp/other-7.dump"));
    }

    #[test]
    fn a_runtime_that_compiles_on_demand_has_code_once_it_is_mapped() {
        let has_code = |maps: &str| of_process(&process(maps).1, PID)[0].has_code;
        let ruby = line("r-xp", "/usr/bin/ruby3.1");
        assert!(!has_code(&ruby));
        assert!(has_code(&[ruby, "3000-4000 r-xp 00000000 00:00 0 \n".to_owned()].concat()));
        assert!(of_process(&process("").1, PID).is_empty());
    }
}
