//! Writes the rows of a table into a file.

use crate::buffer::{Buffer, Cells, Column};
use crate::error::DatasetError;
use crate::schema::{file_columns, metadata, parquet_schema};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use whit_tables::{AnyTable, ColumnInfo, ColumnRole, Database, ROW_BITS, Size, Wanted};

/// Lengths of time differ from each other: a dictionary would be as long as the column.
const NUMBERS_WITHOUT_DICTIONARY: [&str; 3] = ["ts", "dur", "runnable_dur"];

/// The texts and names of a file.
pub(crate) struct Labels<'a> {
    pub(crate) digest: &'a str,
    pub(crate) version: &'a str,
}

/// Writes all rows of a table; gives the file, which need not have reached the disk, and the number of its bytes.
pub(crate) fn write(
    path: &Path,
    table: &'static dyn AnyTable,
    database: &Database,
    labels: &Labels<'_>,
) -> std::result::Result<(File, u64), DatasetError> {
    let file = File::create_new(path).map_err(DatasetError::io(path))?;
    let columns = file_columns(table);
    let mut rows = table.open(database, &Wanted::everything());
    let mut written = 0_u64;
    let of_parquet = |error| DatasetError::written(path, error);
    let properties = properties(table, &columns, labels).map_err(of_parquet)?;
    let schema = parquet_schema(table).map_err(of_parquet)?;
    let mut writer =
        SerializedFileWriter::new(&file, schema, Arc::new(properties)).map_err(of_parquet)?;
    let mut buffer = Buffer::new(&columns);
    while rows.advance()? {
        buffer.push(|column| rows.value(column));
        written += 1;
        if table.size() != Size::Streamed && written > 1 << ROW_BITS {
            return Err(DatasetError::TooManyRows { table: table.name() });
        }
        if buffer.is_full() {
            write_group(&mut writer, &mut buffer).map_err(of_parquet)?;
        }
    }
    if !buffer.is_empty() {
        write_group(&mut writer, &mut buffer).map_err(of_parquet)?;
    }
    writer.close().map_err(of_parquet)?;
    let bytes = file.metadata().map_err(DatasetError::io(path))?.len();
    Ok((file, bytes))
}

fn properties(
    table: &dyn AnyTable,
    columns: &[(usize, ColumnInfo)],
    labels: &Labels<'_>,
) -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(format!("whit {}", labels.version))
        .set_key_value_metadata(Some(metadata(table, labels.digest, labels.version)));
    for (place, (_, column)) in columns.iter().enumerate() {
        let path = ColumnPath::from(column.name);
        let is_key = column.role == ColumnRole::Key;
        if is_key || NUMBERS_WITHOUT_DICTIONARY.contains(&column.name) {
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
            builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        if column.role == ColumnRole::Time {
            let column_idx = i32::try_from(place).unwrap_or(0);
            let sorted = SortingColumn { column_idx, descending: false, nulls_first: false };
            builder = builder.set_sorting_columns(Some(vec![sorted]));
        }
    }
    Ok(builder.build())
}

fn write_group(writer: &mut SerializedFileWriter<&File>, buffer: &mut Buffer) -> Result<()> {
    let order = buffer.order();
    let mut group = writer.next_row_group()?;
    for column in &buffer.columns {
        let Some(out) = group.next_column()? else { break };
        write_column(out, column, &order)?;
    }
    group.close()?;
    buffer.clear();
    Ok(())
}

fn write_column(
    mut out: SerializedColumnWriter<'_>,
    column: &Column,
    order: &[usize],
) -> Result<()> {
    let levels: Vec<i16> = order.iter().map(|row| i16::from(column.is_set[*row])).collect();
    let set = order.iter().copied().filter(|row| column.is_set[*row]);
    match &column.cells {
        Cells::Ints(values) => {
            let values: Vec<i64> = set.map(|row| values[row]).collect();
            out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        Cells::Texts { values, .. } => {
            let values: Vec<_> = set.map(|row| values[row].clone()).collect();
            out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    out.close()
}
