//! Tracepoint ids, which only tracefs knows.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where tracefs is mounted since Linux 4.1, and where it was before.
pub const TRACEFS_PATHS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Files beside the systems and events in tracefs' `events` directory.
const NOT_EVENTS: [&str; 5] = ["enable", "filter", "header_event", "header_page", "format"];

/// Gives the ids of tracepoints.
pub trait TracepointIds {
    /// Names of all subsystems.
    ///
    /// # Errors
    ///
    /// Where they cannot be listed.
    fn systems(&mut self) -> Result<Vec<String>, TracepointError>;

    /// Names of the tracepoints of a subsystem; empty for an unknown one.
    ///
    /// # Errors
    ///
    /// Where they cannot be listed.
    fn names(&mut self, system: &str) -> Result<Vec<String>, TracepointError>;

    /// The id of a tracepoint (`perf_event_attr.config`); `None` where there is no such one.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    fn id(&mut self, system: &str, name: &str) -> Result<Option<u64>, TracepointError>;
}

/// Why tracepoints could not be looked up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracepointError {
    /// tracefs is not there.
    #[error("there is no tracefs at {root}; mount it: {}", mount_command())]
    NotMounted {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// A file or directory was refused.
    #[error("cannot read {path}: {source}; let your group read it: {}", share_command(root))]
    Refused {
        /// Where tracefs is mounted.
        root: PathBuf,
        /// The path looked at.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// An id file did not hold a number.
    #[error("{path} holds no tracepoint id")]
    BadId {
        /// The file.
        path: PathBuf,
    },
}

impl TracepointError {
    /// The command that helps, where there is one.
    pub fn remedy(&self) -> Option<String> {
        match self {
            TracepointError::NotMounted { .. } => Some(mount_command()),
            TracepointError::Refused { root, .. } => Some(share_command(root)),
            TracepointError::BadId { .. } => None,
        }
    }
}

fn mount_command() -> String {
    format!("sudo mount -t tracefs tracefs {}", TRACEFS_PATHS[0])
}

/// The group has to be given too: files below are readable for owner and group only, whatever
/// the mode of the mount.
fn share_command(root: &Path) -> String {
    format!("sudo mount -o remount,mode=750,gid=$(id -g) {}", root.display())
}

/// Reads tracefs when asked.
#[derive(Clone, Debug)]
pub struct TracefsIds {
    root: PathBuf,
}

impl TracefsIds {
    /// Reads the tracefs that is mounted at `root`.
    pub fn new(root: impl Into<PathBuf>) -> TracefsIds {
        TracefsIds { root: root.into() }
    }

    /// Reads the first of [`TRACEFS_PATHS`] that holds events, or is at least refused rather than
    /// absent.
    pub fn system() -> TracefsIds {
        let present = |path: &&str| match fs::metadata(Path::new(path).join("events")) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        };
        let found = TRACEFS_PATHS.iter().find(|path| present(path));
        TracefsIds::new(*found.unwrap_or(&TRACEFS_PATHS[0]))
    }

    fn list(&self, dir: &Path) -> Result<Option<Vec<String>>, TracepointError> {
        let refused = |source| {
            let (root, path) = (self.root.clone(), dir.to_owned());
            TracepointError::Refused { root, path, source }
        };
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(refused)?.file_name().to_string_lossy().into_owned();
            if !NOT_EVENTS.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names.sort();
        Ok(Some(names))
    }
}

impl TracepointIds for TracefsIds {
    fn systems(&mut self) -> Result<Vec<String>, TracepointError> {
        let path = self.root.join("events");
        self.list(&path)?.ok_or(TracepointError::NotMounted { root: self.root.clone() })
    }

    fn names(&mut self, system: &str) -> Result<Vec<String>, TracepointError> {
        if !is_file_name(system) {
            return Ok(Vec::new());
        }
        let dir = self.root.join("events").join(system);
        let mut names = self.list(&dir)?.unwrap_or_default();
        // Formats of ftrace's own records stand there too, and cannot be opened.
        names.retain(|name| dir.join(name).join("id").try_exists().unwrap_or(true));
        Ok(names)
    }

    fn id(&mut self, system: &str, name: &str) -> Result<Option<u64>, TracepointError> {
        if !is_file_name(system) || !is_file_name(name) {
            return Ok(None);
        }
        let path = self.root.join("events").join(system).join(name).join("id");
        match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().map(Some).map_err(|_| TracepointError::BadId { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Tells an unknown tracepoint from a tracefs that is not there.
                self.systems().map(|_| None)
            }
            Err(source) => Err(TracepointError::Refused { root: self.root.clone(), path, source }),
        }
    }
}

/// Whether the name stays inside its directory.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/')
}
