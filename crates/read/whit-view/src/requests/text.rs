//! Requests as a table.

use super::{Columns, remarks};
use crate::hists::percent;
use crate::units::{counted, duration};
use crate::warning::warning_text;
use crate::why::{activity_text, name_text};
use std::io::{self, Write};
use whit_types::pad;
use whit_why::{Requests, RequestsOfName, Tail, TailPart};

/// Parts of the slowest calls that text shows without `--limit`.
const DEFAULT_PARTS: usize = 8;

/// Rows of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextOptions {
    /// Most parts of the slowest calls; `None` for some.
    pub limit: Option<usize>,
    /// So many of the slowest calls, one by one.
    pub slowest: usize,
    /// Only the tables.
    pub is_quiet: bool,
}

/// Writes the requests of each name: quantiles, the slowest calls beside those of the middle, the slowest one by one.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(
    out: &mut impl Write,
    requests: &Requests,
    options: &TextOptions,
) -> io::Result<()> {
    if !options.is_quiet {
        for warning in requests.warnings() {
            writeln!(out, "# Warning: {}", warning_text(&warning))?;
        }
        if !requests.has_switches() {
            writeln!(
                out,
                "# The time of calls is not taken apart: the recording has no context switches (record with \
                 --engine=bpf --wakeups)"
            )?;
        }
    }
    for (index, of_name) in requests.names.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        head(out, requests, index, options)?;
        if of_name.calls.is_empty() {
            continue;
        }
        quantiles(out, of_name)?;
        tail(out, &of_name.tail, options)?;
        slowest(out, requests, of_name, options)?;
    }
    Ok(())
}

fn head(
    out: &mut impl Write,
    requests: &Requests,
    index: usize,
    options: &TextOptions,
) -> io::Result<()> {
    let of_name = &requests.names[index];
    let count = counted(of_name.calls.len() as u64, "call");
    writeln!(out, "# Requests: {} ({count})", of_name.name)?;
    if !options.is_quiet {
        for remark in remarks(requests, index) {
            writeln!(out, "# {remark}")?;
        }
    }
    Ok(())
}

fn quantiles(out: &mut impl Write, of_name: &RequestsOfName) -> io::Result<()> {
    writeln!(
        out,
        "#          Duration      On CPU   Run queue   Throttled     Waiting     Unknown"
    )?;
    for quantile in &of_name.quantiles {
        let columns = Columns::of(&quantile.parts);
        let cells = [
            columns.on_cpu_ns,
            columns.run_queue_ns,
            columns.throttled_ns,
            columns.waiting_ns,
            columns.unknown_ns,
        ];
        write!(out, "  {:<5}", quantile.name)?;
        write!(out, "  {}", pad::right(duration(quantile.duration_ns), 10))?;
        for cell in cells {
            let text = if cell == 0 { "-".to_owned() } else { duration(cell) };
            write!(out, "  {}", pad::right(text, 10))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A mean in nanoseconds.
fn mean(sum_ns: u64, calls: u64) -> u64 {
    sum_ns.checked_div(calls).unwrap_or(0)
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", duration(ns.abs() as u64))
}

fn difference(part: &TailPart) -> String {
    match part.difference {
        Some(difference) => {
            let (low, high) = difference.interval;
            format!("{} .. {}", signed(low), signed(high))
        }
        None => "unknown".to_owned(),
    }
}

fn tail(out: &mut impl Write, tail: &Tail, options: &TextOptions) -> io::Result<()> {
    if tail.slow == 0 || tail.middle == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "# The slowest 1% ({}) beside the middle half ({}): mean of a call, and the difference with its 95% interval",
        counted(tail.slow, "call"),
        counted(tail.middle, "call")
    )?;
    writeln!(out, "#  Slowest      Middle              Difference  What")?;
    let limit = options.limit.unwrap_or(DEFAULT_PARTS);
    for part in tail.parts.iter().take(limit) {
        writeln!(
            out,
            "  {}  {}  {}  {}",
            pad::right(duration(mean(part.slow_ns, tail.slow)), 8),
            pad::right(duration(mean(part.middle_ns, tail.middle)), 10),
            pad::right(difference(part), 22),
            activity_text(part.part.activity, &part.part.place)
        )?;
    }
    if let Some(rest @ 1..) = tail.parts.len().checked_sub(limit) {
        let rest_ns: u64 = tail.parts[limit..].iter().map(|part| part.slow_ns).sum();
        let all_ns: u64 = tail.parts.iter().map(|part| part.slow_ns).sum();
        let share = percent(rest_ns, all_ns);
        let rows = counted(rest as u64, "row");
        writeln!(out, "# {rows} more: {share:.2}% of the slowest (--limit shows more)")?;
    }
    Ok(())
}

/// Widths of the column of threads. Names of goroutines are longer.
const THREAD_WIDTH: usize = 14;
const GOROUTINE_WIDTH: usize = 28;

fn thread_width(of_name: &RequestsOfName) -> usize {
    let has_goroutines = of_name.calls.iter().any(|call| call.goroutine.is_some());
    if has_goroutines { GOROUTINE_WIDTH } else { THREAD_WIDTH }
}

/// The names of the columns of [`slowest_lines`].
pub fn slowest_head(of_name: &RequestsOfName) -> String {
    let thread = pad::left("Thread", thread_width(of_name));
    format!("#  #    Duration           From  {thread}  Key")
}

/// The calls of a name, the slowest first: each with its rank for `whit why --request`, and as a line. Calls within
/// others have no rank.
pub fn slowest_lines<'a>(
    requests: &'a Requests,
    of_name: &'a RequestsOfName,
) -> impl Iterator<Item = (Option<usize>, String)> + 'a {
    let mut outer = 0;
    let width = thread_width(of_name);
    of_name.calls.iter().rev().map(move |call| {
        outer += usize::from(call.depth == 0);
        let rank = (call.depth == 0).then_some(outer);
        let caller = requests.caller(call);
        let line = format!(
            "  {:>2}  {}  {}  {}  {}",
            rank.map_or("-".to_owned(), |rank| rank.to_string()),
            pad::right(duration(call.duration_ns()), 10),
            pad::right(call.from.in_seconds(), 13),
            pad::left(name_text(&caller), width),
            call.key.as_ref().map_or("-".to_owned(), ToString::to_string)
        );
        (rank, line)
    })
}

fn slowest(
    out: &mut impl Write,
    requests: &Requests,
    of_name: &RequestsOfName,
    options: &TextOptions,
) -> io::Result<()> {
    if options.slowest > 0 {
        writeln!(out, "# The slowest, one by one")?;
        writeln!(out, "{}", slowest_head(of_name))?;
    }
    for (_, line) in slowest_lines(requests, of_name).take(options.slowest) {
        writeln!(out, "{line}")?;
    }
    if !options.is_quiet && requests.has_switches() {
        writeln!(out, "# Why the slowest took so long: whit why --request {}", of_name.name)?;
    }
    Ok(())
}
