//! Reads a file of a table.

use crate::batch::{Batch, ColumnValues, Values};
use crate::error::DatasetError;
use crate::schema::{RECORDING_KEY, SCHEMA_KEY, TABLE_KEY, file_columns, is_in_file, physical};
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whit_tables::{AnyTable, ColumnInfo, ColumnRole, SCHEMA, Wanted};

/// Rows of a group in a file that whit wrote are fewer by far. A small file may say that it has many.
const MAX_GROUP_ROWS: i64 = 1 << 20;

/// Most bytes of a table that is read as a whole.
const MAX_TABLE_BYTES: usize = 4 << 30;

thread_local! {
    /// Whether this thread is inside of the library of Parquet.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// True on a thread whose panics are caught and become errors: nothing has to be printed about them.
pub fn panics_are_caught() -> bool {
    IS_GUARDED.get()
}

/// An open file.
pub(crate) struct PartReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// Place in the table, place in the file.
    columns: Vec<(usize, usize, ColumnInfo)>,
    width: usize,
}

impl PartReader {
    /// Opens a file, and checks its version, table and columns.
    pub(crate) fn open(path: &Path, table: &dyn AnyTable) -> Result<PartReader, DatasetError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let problem = "the file is missing, and others of its recording are there: copy it again, or export the \
                               recording with -f";
                return Err(DatasetError::part(path, problem));
            }
            opened => opened.map_err(DatasetError::io(path))?,
        };
        let reader = guarded(|| SerializedFileReader::new(file)).map_err(|error| {
            DatasetError::part(
                path,
                format!(
                    "it is no whole Parquet file ({error}): a copy of it was cut or damaged. Copy it again, export the \
                     recording with -f, or take the file away"
                ),
            )
        })?;
        let metadata = reader.metadata();
        check_version(path, metadata, table)?;
        let columns = columns(path, metadata, table)?;
        let is_sane =
            |group: usize| (0..=MAX_GROUP_ROWS).contains(&metadata.row_group(group).num_rows());
        if !(0..metadata.num_row_groups()).all(is_sane) {
            return Err(DatasetError::part(path, "it has groups of rows that whit never wrote"));
        }
        let mut groups = metadata.row_groups().iter().flat_map(|group| group.columns());
        if let Some(column) = groups.find(|column| !is_readable(column.compression())) {
            let problem = format!(
                "it is compressed with {}, and whit writes zstd: another program wrote this file anew. Export the recording \
                 with -f",
                column.compression()
            );
            return Err(DatasetError::part(path, problem));
        }
        let width = table.columns().len();
        Ok(PartReader { path: path.to_owned(), reader, columns, width })
    }

    /// The digits of the recording in a file.
    pub(crate) fn digest_of(path: &Path, table: &dyn AnyTable) -> Result<String, DatasetError> {
        let part = PartReader::open(path, table)?;
        Ok(value(part.reader.metadata(), RECORDING_KEY).unwrap_or_default().to_owned())
    }

    /// Refuses to write beside a file whose tables have another version: no whit would read both.
    pub(crate) fn check_version_of(path: &Path) -> Result<(), DatasetError> {
        let file = File::open(path).map_err(DatasetError::io(path))?;
        // Readers of the dataset name the damage.
        let Ok(reader) = guarded(|| SerializedFileReader::new(file)) else { return Ok(()) };
        match value(reader.metadata(), SCHEMA_KEY) {
            Some(version) if version != SCHEMA.to_string() => {
                let version = whit_types::escape(version);
                let problem = format!(
                    "the tables of this dataset have version {version}, and this whit writes version {SCHEMA}: export into \
                     another folder, or with the whit that wrote this one"
                );
                Err(DatasetError::part(path, problem))
            }
            _ => Ok(()),
        }
    }

    /// Groups that may have rows in the wanted time.
    pub(crate) fn groups(&self, wanted: &Wanted) -> Vec<usize> {
        let metadata = self.reader.metadata();
        let time = self.columns.iter().find(|(_, _, column)| column.role == ColumnRole::Time);
        let is_wanted = |group: &usize| {
            let statistics = time.and_then(|(_, place, _)| {
                metadata.row_group(*group).column(*place).statistics().and_then(range)
            });
            let Some((first, last)) = statistics else { return true };
            wanted.from.is_none_or(|from| last >= from) && wanted.to.is_none_or(|to| first <= to)
        };
        (0..metadata.num_row_groups()).filter(is_wanted).collect()
    }

    /// Reads the wanted columns of a group.
    pub(crate) fn read(&self, group: usize, wanted: &Wanted) -> Result<Batch, DatasetError> {
        let rows = self.reader.metadata().row_group(group).num_rows();
        // Checked when it was opened.
        let rows = usize::try_from(rows).unwrap_or(0);
        let read = || -> Result<Batch, ParquetError> {
            let reader = self.reader.get_row_group(group)?;
            let mut columns: Vec<_> = (0..self.width).map(|_| None).collect();
            let mut bytes = 0;
            for (place, in_file, _) in &self.columns {
                if wanted.uses(*place) {
                    let read = read_column(reader.get_column_reader(*in_file)?, rows, &mut bytes)?;
                    columns[*place] = Some(read);
                }
            }
            Ok(Batch { columns, rows, bytes })
        };
        guarded(read).map_err(|error| {
            let problem = format!(
                "it cannot be read ({error}): a copy of it was damaged. Copy it again, or export the recording with -f"
            );
            DatasetError::part(&self.path, problem)
        })
    }

    /// Reads all rows.
    pub(crate) fn read_whole(&self) -> Result<Batch, DatasetError> {
        let groups: Range<usize> = 0..self.reader.metadata().num_row_groups();
        let mut whole = Batch::default();
        for group in groups {
            whole.append(self.read(group, &Wanted::everything())?);
            if whole.bytes > MAX_TABLE_BYTES {
                let problem = format!(
                    "the table takes more than {} GiB of memory: export parts of the recording (whit record \
                     --switch-output makes smaller ones)",
                    MAX_TABLE_BYTES >> 30
                );
                return Err(DatasetError::part(&self.path, problem));
            }
        }
        Ok(whole)
    }
}

