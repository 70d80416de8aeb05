//! A table: its rows, columns and cursors.

use crate::column::{Column, ColumnInfo, ColumnRole};
use crate::cursor::{Context, Cursor, Wanted};
use crate::database::{Database, Opened, TableError};
use crate::value::Value;
use std::sync::Arc;
use whit_profile::tables::TableSource;

/// Rows of recordings under one name.
pub(crate) struct Table<R: 'static> {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) columns: &'static [Column<R>],
    pub(crate) size: Size,
    pub(crate) open: fn(&'static Table<R>, &Database, &Wanted) -> Box<dyn Cursor>,
}

/// How many rows to expect, for planners of queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// Few, and found by their number.
    Small,
    /// As many as there are distinct call chains.
    Chains,
    /// Read from the recording again each time.
    Streamed,
}

/// A table of any rows.
pub trait AnyTable: Sync {
    /// Name in SQL.
    fn name(&self) -> &'static str;
    /// Its rows, in a sentence.
    fn meaning(&self) -> &'static str;
    /// The columns, in order.
    fn columns(&self) -> Vec<ColumnInfo>;
    /// How many rows to expect.
    fn size(&self) -> Size;
    /// Starts reading.
    fn open(&'static self, database: &Database, wanted: &Wanted) -> Box<dyn Cursor>;
}

impl<R> AnyTable for Table<R> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn meaning(&self) -> &'static str {
        self.meaning
    }

    fn columns(&self) -> Vec<ColumnInfo> {
        self.columns.iter().map(|column| column.info).collect()
    }

    fn size(&self) -> Size {
        self.size
    }

    fn open(&'static self, database: &Database, wanted: &Wanted) -> Box<dyn Cursor> {
        (self.open)(self, database, wanted)
    }
}

impl<R> Table<R> {
    pub(crate) fn value(&self, context: &Context<'_>, row: &R, column: usize) -> Value {
        self.columns.get(column).map_or(Value::Null, |column| (column.get)(context, row))
    }

    /// Whether a column that needs call chains is looked at.
    pub(crate) fn wants_stacks(&self, wanted: &Wanted) -> bool {
        self.wants(wanted, |column| column.role == ColumnRole::Stack)
    }

    /// Whether any such column is looked at.
    pub(crate) fn wants(&self, wanted: &Wanted, is: impl Fn(&ColumnInfo) -> bool) -> bool {
        let mut columns = self.columns.iter().enumerate();
        columns.any(|(number, column)| is(&column.info) && wanted.uses(number))
    }
}

/// The recordings that may have wanted rows, one after the other.
pub(crate) struct Recordings {
    pub(crate) database: Database,
    next: usize,
    current: Option<Arc<Opened>>,
}

impl Recordings {
    pub(crate) fn new(database: &Database) -> Recordings {
        Recordings { database: database.clone(), next: 0, current: None }
    }

    /// Opens the next one; `None` behind the last.
    pub(crate) fn advance(&mut self, wanted: &Wanted) -> Result<Option<&Arc<Opened>>, TableError> {
        while self.next < self.database.len() {
            self.next += 1;
            if wanted.has_recording(self.database.recording_id(self.next - 1)) {
                self.current = Some(self.database.open(self.next - 1)?);
                return Ok(self.current.as_ref());
            }
        }
        self.current = None;
        Ok(None)
    }

    /// Number of the current recording.
    pub(crate) fn number(&self) -> usize {
        self.next.saturating_sub(1)
    }

    pub(crate) fn context(&self) -> Option<Context<'_>> {
        let opened = self.current.as_deref()?;
        let recording = self.database.recording_id(self.number());
        Some(Context { source: &opened.source, recording, events: &opened.events })
    }

    pub(crate) fn source(&self) -> Option<&TableSource> {
        self.current.as_deref().map(|opened| &opened.source)
    }
}
