//! A value in a row.

use std::sync::Arc;

/// One cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// The recording does not say.
    Null,
    /// A number, time or truth value.
    Int(i64),
    /// One of a few fixed texts.
    Name(&'static str),
    /// Any text.
    Text(Arc<str>),
}

impl Value {
    /// A number; the largest where it does not fit.
    pub(crate) fn of(number: u64) -> Value {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(crate) fn flag(is_so: bool) -> Value {
        Value::Int(i64::from(is_so))
    }

    pub(crate) fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    pub(crate) fn or_null<T>(value: Option<T>, of: impl FnOnce(T) -> Value) -> Value {
        value.map_or(Value::Null, of)
    }
}
