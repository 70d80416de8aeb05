//! Opens the binary that was recorded, and no other.
//!
//! A file at the recorded path is used only if it has the recorded build id; where none was
//! recorded, if it is the same inode, of the same size and time. Where the recorder noted no size
//! and no time, it must not have changed since the recording was written. The process that mapped
//! it may still run: then the file is opened through it, even if the path is gone. Else a recorder
//! may have kept a copy.

use std::cell::Cell;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use whit_sys::process_files::{ForeignFile, Identity, OpenError, WantedFile};
use whit_types::{BuildId, OpenFailure, Pid};

use crate::companion::{DebugDirs, PROC, check, is_same};
use crate::dso_spec::DsoSpec;
use crate::reason::Reason;
use whit_elf::ElfImage;

impl DebugDirs {
    /// Opens the binary that was recorded. A companion that has the build id stands in for a binary that is
    /// gone.
    pub(crate) fn open_recorded(&self, spec: &DsoSpec) -> Result<ElfImage, Reason> {
        let failure = match self.open_in_place(spec) {
            Ok(image) => return Ok(image),
            Err(reason) => reason,
        };
        self.copies(spec).ok_or(failure)
    }

    /// The file itself.
    fn open_in_place(&self, spec: &DsoSpec) -> Result<ElfImage, Reason> {
        if self.symfs.is_some() {
            let image = ElfImage::open(&self.in_symfs(&spec.path))?;
            return check(image, spec.build_id);
        }
        let mut first_failure = None;
        // Without a process, the path alone.
        let pids: Vec<_> = if spec.pids.is_empty() {
            vec![None]
        } else {
            spec.pids.iter().map(|pid| Some(*pid)).collect()
        };
        for pid in pids {
            match open_through(pid, spec) {
                Ok(image) => return Ok(image),
                Err(reason) => first_failure = first_failure.or(Some(reason)),
            }
        }
        Err(first_failure.unwrap_or_else(|| Reason::FileMissing { path: Arc::from(&*spec.path) }))
    }

    /// Copies that recorders kept, and companions.
    fn copies(&self, spec: &DsoSpec) -> Option<ElfImage> {
        let Some(id) = spec.build_id else {
            return ElfImage::open(&self.kept(&spec.identity.stamp?)?).ok();
        };
        let fetched = self.fetched.as_ref().map(|cache| cache.whole(id));
        let mut places =
            self.cached(id, "elf").into_iter().chain(self.by_build_id(id)).chain(fetched);
        places.find_map(|path| check(ElfImage::open(&path).ok()?, Some(id)).ok())
    }
}

fn open_through(pid: Option<Pid>, spec: &DsoSpec) -> Result<ElfImage, Reason> {
    let path: &Path = &spec.path;
    let other = Cell::new(None);
    let by_build_id = |wanted: BuildId| {
        let other = &other;
        move |file: &ForeignFile| {
            let image = ElfImage::from_foreign(path, file).ok();
            let found = image.as_ref().and_then(ElfImage::build_id);
            other.set(image.map(|_| found));
            is_same(found, wanted)
        }
    };
    let by_build_id = spec.build_id.map(by_build_id);
    let by_numbers = |file: &ForeignFile| spec.identity.is_of(file);
    let identity = match &by_build_id {
        Some(test) => Identity::Test(test),
        None if spec.identity.is_known() => Identity::Test(&by_numbers),
        None => Identity::Path,
    };
    let pid = pid.map(|pid| pid.0);
    let path_bytes = path.as_os_str().as_bytes();
    let wanted = WantedFile { pid, relatives: &[], range: None, identity, path: path_bytes };
    match wanted.open(Path::new(PROC)) {
        Ok(file) if spec.build_id.is_none() && spec.identity.is_changed_since(&file) => {
            Err(Reason::ChangedSince { path: Arc::from(path) })
        }
        Ok(file) => Ok(ElfImage::from_foreign(path, &file)?),
        Err(error) => Err(match (error.failure, spec.build_id, other.get()) {
            (OpenFailure::Replaced, Some(recorded), Some(found)) => {
                Reason::BuildIdDiffers { path: Arc::from(path), recorded, found }
            }
            _ => reason(path, error, pid.is_some()),
        }),
    }
}

/// The name of a file in mapping records of the kernel where the path is too long for them.
const TOO_LONG: &str = "//toolong";

/// Why there is no file; `was_mapped` by a process of this machine.
fn reason(path: &Path, error: OpenError, was_mapped: bool) -> Reason {
    // The kernel puts this for a path that its buffer does not hold (`perf_event_mmap_event`).
    if path == Path::new(TOO_LONG) {
        let error = Arc::from("its path is longer than the 4096 bytes that the kernel records");
        return Reason::Unreadable { path: Arc::from(path), error };
    }
    let path = Arc::from(path);
    match error.failure {
        OpenFailure::Missing if was_mapped => Reason::Gone { path },
        OpenFailure::Missing => Reason::FileMissing { path },
        OpenFailure::PermissionDenied => Reason::PermissionDenied { path },
        OpenFailure::Deleted => Reason::Deleted { path },
        OpenFailure::Replaced => Reason::Replaced { path },
        OpenFailure::OtherNamespace => Reason::OtherNamespace { path },
        OpenFailure::NotRegular => Reason::NotElf { path },
        OpenFailure::Unreadable | OpenFailure::NoAnswer => {
            Reason::Unreadable { path, error: Arc::from(error.to_string()) }
        }
    }
}
