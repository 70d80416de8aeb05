//! Waits for locks as JSON: a stable form for programs.

use super::LockViewOptions;
use super::kernel::{self, KernelKey};
use super::keys::{HolderKey, LockKey, SiteKey};
use super::table::{LockRow, LockTable, RowKey};
use crate::json_strings;
use crate::switches::{Function, Functions, Misfits, Sources, Stacks};
use crate::warning::warning_text;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::io::{self, Write};
use whit_profile::model::{FunctionId, Profile};
use whit_profile::switches::{Durations, LockWait, Switches};

/// Version of the form.
pub const VERSION: u32 = 1;

/// Writes the table, without a line end after it.
///
/// # Errors
/// The error of `out`.
pub fn write_json(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    options: &LockViewOptions,
) -> io::Result<()> {
    json_strings::write(out, &Document::of(profile, switches, options))
}

/// `whit locks --json`: one object. Members may be added; `version` grows when one changes its meaning or goes away.
/// Times are whole nanoseconds. Unknown values are `null`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-locks`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    sources: Sources<'a>,
    /// First and last moment.
    span_ns: Option<[u64; 2]>,
    recorded_ns: u64,
    /// The known wall time of the threads: shares are of it.
    known_wall_ns: u64,
    /// Key of the rows: `lock`, `callsite` or `holder`.
    by: &'static str,
    total: Sums,
    /// The row with the longest sum of waits first.
    rows: Vec<Row>,
    locks: Vec<Lock>,
    threads: Vec<Thread<'a>>,
    /// Waits of one thread at one call stack for one lock that one waker ended.
    waits: Vec<Wait<'a>>,
    /// Waits for locks of the kernel, by their tracepoints; the row with the longest sum first. None where rows are
    /// holders.
    kernel_rows: Vec<KernelRow>,
    /// The recording has the tracepoints `lock:contention_begin` and `lock:contention_end`.
    kernel_recorded: bool,
    /// Waits that are in no row: there are too many different ones.
    left_off: u64,
    /// Waits that are in no row: threads of Java virtual machines parked, and no known function says what for.
    parked: Parked,
    functions: Vec<Function>,
    misfits: Misfits,
    /// From when to when switches may be missing.
    loss_windows_ns: Vec<[u64; 2]>,
    warnings: Vec<String>,
}

/// Waits. Their times are those of waits whose length is certain.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sums {
    /// Waits of certain length.
    contended: u64,
    total_ns: u64,
    max_ns: u64,
    average_ns: u64,
    /// Percentiles are at most 1/64 too long.
    p50_ns: u64,
    p95_ns: u64,
    p99_ns: u64,
    /// Waits of uncertain length: a loss touches them, or their beginning or end is not in the recording.
    uncertain: u64,
}

/// Waits that may have been for locks, or for work.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Parked {
    /// Waits of certain length.
    count: u64,
    total_ns: u64,
    uncertain: u64,
}

/// One row of the table.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Row {
    /// Index in `locks`, where rows are locks.
    lock: Option<usize>,
    /// Index in `functions`, where rows are call sites, and for holders the function that ended the waits.
    function: Option<usize>,
    /// The command name of the holders.
    holder: Option<String>,
    /// An interrupt ended the waits.
    from_interrupt: bool,
    sums: Sums,
    /// The part until the wake-up.
    blocked_ns: u64,
    /// Share of the known wall time, in percent.
    wall_percent: Option<f64>,
    /// Indices in `waits`.
    waits: Vec<usize>,
}

/// One lock, or all locks that only a function tells apart from others.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Lock {
    /// `data` (in the data of a binary), `address`, `unaddressed`, `parked` (waiters wait at words of their own) or
    /// `kernel`.
    kind: &'static str,
    /// Path of the binary whose data has the lock.
    binary: Option<String>,
    symbol: Option<String>,
    /// Bytes from the start of the symbol, or without one the stated address.
    offset: Option<u64>,
    pid: Option<i32>,
    address: Option<u64>,
    /// Index in `functions`, where only the function tells locks apart.
    function: Option<usize>,
}

