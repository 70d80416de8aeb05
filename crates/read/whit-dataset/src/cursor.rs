//! Reads the files of a table one after the other.

use crate::batch::Batch;
use crate::inner::Inner;
use crate::part_reader::PartReader;
use crate::schema::partitions;
use crate::sums;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use whit_tables::{AnyTable, ColumnRole, Cursor, SAMPLE_SUM, Size, TableError, Value, Wanted};

/// Reads the wanted rows of a table.
struct DatasetCursor {
    inner: Arc<Inner>,
    table: &'static dyn AnyTable,
    wanted: Wanted,
    /// Number of columns in front of those that stand in names of folders.
    width: usize,
    key: Option<usize>,
    host: Option<usize>,
    date: Option<usize>,
    /// Files that come, by their places.
    parts: VecDeque<usize>,
    current: Option<usize>,
    /// Groups of the current file that come.
    groups: Option<(PartReader, VecDeque<usize>)>,
    batch: Arc<Batch>,
    rows: Range<usize>,
    row: usize,
}

pub(crate) fn open(
    inner: &Arc<Inner>,
    table: &'static dyn AnyTable,
    wanted: &Wanted,
) -> Box<dyn Cursor> {
    if table.name() == SAMPLE_SUM.name() {
        return sums::open(inner, wanted);
    }
    let inner = inner.clone();
    let parts = inner.wanted_parts(wanted);
    let mut columns = table.columns();
    let width = columns.len();
    columns.extend(partitions(table));
    let place = |name: &str| columns.iter().position(|column| column.name == name);
    Box::new(DatasetCursor {
        table,
        wanted: wanted.clone(),
        width,
        key: columns.iter().position(|column| column.role == ColumnRole::Key),
        host: place("host"),
        date: place("date"),
        parts,
        current: None,
        groups: None,
        batch: Arc::default(),
        rows: 0..0,
        row: 0,
        inner,
    })
}

impl DatasetCursor {
    fn path(&self, part: usize) -> PathBuf {
        self.inner.parts[part].path(&self.inner.root, self.table.name())
    }

    /// Takes the next rows; false behind the last.
    fn fill(&mut self) -> Result<bool, TableError> {
        if self.inner.cancel.is_cancelled() {
            return Err(TableError::Cancelled);
        }
        if let Some((reader, groups)) = &mut self.groups {
            if let Some(group) = groups.pop_front() {
                let batch = reader.read(group, &self.wanted)?;
                self.rows = 0..batch.rows;
                self.batch = Arc::new(batch);
                return Ok(true);
            }
            self.groups = None;
        }
        let Some(part) = self.parts.pop_front() else { return Ok(false) };
        self.current = Some(part);
        let path = self.path(part);
        if self.table.size() == Size::Streamed {
            let reader = PartReader::open(&path, self.table)?;
            let groups = reader.groups(&self.wanted).into();
            self.groups = Some((reader, groups));
            return Ok(true);
        }
        let table = self.table;
        let read = || PartReader::open(&path, table)?.read_whole();
        self.batch = self.inner.cache.get((part, table.name()), read)?;
        self.rows = match self.key.zip(self.wanted.key) {
            Some((column, key)) => {
                let guess = Wanted::local(Some(key)).unwrap_or(0) as usize;
                let found = self.batch.find(column, key, guess);
                found.map_or(0..0, |row| row..row + 1)
            }
            None => 0..self.batch.rows,
        };
        Ok(true)
    }
}

impl Cursor for DatasetCursor {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            if let Some(row) = self.rows.next() {
                self.row = row;
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some(part) = self.current.map(|part| &self.inner.parts[part]) else {
            return Value::Null;
        };
        if Some(column) == self.host {
            return part.place.host.as_deref().map_or(Value::Null, |host| Value::Text(host.into()));
        }
        if Some(column) == self.date {
            return Value::Text(part.place.date.as_str().into());
        }
        match column < self.width {
            true => self.batch.value(self.row, column),
            false => Value::Null,
        }
    }
}
