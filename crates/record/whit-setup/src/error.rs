//! Why something could not be set up.

use std::io;
use std::path::PathBuf;

use whit_sys::Errno;

/// Why something could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The group cannot be meant.
    #[error(
        "'{name}' is no name for a group: use lower-case letters, digits, '_' and '-', at most 32, \
         beginning with a letter or '_'; or the number of a group"
    )]
    GroupName {
        /// The refused name, as the user gave it.
        name: String,
    },
    /// Groups cannot be looked up.
    #[error("cannot look up the group {name}")]
    GroupLookUp {
        /// The name that the system does not know.
        name: String,
        /// The system's error.
        source: Errno,
    },
    /// There is no program to create groups with.
    #[error(
        "there is no group {name}, and no groupadd in {searched} to create it with: create it with \
         this system's own means, then run whit setup again"
    )]
    NoGroupadd {
        /// The group.
        name: String,
        /// Directories, for reading.
        searched: String,
    },
    /// Creating the group failed.
    #[error("cannot create the group: '{command}' {outcome}")]
    Groupadd {
        /// The command line that failed.
        command: String,
        /// How it ended.
        outcome: String,
    },
    /// A file of `/proc` cannot be read.
    #[error("cannot read {path}")]
    System {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The system says something that is not understood.
    #[error("{path} has no {line} line")]
    Status {
        /// The file.
        path: PathBuf,
        /// The line that is missing.
        line: &'static str,
    },
    /// The program cannot be looked at.
    #[error("cannot {attempt} {path}")]
    Program {
        /// The attempted action, as in "cannot *read the owner of*".
        attempt: &'static str,
        /// The program.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The program is a link to another file.
    #[error(
        "{path} is a symbolic link to {target}: name the file itself, so that it is plain what \
         gets the capabilities"
    )]
    SymbolicLink {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// The program is something else than a file.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The program.
        path: PathBuf,
    },
    /// The file differs from the grant that was written.
    #[error("{path} has {found} instead of {wanted} after the change: it was taken back")]
    NotAsWritten {
        /// The program.
        path: PathBuf,
        /// As read back.
        found: String,
        /// The grant that was written.
        wanted: String,
    },
}

impl SetupError {
    pub(crate) fn program(
        attempt: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(Errno) -> SetupError {
        let path = path.to_owned();
        move |errno| SetupError::Program { attempt, path, source: errno.into() }
    }
}
