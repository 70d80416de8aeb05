//! Adds a recording to a dataset.

use crate::error::{DatasetError, shown};
use crate::identity::Identity;
use crate::layout::{Part, parts};
use crate::part_reader::PartReader;
use crate::part_writer::{Labels, write};
use crate::writing_folder::WritingFolder;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use whit_tables::{Database, MAX_RECORDINGS, TABLES, find};

/// The table whose file stands for the whole recording.
pub(crate) const LAST_TABLE: &str = "recording";

/// A clock that is ahead by less than this is in order.
const MAX_CLOCK_AHEAD: Duration = Duration::from_secs(60);

/// Facts from outside.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Version of the program that writes.
    pub version: &'a str,
    /// Clock of the exporting machine.
    pub now: SystemTime,
    /// When the recording was last written.
    pub modified: SystemTime,
    /// Write a recording again that is there.
    pub force: bool,
}

/// A recording that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exported {
    /// `recording.id`.
    pub id: i64,
    /// Samples of all events.
    pub samples: u64,
    /// Size of the file in `sample`.
    pub sample_bytes: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// How far the clock of its host was ahead of ours, at least; `None` where it is in order or not known.
    pub clock_ahead: Option<Duration>,
}

/// How an export ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The recording was added.
    Written(Exported),
    /// The dataset has this recording.
    Present {
        /// `recording.id`.
        id: i64,
        /// Its last file.
        path: String,
    },
}

/// Adds the only recording of a database.
///
/// # Errors
/// The recording cannot be read, or files cannot be written: then the dataset is as it was.
pub fn export(root: &Path, database: &Database, facts: Facts<'_>) -> Result<Outcome, DatasetError> {
    let identity = Identity::of(database)?;
    let (id, is_present) = number(root, &identity, facts)?;
    let part = place(root, &identity, id, facts.modified)?;
    let last = part.path(root, LAST_TABLE);
    if is_present && !facts.force {
        return Ok(Outcome::Present { id, path: shown(&last) });
    }
    let database = database.numbered_from(id);
    let writing = WritingFolder::make(root)?;
    let labels = Labels { digest: &identity.digest, version: facts.version };
    let (mut bytes, mut sample_bytes) = (0, 0);
    for table in TABLES {
        let path = writing.folder.path().join(table.name());
        let written = write(&path, table, &database, &labels)?;
        bytes += written;
        if table.name() == "sample" {
            sample_bytes = written;
        }
    }
    publish(root, &part, writing.folder.path())?;
    let ahead = identity.end.and_then(|end| end.duration_since(facts.now).ok());
    let clock_ahead = ahead.filter(|ahead| *ahead > MAX_CLOCK_AHEAD);
    let samples = identity.samples;
    Ok(Outcome::Written(Exported { id, samples, sample_bytes, bytes, clock_ahead }))
}

/// The number of the recording, and whether the dataset has it. A number that another recording has is left to it.
fn number(root: &Path, identity: &Identity, facts: Facts<'_>) -> Result<(i64, bool), DatasetError> {
    let Some(table) = find(LAST_TABLE) else { return Ok((identity.first_id, false)) };
    let (present, _) = parts(root, LAST_TABLE)?;
    let mut id = identity.first_id;
    while let Some(part) = present.iter().find(|part| part.id == id) {
        match PartReader::digest_of(&part.path(root, LAST_TABLE), table) {
            Ok(digest) if digest == identity.digest => return Ok((id, true)),
            Ok(_) => id = (id + 1) % MAX_RECORDINGS,
            // A damaged file is written anew where this recording would have it.
            Err(_) if facts.force && part.place == identity.place(facts.modified) => {
                return Ok((id, true));
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(other) = present.first() {
        PartReader::check_version_of(&other.path(root, LAST_TABLE))?;
    }
    Ok((id, false))
}

/// Where its files belong. Those of a killed export have their place already, and it stays theirs.
fn place(
    root: &Path,
    identity: &Identity,
    id: i64,
    modified: SystemTime,
) -> Result<Part, DatasetError> {
    let place = identity.place(modified);
    for table in TABLES {
        let (present, _) = parts(root, table.name())?;
        let mut own = present.into_iter().filter(|part| part.id == id);
        if let Some(part) = own.find(|part| part.place.host == place.host) {
            return Ok(part);
        }
    }
    Ok(Part { place, id })
}

/// Gives all files their names, that of the recording last.
fn publish(root: &Path, part: &Part, from: &Path) -> Result<(), DatasetError> {
    let (last, others): (Vec<_>, Vec<_>) =
        TABLES.iter().map(|table| table.name()).partition(|name| *name == LAST_TABLE);
    for group in [others, last] {
        let mut changed = BTreeSet::new();
        for table in group {
            let path = part.path(root, table);
            make_folders(root, &path, &mut changed)?;
            std::fs::rename(from.join(table), &path).map_err(DatasetError::io(&path))?;
        }
        // Names reach the disk before that of the recording does.
        for folder in changed {
            let synced = File::open(&folder).and_then(|folder| folder.sync_all());
            synced.map_err(DatasetError::io(&folder))?;
        }
    }
    Ok(())
}

/// Makes the folders of a file, and notes those that get a new name in them.
fn make_folders(
    root: &Path,
    path: &Path,
    changed: &mut BTreeSet<PathBuf>,
) -> Result<(), DatasetError> {
    let folder = path.parent().unwrap_or(root);
    let absent = folder.ancestors().take_while(|folder| *folder != root && !folder.exists());
    changed.extend(absent.filter_map(Path::parent).map(Path::to_owned));
    changed.insert(folder.to_owned());
    std::fs::create_dir_all(folder).map_err(DatasetError::io(folder))
}
