//! Files of the cache: written under a name of their own, and renamed when they are whole.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tempfile::NamedTempFile;

/// Directories of build ids are their user's, as in elfutils.
const FOLDER_MODE: u32 = 0o700;
/// Files that are there are not written again.
const FILE_MODE: u32 = 0o400;

/// A file that has no name in the cache yet; goes with this value.
pub(crate) fn begin(file: &Path) -> io::Result<NamedTempFile> {
    let folder = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    tempfile::Builder::new().prefix(&format!("{name}.")).tempfile_in(folder)
}

/// Gives the file its name. It takes the place of an empty file, which stands for a failed query.
pub(crate) fn keep(new: NamedTempFile, file: &Path) -> io::Result<()> {
    new.as_file().set_permissions(Permissions::from_mode(FILE_MODE))?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// Remembers that no server has a file.
pub(crate) fn note_miss(file: &Path) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    // An older note has to get a new time.
    if file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
        fs::remove_file(file)?;
    }
    match fs::File::create_new(file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