/// One row of waits for locks of the kernel.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KernelRow {
    /// As `perf lock contention` has it: `spinlock`, `mutex`, `rwsem:R`, ….
    #[serde(rename = "type")]
    kind: String,
    /// Where rows are locks.
    address: Option<u64>,
    /// Index in `functions`, where rows are call sites.
    function: Option<usize>,
    sums: Sums,
    /// Share of the known wall time, in percent.
    wall_percent: Option<f64>,
}

/// A thread with its last name.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Thread<'a> {
    pid: i32,
    tid: i32,
    comm: &'a str,
}

/// Waits that share all.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Wait<'a> {
    /// Index in `locks`.
    lock: usize,
    /// Index in `threads`.
    thread: u32,
    comm: &'a str,
    /// Index in `functions`: the function that wants the lock.
    call_site: Option<usize>,
    /// Indices in `functions`, innermost first.
    stack: Vec<usize>,
    sums: Sums,
    /// The part until the wake-up.
    blocked_ns: u64,
    /// Absent where no wake-up was recorded.
    holder: Option<Holder>,
}

/// The thread that ended waits.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Holder {
    /// Index in `threads`.
    thread: u32,
    /// Index in `functions`: the function that released the lock.
    function: Option<usize>,
    /// Indices in `functions`, innermost first.
    stack: Vec<usize>,
    from_interrupt: bool,
}

impl Sums {
    fn of(waits: &Durations, uncertain: u64) -> Sums {
        let [p50_ns, p95_ns, p99_ns] = [50, 95, 99].map(|percent| waits.percentile_ns(percent));
        Sums {
            contended: waits.count,
            total_ns: waits.total_ns,
            max_ns: waits.max_ns,
            average_ns: waits.average_ns(),
            p50_ns,
            p95_ns,
            p99_ns,
            uncertain,
        }
    }
}

/// Numbers of things, as they are met.
struct Lists<'a> {
    profile: &'a Profile,
    stacks: Stacks<'a>,
    functions: Functions<'a>,
    numbers: FxHashMap<LockKey, usize>,
    locks: Vec<Lock>,
    waits: Vec<Wait<'a>>,
}

impl<'a> Lists<'a> {
    fn function(&mut self, function: SiteKey) -> Option<usize> {
        function.map(|function: FunctionId| self.functions.of(function))
    }

    fn lock(&mut self, key: &LockKey) -> usize {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let none = Lock {
            kind: "",
            binary: None,
            symbol: None,
            offset: None,
            pid: None,
            address: None,
            function: None,
        };
        let lock = match key {
            LockKey::Data(binary, symbol, offset) => Lock {
                kind: "data",
                binary: Some(binary.to_string()),
                symbol: symbol.as_ref().map(ToString::to_string),
                offset: Some(*offset),
                ..none
            },
            LockKey::Address(pid, address) => {
                Lock { kind: "address", pid: Some(*pid), address: Some(*address), ..none }
            }
            LockKey::Unaddressed(site) => {
                Lock { kind: "unaddressed", function: self.function(*site), ..none }
            }
            LockKey::Parked(site) => {
                Lock { kind: "parked", function: self.function(*site), ..none }
            }
            LockKey::Kernel(site) => {
                Lock { kind: "kernel", function: self.function(*site), ..none }
            }
        };
        self.locks.push(lock);
        self.numbers.insert(key.clone(), self.locks.len() - 1);
        self.locks.len() - 1
    }

    fn wait(&mut self, table: &LockTable<'_>, wait: &LockWait) -> usize {
        let site = table.sites.wait(wait.node);
        let lock = site.map(|site| LockKey::of(self.profile, wait, site));
        let holder = wait.waker.map(|waker| Holder {
            thread: waker.thread.0,
            function: self.function(table.sites.release(waker.node)),
            stack: self.functions.stack(&self.stacks.frames(waker.node)),
            from_interrupt: waker.from_interrupt,
        });
        let wait = Wait {
            lock: self.lock(&lock.unwrap_or(LockKey::Unaddressed(None))),
            thread: wait.thread.0,
            comm: self.profile.comms[wait.comm.index()].exact(),
            call_site: self.function(site.and_then(|site| site.caller)),
            stack: self.functions.stack(&self.stacks.frames(wait.node)),
            sums: Sums::of(&wait.waits, wait.uncertain),
            blocked_ns: wait.blocked_ns,
            holder,
        };
        self.waits.push(wait);
        self.waits.len() - 1
    }

