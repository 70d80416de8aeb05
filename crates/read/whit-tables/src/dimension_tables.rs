//! Tables of the things that samples and waits name.

use crate::column::columns;
use crate::numbered::{Numbered, open};
use crate::table::{Size, Table};
use crate::value::Value;
use whit_profile::model::DsoKind;
use whit_profile::tables::{BinaryRow, CallsiteRow, CgroupRow, FrameRow, TableSource, ThreadRow};
use whit_types::{CgroupPath, CpuId, Pid};

/// A row with its number.
pub(crate) struct Row<T> {
    number: u32,
    of: T,
}

impl<T> Row<T> {
    fn new(number: u32, of: Option<T>) -> Option<Row<T>> {
        Some(Row { number, of: of? })
    }
}

impl Numbered for Row<Pid> {
    fn row(source: &TableSource, number: u32) -> Option<Self> {
        Row::new(number, source.processes().get(number as usize).copied())
    }
}

impl Numbered for Row<ThreadRow> {
    fn row(source: &TableSource, number: u32) -> Option<Self> {
        Row::new(number, source.thread(number))
    }
}

impl Numbered for Row<CgroupRow> {
    fn row(source: &TableSource, number: u32) -> Option<Self> {
        Row::new(number, source.cgroup(number))
    }
}

impl Numbered for Row<BinaryRow> {
    fn row(source: &TableSource, number: u32) -> Option<Self> {
        Row::new(number, source.binary(number))
    }
}

impl Numbered for Row<FrameRow> {
    const NEEDS_STACKS: bool = true;

    fn row(source: &TableSource, number: u32) -> Option<Self> {
        Row::new(number, source.frame(number))
    }
}

impl Numbered for Row<CallsiteRow> {
    const NEEDS_STACKS: bool = true;

    fn row(source: &TableSource, number: u32) -> Option<Self> {
        Row::new(number, source.callsite(number))
    }
}

/// The CPUs are numbered without a gap; the column `id` has their own numbers.
impl Numbered for Row<CpuId> {
    fn row(source: &TableSource, number: u32) -> Option<Self> {
        let cpu = source.cpus().get(number as usize).copied()?;
        Row::new(cpu.0, Some(cpu))
    }
}

