//! The text of a path.

use super::{activity_text, name_text, place_text, threads_text};
use crate::hists::percent;
use crate::units::{counted, duration};
use crate::warning::warning_text;
use std::io::{self, Write};
use whit_types::{OutsideText, TimestampNs, pad};
use whit_why::{Activity, Explained, Group, Piece, Places, Why};

/// Groups that text shows without `--limit`.
pub const DEFAULT_LIMIT: usize = 20;

/// Functions that a group shows.
const FUNCTIONS: usize = 3;

/// Threads that a wait for a CPU shows.
const BEHIND: usize = 3;

/// Rows of the text, and their form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextOptions {
    /// Most groups; `None` for all.
    pub limit: Option<usize>,
    /// Each piece in order of time, in place of the groups.
    pub is_path: bool,
    /// Only the table.
    pub is_quiet: bool,
}

/// Requests that a group shows.
const REQUESTS: usize = 2;

/// Columns of numbers, and the indent of the second line of a group.
const HEAD: &str = "#   Share        Time    Pieces     Longest  What";
const INDENT: usize = 47;

/// Writes the groups of the path, the longest first, or its pieces in order of time.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(out: &mut impl Write, why: &Why, options: &TextOptions) -> io::Result<()> {
    if !options.is_quiet {
        head(out, why)?;
    }
    match options.is_path {
        true => pieces(out, why),
        false => groups(out, why, options),
    }
}

fn head(out: &mut impl Write, why: &Why) -> io::Result<()> {
    for warning in why.warnings() {
        writeln!(out, "# Warning: {}", warning_text(&warning))?;
    }
    match &why.intervals[..] {
        [Explained { thread, from, to, .. }] => {
            let thread = why.thread_name(*thread);
            writeln!(
                out,
                "# Interval: {} of {}{}, from {} s to {} s",
                duration(why.duration_ns()),
                if thread.is_goroutine { "" } else { "thread " },
                name_text(&thread),
                from.in_seconds(),
                to.in_seconds(),
            )?;
        }
        several => writeln!(
            out,
            "# {} of {} to {}, {} together",
            counted(several.len() as u64, "request"),
            several.last().map_or_else(String::new, |it| duration(it.duration_ns())),
            several.first().map_or_else(String::new, |it| duration(it.duration_ns())),
            duration(why.duration_ns()),
        )?,
    }
    let of = if why.intervals.len() == 1 { "it" } else { "them" };
    writeln!(
        out,
        "# Each moment of {of} is in one row: a wait is in the rows of the thread that ended it"
    )?;
    let unknown_ns: u64 = why
        .groups
        .iter()
        .filter(|group| matches!(group.key.activity, Activity::Unknown(_)))
        .map(|group| group.duration_ns)
        .sum();
    let share = percent(unknown_ns, why.duration_ns());
    writeln!(out, "# Unknown: {share:.2}% ({})", duration(unknown_ns))?;
    writeln!(out, "#")
}

fn functions(group: &Group) -> String {
    if group.key.activity != Activity::Running {
        return String::new();
    }
    if group.sampled == 0 {
        return ": no sample".to_owned();
    }
    let shares: Vec<_> = group.functions.iter().take(FUNCTIONS).collect();
    let texts: Vec<_> = shares
        .iter()
        .map(|(name, weight)| {
            format!("{} {:.0}%", OutsideText::from(&**name), percent(*weight, group.sampled))
        })
        .collect();
    format!(": {}", texts.join(", "))
}

