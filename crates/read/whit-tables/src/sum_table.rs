//! `sample_sum`: samples added up by the columns that somebody looks at.
//!
//! It is no table of files: a reader that adds rows up gets the same sums from `sample`.

use crate::budget::Held;
use crate::column::columns;
use crate::cursor::{Cursor, Wanted};
use crate::database::{Database, Opened, TableError};
use crate::sample_table::constraints;
use crate::stream::{Outlet, Stream};
use crate::table::{AnyTable, Recordings, Size, Table};
use crate::value::Value;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use whit_profile::tables::{SampleEntry, SampleSum, SampleWanted, StreamEnd};

/// Samples added up. Those that no looked-at column tells apart are one row, or several where memory does not suffice.
pub static SAMPLE_SUM: &dyn AnyTable = &TABLE;

/// A sum, and the range of time that was asked for.
struct Row {
    of: SampleSum,
    from: Option<i64>,
    to: Option<i64>,
}

static TABLE: Table<Row> = Table {
    name: "sample_sum",
    meaning: "Sums of the samples that no column tells apart which the statement names; several rows may have the same \
              values. It stands in `whit query` alone",
    size: Size::Streamed,
    open,
    columns: columns![Row;
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("event", Text, Event, "Name of the event", |context, row| context.event(row.of.event)),
        ("utid", Integer, Thread, "`thread.utid`", |context, row| context.some_id(row.of.thread)),
        ("upid", Integer, Process, "`process.upid`", |context, row| context.some_id(row.of.process)),
        ("cpu", Integer, Plain, "CPU on which the samples were taken",
            |_, row| Value::or_null(row.of.cpu, |cpu| Value::Int(cpu.0.into()))),
        ("cgroup_id", Integer, Cgroup, "`cgroup.id`", |context, row| context.some_id(row.of.cgroup)),
        ("comm", Text, Plain, "Command name of the thread at the time", |context, row| context.comm(row.of.comm)),
        ("callsite_id", Integer, Stack, "`callsite.id` of the innermost frame",
            |context, row| context.some_id(row.of.callsite)),
        ("weight", Integer, Plain, "Sum of their weights", |_, row| Value::of(row.of.weight)),
        ("samples", Integer, Plain, "Number of the samples", |_, row| Value::of(row.of.samples)),
        ("from_ts", Integer, From, "Argument, compared with `=`: first moment of the samples that are added up; all without it",
            |_, row| Value::or_null(row.from, Value::Int)),
        ("to_ts", Integer, To, "Argument, compared with `=`: last moment of them",
            |_, row| Value::or_null(row.to, Value::Int)),
    ],
};

struct SumCursor {
    wanted: Wanted,
    recordings: Recordings,
    stream: Option<Stream<SampleSum>>,
    /// The sums are wanted for as long as somebody holds this.
    interest: Arc<()>,
    /// Memory of the sums that the stream gives.
    held: Option<Arc<Mutex<Held>>>,
    row: Option<Row>,
}

fn open(_: &'static Table<Row>, database: &Database, wanted: &Wanted) -> Box<dyn Cursor> {
    Box::new(SumCursor {
        wanted: wanted.clone(),
        recordings: Recordings::new(database),
        stream: None,
        interest: Arc::default(),
        held: None,
        row: None,
    })
}

/// A sample alone.
fn sum_of(sample: SampleEntry, has_cpu: bool) -> SampleSum {
    SampleSum {
        event: sample.event,
        callsite: sample.callsite,
        thread: sample.thread,
        process: sample.process,
        cpu: sample.cpu.filter(|_| has_cpu),
        cgroup: sample.cgroup,
        comm: sample.comm,
        weight: sample.weight,
        samples: 1,
    }
}

fn read(
    opened: &Opened,
    outlet: &Outlet<SampleSum>,
    wanted: &SampleWanted,
    held: Option<&Mutex<Held>>,
    interest: &Weak<()>,
) -> Result<(), StreamEnd> {
    let lock = |held: &Mutex<Held>, bytes| {
        held.lock().unwrap_or_else(PoisonError::into_inner).take_more(bytes)
    };
    let has_room = |bytes| held.is_none_or(|held| lock(held, bytes));
    let continues = || interest.strong_count() > 0;
    match opened.source.sample_sums(wanted, &has_room, &continues) {
        Ok(sums) => {
            outlet.send(sums);
            Ok(())
        }
        // The reader adds them up, and can write to files.
        Err(StreamEnd::NoRoom) => {
            if let Some(held) = held {
                held.lock().unwrap_or_else(PoisonError::into_inner).clear();
            }
            opened.source.samples(wanted, &mut |rows| {
                outlet.send(rows.drain(..).map(|row| sum_of(row, wanted.facts.cpu)).collect())
            })
        }
        Err(end) => Err(end),
    }
}

impl SumCursor {
    /// Starts with the next recording; false behind the last.
    fn start(&mut self) -> Result<bool, TableError> {
        (self.stream, self.held) = (None, None);
        let Some(wanted) = constraints(&TABLE, &self.wanted) else { return Ok(false) };
        let Some(opened) = self.recordings.advance(&self.wanted)? else { return Ok(false) };
        let budget = self.wanted.budget.clone();
        let held = budget.map(|budget| Arc::new(Mutex::new(Held::new(budget))));
        self.held.clone_from(&held);
        let interest = Arc::downgrade(&self.interest);
        self.stream = Some(Stream::start(opened.clone(), move |opened, outlet| {
            read(opened, outlet, &wanted, held.as_deref(), &interest)
        }));
        Ok(true)
    }
}

impl Cursor for SumCursor {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            if let Some(stream) = &mut self.stream {
                let number = self.recordings.number();
                if let Some(of) = stream.next(&self.recordings.database, number)? {
                    // A single weight that is too large is the largest number, as in `sample`.
                    if of.samples > 1 && i64::try_from(of.weight).is_err() {
                        return Err(TableError::Overflow);
                    }
                    self.row = Some(Row { of, from: self.wanted.from, to: self.wanted.to });
                    return Ok(true);
                }
            }
            if !self.start()? {
                return Ok(false);
            }
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some((row, context)) = self.row.as_ref().zip(self.recordings.context()) else {
            return Value::Null;
        };
        TABLE.value(&context, row, column)
    }
}
