//! Whether the threads that are recorded ran at all.
//!
//! Where nobody ran there is nothing to sample, and no switch: a recording without samples looks the same as one
//! that failed. The kernel keeps how long each thread has run, and how often it came onto a CPU.

use whit_host::processes;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_types::Tid;

/// The state of a thread by `/proc/TID/schedstat` and `/proc/TID/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// Time on CPUs, time of waiting for one, times that it came onto one.
    numbers: String,
    /// It is on a CPU or could be. While it is, the kernel brings its time up to date only now and then.
    may_run: bool,
}

impl Run {
    fn read(roots: &Roots, tid: Tid) -> Option<Run> {
        let _in_force = processes::see_others();
        let read = |name| std::fs::read_to_string(roots.thread(tid).join(name)).ok();
        let stat = read("stat")?;
        // The name may hold anything; the state follows its last parenthesis.
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some(Run { numbers: read("schedstat")?, may_run: state == 'R' })
    }

    /// Kernels without these statistics write zeros.
    fn is_known(&self) -> bool {
        self.numbers.split_ascii_whitespace().next().is_some_and(|time| time != "0")
    }
}

/// The threads that were there when recording began, as they were then.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// By thread; empty where nobody is watched.
    before: Vec<(Tid, Run)>,
}

impl Watched {
    /// To be called before anything is switched on. Only threads that exist can be watched: a command has run once
    /// it is there.
    pub(super) fn begin(target: &Target, threads: &[Tid], roots: &Roots) -> Watched {
        if *target == Target::Command || target.covers_cpus() {
            return Watched::default();
        }
        let run = |&tid: &Tid| {
            let run = Run::read(roots, tid)?;
            run.is_known().then_some((tid, run))
        };
        Watched { before: threads.iter().filter_map(run).collect() }
    }

    /// How many threads were watched, and how many of these ran since, maybe to their end. To be called when all is off.
    /// Threads that came since were made by others that ran.
    pub(super) fn end(&self, roots: &Roots) -> (u64, u64) {
        let ran = |(tid, before): &&(Tid, Run)| {
            before.may_run || Run::read(roots, *tid).as_ref() != Some(before)
        };
        (self.before.len() as u64, self.before.iter().filter(ran).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use whit_types::Pid;

    fn state(proc: &std::path::Path, tid: i32, state: char, numbers: &str) {
        let folder = proc.join(tid.to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stat"), format!("{tid} (a) R (b) {state} 1 2\n")).unwrap();
        fs::write(folder.join("schedstat"), numbers).unwrap();
    }

    fn watched(proc: &std::path::Path, threads: &[i32]) -> (Watched, Roots) {
        let roots = Roots { proc: proc.to_owned(), ..Roots::default() };
        let threads: Vec<Tid> = threads.iter().copied().map(Tid).collect();
        (Watched::begin(&Target::Processes(vec![Pid(1)]), &threads, &roots), roots)
    }

    #[test]
    fn a_thread_has_run_if_it_is_on_a_cpu_or_gone_or_its_time_is_another() {
        let place = tempfile::tempdir().unwrap();
        let proc = place.path();
        for (tid, letter) in [(1, 'S'), (2, 'D'), (3, 'R'), (4, 'S'), (5, 'S')] {
            state(proc, tid, letter, "77 5 3\n");
        }
        let (watched, roots) = watched(proc, &[1, 2, 3, 4, 5]);
        // Only the third one could run, and may have done so without being charged yet.
        assert_eq!(watched.end(&roots), (5, 1));
        state(proc, 4, 'S', "78 5 4\n");
        fs::remove_dir_all(proc.join("5")).unwrap();
        assert_eq!(watched.end(&roots), (5, 3));
    }

    #[test]
    fn no_thread_is_watched_where_the_kernel_shows_no_runs() {
        let place = tempfile::tempdir().unwrap();
        state(place.path(), 1, 'S', "0 0 0\n");
        let (watched, roots) = watched(place.path(), &[1, 2]);
        assert_eq!(watched.end(&roots), (0, 0));
        state(place.path(), 1, 'S', "7 0 1\n");
        let of_command = Watched::begin(&Target::Command, &[Tid(1)], &roots);
        assert_eq!(of_command.end(&roots), (0, 0));
    }
}
