//! Where rows come from.

use crate::column::ColumnInfo;
use crate::cursor::{Cursor, Wanted};
use crate::database::{Cancel, Database};
use crate::table::AnyTable;
use whit_profile::warning::Warning;

/// A defect that readers of rows should know of.
#[derive(Clone, Debug)]
pub enum Defect {
    /// A recording is damaged, or lacks records.
    Recording(Warning),
    /// Files of a dataset are left out.
    Dataset(String),
}

/// Gives the rows of all tables.
pub trait Store: Send + Sync {
    /// Columns behind those of a table by which rows are kept. Rows have them, but statements have to name them.
    fn partitions(&self, table: &dyn AnyTable) -> Vec<ColumnInfo>;

    /// Starts reading a table.
    fn open(&self, table: &'static dyn AnyTable, wanted: &Wanted) -> Box<dyn Cursor>;

    /// Ends the reading of tables.
    fn cancel(&self) -> &Cancel;

    /// Defects that were met so far.
    fn defects(&self) -> Vec<Defect>;
}

impl Store for Database {
    fn partitions(&self, _: &dyn AnyTable) -> Vec<ColumnInfo> {
        Vec::new()
    }

    fn open(&self, table: &'static dyn AnyTable, wanted: &Wanted) -> Box<dyn Cursor> {
        table.open(self, wanted)
    }

    fn cancel(&self) -> &Cancel {
        Database::cancel(self)
    }

    fn defects(&self) -> Vec<Defect> {
        self.warnings().into_iter().map(Defect::Recording).collect()
    }
}
