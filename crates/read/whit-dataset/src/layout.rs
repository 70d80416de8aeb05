//! Names of folders and files.

use crate::error::{DatasetError, entries};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use whit_tables::MAX_RECORDINGS;

/// As Hive, Spark and DuckDB name a value that is not there.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The table whose file stands for the whole recording.
pub(crate) const LAST_TABLE: &str = "recording";

/// Where files are written before they have their names; engines leave out names that begin so.
pub(crate) const WRITING: &str = "_writing";

/// The values by which files are kept.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    pub(crate) host: Option<String>,
    pub(crate) date: String,
}

/// A file of a table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Part {
    pub(crate) place: Place,
    pub(crate) id: i64,
}

impl Part {
    /// The file of a table, below the dataset.
    pub(crate) fn path(&self, root: &Path, table: &str) -> PathBuf {
        let host = self.place.host.as_deref().map_or(NO_VALUE.to_owned(), encoded);
        let folder = root.join(table).join(format!("host={host}"));
        folder.join(format!("date={}", self.place.date)).join(part_name(self.id))
    }
}

fn part_name(id: i64) -> String {
    format!("part-{id:010x}.parquet")
}

fn part_id(name: &str) -> Option<i64> {
    let digits = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    let id = i64::from_str_radix(digits, 16).ok()?;
    ((0..MAX_RECORDINGS).contains(&id) && part_name(id) == name).then_some(id)
}

/// Other bytes than these stand as `%2F`, which the engines read back.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn encoded(host: &str) -> String {
    host.bytes().fold(String::new(), |mut name, byte| {
        match is_plain(byte) {
            true => name.push(char::from(byte)),
            // Writing into a string cannot fail.
            false => drop(write!(name, "%{byte:02X}")),
        }
        name
    })
}

fn decoded(name: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

fn value(folder: &Path, key: &str) -> Option<String> {
    folder.file_name()?.to_str()?.strip_prefix(key)?.strip_prefix('=').map(str::to_owned)
}

/// The files of a table, and other files that engines would read.
pub(crate) fn parts(root: &Path, table: &str) -> Result<(Vec<Part>, Vec<PathBuf>), DatasetError> {
    let (mut parts, mut strange) = (Vec::new(), Vec::new());
    for host_folder in entries(&root.join(table))? {
        let Some(host) = value(&host_folder, "host") else { continue };
        let host = match host == NO_VALUE {
            true => None,
            false => decoded(&host),
        };
        for date_folder in entries(&host_folder)? {
            let Some(date) = value(&date_folder, "date") else { continue };
            let place = Place { host: host.clone(), date };
            for file in entries(&date_folder)? {
                let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
                let name = name.unwrap_or_default();
                match part_id(&name) {
                    Some(id) => parts.push(Part { place: place.clone(), id }),
                    None if name.starts_with(['.', '_']) => {}
                    None => strange.push(file),
                }
            }
        }
    }
    parts.sort();
    Ok((parts, strange))
}

/// The files of all tables at one moment.
pub(crate) struct Listing {
    tables: Vec<(&'static str, Vec<Part>)>,
}

impl Listing {
    pub(crate) fn read(
        root: &Path,
        tables: impl Iterator<Item = &'static str>,
    ) -> Result<Listing, DatasetError> {
        let read = |table| Ok((table, parts(root, table)?.0));
        Ok(Listing { tables: tables.map(read).collect::<Result<_, DatasetError>>()? })
    }

    pub(crate) fn parts(&self, table: &str) -> &[Part] {
        let found = self.tables.iter().find(|(name, _)| *name == table);
        found.map_or(&[], |(_, parts)| parts)
    }

    /// By table.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Part> {
        self.tables.iter().flat_map(|(_, parts)| parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_host_has_one_folder_that_leaves_the_dataset_nowhere(host in any::<String>(), id in 0..MAX_RECORDINGS) {
            let name = encoded(&host);
            prop_assert!(name.bytes().all(|byte| is_plain(byte) || byte == b'%'));
            prop_assert_eq!(decoded(&name), Some(host.clone()));
            let part = Part { place: Place { host: Some(host), date: "2026-01-31".to_owned() }, id };
            let path = part.path(Path::new("/d"), "sample");
            prop_assert_eq!(path.components().count(), 6);
            prop_assert_eq!(part_id(path.file_name().unwrap().to_str().unwrap()), Some(id));
        }

        #[test]
        fn names_of_others_are_read_without_a_panic(name in any::<String>()) {
            decoded(&name);
            part_id(&name);
        }
    }
}
