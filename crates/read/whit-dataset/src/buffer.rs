//! Rows of one group, before they are written.

use parquet::data_type::ByteArray;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use whit_tables::{ColumnInfo, ColumnRole, Kind, Value};

/// Most rows of a group.
pub const GROUP_ROWS: usize = 1 << 17;

/// Most bytes of distinct texts of a group, but for those of its last row.
pub const GROUP_TEXT_BYTES: usize = 16 << 20;

/// The values of a column; a null takes the place of a value, too.
pub(crate) enum Cells {
    Ints(Vec<i64>),
    Texts { values: Vec<ByteArray>, seen: FxHashMap<Arc<str>, ByteArray> },
}

pub(crate) struct Column {
    place: usize,
    pub(crate) is_set: Vec<bool>,
    pub(crate) cells: Cells,
}

/// A group of rows.
pub(crate) struct Buffer {
    pub(crate) columns: Vec<Column>,
    time: Option<usize>,
    text_bytes: usize,
    rows: usize,
}

impl Buffer {
    pub(crate) fn new(columns: &[(usize, ColumnInfo)]) -> Buffer {
        let time = columns.iter().position(|(_, column)| column.role == ColumnRole::Time);
        let column = |(place, info): &(usize, ColumnInfo)| Column {
            place: *place,
            is_set: Vec::new(),
            cells: match info.kind {
                Kind::Integer => Cells::Ints(Vec::new()),
                Kind::Text => Cells::Texts { values: Vec::new(), seen: FxHashMap::default() },
            },
        };
        Buffer { columns: columns.iter().map(column).collect(), time, text_bytes: 0, rows: 0 }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, value: impl Fn(usize) -> Value) {
        for column in &mut self.columns {
            let value = value(column.place);
            column.is_set.push(value != Value::Null);
            match (&mut column.cells, value) {
                (Cells::Ints(values), Value::Int(number)) => values.push(number),
                (Cells::Ints(values), _) => values.push(0),
                (Cells::Texts { values, seen }, Value::Name(name)) => {
                    values.push(text(seen, &mut self.text_bytes, name.into()));
                }
                (Cells::Texts { values, seen }, Value::Text(name)) => {
                    values.push(text(seen, &mut self.text_bytes, name));
                }
                (Cells::Texts { values, .. }, _) => values.push(ByteArray::new()),
            }
        }
        self.rows += 1;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows >= GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Places of rows in order of time: intervals come in the order of their ends.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows).collect();
        if let Some(Cells::Ints(times)) = self.time.map(|time| &self.columns[time].cells) {
            order.sort_by_key(|row| times[*row]);
        }
        order
    }

    pub(crate) fn clear(&mut self) {
        for column in &mut self.columns {
            column.is_set.clear();
            match &mut column.cells {
                Cells::Ints(values) => values.clear(),
                Cells::Texts { values, seen } => {
                    values.clear();
                    seen.clear();
                }
            }
        }
        (self.rows, self.text_bytes) = (0, 0);
    }
}

/// The bytes of a text, which all rows with it share.
fn text(
    seen: &mut FxHashMap<Arc<str>, ByteArray>,
    text_bytes: &mut usize,
    text: Arc<str>,
) -> ByteArray {
    if let Some(known) = seen.get(&text) {
        return known.clone();
    }
    *text_bytes += text.len();
    let bytes = ByteArray::from(text.as_bytes().to_vec());
    seen.insert(text, bytes.clone());
    bytes
}
