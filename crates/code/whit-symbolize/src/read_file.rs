//! Reading whole files of bounded size.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use whit_sys::process_files::{ForeignFile, open_regular_or_kernels};

use crate::reason::Reason;

/// Room made before reading; the running kernel's list of symbols mostly fits.
const FIRST_ROOM_BYTES: u64 = 12 << 20;

/// The contents of a regular file (or one below `/proc`, which states no size) up to `limit_bytes`.
pub(crate) fn read_limited(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, Reason> {
    // A pipe or a device would block or never end.
    let file = open_regular_or_kernels(path).map_err(|errno| Reason::unopened(path, errno))?;
    read_open(path, file, limit_bytes)
}

/// Rest of an open file, up to `limit_bytes`. `path` is its name.
pub(crate) fn read_open(path: &Path, file: File, limit_bytes: u64) -> Result<Vec<u8>, Reason> {
    let failed = |error: std::io::Error| Reason::from_io(path, &error);
    // Files below /proc give out a page at a time: growing step by step would copy the data a dozen
    // times.
    let mut bytes = Vec::with_capacity(limit_bytes.min(FIRST_ROOM_BYTES) as usize);
    let size = file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(failed)?;
    if size as u64 > limit_bytes {
        let error = format!("larger than {limit_bytes} bytes");
        return Err(Reason::Unreadable { path: path.into(), error: error.into() });
    }
    Ok(bytes)
}

/// The last `limit_bytes` of an open file, and the number of bytes before them. `path` is its name.
pub(crate) fn read_end(
    path: &Path,
    file: &ForeignFile,
    limit_bytes: u64,
) -> Result<(Vec<u8>, u64), Reason> {
    let failed = |error: std::io::Error| Reason::from_io(path, &error);
    let (size, mut file) = (file.facts().size_bytes, file.reader());
    let before = size.saturating_sub(limit_bytes);
    file.seek(SeekFrom::Start(before)).map_err(failed)?;
    let mut bytes = Vec::with_capacity((size - before) as usize);
    // A file that grows meanwhile has its further lines in the next report.
    file.take(limit_bytes).read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, before))
}

/// The same of a file that is open already, from its beginning.
pub(crate) fn read_reopened(path: &Path, file: &File, limit_bytes: u64) -> Result<Vec<u8>, Reason> {
    let failed = |error: std::io::Error| Reason::from_io(path, &error);
    // A clone shares the position with the file that it was made of.
    let mut file = file.try_clone().map_err(failed)?;
    file.rewind().map_err(failed)?;
    read_open(path, file, limit_bytes)
}
