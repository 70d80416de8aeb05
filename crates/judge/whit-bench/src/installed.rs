//! Programs that are compared, where they are installed.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

/// A program that is here, in one of its uses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Installed<K> {
    pub(crate) kind: K,
    pub(crate) program: PathBuf,
    /// First line of its `--version`.
    pub(crate) version: String,
}

/// A program that is not here, with the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Absent<K> {
    pub(crate) kind: K,
    pub(crate) reason: String,
}

impl<K: Display> Display for Absent<K> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.reason)
    }
}

impl<K> Installed<K> {
    /// Asks the program for its version.
    pub(crate) fn detect(kind: K, program: PathBuf) -> Result<Installed<K>, Absent<K>> {
        match version(&program) {
            Ok(version) => Ok(Installed { kind, program, version }),
            Err(reason) => Err(Absent { kind, reason }),
        }
    }
}

/// Those that are here, and those that are not.
pub(crate) fn apart<H, A>(found: impl Iterator<Item = Result<H, A>>) -> (Vec<H>, Vec<A>) {
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(one) => here.push(one),
            Err(missing) => absent.push(missing),
        }
    }
    (here, absent)
}

/// The absent ones in words.
pub(crate) fn in_words<K: Display>(absent: &[Absent<K>]) -> Vec<String> {
    absent.iter().map(ToString::to_string).collect()
}

/// The first line of a program's `--version`.
pub(crate) fn version(program: &Path) -> Result<String, String> {
    version_by(program, &["--version"])
}

/// The first line that a program prints for these arguments.
pub(crate) fn version_by(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if !output.status.success() {
        let (program, arguments) = (program.display(), arguments.join(" "));
        return Err(format!("`{program} {arguments}` fails: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
