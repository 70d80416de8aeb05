//! Columns and metadata of a file.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;
use whit_tables::{AnyTable, ColumnInfo, ColumnRole, Kind, SCHEMA};

/// Metadata: version of the tables, program, table, and digits of the recording.
pub(crate) const SCHEMA_KEY: &str = "whit.schema";
const VERSION_KEY: &str = "whit.version";
pub(crate) const TABLE_KEY: &str = "whit.table";
pub(crate) const RECORDING_KEY: &str = "whit.recording";

/// A column of the names of folders, not of files.
const HOST: ColumnInfo = ColumnInfo {
    name: "host",
    kind: Kind::Text,
    role: ColumnRole::Host,
    meaning: "Host name of the recorded machine",
};

const DATE: ColumnInfo = ColumnInfo {
    name: "date",
    kind: Kind::Text,
    role: ColumnRole::Date,
    meaning: "Day on which the recording began, in UTC; where that is not recorded, the day on which it was last written",
};

/// Columns that stand in the names of folders alone, and not in the table.
pub(crate) fn partitions(table: &dyn AnyTable) -> Vec<ColumnInfo> {
    let columns = table.columns();
    let is_absent = |partition: &ColumnInfo| columns.iter().all(|it| it.name != partition.name);
    [HOST, DATE].into_iter().filter(is_absent).collect()
}

/// Whether the column of a table stands in its file.
pub(crate) fn is_in_file(column: &ColumnInfo) -> bool {
    column.name != HOST.name
}

/// The columns of a file, each with its place in the table.
pub(crate) fn file_columns(table: &dyn AnyTable) -> Vec<(usize, ColumnInfo)> {
    let columns = table.columns().into_iter().enumerate();
    columns.filter(|(_, column)| is_in_file(column)).collect()
}

pub(crate) fn physical(kind: Kind) -> Physical {
    match kind {
        Kind::Integer => Physical::INT64,
        Kind::Text => Physical::BYTE_ARRAY,
    }
}

/// The columns, as Parquet states them. All may be null.
pub(crate) fn parquet_schema(table: &dyn AnyTable) -> Result<TypePtr> {
    let mut fields = Vec::new();
    for (_, column) in file_columns(table) {
        let builder = Type::primitive_type_builder(column.name, physical(column.kind));
        let builder = builder.with_repetition(Repetition::OPTIONAL);
        let builder = match column.kind {
            Kind::Integer => builder,
            Kind::Text => builder
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8),
        };
        fields.push(Arc::new(builder.build()?));
    }
    Ok(Arc::new(Type::group_type_builder(table.name()).with_fields(fields).build()?))
}

pub(crate) fn metadata(table: &dyn AnyTable, digest: &str, version: &str) -> Vec<KeyValue> {
    [
        (SCHEMA_KEY, SCHEMA.to_string()),
        (VERSION_KEY, version.to_owned()),
        (TABLE_KEY, table.name().to_owned()),
        (RECORDING_KEY, digest.to_owned()),
    ]
    .into_iter()
    .map(|(key, value)| KeyValue { key: key.to_owned(), value: Some(value) })
    .collect()
}
