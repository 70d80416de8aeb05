//! The steps of a grant, as commands.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use whit_sys::capability::CapabilitySet;

use crate::group::{Group, GroupState, create_command};

/// Mode of a program with capabilities: root changes it, the group runs it.
pub(crate) const MODE: u32 = 0o750;
/// Mode of a program without.
pub(crate) const MODE_UNDONE: u32 = 0o755;

/// The steps of a grant or its removal. [`crate::grant`] and [`crate::undo`] do the same without
/// the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Commands, in their order. Each is one line for a shell.
    pub commands: Vec<String>,
}

impl Plan {
    /// To let `group` profile with `program`.
    pub fn to_grant(
        group: &Group,
        state: GroupState,
        program: &Path,
        capabilities: CapabilitySet,
    ) -> Plan {
        let create = (state == GroupState::Missing).then(|| create_command(&group.to_string()));
        let program = shell_word(program);
        let change = [
            format!("chown root:{group} {program}"),
            format!("chmod {MODE:04o} {program}"),
            format!("setcap {capabilities}+ep {program}"),
        ];
        Plan { commands: create.into_iter().chain(change).collect() }
    }

    /// To make `program` one that everybody may run, and that lends nothing.
    pub fn to_undo(program: &Path, has_capabilities: bool) -> Plan {
        let program = shell_word(program);
        let take = has_capabilities.then(|| format!("setcap -r {program}"));
        let change =
            [format!("chown root:root {program}"), format!("chmod {MODE_UNDONE:04o} {program}")];
        Plan { commands: take.into_iter().chain(change).collect() }
    }

    /// The same commands for a user who is not root.
    #[must_use]
    pub fn with_sudo(self) -> Plan {
        let sudo = |command| format!("sudo {command}");
        Plan { commands: self.commands.into_iter().map(sudo).collect() }
    }
}

/// The command that lets somebody into a group.
pub fn join_command(group: &Group) -> String {
    format!("sudo usermod -aG {group} USER")
}

/// A path as a shell takes it. Bytes that a terminal does not show have the form `$'\xff'`.
pub fn shell_word(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    // Others are escaped in messages, so that the shell would get another name.
    let shown = |c: char| matches!(c, ' '..='~') || c.is_alphanumeric();
    match path.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if text.chars().all(shown) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => {
            let byte = |byte: &u8| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                other => format!("\\x{other:02x}"),
            };
            let bytes: Vec<String> = path.as_os_str().as_bytes().iter().map(byte).collect();
            format!("$'{}'", bytes.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_that_an_administrator_types() {
        let group = Group::Name("perf_users".into());
        let path = Path::new("/usr/local/bin/whit");
        let capabilities = CapabilitySet::for_profiling(true);
        let plan = Plan::to_grant(&group, GroupState::Missing, path, capabilities);
        let expected = [
            "groupadd --system perf_users",
            "chown root:perf_users /usr/local/bin/whit",
            "chmod 0750 /usr/local/bin/whit",
            "setcap cap_sys_ptrace,cap_syslog,cap_perfmon,cap_bpf+ep /usr/local/bin/whit",
        ];
        assert_eq!(plan.commands, expected);
        let exists = Plan::to_grant(&group, GroupState::Exists { id: 7 }, path, capabilities);
        assert_eq!(exists.commands, expected[1..]);
        assert_eq!(exists.with_sudo().commands[0], format!("sudo {}", expected[1]));
        let undo = Plan::to_undo(path, true);
        assert_eq!(undo.commands[0], "setcap -r /usr/local/bin/whit");
        assert_eq!(Plan::to_undo(path, false).commands, undo.commands[1..]);
        assert_eq!(join_command(&group), "sudo usermod -aG perf_users USER");
    }

    #[test]
    fn paths_reach_the_program_as_they_are() {
        let quoted = shell_word(Path::new("/opt/it's here/whit"));
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf %s {quoted}")])
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"/opt/it's here/whit");
        assert_eq!(shell_word(Path::new("/usr/bin/whit")), "/usr/bin/whit");
        for bytes in [&b"/opt/\xff\xfe.data"[..], b"/opt/a\nb'\\c", "/opt/größe ß".as_bytes()] {
            let quoted = shell_word(Path::new(std::ffi::OsStr::from_bytes(bytes)));
            assert!(!quoted.contains(char::is_control), "{quoted}");
            let output = std::process::Command::new("bash")
                .args(["-c", &format!("printf %s {quoted}")])
                .output()
                .unwrap();
            assert_eq!(output.stdout, bytes, "{quoted}");
        }
    }
}