    fn kernel_row(&mut self, table: &LockTable<'_>, row: &kernel::KernelRow) -> KernelRow {
        let (flags, address, site) = match row.key {
            KernelKey::Lock(flags, address) => (flags, Some(address), None),
            KernelKey::CallSite(flags, site) => (flags, None, site),
        };
        KernelRow {
            kind: kernel::type_name(flags),
            address,
            function: self.function(site),
            sums: Sums::of(&row.waits, row.uncertain),
            wall_percent: table.share(row.waits.total_ns),
        }
    }

    fn row(&mut self, table: &LockTable<'_>, row: &LockRow<'_>) -> Row {
        let (mut lock, mut function, mut holder) = (None, None, None);
        match &row.key {
            RowKey::Lock(key) => lock = Some(self.lock(key)),
            RowKey::CallSite(site) => function = self.function(*site),
            RowKey::Holder(HolderKey::Threads(comm, site)) => {
                holder = Some(self.profile.comms[comm.index()].exact().to_owned());
                function = self.function(*site);
            }
            RowKey::Holder(HolderKey::Interrupt(site)) => function = self.function(*site),
            RowKey::Holder(HolderKey::Unknown) => {}
        }
        Row {
            lock,
            function,
            holder,
            from_interrupt: matches!(row.key, RowKey::Holder(HolderKey::Interrupt(_))),
            sums: Sums::of(&row.waits, row.uncertain),
            blocked_ns: row.blocked_ns,
            wall_percent: table.share(row.waits.total_ns),
            waits: row.of.iter().map(|wait| self.wait(table, wait)).collect(),
        }
    }
}

impl<'a> Document<'a> {
    fn of(
        profile: &'a Profile,
        switches: &'a Switches,
        options: &'a LockViewOptions,
    ) -> Document<'a> {
        let table = LockTable::new(profile, switches, options);
        let mut lists = Lists {
            profile,
            stacks: Stacks::new(profile, &options.filters, options.inline),
            functions: Functions::new(profile),
            numbers: FxHashMap::default(),
            locks: Vec::new(),
            waits: Vec::new(),
        };
        let shown = table.rows.iter().take(options.limit.unwrap_or(usize::MAX));
        let rows: Vec<_> = shown.map(|row| lists.row(&table, row)).collect();
        let kernel = kernel::rows(profile, switches, options).into_iter();
        let kernel_rows = kernel
            .take(options.limit.unwrap_or(usize::MAX))
            .map(|row| lists.kernel_row(&table, &row))
            .collect();
        Document {
            format: "whit-locks",
            version: VERSION,
            sources: Sources::of(profile, switches),
            span_ns: switches.span.map(|(first, last)| [first.0, last.0]),
            recorded_ns: switches.recorded_ns,
            known_wall_ns: table.known_ns,
            by: options.by.name(),
            total: Sums::of(&table.total, table.uncertain),
            rows,
            locks: lists.locks,
            threads: profile
                .threads
                .iter()
                .map(|info| Thread {
                    pid: info.pid.0,
                    tid: info.tid.0,
                    comm: profile.comms[info.comm.index()].exact(),
                })
                .collect(),
            waits: lists.waits,
            kernel_rows,
            kernel_recorded: switches.locks.kernel_recorded,
            left_off: switches.locks.left_off,
            parked: Parked {
                count: table.parked.sync_count.saturating_sub(table.parked.lossy_count),
                total_ns: table.parked.sync_wait_ns,
                uncertain: table.parked.lossy_count,
            },
            functions: lists.functions.list,
            misfits: Misfits::of(&switches.inconsistencies),
            loss_windows_ns: switches.loss_windows.iter().map(|w| [w.from.0, w.to.0]).collect(),
            warnings: profile.warnings.iter().map(|w| warning_text(w).into_exact()).collect(),
        }
    }
}

#[cfg(test)]
mod schema {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Document<'_>>("docs/schemas/locks.json");
    }
}
