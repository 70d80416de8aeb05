//! Tables of the recordings themselves: headers, losses, costs.

use crate::column::columns;
use crate::numbered::{Numbered, open};
use crate::table::{Size, Table};
use crate::value::Value;
use whit_perfdata::ledger::{GROUPS, READER_FIELDS, Unit};
use whit_profile::model::{LossReport, RecordingInfo};
use whit_profile::tables::{LossRow, TableSource};
use whit_types::OutsideText;

/// The header of a recording.
pub(crate) struct Header {
    info: RecordingInfo,
    losses: LossReport,
    samples: u64,
    /// Time of day of its first record.
    start_ns: Option<u64>,
    /// Time of day less the time of the recording.
    clock_offset_ns: Option<i64>,
}

/// A figure of the ledger.
pub(crate) struct Figure {
    key: String,
    value: Option<u64>,
    unit: &'static str,
}

/// A reason and how often it occurred.
pub(crate) struct UnwindEnd {
    reason: String,
    samples: u64,
}

impl Numbered for Header {
    fn row(source: &TableSource, number: u32) -> Option<Header> {
        if number > 0 {
            return None;
        }
        let info = source.info();
        let clock = source.recording().features.clock_data();
        let start_ns = clock.zip(info.first_sample).map(|(clock, first)| {
            clock.wall_clock_ns.wrapping_add(first.0.wrapping_sub(clock.clock_ns.0))
        });
        let offset = |clock: whit_perfdata::feature::ClockData| {
            i64::try_from(i128::from(clock.wall_clock_ns) - i128::from(clock.clock_ns.0)).ok()
        };
        let clock_offset_ns = clock.and_then(offset);
        let (losses, samples) = (source.losses(), source.nr_samples());
        Some(Header { info, losses, samples, start_ns, clock_offset_ns })
    }
}

impl Numbered for LossRow {
    fn row(source: &TableSource, number: u32) -> Option<LossRow> {
        source.ring_loss(number)
    }
}

impl Numbered for Figure {
    fn row(source: &TableSource, number: u32) -> Option<Figure> {
        figures(source).into_iter().nth(number as usize)
    }
}

impl Numbered for UnwindEnd {
    const NEEDS_STACKS: bool = true;

    fn row(source: &TableSource, number: u32) -> Option<UnwindEnd> {
        let (reason, samples) = *source.unwind_ends()?.get(number as usize)?;
        Some(UnwindEnd { reason: reason.to_string(), samples })
    }
}

/// All figures of the ledger, those of its groups under the group's name.
fn figures(source: &TableSource) -> Vec<Figure> {
    let Some(ledger) = source.recording().features.ledger() else { return Vec::new() };
    let mut figures = Vec::new();
    for group in GROUPS.iter().filter(|group| group.is_reported(&ledger)) {
        for field in group.fields {
            let prefix = group.member.map_or(String::new(), |member| format!("{member}."));
            let (key, unit) = (format!("{prefix}{}", field.name), field.unit.name());
            if field.element.is_some() {
                figures.extend(field.elements(&ledger).map(|(element, value)| Figure {
                    key: format!("{key}.{element}"),
                    value: Some(value),
                    unit,
                }));
            } else {
                // The code says why the others were not measured.
                let code = (field.unit == Unit::Code).then(|| field.value(&ledger));
                let value = code.or_else(|| group.figure(field, &ledger).ok());
                figures.push(Figure { key, value, unit });
            }
        }
    }
    for (number, reader) in ledger.readers.iter().enumerate() {
        figures.extend(READER_FIELDS.iter().map(|field| Figure {
            key: format!("readers.{number}.{}", field.name),
            value: Some(field.value(reader)),
            unit: field.unit.name(),
        }));
    }
    figures
}

fn text(text: &OutsideText) -> Value {
    match text.exact() {
        "" => Value::Null,
        text => Value::text(text),
    }
}

