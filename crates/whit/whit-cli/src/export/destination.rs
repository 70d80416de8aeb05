//! Where an export goes: without a name until it is whole, so that an export that fails or is killed leaves nothing, and an
//! existing file as it was.

use anyhow::{Context, Result, bail};
use std::fs::Permissions;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use whit_perfdata::existing::{Existing, existing};
use whit_perfdata::reader::Recording;
use whit_sys::unnamed_file::UnnamedFile;

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 18;

/// An exported file is readable like any new file, as far as the user's mask allows.
const FILE_MODE: u32 = 0o666;

const UNNAMED: &str = "the finished file cannot get its name";

/// Refuses what would be refused after the recording was read.
pub(super) fn check(recording: &Recording, output: &Path, force: bool) -> Result<()> {
    if is_pipe(output) {
        return Ok(());
    }
    if output.symlink_metadata().is_ok() && !force {
        bail!("{} exists: choose another name, or replace it with -f", output.display());
    }
    if output.canonicalize().ok().is_some_and(|out| recording.path.canonicalize().ok() == Some(out))
    {
        bail!("{} is the recording itself: choose another name", output.display());
    }
    Ok(())
}

/// True for standard output and for files that take bytes one after the other, such as `/dev/stdout`.
pub(super) fn is_pipe(output: &Path) -> bool {
    output == Path::new("-") || matches!(existing(output), Ok(Existing::Stream))
}

/// The folder of the output.
pub(super) fn folder_of(output: &Path) -> &Path {
    match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes a whole file, or nothing. Gives the number of its bytes.
pub(super) fn write(output: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let written = if output == Path::new("-") {
        counted(io::stdout().lock(), fill)
    } else if is_pipe(output) {
        std::fs::File::create(output).map_err(Into::into).and_then(|file| counted(file, fill))
    } else {
        replace(output, fill)
    };
    written.map_err(|error| {
        let advice = format!("{} was not written{}", output.display(), way_out(&error));
        error.context(advice)
    })
}

fn replace(output: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    // The target of a link is replaced, not the link.
    let output = output.canonicalize().unwrap_or_else(|_| output.to_owned());
    let folder = folder_of(&output);
    let mut builder = tempfile::Builder::new();
    let Ok(mut new) = UnnamedFile::create_in(folder) else {
        // This file system has no files without a name: a killed export leaves one with a temporary name.
        let builder = builder.permissions(Permissions::from_mode(FILE_MODE));
        let mut new = builder.tempfile_in(folder)?;
        let bytes = counted(new.as_file_mut(), fill)?;
        new.persist(&output).context(UNNAMED)?;
        return Ok(bytes);
    };
    let bytes = counted(new.file(), fill)?;
    let named = builder.make_in(folder, |path| Ok(new.link(path)?)).context(UNNAMED)?;
    named.persist(&output).context(UNNAMED)?;
    Ok(bytes)
}

fn counted(out: impl Write, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<u64> {
    let mut out = Counting { out: BufWriter::with_capacity(WRITE_BYTES, out), bytes: 0 };
    fill(&mut out)?;
    out.flush()?;
    Ok(out.bytes)
}

struct Counting<W: Write> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The remedy for an error.
pub(super) fn way_out(error: &anyhow::Error) -> &'static str {
    let kind = error.chain().find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    match kind {
        Some(ErrorKind::PermissionDenied) => " (name a place with -o where you may write)",
        Some(ErrorKind::StorageFull) => {
            " (make room there, or name a place with -o that has some: a recording for perf takes ten \
             times as much as one that is packed and compressed)"
        }
        Some(ErrorKind::NotFound) => " (make the folder first, or name another with -o)",
        Some(ErrorKind::IsADirectory) => " (a directory stands there: choose another name)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_name_before_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let bytes = write(&output, |out| {
            out.write_all(&vec![b'x'; 2 * WRITE_BYTES])?;
            assert_eq!(names(), 0);
            Ok(())
        });
        assert_eq!(bytes.unwrap(), 2 * WRITE_BYTES as u64);
        let failed = write(&output, |out| {
            out.write_all(b"half")?;
            assert_eq!(names(), 1);
            bail!("no more")
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&output).unwrap().len(), 2 * WRITE_BYTES);
        assert_eq!(write(&output, |out| Ok(out.write_all(b"new")?)).unwrap(), 3);
        assert_eq!(std::fs::read(&output).unwrap(), b"new");
        assert_eq!(names(), 1);
    }
}
