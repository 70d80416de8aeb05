//! Files of a dataset with any bytes: rows with values of the columns' types, or an error. Rows of a constraint are
//! rows of the whole, and memory is bounded by the file's own numbers, which are checked.
//!
//! An input is the length of the pages (2 bytes, the magic number in front of them included), the pages, and the
//! footer up to the end; its length and the magic number behind it are added here. With the length 65535 the rest is
//! an unchanged file.
//!
//! The library of Parquet panics on some damaged files. The reader catches that, so only panics of whit's own code end
//! this program.
#![no_main]

use std::cell::OnceCell;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Once;

use tempfile::TempDir;
use whit_dataset::Dataset;
use whit_fuzz::{fuzz_target, with_path};
use whit_tables::{AnyTable, Cancel, ColumnInfo, ColumnRole, Kind, Store, TABLES, Value, Wanted};

/// In the place of the length: an unchanged file.
const UNCHANGED: u16 = u16::MAX;
const MAGIC: &[u8] = b"PAR1";
/// Rows that are looked at in a table.
const MAX_ROWS: usize = 1 << 8;
/// Paths of this workspace begin so; those of libraries are absolute.
const OWN_CODE: [&str; 2] = ["crates/", "fuzz/"];

static OWN_PANICS: Once = Once::new();

thread_local! {
    /// A dataset in which each table has the same file.
    static DATASET: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Ends the program at panics of whit's code, and leaves others to those that catch them.
fn end_at_own_panics() {
    OWN_PANICS.call_once(|| {
        let end = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_own = |file: &str| OWN_CODE.iter().any(|folder| file.starts_with(folder));
            if info.location().is_none_or(|location| is_own(location.file())) {
                end(info);
            }
        }));
    });
}

/// The file that an input represents.
fn file_of(data: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = data.split_first_chunk()?;
    let length = u16::from_le_bytes(*length);
    if length == UNCHANGED {
        return Some(rest.to_vec());
    }
    let footer = u32::try_from(rest.len().checked_sub(usize::from(length))?).ok()?;
    Some([rest, &footer.to_le_bytes(), MAGIC].concat())
}

fn made(file: &Path) -> TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    for table in TABLES {
        let folder = root.path().join(table.name()).join("host=h/date=2026-01-31");
        std::fs::create_dir_all(&folder).expect("a folder");
        symlink(file, folder.join("part-0000000000.parquet")).expect("a link");
    }
    root
}

fn is_of(column: &ColumnInfo, value: &Value) -> bool {
    matches!(
        (column.kind, value),
        (_, Value::Null) | (Kind::Integer, Value::Int(_)) | (Kind::Text, Value::Text(_))
    )
}

/// The first rows of a table, where the file has no more than those; `None` where it has more, or cannot be read.
fn rows(
    dataset: &Dataset,
    table: &'static dyn AnyTable,
    columns: &[ColumnInfo],
    wanted: &Wanted,
) -> Option<Vec<Vec<Value>>> {
    let mut cursor = dataset.open(table, wanted);
    let mut rows = Vec::new();
    while cursor.advance().ok()? {
        if rows.len() == MAX_ROWS {
            return None;
        }
        let row: Vec<_> = (0..columns.len()).map(|column| cursor.value(column)).collect();
        for (column, value) in columns.iter().zip(&row) {
            assert!(is_of(column, value), "{} of {}: {value:?}", column.name, table.name());
        }
        rows.push(row);
    }
    Some(rows)
}

fn read(dataset: &Dataset, table: &'static dyn AnyTable) {
    let columns: Vec<_> = table.columns().into_iter().chain(dataset.partitions(table)).collect();
    let Some(all) = rows(dataset, table, &columns, &Wanted::everything()) else { return };
    let place = |role| columns.iter().position(|column| column.role == role);
    let number = |row: &[Value], place: usize| match row[place] {
        Value::Int(number) => Some(number),
        _ => None,
    };
    let middle = &all.get(all.len() / 2);
    let of_middle = |role| place(role).zip(middle.as_ref()).and_then(|(at, row)| number(row, at));
    let constraints = [
        Wanted { key: of_middle(ColumnRole::Key), ..Wanted::everything() },
        Wanted { from: of_middle(ColumnRole::Time), ..Wanted::everything() },
        Wanted { to: of_middle(ColumnRole::Time), ..Wanted::everything() },
    ];
    for wanted in constraints {
        let some = rows(dataset, table, &columns, &wanted).expect("the file was read before");
        assert!(some.len() <= all.len(), "{} of {} rows", some.len(), all.len());
        assert!(some.iter().all(|row| all.contains(row)), "{}: a row of nowhere", table.name());
    }
    let first = Wanted { columns: 1, ..Wanted::everything() };
    let first = rows(dataset, table, &columns[..1], &first).expect("the file was read before");
    assert!(first.iter().map(|row| &row[0]).eq(all.iter().map(|row| &row[0])));
}

fuzz_target!(|data| {
    end_at_own_panics();
    if let Some(file) = file_of(data) {
        with_path(&file, |path| {
            DATASET.with(|dataset| {
                let root = dataset.get_or_init(|| made(path));
                let dataset = Dataset::open(root.path(), Cancel::default()).expect("a dataset");
                TABLES.iter().for_each(|table| read(&dataset, *table));
            });
        });
    }
});
