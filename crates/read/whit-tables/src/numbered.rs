//! Tables whose rows are found by their number.

use crate::cursor::{Cursor, Wanted};
use crate::database::{Cancel, Database, TableError};
use crate::table::{Recordings, Table};
use crate::value::Value;
use whit_profile::tables::{StreamEnd, TableSource};

/// Finds rows.
pub(crate) trait Numbered: Sized + Send + 'static {
    /// The row of a number; `None` behind the last.
    fn row(source: &TableSource, number: u32) -> Option<Self>;

    /// Whether all rows are there only when the whole recording was read.
    const NEEDS_STACKS: bool = false;
}

/// Reads such a table.
struct NumberedCursor<R: 'static> {
    table: &'static Table<R>,
    wanted: Wanted,
    recordings: Recordings,
    next: Option<u32>,
    row: Option<R>,
}

pub(crate) fn open<R: Numbered>(
    table: &'static Table<R>,
    database: &Database,
    wanted: &Wanted,
) -> Box<dyn Cursor> {
    let recordings = Recordings::new(database);
    let wanted = wanted.clone();
    Box::new(NumberedCursor { table, wanted, recordings, next: None, row: None })
}

/// Reads the whole recording, unless the cursor is cancelled.
fn complete(source: &TableSource, cancel: &Cancel) -> Result<(), StreamEnd> {
    source.complete_stacks(&mut || !cancel.is_cancelled())
}

impl<R: Numbered> NumberedCursor<R> {
    /// The only row that is wanted; read from the whole recording where no stream has met it yet.
    fn find(&self, number: u32) -> Result<Option<R>, TableError> {
        let Some(source) = self.recordings.source() else { return Ok(None) };
        if let Some(row) = R::row(source, number) {
            return Ok(Some(row));
        }
        self.complete()?;
        Ok(R::row(source, number))
    }

    fn complete(&self) -> Result<(), TableError> {
        let Some(source) = self.recordings.source().filter(|_| R::NEEDS_STACKS) else {
            return Ok(());
        };
        let database = &self.recordings.database;
        complete(source, database.cancel()).map_err(|end| match end {
            StreamEnd::Stopped => TableError::Cancelled,
            error @ (StreamEnd::Load(_) | StreamEnd::NoRoom) => {
                database.error(self.recordings.number(), error.to_string())
            }
        })
    }
}

impl<R: Numbered> Cursor for NumberedCursor<R> {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            if let Some(number) = self.next {
                if let Some(row) = self.recordings.source().and_then(|s| R::row(s, number)) {
                    (self.row, self.next) = (Some(row), Some(number + 1));
                    return Ok(true);
                }
                self.next = None;
            }
            if self.recordings.advance(&self.wanted)?.is_none() {
                self.row = None;
                return Ok(false);
            }
            match Wanted::local(self.wanted.key) {
                Some(number) => {
                    self.row = self.find(number)?;
                    if self.row.is_some() {
                        return Ok(true);
                    }
                }
                None => {
                    self.complete()?;
                    self.next = Some(0);
                }
            }
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some((row, context)) = self.row.as_ref().zip(self.recordings.context()) else {
            return Value::Null;
        };
        self.table.value(&context, row, column)
    }
}
