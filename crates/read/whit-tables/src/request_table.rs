//! `request`: calls of functions, and the time between probes.

use crate::column::columns;
use crate::cursor::{Cursor, Wanted};
use crate::database::{Database, TableError};
use crate::table::{Recordings, Size, Table};
use crate::value::Value;
use std::sync::Arc;
use whit_profile::tables::RequestKey;
use whit_why::{Call, RecordedCall, RecordedCalls};

/// A request with its name.
pub(crate) struct RequestRow {
    name: Arc<str>,
    call: Call,
    is_certain: bool,
}

pub(crate) static REQUEST: Table<RequestRow> = Table {
    name: "request",
    meaning: "The requests that have ended (`whit record --request`, `docs/requests.md`)",
    size: Size::Streamed,
    open,
    columns: columns![RequestRow;
        ("ts", Integer, Time, "Begin, in nanoseconds by the clock of the recording", |_, row| Value::of(row.call.from.0)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("dur", Integer, Plain, "Length in nanoseconds", |_, row| Value::of(row.call.duration_ns())),
        ("name", Text, Selective, "Name that `--request` gave", |_, row| Value::Text(row.name.clone())),
        ("key", Text, Plain, "Key as text; null where none was recorded", |_, row| Value::or_null(row.call.key.as_ref(), key)),
        ("utid", Integer, Thread, "`thread.utid` of the thread that served it; of a goroutine, the one that ran it at the end", |context, row| context.id(row.call.thread)),
        ("goroutine", Integer, Plain, "Number of the goroutine that made the call; null for threads", |_, row| Value::or_null(row.call.goroutine, |id| Value::Int(id.number() as i64))),
        ("depth", Integer, Plain, "Requests of the same name that it is within", |_, row| Value::Int(row.call.depth.into())),
        ("certain", Integer, Plain, "1 where no loss may hide its end", |_, row| Value::flag(row.is_certain)),
    ],
};

fn key(key: &RequestKey) -> Value {
    match key {
        RequestKey::Number(number) => Value::text(&number.to_string()),
        RequestKey::Text(text) => Value::text(text),
    }
}

struct RequestCursor {
    table: &'static Table<RequestRow>,
    recordings: Recordings,
    wanted: Wanted,
    /// The rest of the current recording, its first one behind.
    rest: Vec<RequestRow>,
    row: Option<RequestRow>,
}

fn open(
    table: &'static Table<RequestRow>,
    database: &Database,
    wanted: &Wanted,
) -> Box<dyn Cursor> {
    let (recordings, wanted) = (Recordings::new(database), wanted.clone());
    Box::new(RequestCursor { table, recordings, wanted, rest: Vec::new(), row: None })
}

impl RequestCursor {
    /// The requests of the current recording, in order of time.
    fn read(&mut self) -> Result<(), TableError> {
        let Some(source) = self.recordings.source() else { return Ok(()) };
        let recorded = RecordedCalls::of(source).map_err(|error| {
            self.recordings.database.error(self.recordings.number(), error.to_string())
        })?;
        let name = |number: u32| recorded.names.get(number as usize).cloned().unwrap_or_default();
        let row = |it: RecordedCall| RequestRow {
            name: name(it.name),
            call: it.call,
            is_certain: it.is_certain,
        };
        self.rest = recorded.calls.into_iter().map(row).collect();
        self.rest.sort_by_key(|row| std::cmp::Reverse((row.call.from, row.call.thread)));
        Ok(())
    }
}

impl Cursor for RequestCursor {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            self.row = self.rest.pop();
            if self.row.is_some() {
                return Ok(true);
            }
            if self.recordings.advance(&self.wanted)?.is_none() {
                return Ok(false);
            }
            self.read()?;
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some((row, context)) = self.row.as_ref().zip(self.recordings.context()) else {
            return Value::Null;
        };
        self.table.value(&context, row, column)
    }
}
