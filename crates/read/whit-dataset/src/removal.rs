//! Takes recordings out of a dataset.

use crate::error::DatasetError;
use crate::layout::{LAST_TABLE, Part, parts};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use whit_tables::TABLES;

/// A recording of a dataset, by its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The path of each of its files below the folder of a table.
    pub name: PathBuf,
    /// When it was added.
    pub added: SystemTime,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// All recordings of a dataset; none where the folder is not there.
///
/// # Errors
/// A folder or a file cannot be looked at.
pub fn stored(root: &Path) -> Result<Vec<Stored>, DatasetError> {
    let (recordings, _) = parts(root, LAST_TABLE)?;
    recordings.iter().map(|part| stored_part(root, part)).collect()
}

fn stored_part(root: &Path, part: &Part) -> Result<Stored, DatasetError> {
    let path = part.path(root, LAST_TABLE);
    let added =
        fs::metadata(&path).and_then(|it| it.modified()).map_err(DatasetError::io(&path))?;
    let sizes = TABLES.iter().filter_map(|it| fs::metadata(part.path(root, it.name())).ok());
    Ok(Stored { name: name(part), added, bytes: sizes.map(|it| it.len()).sum() })
}

pub(crate) fn name(part: &Part) -> PathBuf {
    part.path(Path::new(""), "")
}

/// Removes a recording by its name. Its file in `recording` goes first: from then on, it is not in the dataset.
///
/// # Errors
/// A file cannot be removed. The same call goes on later.
pub fn remove(root: &Path, name: &Path) -> Result<(), DatasetError> {
    let others = TABLES.iter().map(|table| table.name()).filter(|name| *name != LAST_TABLE);
    for table in [LAST_TABLE].into_iter().chain(others) {
        let path = root.join(table).join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DatasetError::io(&path)(error));
            }
            _ => {}
        }
        // Those of the date and of the host, where nothing is left in them.
        let folders = path.ancestors().skip(1).take(2);
        let _ = folders.map(fs::remove_dir).take_while(Result::is_ok).count();
    }
    Ok(())
}
