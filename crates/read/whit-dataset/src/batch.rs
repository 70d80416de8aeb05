//! Rows in memory, by columns.

use std::sync::Arc;
use whit_tables::Value;

/// Values of a column; a null has a value, too.
#[derive(Debug)]
pub(crate) enum Values {
    Ints(Vec<i64>),
    Texts(Vec<Arc<str>>),
}

#[derive(Debug)]
pub(crate) struct ColumnValues {
    pub(crate) is_set: Vec<bool>,
    pub(crate) values: Values,
}

/// A group of rows, or all rows of a file.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// By their places in the table; `None` where nobody asked.
    pub(crate) columns: Vec<Option<ColumnValues>>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

impl Batch {
    pub(crate) fn value(&self, row: usize, column: usize) -> Value {
        let Some(Some(column)) = self.columns.get(column) else { return Value::Null };
        if !column.is_set.get(row).is_some_and(|is_set| *is_set) {
            return Value::Null;
        }
        match &column.values {
            Values::Ints(values) => values.get(row).map_or(Value::Null, |value| Value::Int(*value)),
            Values::Texts(values) => {
                values.get(row).map_or(Value::Null, |text| Value::Text(text.clone()))
            }
        }
    }

    /// The row with this number in a column: mostly its place is the number within the recording.
    pub(crate) fn find(&self, column: usize, key: i64, guess: usize) -> Option<usize> {
        let is_it = |row: &usize| self.value(*row, column) == Value::Int(key);
        Some(guess).filter(is_it).or_else(|| (0..self.rows).find(is_it))
    }

    /// Appends the rows of another batch with the same columns.
    pub(crate) fn append(&mut self, other: Batch) {
        if self.columns.is_empty() {
            *self = other;
            return;
        }
        for (column, more) in self.columns.iter_mut().zip(other.columns) {
            let (Some(column), Some(more)) = (column, more) else { continue };
            column.is_set.extend(more.is_set);
            match (&mut column.values, more.values) {
                (Values::Ints(values), Values::Ints(more)) => values.extend(more),
                (Values::Texts(values), Values::Texts(more)) => values.extend(more),
                _ => {}
            }
        }
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}
