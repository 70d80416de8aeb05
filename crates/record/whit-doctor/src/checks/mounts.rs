//! Mounted file systems, from `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`).

use std::fs;
use std::path::PathBuf;

use crate::machine::Machine;

/// One mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Mount {
    /// Where it is seen.
    pub(super) point: PathBuf,
    /// `cgroup2`, `tracefs`.
    pub(super) kind: String,
    /// Options of the file system, among them a v1 hierarchy's controllers.
    pub(super) options: Vec<String>,
}

pub(super) fn read(machine: &Machine) -> Vec<Mount> {
    let text = fs::read_to_string(machine.proc("self/mountinfo")).unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = file_system.split(' ');
    let kind = fields.next()?.to_owned();
    let options = fields.nth(1).unwrap_or_default().split(',').map(str::to_owned).collect();
    Some(Mount { point: unescape(mount.split(' ').nth(4)?).into(), kind, options })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescape(field: &str) -> String {
    let replaced = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")];
    let text = replaced.iter().fold(field.to_owned(), |text, (code, c)| text.replace(code, c));
    text.replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_and_escapes_are_read() {
        let line = "41 31 0:38 / /mnt/a\\040b rw,relatime shared:5 master:2 - cgroup none rw,cpu,perf_event";
        let mount = parse(line).unwrap();
        assert_eq!(mount.point, PathBuf::from("/mnt/a b"));
        assert_eq!((mount.kind.as_str(), mount.options.len()), ("cgroup", 3));
        assert_eq!(parse("41 31 0:38 / /mnt rw"), None);
    }
}
