//! Adds recordings to a dataset.

use crate::error::{DatasetError, shown};
use crate::identity::Identity;
use crate::layout::{LAST_TABLE, Listing, Part};
use crate::part_reader::PartReader;
use crate::part_writer::{Labels, write};
use crate::publish::{Addition, FileSystem, publish};
use crate::removal;
use crate::writing_folder::WritingFolder;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use whit_tables::{Database, MAX_RECORDINGS, TABLES, find};

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
    /// The path of each of its files below the folder of a table, as [`crate::remove`] takes it.
    pub name: PathBuf,
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
    let mut export = Export::new(root);
    let outcome = export.add(database, facts)?;
    export.publish()?;
    Ok(outcome)
}

/// Recordings on their way into a dataset: they are in it from [`Export::publish`] on, all with one wait for the disk.
/// Those that were not published when this ends are not in it.
pub struct Export {
    root: PathBuf,
    /// The files of the dataset, read once for all recordings that are published together.
    listing: Option<Listing>,
    writing: Option<WritingFolder>,
    additions: Vec<Addition>,
}

impl Export {
    /// Most recordings that are published together: their files are open until then.
    pub const MAX_RECORDINGS: usize = 8;

    /// Into this dataset.
    pub fn new(root: &Path) -> Export {
        Export { root: root.to_owned(), listing: None, writing: None, additions: Vec::new() }
    }

    /// True where the next recording is to be added after a [`Export::publish`].
    pub fn is_full(&self) -> bool {
        self.additions.len() >= Export::MAX_RECORDINGS
    }

    /// Writes the only recording of a database, without names yet.
    ///
    /// # Errors
    /// The recording cannot be read, or files cannot be written: those that were added before stay.
    pub fn add(&mut self, database: &Database, facts: Facts<'_>) -> Result<Outcome, DatasetError> {
        let identity = Identity::of(database)?;
        let listing = match self.listing.take() {
            Some(listing) => listing,
            None => Listing::read(&self.root, TABLES.iter().map(|table| table.name()))?,
        };
        let listing = self.listing.insert(listing);
        let (id, is_present) = number(&self.root, listing, &self.additions, &identity, facts)?;
        let part = place(listing, &self.additions, &identity, id, facts.modified);
        if is_present && !facts.force {
            return Ok(Outcome::Present { id, path: shown(&part.path(&self.root, LAST_TABLE)) });
        }
        let (addition, exported) = self.write(part, &identity, database, facts)?;
        self.additions.push(addition);
        Ok(Outcome::Written(exported))
    }

    fn write(
        &mut self,
        part: Part,
        identity: &Identity,
        database: &Database,
        facts: Facts<'_>,
    ) -> Result<(Addition, Exported), DatasetError> {
        let database = database.numbered_from(part.id);
        let writing = match self.writing.take() {
            Some(writing) => writing,
            None => WritingFolder::make(&self.root)?,
        };
        let from = self.writing.insert(writing).folder(self.additions.len())?;
        let labels = Labels { digest: &identity.digest, version: facts.version };
        let (mut files, mut bytes, mut sample_bytes) = (Vec::new(), 0, 0);
        for table in TABLES {
            let (file, written) = write(&from.join(table.name()), table, &database, &labels)?;
            files.push((table.name(), file));
            bytes += written;
            if table.name() == "sample" {
                sample_bytes = written;
            }
        }
        let ahead = identity.end.and_then(|end| end.duration_since(facts.now).ok());
        let clock_ahead = ahead.filter(|ahead| *ahead > MAX_CLOCK_AHEAD);
        let (id, name, samples) = (part.id, removal::name(&part), identity.samples);
        let exported = Exported { id, name, samples, sample_bytes, bytes, clock_ahead };
        Ok((Addition { part, digest: identity.digest.clone(), from, files }, exported))
    }

    /// Gives the files of all added recordings their names. Nothing is to be published then.
    ///
    /// # Errors
    /// Files do not reach the disk, or get no names: each recording is in the dataset as a whole or not at all.
    pub fn publish(&mut self) -> Result<(), DatasetError> {
        let additions = std::mem::take(&mut self.additions);
        self.listing = None;
        let published = match additions.is_empty() {
            true => Ok(()),
            false => publish(&self.root, additions, &FileSystem),
        };
        self.writing = None;
        published
    }
}

/// The number of the recording, and whether the dataset has it. A number that another recording has is left to it.
fn number(
    root: &Path,
    listing: &Listing,
    additions: &[Addition],
    identity: &Identity,
    facts: Facts<'_>,
) -> Result<(i64, bool), DatasetError> {
    let Some(table) = find(LAST_TABLE) else { return Ok((identity.first_id, false)) };
    let present = listing.parts(LAST_TABLE);
    let mut id = identity.first_id;
    loop {
        if let Some(added) = additions.iter().find(|added| added.part.id == id) {
            if added.digest == identity.digest {
                return Ok((id, true));
            }
        } else if let Some(part) = present.iter().find(|part| part.id == id) {
            match PartReader::digest_of(&part.path(root, LAST_TABLE), table) {
                Ok(digest) if digest == identity.digest => return Ok((id, true)),
                Ok(_) => {}
                // A damaged file is written anew where this recording would have it.
                Err(_) if facts.force && part.place == identity.place(facts.modified) => {
                    return Ok((id, true));
                }
                Err(error) => return Err(error),
            }
        } else {
            break;
        }
        id = (id + 1) % MAX_RECORDINGS;
    }
    if let Some(other) = present.first() {
        PartReader::check_version_of(&other.path(root, LAST_TABLE))?;
    }
    Ok((id, false))
}

/// Where its files belong. Those of a killed export have their place already, and it stays theirs.
fn place(
    listing: &Listing,
    additions: &[Addition],
    identity: &Identity,
    id: i64,
    modified: SystemTime,
) -> Part {
    let place = identity.place(modified);
    let own = |part: &&Part| part.id == id && part.place.host == place.host;
    let added = additions.iter().map(|addition| &addition.part);
    let known = added.chain(listing.all()).find(own).cloned();
    known.unwrap_or(Part { place, id })
}