/// The library is built with the compression that whit writes.
fn is_readable(compression: Compression) -> bool {
    matches!(compression, Compression::ZSTD(_) | Compression::UNCOMPRESSED)
}

/// The library panics on some damaged files.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    IS_GUARDED.set(true);
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    IS_GUARDED.set(false);
    read.unwrap_or_else(|_| {
        Err(ParquetError::General("its metadata contradict themselves".to_owned()))
    })
}

fn range(statistics: &Statistics) -> Option<(i64, i64)> {
    match statistics {
        Statistics::Int64(numbers) => Some((*numbers.min_opt()?, *numbers.max_opt()?)),
        _ => None,
    }
}

fn value<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let pairs = metadata.file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

fn check_version(
    path: &Path,
    metadata: &ParquetMetaData,
    table: &dyn AnyTable,
) -> Result<(), DatasetError> {
    let Some(version) = value(metadata, SCHEMA_KEY) else {
        let problem =
            "whit did not write this file: take it away, whit reads only what whit export wrote";
        return Err(DatasetError::part(path, problem));
    };
    if version != SCHEMA.to_string() {
        let version = whit_types::escape(version);
        let problem = format!(
            "its tables have version {version}, and this whit reads version {SCHEMA}: export the recording into another \
             dataset with this whit, or read this one with the whit that wrote it"
        );
        return Err(DatasetError::part(path, problem));
    }
    if value(metadata, TABLE_KEY) != Some(table.name()) {
        let problem =
            format!("it is in the folder of {}, and has another table: move it back", table.name());
        return Err(DatasetError::part(path, problem));
    }
    Ok(())
}

fn columns(
    path: &Path,
    metadata: &ParquetMetaData,
    table: &dyn AnyTable,
) -> Result<Vec<(usize, usize, ColumnInfo)>, DatasetError> {
    let schema = metadata.file_metadata().schema_descr();
    let mut columns = Vec::new();
    for (place, column) in file_columns(table) {
        let found = schema.columns().iter().position(|other| other.name() == column.name);
        let is_flat = |at: &usize| {
            let other = &schema.columns()[*at];
            other.physical_type() == physical(column.kind)
                && other.max_rep_level() == 0
                && other.max_def_level() == 1
        };
        let Some(at) = found.filter(is_flat) else {
            let what = if found.is_some() { "has another type in it" } else { "is not in it" };
            let problem = format!(
                "the column {} {what}: another program wrote this file anew. Export the recording with -f",
                column.name
            );
            return Err(DatasetError::part(path, problem));
        };
        columns.push((place, at, column));
    }
    debug_assert!(columns.iter().all(|(_, _, column)| is_in_file(column)));
    Ok(columns)
}

fn read_column(
    reader: ColumnReader,
    rows: usize,
    bytes: &mut usize,
) -> Result<ColumnValues, ParquetError> {
    match reader {
        ColumnReader::Int64ColumnReader(reader) => {
            let (is_set, set) = read_values::<Int64Type>(reader, rows)?;
            *bytes += rows * (size_of::<i64>() + 1);
            let values = Values::Ints(spread(&is_set, set.into_iter(), 0));
            Ok(ColumnValues { is_set, values })
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let (is_set, set) = read_values::<ByteArrayType>(reader, rows)?;
            let texts = texts(&set, bytes)?;
            *bytes += rows * (size_of::<Arc<str>>() + 1);
            let values = Values::Texts(spread(&is_set, texts.into_iter(), Arc::from("")));
            Ok(ColumnValues { is_set, values })
        }
        _ => Err(ParquetError::General("a column of another type".to_owned())),
    }
}

/// Which rows have a value, and these values.
fn read_values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<(Vec<bool>, Vec<T::T>), ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            reader.read_records(rows - read, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            break;
        }
        read += records;
    }
    let is_set: Vec<bool> = levels.iter().map(|level| *level > 0).collect();
    let set = is_set.iter().filter(|is_set| **is_set).count();
    if is_set.len() != rows || set != values.len() {
        let problem = format!("{} of {rows} rows", is_set.len());
        return Err(ParquetError::General(problem));
    }
    Ok((is_set, values))
}

/// A value for each row.
fn spread<T: Clone>(is_set: &[bool], mut values: impl Iterator<Item = T>, none: T) -> Vec<T> {
    let of_row = |is_set: &bool| match is_set {
        true => values.next().unwrap_or_else(|| none.clone()),
        false => none.clone(),
    };
    is_set.iter().map(of_row).collect()
}

/// Equal texts share their bytes.
fn texts(values: &[ByteArray], bytes: &mut usize) -> Result<Vec<Arc<str>>, ParquetError> {
    let mut seen: FxHashMap<&[u8], Arc<str>> = FxHashMap::default();
    let mut texts = Vec::with_capacity(values.len());
    for value in values {
        if let Some(text) = seen.get(value.data()) {
            texts.push(text.clone());
            continue;
        }
        let text: Arc<str> = std::str::from_utf8(value.data())
            .map_err(|_| ParquetError::General("a text that is not UTF-8".to_owned()))?
            .into();
        *bytes += text.len();
        seen.insert(value.data(), text.clone());
        texts.push(text);
    }
    Ok(texts)
}
