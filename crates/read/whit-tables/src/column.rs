//! Columns.

use crate::cursor::Context;
use crate::value::Value;

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// 64 bits.
    Integer,
    /// UTF-8.
    Text,
}

impl Kind {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Integer => "INTEGER",
            Kind::Text => "TEXT",
        }
    }
}

/// The use of a column for the reader, beside its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnRole {
    /// Its value is all there is.
    Plain,
    /// The number of the row: found without a search.
    Key,
    /// The recording of the row.
    Recording,
    /// Begin of the row; a range of it leaves blocks of the recording unread.
    Time,
    /// Number of a thread.
    Thread,
    /// Number of a process.
    Process,
    /// Number of a cgroup.
    Cgroup,
    /// Name of a host by which rows are kept.
    Host,
    /// Day by which rows are kept, as `2026-01-31`.
    Date,
    /// Name of an event.
    Event,
    /// Needs call chains.
    Stack,
    /// Argument: first moment of the samples that are added up.
    From,
    /// Argument: last moment of them.
    To,
    /// Tells few rows apart, so that a planner looks here first.
    Selective,
}

/// A column, as far as readers need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnInfo {
    /// Name in SQL.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Its use for the reader.
    pub role: ColumnRole,
    /// Its meaning, in a sentence without its end.
    pub meaning: &'static str,
}

impl ColumnInfo {
    /// True for an argument: statements have to name it, and compare it with `=`.
    pub fn is_argument(&self) -> bool {
        matches!(self.role, ColumnRole::From | ColumnRole::To)
    }
}

/// A column of rows `R`.
pub(crate) struct Column<R: 'static> {
    pub(crate) info: ColumnInfo,
    pub(crate) get: fn(&Context<'_>, &R) -> Value,
}

/// Columns in the form `(name, Kind, Role, "meaning", |context, row| value)`.
macro_rules! columns {
    ($row:ty; $(($name:literal, $kind:ident, $role:ident, $meaning:literal, $get:expr)),+ $(,)?) => {
        &[$($crate::column::Column::<$row> {
            info: $crate::column::ColumnInfo {
                name: $name,
                kind: $crate::column::Kind::$kind,
                role: $crate::column::ColumnRole::$role,
                meaning: $meaning,
            },
            get: $get,
        }),+]
    };
}
pub(crate) use columns;
