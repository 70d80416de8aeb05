//! Probes in user mode: tracepoints that exist as long as somebody holds them.
//!
//! The kernel keeps their definitions in `uprobe_events` of tracefs, for all programs. Those of a program that was
//! killed stay, so the next one removes them.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::roots::read_number;

/// Definitions, one a line.
const DEFINITIONS: &str = "uprobe_events";
/// In front of the number of the process in the name of a group.
const GROUP: &str = "whit_";

/// Where a function is probed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeAt {
    /// At its first instruction.
    Entry,
    /// Behind its return.
    Return,
}

/// One place of a probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbePlace {
    /// Offset of the instruction in the file.
    pub offset: u64,
    /// Offset of a counter in the file that the kernel keeps above zero meanwhile.
    pub counter: Option<u64>,
    /// Fields of the record, in the kernel's language (`Documentation/trace/uprobetracer.rst`).
    pub fields: String,
}

/// The probes of this process, which go with this.
#[derive(Debug)]
pub struct UserProbes {
    tracefs: PathBuf,
    group: String,
    count: usize,
}

impl UserProbes {
    /// None yet. Removes those of processes that have ended.
    pub fn new(tracefs: PathBuf) -> UserProbes {
        let list = std::fs::read_to_string(tracefs.join(DEFINITIONS)).unwrap_or_default();
        for name in list.lines().filter_map(left_behind) {
            // Another process may be faster, or a recorder may still hold it.
            let _ = define(&tracefs, &format!("-:{name}"));
        }
        UserProbes { tracefs, group: format!("{GROUP}{}", std::process::id()), count: 0 }
    }

    /// Adds a probe at some places of a file. Gives the number of the tracepoint.
    ///
    /// # Errors
    /// The kernel refuses it: without the right, for a field that it does not understand, or where there is no
    /// instruction.
    pub fn add(&mut self, at: ProbeAt, file: &File, places: &[ProbePlace]) -> io::Result<u64> {
        let kind = match at {
            ProbeAt::Entry => 'p',
            ProbeAt::Return => 'r',
        };
        let name = format!("{}/p{}", self.group, self.count);
        // The kernel takes a path, whose blanks would end it.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // From the first place on there is something to remove.
        self.count += 1;
        for ProbePlace { offset, counter, fields } in places {
            let counter = counter.map_or_else(String::new, |counter| format!("({counter:#x})"));
            define(&self.tracefs, &format!("{kind}:{name} {path}:{offset:#x}{counter} {fields}"))?;
        }
        let id = read_number(&self.tracefs.join("events").join(name).join("id"));
        id.and_then(|id| u64::try_from(id).ok()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Drop for UserProbes {
    fn drop(&mut self) {
        for number in 0..self.count {
            let _ = define(&self.tracefs, &format!("-:{}/p{number}", self.group));
        }
    }
}

/// The numbers of the tracepoints of all such probes, of this process and of others.
pub fn numbers(tracefs: &Path) -> BTreeSet<u64> {
    let list = std::fs::read_to_string(tracefs.join(DEFINITIONS)).unwrap_or_default();
    let number = |line: &str| {
        let place = tracefs.join("events").join(name(line)?).join("id");
        u64::try_from(read_number(&place)?).ok()
    };
    list.lines().filter_map(number).collect()
}

/// `group/name` of a definition.
fn name(line: &str) -> Option<&str> {
    Some(line.split_whitespace().next()?.split_once(':')?.1)
}

fn define(tracefs: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(tracefs.join(DEFINITIONS))?.write_all(line.as_bytes())
}

/// `group/name` of a definition whose process has ended.
fn left_behind(line: &str) -> Option<&str> {
    let name = name(line)?;
    let process = name.split_once('/')?.0.strip_prefix(GROUP)?.parse::<u32>().ok()?;
    (!Path::new("/proc").join(process.to_string()).exists()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_list() {
        let place = tempfile::tempdir().unwrap();
        let tracefs = place.path();
        for (name, id) in [("whit_7/p0", 1811), ("probe_a/b", 1812), ("sched/sched_switch", 314)] {
            let event = tracefs.join("events").join(name);
            std::fs::create_dir_all(&event).unwrap();
            std::fs::write(event.join("id"), format!("{id}\n")).unwrap();
        }
        assert_eq!(numbers(tracefs), BTreeSet::new());
        let list =
            "p:whit_7/p0 /bin/a:0x1 sp=%sp:u64\nr64:probe_a/b /bin/a:0x1\np:gone/c /bin/a:0x2\n";
        std::fs::write(tracefs.join(DEFINITIONS), list).unwrap();
        assert_eq!(numbers(tracefs), BTreeSet::from([1811, 1812]));
    }

    #[test]
    fn definitions_of_ended_processes_are_left_behind() {
        // No process has a number beyond the kernel's largest.
        assert_eq!(left_behind("p:whit_4194305/p0 /bin/a:0x1 sp=%sp:u64"), Some("whit_4194305/p0"));
        assert_eq!(left_behind("r64:whit_4194305/p1 /bin/a:0x1"), Some("whit_4194305/p1"));
        let own = format!("p:whit_{}/p0 /bin/a:0x1", std::process::id());
        for other in [own.as_str(), "p:probe_a/b /bin/a:0x1", "p:whit_x/p0 /a:0x1", ""] {
            assert_eq!(left_behind(other), None);
        }
    }
}
