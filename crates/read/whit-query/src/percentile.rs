//! `percentile(x, p)`: the smallest value that at least p percent of all are not above.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Error, Result};
use std::sync::Arc;
use whit_tables::{Budget, Held};

/// The values of one group.
pub(crate) struct Values {
    values: Vec<f64>,
    all_are_integers: bool,
    percent: Option<f64>,
    held: Held,
}

struct Percentile {
    budget: Arc<Budget>,
}

/// Gives a connection the function.
pub(crate) fn register(connection: &Connection, budget: Arc<Budget>) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_aggregate_function("percentile", 2, flags, Percentile { budget })
}

fn wrong(text: &str) -> Error {
    Error::UserFunctionError(text.into())
}

impl Values {
    /// Counts the memory that the vector has taken.
    fn count(&mut self) -> Result<()> {
        match self.held.set(self.values.capacity() * size_of::<f64>()) {
            true => Ok(()),
            false => Err(wrong(
                "percentile holds all values of a group, and needs more memory than --memory allows",
            )),
        }
    }
}

impl Aggregate<Values, Value> for Percentile {
    fn init(&self, _: &mut Context<'_>) -> Result<Values> {
        let (values, percent, held) = (Vec::new(), None, Held::new(self.budget.clone()));
        Ok(Values { values, all_are_integers: true, percent, held })
    }

    fn step(&self, context: &mut Context<'_>, group: &mut Values) -> Result<()> {
        let percent: f64 =
            context.get(1).map_err(|_| wrong("percentile(x, p) takes a number p"))?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(wrong("percentile(x, p) takes a p between 0 and 100"));
        }
        if group.percent.is_some_and(|before| before != percent) {
            return Err(wrong("percentile(x, p) takes the same p for all rows of a group"));
        }
        group.percent = Some(percent);
        let value = match context.get_raw(0) {
            ValueRef::Null => return Ok(()),
            ValueRef::Integer(value) => value as f64,
            ValueRef::Real(value) => {
                group.all_are_integers = false;
                value
            }
            ValueRef::Text(_) | ValueRef::Blob(_) => {
                return Err(wrong("percentile(x, p) takes numbers x"));
            }
        };
        group.values.push(value);
        group.count()
    }

    fn finalize(&self, _: &mut Context<'_>, group: Option<Values>) -> Result<Value> {
        let Some(mut group) = group else { return Ok(Value::Null) };
        let Some(percent) = group.percent.filter(|_| !group.values.is_empty()) else {
            return Ok(Value::Null);
        };
        let count = group.values.len();
        let rank = (percent / 100.0 * count as f64).ceil() as usize;
        let at = rank.clamp(1, count) - 1;
        let (_, value, _) = group.values.select_nth_unstable_by(at, f64::total_cmp);
        Ok(match group.all_are_integers {
            true => Value::Integer(*value as i64),
            false => Value::Real(*value),
        })
    }
}
