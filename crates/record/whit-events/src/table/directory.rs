//! Tables in a directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::json::Standard;
use super::mapfile::{Mapped, lookup};
use super::{CpuIdentity, EventTable, Owner};

/// Largest file of a table that is read, in bytes.
pub const MAX_TABLE_FILE_BYTES: u64 = 64 << 20;
/// Most files of a table.
pub const MAX_TABLE_FILES: usize = 1 << 10;
/// The file that says which files describe which processor.
const MAPFILE: &str = "mapfile.csv";
/// How far above a model's directory its architecture's may lie
/// (`arch/arm64/ampere/ampereone`).
const LEVELS_ABOVE: usize = 3;

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventTableError {
    /// A file or directory cannot be read.
    #[error("cannot read event tables from {path}: {source}")]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The directory has no event files.
    #[error(
        "{path} holds neither {MAPFILE} nor a .json file: name a directory such as \
         tools/perf/pmu-events/arch/x86 of the Linux sources, or that of one model in it"
    )]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The map does not have the processor.
    #[error(
        "{path} has nothing for this processor ({}): name the directory of a model that is like it",
        cpu.as_ref().map_or("which is not known", |cpu| cpu.as_str())
    )]
    OtherProcessor {
        /// The map.
        path: PathBuf,
        /// The processor.
        cpu: Option<CpuIdentity>,
    },
    /// There are too many files.
    #[error("{path} holds more than {MAX_TABLE_FILES} .json files")]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
    },
}

impl EventTable {
    /// Reads the tables at `path`: a file, the directory of one model, or a directory with a
    /// `mapfile.csv` that says which model `cpu` is.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read, or has no table for the processor. Errors in single files
    /// or events are in [`EventTable::problems`].
    pub fn read(path: &Path, cpu: Option<&CpuIdentity>) -> Result<EventTable, EventTableError> {
        let metadata = fs::metadata(path).map_err(unreadable(path))?;
        let mut table = EventTable::default();
        let standard = standard_events(path, &mut table)?;
        if metadata.is_file() {
            table.add_file(path, &Owner::Cores, &standard);
            return Ok(table);
        }
        let map = path.join(MAPFILE);
        if map.exists() {
            let text = read_bounded(&map).map_err(unreadable(&map))?;
            let found = cpu.map(|cpu| lookup(&text, cpu)).unwrap_or_default();
            if found.is_empty() {
                return Err(EventTableError::OtherProcessor { path: map, cpu: cpu.cloned() });
            }
            for Mapped { path: relative, owner } in found {
                table.add_mapped(path, &relative, &owner, &standard)?;
            }
            return Ok(table);
        }
        let files = json_files(path)?;
        if files.is_empty() {
            return Err(EventTableError::Empty { path: path.to_owned() });
        }
        files.iter().for_each(|file| table.add_file(file, &Owner::Cores, &standard));
        Ok(table)
    }

    fn add_mapped(
        &mut self,
        root: &Path,
        relative: &str,
        owner: &Owner,
        standard: &Standard,
    ) -> Result<(), EventTableError> {
        let inside = Path::new(relative).components().all(|c| matches!(c, Component::Normal(_)));
        if !inside {
            self.problem(
                &root.join(MAPFILE).display().to_string(),
                format!("`{relative}` leads out of the directory"),
            );
            return Ok(());
        }
        let path = root.join(relative);
        if path.is_dir() {
            json_files(&path)?.iter().for_each(|file| self.add_file(file, owner, standard));
        } else {
            self.add_file(&path, owner, standard);
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, owner: &Owner, standard: &Standard) {
        let shown = path.display().to_string();
        match read_bounded(path) {
            Ok(text) => self.add_json(&shown, &text, owner, standard),
            Err(error) => self.problem(&shown, error.to_string()),
        }
    }
}

/// The architecture's events: the files beside the nearest map, in the directory itself or above.
fn standard_events(path: &Path, table: &mut EventTable) -> Result<Standard, EventTableError> {
    let mut standard = Standard::default();
    let root = path.ancestors().take(1 + LEVELS_ABOVE).find(|dir| dir.join(MAPFILE).exists());
    let files = root.map(json_files).transpose()?.unwrap_or_default();
    for file in files {
        let added = read_bounded(&file)
            .map_err(|error| error.to_string())
            .and_then(|text| standard.add(&text));
        if let Err(why) = added {
            table.problem(&file.display().to_string(), why);
        }
    }
    Ok(standard)
}

fn json_files(dir: &Path) -> Result<Vec<PathBuf>, EventTableError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable(dir))? {
        let path = entry.map_err(unreadable(dir))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
        if files.len() > MAX_TABLE_FILES {
            return Err(EventTableError::TooManyFiles { path: dir.to_owned() });
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> EventTableError {
    move |source| EventTableError::Unreadable { path: path.to_owned(), source }
}

/// The file's text, without a mark of byte order.
fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MAX_TABLE_FILE_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_TABLE_FILE_BYTES {
        let why = format!("larger than {MAX_TABLE_FILE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}