pub(crate) static PROCESS: Table<Row<Pid>> = Table {
    name: "process",
    meaning: "The processes that have samples, switches or names; a number that the kernel uses again is one row",
    size: Size::Small,
    open: open::<Row<Pid>>,
    columns: columns![Row<Pid>;
        ("upid", Integer, Key, "Number of the row, unique over all recordings", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("pid", Integer, Selective, "Process ID", |_, row| Value::Int(row.of.0.into())),
        ("name", Text, Selective, "Last command name of its first thread", |context, row| Value::or_null(context.source.process_name(row.of), Value::Text)),
    ],
};

pub(crate) static THREAD: Table<Row<ThreadRow>> = Table {
    name: "thread",
    meaning: "The threads that have samples, switches or names; a number that the kernel uses again is one row",
    size: Size::Small,
    open: open::<Row<ThreadRow>>,
    columns: columns![Row<ThreadRow>;
        ("utid", Integer, Key, "Number of the row, unique over all recordings", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("tid", Integer, Selective, "Thread ID", |_, row| Value::Int(row.of.tid.0.into())),
        ("upid", Integer, Selective, "`process.upid`", |context, row| context.some_id(row.of.process)),
        ("name", Text, Selective, "Last command name", |_, row| Value::or_null(row.of.name.clone(), Value::Text)),
        ("is_main_thread", Integer, Plain, "1 where the thread is the first of its process", |_, row| Value::flag(row.of.pid.0 == row.of.tid.0)),
    ],
};

pub(crate) static CPU: Table<Row<CpuId>> = Table {
    name: "cpu",
    meaning: "The CPUs of samples and switches",
    size: Size::Small,
    open: open::<Row<CpuId>>,
    columns: columns![Row<CpuId>;
        ("id", Integer, Selective, "Number of the row, unique over all recordings", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("cpu", Integer, Selective, "Number of the CPU", |_, row| Value::Int(row.of.0.into())),
        ("socket", Integer, Plain, "Socket, where recorded", |context, row| {
            let sockets = context.source.recording().features.sockets().unwrap_or_default();
            Value::or_null(sockets.get(row.of.0 as usize).copied().flatten(), |socket| Value::Int(socket.into()))
        }),
    ],
};

pub(crate) static CGROUP: Table<Row<CgroupRow>> = Table {
    name: "cgroup",
    meaning: "The cgroups of samples, where they were recorded (`--all-cgroups`)",
    size: Size::Small,
    open: open::<Row<CgroupRow>>,
    columns: columns![Row<CgroupRow>;
        ("id", Integer, Key, "Number of the row, unique over all recordings", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("path", Text, Selective, "Path from the root of its hierarchy; `[cgroup N]` where none was recorded", |_, row| Value::Text(row.of.path.clone())),
        ("container", Text, Selective, "Innermost container of the path", |_, row| named(row, CgroupPath::container)),
        ("pod", Text, Selective, "Innermost pod of the path", |_, row| named(row, CgroupPath::pod)),
        ("unit", Text, Selective, "Innermost systemd unit of the path", |_, row| named(row, CgroupPath::unit)),
    ],
};

pub(crate) static MAPPING: Table<Row<BinaryRow>> = Table {
    name: "mapping",
    meaning: "The binaries and other kinds of code, one row each however often it is mapped",
    size: Size::Small,
    open: open::<Row<BinaryRow>>,
    columns: columns![Row<BinaryRow>;
        ("id", Integer, Key, "Number of the row, unique over all recordings", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("name", Text, Selective, "Path, or a name in brackets such as `[kernel.kallsyms]`, `[vdso]`, `[unknown]`", |_, row| Value::Text(row.of.path.clone())),
        ("build_id", Text, Selective, "Build id in hexadecimal digits, where known", |_, row| {
            Value::or_null(row.of.build_id, |id| Value::text(&id.to_string()))
        }),
        ("kind", Text, Plain, "`elf`, `kernel`, `module`, `vdso`, `jit` or `unknown`", |_, row| Value::Name(kind_name(row.of.kind))),
    ],
};

pub(crate) static FRAME: Table<Row<FrameRow>> = Table {
    name: "frame",
    meaning: "The code locations of call chains: physical functions, and behind each those that were inlined there",
    size: Size::Chains,
    open: open::<Row<FrameRow>>,
    columns: columns![Row<FrameRow>;
        ("id", Integer, Key, "Number of the row, unique over all recordings; it stays for as long as whit runs", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("name", Text, Selective, "Function, demangled; its address in hexadecimal where no symbol covers it", |_, row| Value::Text(row.of.name.clone())),
        ("mapping", Integer, Selective, "`mapping.id`", |context, row| context.id(row.of.binary)),
        ("rel_pc", Integer, Plain, "Address as the binary states it", |_, row| Value::Int(row.of.address as i64)),
        ("function_id", Integer, Selective, "Number of the function: equal for frames of one name in one binary", |context, row| context.id(row.of.function)),
        ("source_file", Text, Plain, "Source file, where known", |_, row| Value::or_null(row.of.source.as_ref(), |source| Value::Text(source.0.clone()))),
        ("line_number", Integer, Plain, "Line in it", |_, row| Value::or_null(row.of.source.as_ref(), |source| Value::Int(source.1.into()))),
        ("is_inlined", Integer, Plain, "1 where the function was inlined into its caller", |_, row| Value::flag(row.of.is_inlined)),
        ("is_kernel", Integer, Plain, "1 for code of the kernel", |_, row| Value::flag(row.of.is_kernel)),
        ("is_symbolized", Integer, Plain, "0 where the name is an address", |_, row| Value::flag(row.of.is_known)),
    ],
};

pub(crate) static CALLSITE: Table<Row<CallsiteRow>> = Table {
    name: "callsite",
    meaning: "The call tree: each frame with the frames that called it",
    size: Size::Chains,
    open: open::<Row<CallsiteRow>>,
    columns: columns![Row<CallsiteRow>;
        ("id", Integer, Key, "Number of the row, unique over all recordings; it stays for as long as whit runs", |context, row| context.id(row.number)),
        ("recording_id", Integer, Recording, "`recording.id`", |context, _| context.recording()),
        ("parent_id", Integer, Selective, "`callsite.id` of the caller; null for the outermost frame", |context, row| context.some_id(row.of.parent)),
        ("frame_id", Integer, Selective, "`frame.id`", |context, row| context.id(row.of.frame)),
        ("depth", Integer, Plain, "Number of callers", |_, row| Value::Int(row.of.depth.into())),
        ("is_outermost", Integer, Plain, "0 where a caller is the same function: a total of functions counts the others", |_, row| Value::flag(row.of.is_outermost)),
    ],
};

fn named<'a>(row: &'a Row<CgroupRow>, part: fn(CgroupPath<'a>) -> Option<&'a str>) -> Value {
    let path = Some(&*row.of.path).filter(|_| row.of.is_known);
    Value::or_null(path.and_then(|path| part(CgroupPath(path))), Value::text)
}

fn kind_name(kind: DsoKind) -> &'static str {
    match kind {
        DsoKind::Elf => "elf",
        DsoKind::Kernel => "kernel",
        DsoKind::KernelModule => "module",
        DsoKind::Vdso => "vdso",
        DsoKind::Jit => "jit",
        DsoKind::Unknown => "unknown",
    }
}