/// The requests that took most of the time.
fn requests(group: &Group) -> String {
    let shown = group.requests.iter().take(REQUESTS).map(|(name, key, ns)| {
        let key = key.as_ref().map_or_else(String::new, |key| format!(" {key}"));
        let share = percent(*ns, group.duration_ns);
        format!("{}{key} {share:.0}%", OutsideText::from(&**name))
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(rest @ 1..) = group.requests.len().checked_sub(REQUESTS) {
        text.push_str(&format!(", {rest} more"));
    }
    text
}

fn numbers(why: &Why, threads: impl Iterator<Item = u32>) -> Vec<i64> {
    threads.map(|thread| why.thread_name(thread).number).collect()
}

/// Threads of a group, and their activity.
pub fn what(why: &Why, group: &Group) -> String {
    let numbers = numbers(why, group.threads.iter().copied());
    let threads = threads_text(&group.key.threads, &numbers);
    let activity = activity_text(group.key.activity, &group.key.place);
    format!("{threads} {activity}{}", functions(group))
}

/// The wait that a group explains, in words.
pub fn explained(why: &Why, group: &Group) -> Option<String> {
    let explains = group.key.explains.as_ref()?;
    let numbers = numbers(why, group.explained.iter().copied());
    let waits = if numbers.len() == 1 { "waits" } else { "wait" };
    let threads = threads_text(&explains.threads, &numbers);
    let (class, place) = (explains.class.name(), place_text(&explains.place));
    Some(format!("while {threads} {waits}: {class}{place}"))
}

fn groups(out: &mut impl Write, why: &Why, options: &TextOptions) -> io::Result<()> {
    writeln!(out, "{HEAD}")?;
    let limit = options.limit.unwrap_or(usize::MAX);
    for group in why.groups.iter().take(limit) {
        let key = &group.key;
        writeln!(
            out,
            "  {:>6.2}%  {}  {:>8}  {}  {}",
            percent(group.duration_ns, why.duration_ns()),
            pad::right(duration(group.duration_ns), 10),
            group.pieces,
            pad::right(duration(group.longest_ns), 10),
            what(why, group),
        )?;
        if let Some(explained) = explained(why, group) {
            writeln!(out, "{}{explained}", pad::blanks(INDENT))?;
        }
        if !group.behind.is_empty() {
            let shown: Vec<_> = group.behind.iter().take(BEHIND).collect();
            let texts: Vec<_> = shown
                .iter()
                .map(|(thread, ns)| {
                    let share = percent(*ns, group.duration_ns);
                    format!("{} {share:.0}%", name_text(&why.thread_name(*thread)))
                })
                .collect();
            writeln!(out, "{}behind {}", pad::blanks(INDENT), texts.join(", "))?;
        }
        // The rows of the requests themselves need not say so.
        let is_own = why.are_requests && key.explains.is_none();
        if !group.requests.is_empty() && !is_own {
            writeln!(out, "{}in {}", pad::blanks(INDENT), requests(group))?;
        }
        if !group.wakers.is_empty() {
            let wakers = group.wakers.iter().map(|waker| name_text(&why.thread_name(*waker)));
            let names: Vec<_> = wakers.collect();
            writeln!(out, "{}woken by {}", pad::blanks(INDENT), names.join(", "))?;
        }
    }
    if let Some(rest @ 1..) = why.groups.len().checked_sub(limit) {
        let rest_ns: u64 = why.groups[limit..].iter().map(|group| group.duration_ns).sum();
        writeln!(
            out,
            "# {} more: {:.2}% (--limit shows more)",
            counted(rest as u64, "row"),
            percent(rest_ns, why.duration_ns())
        )?;
    }
    Ok(())
}

fn pieces(out: &mut impl Write, why: &Why) -> io::Result<()> {
    let mut places = Places::default();
    for interval in &why.intervals {
        if why.intervals.len() > 1 {
            let key = interval.key.as_ref().map_or_else(String::new, |key| format!(" {key}"));
            let from = interval.from.in_seconds();
            writeln!(out, "# {} from {from} s{key}", duration(interval.duration_ns()))?;
        }
        writeln!(out, "#        From        Time  What")?;
        for piece in &interval.path.pieces {
            let Piece { from, thread, activity, site, .. } = *piece;
            let place = places.of(&why.source, site);
            let since = TimestampNs(from.since(interval.from));
            writeln!(
                out,
                "  {}  {}  {} {}",
                pad::right(since.in_seconds(), 12),
                pad::right(duration(piece.duration_ns()), 10),
                name_text(&why.thread_name(thread)),
                activity_text(activity, &place),
            )?;
        }
    }
    Ok(())
}
