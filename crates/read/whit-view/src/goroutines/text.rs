//! Waits of goroutines as a table.

use super::{no_goroutine, object, remarks, worst};
use crate::hists::percent;
use crate::units::{counted, duration};
use crate::warning::warning_text;
use std::io::{self, Write};
use std::sync::Arc;
use whit_profile::tables::{Goroutine, GoroutineWaker};
use whit_types::{OutsideText, pad};
use whit_why::{GoPart, GoRow, GoWaker, Goroutines};

/// Wakers of a row that are shown.
const WAKERS: usize = 3;
/// In thousandths: a waker with less is not shown behind the first.
const WAKER_SHARE_MIN: f64 = 0.5;
/// A wait without call chain.
const NO_STACK: &str = "[no call stack]";

/// Rows of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextOptions {
    /// Most rows; `None` for all.
    pub limit: Option<usize>,
    /// The longest waits one by one, in place of the table.
    pub worst: Option<usize>,
    /// With call chains.
    pub chains: bool,
    /// Only the table.
    pub is_quiet: bool,
}

/// Writes waits by reason and function, or the longest ones.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(
    out: &mut impl Write,
    goroutines: &Goroutines,
    options: &TextOptions,
) -> io::Result<()> {
    if !options.is_quiet {
        head(out, goroutines)?;
    }
    match options.worst {
        Some(count) => write_worst(out, goroutines, count, options),
        None => table(out, goroutines, options),
    }
}

fn head(out: &mut impl Write, goroutines: &Goroutines) -> io::Result<()> {
    for warning in goroutines.warnings() {
        writeln!(out, "# Warning: {}", warning_text(&warning))?;
    }
    let rows = || goroutines.rows.iter();
    let waits: u64 = rows().map(|row| row.waits.count).sum();
    let total_ns = rows().map(|row| row.waits.total_ns).sum();
    let runnable_ns = rows().map(|row| row.runnable_ns).sum();
    writeln!(
        out,
        "# Waits of {}: {waits}; {} in all, then {} until a thread ran them",
        counted(goroutines.goroutines, "goroutine"),
        duration(total_ns),
        duration(runnable_ns)
    )?;
    for remark in remarks(goroutines) {
        writeln!(out, "# {remark}")?;
    }
    Ok(())
}

fn table(out: &mut impl Write, goroutines: &Goroutines, options: &TextOptions) -> io::Result<()> {
    writeln!(
        out,
        "#   Waits       Total         Max         p50         p99    Runnable   Open  Reason, function"
    )?;
    let limit = options.limit.unwrap_or(usize::MAX);
    for row in goroutines.rows.iter().take(limit) {
        let waits = &row.waits;
        write!(out, "{:>9}", waits.count)?;
        let times = [
            waits.total_ns,
            waits.max_ns,
            waits.percentile_ns(50),
            waits.percentile_ns(99),
            row.runnable_ns,
        ];
        for ns in times {
            let text = if waits.count == 0 { "-".to_owned() } else { duration(ns) };
            write!(out, "  {}", pad::right(text, 10))?;
        }
        let reason = goroutines.reason(row.reason);
        let by = counted(row.goroutines, "goroutine");
        writeln!(
            out,
            "  {:>5}  {} in {} ({by})",
            row.open,
            OutsideText::from(reason),
            function(row.function.as_ref())
        )?;
        if options.chains {
            chain(out, goroutines, row.callsite)?;
        }
        wakers(out, goroutines, row, options)?;
    }
    if let Some(rest @ 1..) = goroutines.rows.len().checked_sub(limit) {
        writeln!(out, "# {} more (--limit shows more)", counted(rest as u64, "row"))?;
    }
    Ok(())
}

fn function(name: Option<&Arc<str>>) -> OutsideText {
    OutsideText::from(name.map_or(NO_STACK, |name| &**name))
}

fn wakers(
    out: &mut impl Write,
    goroutines: &Goroutines,
    row: &GoRow,
    options: &TextOptions,
) -> io::Result<()> {
    for (index, part) in row.wakers.iter().take(WAKERS).enumerate() {
        let share = percent(part.total_ns, row.waits.total_ns);
        if index > 0 && share < WAKER_SHARE_MIN {
            break;
        }
        writeln!(out, "{:>19}  {share:5.1}%  {}", "woken by", waker(goroutines, part))?;
        if options.chains {
            chain(out, goroutines, part.callsite)?;
        }
    }
    Ok(())
}

fn waker(goroutines: &Goroutines, part: &GoPart) -> String {
    let in_function = function(part.function.as_ref());
    match part.waker {
        GoWaker::Ready(GoroutineWaker::Goroutine(first)) => match part.goroutines {
            1 => format!("{in_function} ({})", named(first)),
            several => format!("{in_function} ({})", counted(several, "goroutine")),
        },
        GoWaker::Ready(GoroutineWaker::Unknown) => {
            "an unknown goroutine: the program has no debug information".to_owned()
        }
        GoWaker::Ready(GoroutineWaker::Poller) => "the network's poller".to_owned(),
        other => match no_goroutine(goroutines, other, part.callsite) {
            "timer" => "a timer".to_owned(),
            "runtime" => "Go's runtime".to_owned(),
            "poller" => "the network's poller, or the collector".to_owned(),
            _ => "the scheduler".to_owned(),
        },
    }
}

fn named(goroutine: Goroutine) -> String {
    match goroutine.number {
        Some(number) => format!("goroutine {number}"),
        None => format!("goroutine at {:#x}", goroutine.address),
    }
}

/// The call chain of a row, innermost first.
fn chain(out: &mut impl Write, goroutines: &Goroutines, callsite: Option<u32>) -> io::Result<()> {
    for name in goroutines.chain(callsite) {
        writeln!(out, "{:>28}{}", "", OutsideText::from(&*name))?;
    }
    Ok(())
}

fn write_worst(
    out: &mut impl Write,
    goroutines: &Goroutines,
    count: usize,
    options: &TextOptions,
) -> io::Result<()> {
    writeln!(out, "#         Begin    Duration    Runnable  Goroutine, reason, function, object")?;
    for wait in worst(goroutines, count) {
        let time = |ns: Option<u64>| ns.map_or("-".to_owned(), duration);
        let object = object(goroutines, wait).map(|it| format!(" for {it}")).unwrap_or_default();
        writeln!(
            out,
            "{}  {}  {}  {}: {} in {}{object}",
            pad::right(wait.from.in_seconds(), 15),
            pad::right(time(wait.blocked_ns()), 10),
            pad::right(time(wait.runnable_ns()), 10),
            named(wait.goroutine),
            OutsideText::from(goroutines.reason(wait.reason)),
            function(goroutines.function(wait.callsite).as_ref())
        )?;
        if options.chains {
            chain(out, goroutines, wait.callsite)?;
        }
        let Some(end) = wait.end else {
            writeln!(out, "{:>41}had not ended when the recording ended", "")?;
            continue;
        };
        let part = GoPart {
            waker: end.waker,
            function: goroutines.function(end.callsite),
            goroutines: 1,
            count: 1,
            total_ns: 0,
            callsite: end.callsite,
        };
        writeln!(out, "{:>41}woken by {}", "", waker(goroutines, &part))?;
        if options.chains {
            chain(out, goroutines, end.callsite)?;
        }
    }
    Ok(())
}
