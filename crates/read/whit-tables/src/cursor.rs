//! Reading a table.

use crate::budget::Budget;
use crate::database::TableError;
use crate::value::Value;
use std::sync::Arc;
use whit_profile::tables::TableSource;

/// Bits of a row's number below those of its recording.
pub const ROW_BITS: u32 = 28;

/// Numbers of recordings lie below this.
pub const MAX_RECORDINGS: i64 = 1 << (63 - ROW_BITS);

const ROW_MASK: i64 = (1 << ROW_BITS) - 1;

/// Constraints that leave rows out, as far as a table can use them.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Number of the only recording.
    pub recording: Option<i64>,
    /// Number of the only row.
    pub key: Option<i64>,
    /// First moment.
    pub from: Option<i64>,
    /// Last moment.
    pub to: Option<i64>,
    /// Number of the only thread.
    pub thread: Option<i64>,
    /// Number of the only process.
    pub process: Option<i64>,
    /// Number of the only cgroup.
    pub cgroup: Option<i64>,
    /// Name of the only event.
    pub event: Option<String>,
    /// The only host, where a store keeps rows by hosts.
    pub host: Option<String>,
    /// First day, where a store keeps rows by days.
    pub from_date: Option<String>,
    /// Last day.
    pub to_date: Option<String>,
    /// Columns that nobody looks at may be absent: a bit for each, the last one for all from the 64th on.
    pub columns: u64,
    /// Memory for rows that are held; without a limit where it is absent.
    pub budget: Option<Arc<Budget>>,
}

impl Wanted {
    /// Everything of all rows.
    pub fn everything() -> Wanted {
        Wanted { columns: u64::MAX, ..Wanted::default() }
    }

    /// Whether somebody looks at a column.
    pub fn uses(&self, column: usize) -> bool {
        self.columns & 1 << column.min(63) != 0
    }

    /// Whether rows of a recording may be wanted.
    pub fn has_recording(&self, number: i64) -> bool {
        let is = |id: i64| id >> ROW_BITS == number;
        let rows = [self.key, self.thread, self.process, self.cgroup];
        self.recording.is_none_or(|recording| recording == number)
            && rows.into_iter().flatten().all(is)
    }

    /// The number of a row within its recording.
    pub fn local(id: Option<i64>) -> Option<u32> {
        id.map(|id| (id & ROW_MASK) as u32)
    }
}

/// Gives rows one after the other.
pub trait Cursor: Send {
    /// Goes to the next row; false behind the last one.
    ///
    /// # Errors
    /// The recording cannot be read, or the reader was cancelled.
    fn advance(&mut self) -> Result<bool, TableError>;

    /// A value of the current row.
    fn value(&self, column: usize) -> Value;
}

/// The recording that a row belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) source: &'a TableSource,
    /// Its number.
    pub(crate) recording: i64,
    /// Names of events.
    pub(crate) events: &'a [Arc<str>],
}

impl Context<'_> {
    /// The number of a row over all recordings; the row behind the last number has none.
    pub(crate) fn id(&self, row: u32) -> Value {
        let id = self.recording << ROW_BITS | i64::from(row);
        if i64::from(row) <= ROW_MASK { Value::Int(id) } else { Value::Null }
    }

    pub(crate) fn some_id(&self, row: Option<u32>) -> Value {
        Value::or_null(row, |row| self.id(row))
    }

    /// The name of an event.
    pub(crate) fn event(&self, number: u32) -> Value {
        Value::or_null(self.events.get(number as usize), |name| Value::Text(name.clone()))
    }

    /// A command name.
    pub(crate) fn comm(&self, number: Option<u32>) -> Value {
        let name = number.and_then(|number| self.source.comm_name(number));
        Value::or_null(name, |name| Value::Text(name.clone()))
    }

    pub(crate) fn recording(&self) -> Value {
        Value::Int(self.recording)
    }
}
