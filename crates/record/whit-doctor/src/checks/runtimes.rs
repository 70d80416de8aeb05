//! The language runtimes of processes, and whether their functions will have names.

use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::runtimes::{self, RunningRuntime};
use whit_types::Pid;

use crate::finding::{Area, Finding, Status};

/// A finding for each runtime of each process.
pub fn check_processes(roots: &Roots, pids: &[Pid]) -> Vec<Finding> {
    pids.iter().flat_map(|pid| of_process(roots, *pid)).collect()
}

fn of_process(roots: &Roots, pid: Pid) -> Vec<Finding> {
    let what = format!("process {}", pid.0);
    let found = runtimes::of_process(roots, pid);
    if !processes::exists(roots, pid.main_thread()) {
        let remedy = "name a process that runs: pgrep -a NAME".to_owned();
        let gone = Finding::new(Area::Runtimes, &what, Status::Absent, "no such process");
        return vec![gone.with_remedy(remedy)];
    }
    if found.is_empty() {
        let detail = "no runtime that whit knows: names come from its binaries";
        return vec![Finding::new(Area::Runtimes, &what, Status::Ok, detail)];
    }
    found.iter().map(|found| judge(pid, found)).collect()
}

fn judge(pid: Pid, found: &RunningRuntime) -> Finding {
    let RunningRuntime { runtime, has_names, has_code } = *found;
    let what = format!("{runtime} (process {})", pid.0);
    let new = |status, detail| Finding::new(Area::Runtimes, &what, status, detail);
    match (has_names, has_code) {
        (true, _) => new(Status::Ok, "functions have names"),
        (false, false) => new(Status::Ok, "no compiled functions yet"),
        (false, true) => {
            new(Status::Degraded, "functions have no names").with_remedy(runtime.advice())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_without_names_has_its_remedy_and_others_have_none() {
        let proc = tempfile::tempdir().unwrap();
        let roots = Roots { proc: proc.path().to_owned(), ..Roots::default() };
        let pid = Pid(i32::MAX);
        let directory = proc.path().join(pid.0.to_string());
        let finding = |maps: &str| {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("maps"), maps).unwrap();
            let found = check_processes(&roots, &[pid]);
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].clone()
        };
        let line = |path: &str| format!("1000-2000 r-xp 00000000 08:01 5 {path}\n");
        let node = finding(&line("/usr/bin/node"));
        assert_eq!(node.status, Status::Degraded);
        assert!(node.remedy.unwrap().contains("--perf-basic-prof"));
        let named = finding(&[line("/usr/bin/node"), line("/tmp/jit-7.dump")].concat());
        assert_eq!((named.status, named.remedy), (Status::Ok, None));
        assert_eq!(finding(&line("/usr/bin/ruby3.1")).status, Status::Ok);
        assert_eq!(finding(&line("/usr/bin/true")).status, Status::Ok);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(check_processes(&roots, &[pid])[0].status, Status::Absent);
    }
}
