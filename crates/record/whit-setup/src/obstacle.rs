//! Reasons against giving a program capabilities.

use std::path::PathBuf;

use whit_sys::capability::CapabilitySet;

use crate::path_check::Writer;

/// A reason not to, with the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Capabilities of files do not count on this mount.
    #[error(
        "{path} is on a file system that is mounted nosuid, where capabilities of files do not \
         count"
    )]
    NoSuid {
        /// The program.
        path: PathBuf,
    },
    /// Nothing can be changed on this mount.
    #[error("{path} is on a file system that is mounted read-only")]
    ReadOnly {
        /// The program.
        path: PathBuf,
    },
    /// There is no place for capabilities.
    #[error("{path} is on a file system that keeps no extended attributes")]
    NoAttributes {
        /// The program.
        path: PathBuf,
    },
    /// Somebody else could put another program in its place.
    #[error("{directory}, in which the program lies, {writer}: the program could be replaced")]
    Replaceable {
        /// The unsafe directory above the program.
        directory: PathBuf,
        /// The users who can write it, in words that follow the directory's name.
        writer: Writer,
    },
    /// Somebody else may have the file open for writing.
    #[error("{path} {writer}: what is in it could be changed")]
    Changeable {
        /// The program.
        path: PathBuf,
        /// The users who can write it, in words that follow the file's name.
        writer: Writer,
    },
    /// It is another program than this one.
    #[error(
        "{path} is not a copy of this whit ({own}): another program would not give up the \
         capabilities before it runs commands and opens files; run the setup of that whit itself"
    )]
    OtherProgram {
        /// The program.
        path: PathBuf,
        /// Path of the program that runs.
        own: PathBuf,
    },
    /// Capabilities in a user namespace do not count for perf events.
    #[error(
        "this is a user namespace: the kernel checks perf events against the machine's own \
         capabilities; run whit setup outside the container"
    )]
    UserNamespace,
    /// No program can gain these here, and the kernel refuses to run a program that is to have
    /// them from the start.
    #[error(
        "{capabilities} cannot be gained by any program here: start the container or service with \
         them (docker: --cap-add), or run whit setup outside of it"
    )]
    OutOfReach {
        /// Capabilities that the grant needs.
        capabilities: CapabilitySet,
    },
}

impl Obstacle {
    /// Whether a copy in a place of root's own would do.
    pub fn is_about_the_place(&self) -> bool {
        !matches!(
            self,
            Obstacle::OtherProgram { .. } | Obstacle::UserNamespace | Obstacle::OutOfReach { .. }
        )
    }
}
