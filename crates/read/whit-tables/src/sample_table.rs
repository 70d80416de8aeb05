//! `sample`.

use crate::column::{ColumnRole, columns};
use crate::cursor::{Cursor, Wanted};
use crate::database::{Database, TableError};
use crate::stream::Stream;
use crate::table::{Recordings, Size, Table};
use crate::value::Value;
use whit_profile::tables::{SampleEntry, SampleWanted, WantedFacts};
use whit_profile::time_filter::TimeRange;
use whit_types::TimestampNs;

/// Names of `PERF_RECORD_MISC_CPUMODE_*`, as Perfetto has them.
const CPU_MODES: [&str; 6] =
    ["unknown", "kernel", "userspace", "hypervisor", "guest_kernel", "guest_userspace"];

pub(crate) static SAMPLE: Table<SampleEntry> = Table {
    name: "sample",
    meaning: "The samples of all events",
    size: Size::Streamed,
    open,
    columns: columns![SampleEntry;
        ("ts", Integer, Time, "Time in nanoseconds, by the clock of the recording; the position in the recording where samples have no time",
            |_, row| Value::of(row.time.0)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("utid", Integer, Thread, "`thread.utid`", |context, row| context.some_id(row.thread)),
        ("upid", Integer, Process, "`process.upid`", |context, row| context.some_id(row.process)),
        ("cpu", Integer, Plain, "CPU on which it was taken",
            |_, row| Value::or_null(row.cpu, |cpu| Value::Int(cpu.0.into()))),
        ("cpu_mode", Text, Plain, "`kernel`, `userspace`, `hypervisor`, `guest_kernel`, `guest_userspace` or `unknown`",
            |_, row| Value::Name(CPU_MODES.get(row.cpu_mode as usize).unwrap_or(&CPU_MODES[0]))),
        ("event", Text, Event, "Name of the event",
            |context, row| context.event(row.event)),
        ("weight", Integer, Plain, "Its period: the count of the event that it stands for", |_, row| Value::of(row.weight)),
        ("callsite_id", Integer, Stack, "`callsite.id` of the innermost frame", |context, row| context.some_id(row.callsite)),
        ("cgroup_id", Integer, Cgroup, "`cgroup.id`", |context, row| context.some_id(row.cgroup)),
        ("comm", Text, Plain, "Command name of the thread at the time",
            |context, row| context.comm(row.comm)),
        ("unwind_end", Text, Stack, "Why unwinding ended, where a stack was unwound; the reasons are those of `unwind_end.reason`",
            |_, row| Value::or_null(row.unwind_end, |end| Value::text(&end.to_string()))),
    ],
};

struct SampleCursor {
    wanted: Wanted,
    recordings: Recordings,
    stream: Option<Stream<SampleEntry>>,
    row: Option<SampleEntry>,
}

fn open(_: &'static Table<SampleEntry>, database: &Database, wanted: &Wanted) -> Box<dyn Cursor> {
    let recordings = Recordings::new(database);
    Box::new(SampleCursor { wanted: wanted.clone(), recordings, stream: None, row: None })
}

/// As the reader takes it; `None` where no sample can be wanted.
pub(crate) fn constraints<R>(table: &Table<R>, wanted: &Wanted) -> Option<SampleWanted> {
    let first = u64::try_from(wanted.from.unwrap_or(0).max(0)).unwrap_or(0);
    let last = match wanted.to {
        Some(to) => u64::try_from(to).ok()?,
        None => u64::MAX,
    };
    let range = TimeRange { from: TimestampNs(first), to: TimestampNs(last) };
    let has_range = wanted.from.is_some() || wanted.to.is_some();
    let role = |role| table.wants(wanted, |column| column.role == role);
    let facts = WantedFacts {
        thread: role(ColumnRole::Thread),
        process: role(ColumnRole::Process),
        cgroup: role(ColumnRole::Cgroup),
        comm: table.wants(wanted, |column| column.name == "comm"),
        cpu: table.wants(wanted, |column| column.name == "cpu"),
    };
    Some(SampleWanted {
        time: has_range.then_some(range),
        event: wanted.event.clone(),
        thread: Wanted::local(wanted.thread),
        process: Wanted::local(wanted.process),
        cgroup: Wanted::local(wanted.cgroup),
        stacks: table.wants_stacks(wanted),
        facts,
    })
}

impl Cursor for SampleCursor {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            if let Some(stream) = &mut self.stream {
                let number = self.recordings.number();
                self.row = stream.next(&self.recordings.database, number)?;
                if self.row.is_some() {
                    return Ok(true);
                }
                self.stream = None;
            }
            let Some(wanted) = constraints(&SAMPLE, &self.wanted) else { return Ok(false) };
            let Some(opened) = self.recordings.advance(&self.wanted)? else { return Ok(false) };
            self.stream = Some(Stream::start(opened.clone(), move |opened, outlet| {
                opened.source.samples(&wanted, &mut |rows| outlet.send(std::mem::take(rows)))
            }));
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some((row, context)) = self.row.as_ref().zip(self.recordings.context()) else {
            return Value::Null;
        };
        SAMPLE.value(&context, row, column)
    }
}
