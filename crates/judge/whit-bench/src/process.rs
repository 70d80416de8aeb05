//! Figures of processes, by `/proc`.

use std::fs;

use whit_measure::process_tree::children;
use whit_sys::usage::cpu_time_ns_of;

/// A number of a process's status, for sizes in bytes; zero where the process or the line is missing.
pub(crate) fn status_field(process: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    field(&status, name).unwrap_or(0)
}

/// The number of a line of a status.
pub(crate) fn field(status: &str, name: &str) -> Option<u64> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let mut words = lines.find(|(key, _)| *key == name)?.1.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    Some(if words.next() == Some("kB") { number << 10 } else { number })
}

/// Cost of processes so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cpu_ns: u64,
    /// Without pages of files: these are shared with all others that map them, and are dropped when memory is short.
    pub(crate) memory_bytes: u64,
}

impl Cost {
    /// A process and all below it.
    pub(crate) fn of_tree(process: u32) -> Cost {
        let own = Cost {
            cpu_ns: cpu_time_ns_of(process),
            memory_bytes: status_field(process, "RssAnon"),
        };
        children(process).into_iter().map(Cost::of_tree).fold(own, |sum, child| Cost {
            cpu_ns: sum.cpu_ns + child.cpu_ns,
            memory_bytes: sum.memory_bytes + child.memory_bytes,
        })
    }
}

/// Resident memory of a process and of all below it, with the pages of files.
pub(crate) fn resident_bytes(process: u32) -> u64 {
    let below = children(process).into_iter().map(resident_bytes);
    status_field(process, "VmRSS") + below.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use whit_testing::wait::is_soon;

    #[test]
    fn a_tree_has_the_time_and_the_memory_of_its_children() {
        let own = Cost::of_tree(std::process::id());
        assert!(own.cpu_ns > 0 && own.memory_bytes > 0, "{own:?}");
        let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 60";
        let line = format!("sh -c '{work}' & wait");
        let mut child = Command::new("sh").args(["-c", &line]).spawn().unwrap();
        let seen = is_soon(|| Cost::of_tree(child.id()).cpu_ns > 20_000_000);
        let at = format!("/proc/{0}/task/{0}/children", child.id());
        let below = fs::read_to_string(at).unwrap();
        for process in below.split_whitespace() {
            let _ = whit_sys::system::terminate(process.parse().unwrap());
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(seen);
    }

    #[test]
    fn memory_has_that_of_children() {
        let mut child = Command::new("sh").args(["-c", "sleep 60; true"]).spawn().unwrap();
        let begin = std::time::Instant::now();
        let below = loop {
            let found = children(child.id());
            if !found.is_empty() || begin.elapsed().as_secs() > 60 {
                break found;
            }
        };
        let (all, part) =
            (resident_bytes(child.id()), below.iter().copied().map(resident_bytes).sum::<u64>());
        let _ = whit_measure::process_tree::kill(&mut child);
        let _ = child.wait();
        assert!(0 < part && part < all, "{part} of {all}");
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\nVmHWM:\t 12 kB\n";
        assert_eq!(field(text, "voluntary_ctxt_switches"), Some(5));
        assert_eq!((field(text, "VmHWM"), field(text, "Vm")), (Some(12 << 10), None));
    }
}
