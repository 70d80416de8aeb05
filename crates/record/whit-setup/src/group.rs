//! The group whose members may profile.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::SetupError;

/// Where `groupadd` is, on any distribution that has it. `PATH` is the caller's and not asked.
const DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
const NAME_MAX_BYTES: usize = 32;

/// A group, by name or by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// A name, which may not exist yet.
    Name(String),
    /// A number, which needs no entry in any list.
    Id(u32),
}

/// Whether a group exists, and which users it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// It exists, or is a number.
    Exists {
        /// Its number.
        id: u32,
    },
    /// There is none with this name.
    Missing,
}

impl Group {
    /// From the command line. The name becomes an argument of other programs, so only what every
    /// distribution takes is taken.
    pub fn parse(text: &str) -> Result<Group, SetupError> {
        if let Ok(id) = text.parse() {
            return Ok(Group::Id(id));
        }
        let first = |c: char| c.is_ascii_lowercase() || c == '_';
        let other = |c: char| first(c) || c.is_ascii_digit() || c == '-';
        let is_name =
            text.len() <= NAME_MAX_BYTES && text.starts_with(first) && text.chars().all(other);
        if !is_name {
            return Err(SetupError::GroupName { name: text.to_owned() });
        }
        Ok(Group::Name(text.to_owned()))
    }

    /// Looks it up.
    pub fn state(&self) -> Result<GroupState, SetupError> {
        let found = match self {
            Group::Id(id) => Some(*id),
            Group::Name(name) => whit_sys::group::id(name)
                .map_err(|source| SetupError::GroupLookUp { name: name.clone(), source })?,
        };
        Ok(found.map_or(GroupState::Missing, |id| GroupState::Exists { id }))
    }

    /// Its number, after creating it where there is none; and whether it was created.
    pub(crate) fn ensure(&self) -> Result<(u32, bool), SetupError> {
        if let GroupState::Exists { id } = self.state()? {
            return Ok((id, false));
        }
        let name = self.to_string();
        run_groupadd(&groupadd(&name, &DIRECTORIES)?, &name)?;
        match self.state()? {
            GroupState::Exists { id } => Ok((id, true)),
            GroupState::Missing => Err(SetupError::Groupadd {
                command: create_command(&name),
                outcome: "reported success, but there is no such group".to_owned(),
            }),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Name(name) => f.write_str(name),
            Group::Id(id) => write!(f, "{id}"),
        }
    }
}

/// The command that creates a group. `--system`: its number is none of those of people.
pub(crate) fn create_command(name: &str) -> String {
    format!("groupadd --system {name}")
}

fn groupadd(name: &str, directories: &[&str]) -> Result<PathBuf, SetupError> {
    let mut places = directories.iter().map(|directory| Path::new(directory).join("groupadd"));
    places.find(|path| path.is_file()).ok_or_else(|| SetupError::NoGroupadd {
        name: name.to_owned(),
        searched: directories.join(", "),
    })
}

fn run_groupadd(program: &Path, name: &str) -> Result<(), SetupError> {
    let failed = |outcome| SetupError::Groupadd { command: create_command(name), outcome };
    let output = Command::new(program)
        .args(["--system", name])
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(failed(format!("ended with {}: {said}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_differ_and_options_are_neither() {
        assert_eq!(Group::parse("perf_users").unwrap(), Group::Name("perf_users".into()));
        assert_eq!(Group::parse("4711").unwrap(), Group::Id(4711));
        for bad in ["", "-f", "--root=/x", "a b", "Perf", "a\n", "1a", "a;b", &"a".repeat(33)] {
            let error = Group::parse(bad).unwrap_err();
            assert!(matches!(error, SetupError::GroupName { .. }), "{bad}: {error}");
        }
    }

    #[test]
    fn states_are_those_of_the_system() {
        assert_eq!(Group::Id(4711).state().unwrap(), GroupState::Exists { id: 4711 });
        let none = Group::Name("no_such_group_here".into());
        assert_eq!(none.state().unwrap(), GroupState::Missing);
        let root = whit_sys::group::name(0).unwrap().unwrap();
        assert_eq!(Group::Name(root).ensure().unwrap(), (0, false));
    }

    #[test]
    fn a_system_without_groupadd_gets_a_message() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().to_str().unwrap();
        let text = groupadd("perf_users", &[directory]).unwrap_err().to_string();
        assert!(text.contains("no groupadd in") && text.contains(directory), "{text}");
        std::fs::write(dir.path().join("groupadd"), "").unwrap();
        assert_eq!(groupadd("perf_users", &[directory]).unwrap(), dir.path().join("groupadd"));
    }

    #[test]
    fn groupadds_output_is_passed_on() {
        let text = run_groupadd(Path::new("/bin/ls"), "no_such").unwrap_err().to_string();
        assert!(text.contains("groupadd --system no_such") && text.contains("--system"), "{text}");
        let text = run_groupadd(Path::new("/nonexistent"), "x").unwrap_err().to_string();
        assert!(text.contains("cannot be run"), "{text}");
    }
}
