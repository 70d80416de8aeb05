//! All tables.

use crate::sum_table::SAMPLE_SUM;
use crate::table::AnyTable;
use crate::{dimension_tables, interval_tables, recording_tables, request_table, sample_table};

/// Version of the tables. It grows with each change of their columns.
pub const SCHEMA: u32 = 3;

/// The tables, in the order of the documents.
pub static TABLES: [&dyn AnyTable; 16] = [
    &recording_tables::RECORDING,
    &dimension_tables::PROCESS,
    &dimension_tables::THREAD,
    &dimension_tables::CPU,
    &dimension_tables::CGROUP,
    &dimension_tables::MAPPING,
    &dimension_tables::FRAME,
    &dimension_tables::CALLSITE,
    &sample_table::SAMPLE,
    &interval_tables::SCHED,
    &interval_tables::THREAD_STATE,
    &interval_tables::WAIT,
    &request_table::REQUEST,
    &recording_tables::LOSS,
    &recording_tables::LEDGER,
    &recording_tables::UNWIND_END,
];

/// The table that [`SAMPLE_SUM`] adds up.
pub static SAMPLE: &dyn AnyTable = &sample_table::SAMPLE;

/// The tables of SQL: those above, and one that no file has.
pub fn query_tables() -> impl Iterator<Item = &'static dyn AnyTable> {
    TABLES.into_iter().chain([SAMPLE_SUM])
}

/// The table of a name.
pub fn find(name: &str) -> Option<&'static dyn AnyTable> {
    TABLES.into_iter().find(|table| table.name() == name)
}
