//! `sqrt(x)`: other engines have it, and SQLite only where it was built so.

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, Result};

/// Gives a connection the function. It gives NULL for NULL and for numbers below zero.
pub(crate) fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("sqrt", 1, flags, |context| {
        Ok(context.get::<Option<f64>>(0)?.map(f64::sqrt).filter(|root| root.is_finite()))
    })
}