pub(crate) static RECORDING: Table<Header> = Table {
    name: "recording",
    meaning: "The recordings that were named with -i",
    size: Size::Small,
    open: open::<Header>,
    columns: columns![Header;
        ("id", Integer, Recording, "Number of the recording, counted from 0 in the order of the command line", |context, _| context.recording()),
        ("path", Text, Selective, "Path that was opened", |_, row| text(&row.info.path)),
        ("host", Text, Selective, "Host name of the recorded machine", |_, row| text(&row.info.hostname)),
        ("start_ns", Integer, Plain, "Time of day of the first record, in nanoseconds since 1970; null where the recording has no reference",
            |_, row| Value::or_null(row.start_ns, Value::of)),
        ("clock_offset_ns", Integer, Plain, "Time of day less `ts`, by the clock of the host: `ts + clock_offset_ns` is a time of day; null where the recording has no reference",
            |_, row| Value::or_null(row.clock_offset_ns, Value::Int)),
        ("command", Text, Plain, "Command line that recorded", |_, row| {
            let words: Vec<_> = row.info.cmdline.iter().map(OutsideText::exact).collect();
            text(&OutsideText::from(words.join(" ")))
        }),
        ("version", Text, Plain, "Version of the tool that recorded", |_, row| text(&row.info.version)),
        ("os_release", Text, Plain, "Kernel release", |_, row| text(&row.info.os_release)),
        ("arch", Text, Plain, "Machine, as `uname -m`", |_, row| text(&row.info.arch)),
        ("cpu_desc", Text, Plain, "Description of the CPU", |_, row| text(&row.info.cpu_desc)),
        ("nr_cpus", Integer, Plain, "CPUs online", |_, row| Value::or_null(row.info.nr_cpus, |cpus| Value::Int(cpus.0.into()))),
        ("size_bytes", Integer, Plain, "Size of all its files", |_, row| Value::of(row.info.size_bytes)),
        ("first_ts", Integer, Plain, "Time of the first sample or switch", |_, row| Value::or_null(row.info.first_sample, |time| Value::of(time.0))),
        ("last_ts", Integer, Plain, "Time of the last one", |_, row| Value::or_null(row.info.last_sample, |time| Value::of(time.0))),
        ("samples", Integer, Plain, "Samples of all events", |_, row| Value::of(row.samples)),
        ("lost_records", Integer, Plain, "Records that rings lost", |_, row| Value::of(row.losses.lost_records)),
        ("lost_samples", Integer, Plain, "Samples that the kernel counted as lost", |_, row| Value::of(row.losses.lost_samples)),
        ("truncated_bytes", Integer, Plain, "Bytes that hold no whole record", |_, row| Value::of(row.losses.truncated_bytes)),
    ],
};

pub(crate) static LOSS: Table<LossRow> = Table {
    name: "loss",
    meaning: "The stretches of time in which rings lost records",
    size: Size::Small,
    open: open::<LossRow>,
    columns: columns![LossRow;
        ("ts", Integer, Plain, "Last moment before which nothing is missing", |_, row| Value::of(row.from.0)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("dur", Integer, Plain, "Length in nanoseconds; null where it goes on to the end of the recording",
            |_, row| Value::or_null(row.to, |to| Value::of(to.since(row.from)))),
        ("ring", Integer, Plain, "CPU of the ring; null where it may be any", |_, row| Value::or_null(row.cpu, |cpu| Value::Int(cpu.0.into()))),
        ("records", Integer, Plain, "Records that are missing, as far as they were counted", |_, row| Value::of(row.records)),
    ],
};

pub(crate) static LEDGER: Table<Figure> = Table {
    name: "ledger",
    meaning: "The cost of recording, one row a figure, where the recorder was whit (`docs/ledger.md`)",
    size: Size::Small,
    open: open::<Figure>,
    columns: columns![Figure;
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("key", Text, Selective, "Name of the figure as in the JSON ledger; members of objects and elements stand behind a dot", |_, row| Value::text(&row.key)),
        ("value", Integer, Plain, "The figure; null where it was not measured", |_, row| Value::or_null(row.value, Value::of)),
        ("unit", Text, Plain, "`ns`, `bytes`, `count` or `code`", |_, row| Value::Name(row.unit)),
    ],
};

pub(crate) static UNWIND_END: Table<UnwindEnd> = Table {
    name: "unwind_end",
    meaning: "Why the unwinding of user stacks ended",
    size: Size::Small,
    open: open::<UnwindEnd>,
    columns: columns![UnwindEnd;
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("reason", Text, Selective, "The reason", |_, row| Value::text(&row.reason)),
        ("samples", Integer, Plain, "Samples whose unwinding ended so", |_, row| Value::of(row.samples)),
    ],
};
