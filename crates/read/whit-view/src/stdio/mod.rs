//! The report as text, as `perf report --stdio` users know it.
//!
//! [`write_report`] prints the header lines and one table per event; [`write_header`] the
//! recording's description of itself; [`write_stats`] records by type; [`write_ledger`] the
//! recording's cost. Lines that perf does not have stand among the `#` comments and name the
//! losses: each table has the known gaps in its data beside it.

mod cells;
mod colour;
mod columns;
mod header;
mod hierarchy;
mod latency;
mod ledger;
mod loss;
mod stats;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use cells::source_text;
/// For other faces that have the same table.
pub(crate) mod table {
    pub(crate) use super::columns::{Column as Cell, Columns};
}
pub use colour::Colour;
pub use header::write_header;
pub use ledger::write_ledger;
pub use loss::{ledger_line, loss_line};
pub use stats::write_stats;

use std::fmt::Write as _;
use std::io::{self, Write};

use whit_profile::Counted;
use whit_profile::model::{FunctionInfo, Profile};
use whit_profile::precision::Precision;
use whit_types::OutsideText;

use crate::cgroup_tree::CgroupTree;
use crate::cycle_blocks;
use crate::hists::{self, EventGroup, HistRow, HistsOptions, SortKey};
use crate::units;
use crate::warning::warning_text;
use columns::Columns;
use tree::TreeStyle;

/// At most so many warnings are printed; the rest is counted.
const MAX_WARNINGS: usize = 20;

/// How to print a report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StdioOptions {
    /// The rows and their order.
    pub hists: HistsOptions,
    /// Add a column with the number of samples.
    pub show_samples: bool,
    /// Add a column with the sum of periods.
    pub show_period: bool,
    /// Stands between columns, which are then not padded; values have `.` in its place.
    pub separator: Option<char>,
    /// Widths of the first columns, which cut longer texts; zero leaves a column as it is.
    pub column_widths: Vec<usize>,
    /// Print times to the nanosecond.
    pub nanoseconds: bool,
    /// Leave out all lines that begin with `#`, except losses.
    pub quiet: bool,
    /// Whether large percentages are coloured.
    pub colour: Colour,
    /// Columns of the terminal, to which the columns of the table are narrowed.
    pub width: Option<usize>,
    /// Say how many rows the limit leaves out.
    pub counts_left_out: bool,
    /// The recording has no header that another command shows.
    pub is_live: bool,
}

impl StdioOptions {
    /// Keys whose column is left out since a filter lets one value pass, which stands in the
    /// header instead; unless that would leave no column.
    fn elided_keys(&self) -> Vec<SortKey> {
        let keys = self.hists.sort_keys();
        let filtered = self.single_filters();
        let elided: Vec<_> =
            filtered.iter().map(|&(key, _)| key).filter(|k| keys.contains(k)).collect();
        if self.hists.is_hierarchy() {
            return Vec::new();
        }
        if elided.len() == keys.len() { Vec::new() } else { elided }
    }

    fn single_filters(&self) -> Vec<(SortKey, &str)> {
        let filters = &self.hists.filters;
        let lists = [
            (SortKey::Dso, &filters.dsos),
            (SortKey::Comm, &filters.comms),
            (SortKey::Symbol, &filters.symbols),
        ];
        let single = lists.into_iter().filter_map(|(key, list)| match list.as_slice() {
            [one] => Some((key, one.as_str())),
            _ => None,
        });
        single.collect()
    }
}

/// Prints the whole report: the leading comment lines, then each event that has samples.
///
/// # Errors
/// The error of `out`.
pub fn write_report(
    out: &mut impl Write,
    profile: &Profile,
    options: &StdioOptions,
) -> io::Result<()> {
    if !options.quiet {
        write_preamble(out, profile, options)?;
    }
    for group in hists::groups(profile, options.hists.grouping) {
        if profile.events[group.leader.index()].samples > 0 {
            write_event(out, profile, &group, options)?;
        }
    }
    if profile.events.iter().all(|e| e.samples == 0) {
        let path = &profile.recording.path;
        match profile.is_part {
            true => writeln!(out, "# No sample of the recording {path} passes the options.")?,
            false => writeln!(out, "# The recording {path} has no samples.")?,
        }
        write_loss(out, profile)?;
    }
    Ok(())
}

fn write_preamble(
    out: &mut impl Write,
    profile: &Profile,
    options: &StdioOptions,
) -> io::Result<()> {
    let hint = "# To display the perf.data header info, please use --header/--header-only options.";
    if !options.is_live {
        writeln!(out, "{hint}\n#")?;
    }
    for (key, value) in options.single_filters() {
        let is_level = options.hists.is_hierarchy() && options.hists.sort_keys().contains(&key);
        if is_level || options.elided_keys().contains(&key) {
            writeln!(out, "# {}: {}", key.name(), OutsideText::new(value))?;
        }
    }
    if !options.is_live {
        writeln!(out, "#")?;
    }
    writeln!(out, "# Total Lost Samples: {}", profile.losses.lost_samples)?;
    if options.hists.inline && profile.frames.iter().any(|frame| frame.inlined) {
        writeln!(out, "# {}", hists::self_time_line(options.hists.self_time))?;
    }
    if let Some(info) = &profile.parallelism {
        latency::write_times(out, info, options.hists.shares)?;
    }
    write_ledger_and_warnings(out, profile)?;
    writeln!(out, "#")
}

/// The cost of the recording in a line, and the problems of reading it.
pub(crate) fn write_ledger_and_warnings(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    if let Some(ledger) = &profile.ledger {
        writeln!(out, "# {}", ledger_line(ledger))?;
    }
    for warning in profile.warnings.iter().take(MAX_WARNINGS) {
        writeln!(out, "# Warning: {}", warning_text(warning))?;
    }
    if let more @ 1.. = profile.warnings.len().saturating_sub(MAX_WARNINGS) {
        writeln!(out, "# and {} more", units::counted(more as u64, "warning"))?;
    }
    Ok(())
}

pub(crate) fn write_loss(out: &mut impl Write, profile: &Profile) -> io::Result<()> {
    match loss_line(&profile.losses) {
        Some(line) => writeln!(out, "# {line}"),
        None => Ok(()),
    }
}

/// Prints one event's table.
fn write_event(
    out: &mut impl Write,
    profile: &Profile,
    group: &EventGroup,
    options: &StdioOptions,
) -> io::Result<()> {
    if options.hists.count == Counted::Blocks {
        let limit = options.hists.percent_limit;
        write_loss(out, profile)?;
        cycle_blocks::write_text(out, profile, group.leader, limit, !options.quiet)?;
        return out.write_all(b"\n\n");
    }
    let hists = hists::group_hists(profile, group, &options.hists);
    let event = group.leader;
    let info = &profile.events[event.index()];
    if !options.quiet {
        let (samples, unit) = units::thousands(hists.samples_of_group());
        let events = if group.members.is_empty() { "event" } else { "events" };
        writeln!(out, "# Samples: {samples}{unit} of {events} '{}'", group.name)?;
        if options.hists.count == Counted::Weights {
            writeln!(out, "# Total weight : {}", hists.total_period)?;
            writeln!(out, "# Sort order   : {}", sort_order(&options.hists))?;
        } else {
            writeln!(out, "# Event count (approx.): {}", hists.period_of_group())?;
        }
        if hists.shares.has_latency() {
            let latency = hists.latency_in_periods(hists.total_latency);
            writeln!(out, "# Latency (approx.): {latency:.0}")?;
        }
        if info.precision != Precision::Unknown {
            writeln!(out, "# Precision: {}", info.precision)?;
        }
        if let Some(socket) = options.hists.filters.socket {
            writeln!(out, "# Processor Socket: {socket}")?;
        }
    }
    latency::write_unknown(out, &hists)?;
    write_loss(out, profile)?;
    write_losses_of_events(out, profile, group)?;
    if options.hists.cgroup_tree {
        let tree = CgroupTree::new(profile, event, &options.hists);
        tree.write(out, options.hists.percent_limit, !options.quiet)?;
        return out.write_all(b"\n\n");
    }
    let columns = Columns::new(profile, &hists, options);
    if let Some(places) = &hists.places {
        hierarchy::write(out, profile, &hists, places, &columns, options)?;
        return out.write_all(b"\n\n");
    }
    if !options.quiet {
        write_interval_lines(out, profile, &hists, options)?;
        match options.separator {
            Some(separator) => writeln!(out, "#\n# {}", columns.separated_heading(separator))?,
            None => writeln!(out, "#\n# {}\n# {}\n#", columns.heading(), columns.underline())?,
        }
    }
    write_rows(out, profile, &hists, &columns, options)?;
    write_left_out(out, &hists, options)?;
    out.write_all(b"\n\n")
}

pub(crate) fn write_losses_of_events(
    out: &mut impl Write,
    profile: &Profile,
    group: &EventGroup,
) -> io::Result<()> {
    for event in [group.leader].iter().chain(&group.members) {
        let info = &profile.events[event.index()];
        if info.lost_samples > 0 {
            let share = hists::percent(info.lost_samples, info.lost_samples + info.samples);
            let lost = units::counted(info.lost_samples, "sample");
            let of = match group.members.is_empty() {
                true => "this event".into(),
                false => info.name.escaped(),
            };
            writeln!(out, "# Lost of {of}: {lost} ({share:.2}% of those taken)")?;
        }
    }
    Ok(())
}

fn sort_order(options: &HistsOptions) -> String {
    options.sort_keys().iter().map(|key| key.name()).collect::<Vec<_>>().join(",")
}

/// How the columns `±` and `Rank` are to be read, or why there are none.
fn write_interval_lines(
    out: &mut impl Write,
    profile: &Profile,
    hists: &hists::Hists,
    options: &StdioOptions,
) -> io::Result<()> {
    if !options.hists.intervals || hists.rows.is_empty() || !hists.members.is_empty() {
        return Ok(());
    }
    let (count, length_ns) =
        profile.blocks.as_ref().map_or((0, 0), |blocks| (blocks.weights.len(), blocks.length_ns));
    if !hists.has_intervals() {
        return writeln!(out, "# ±: no intervals: the samples cover too few blocks of time");
    }
    let length = units::duration(length_ns);
    writeln!(
        out,
        "# ±: half of the interval that holds the true share in 95 of 100 recordings (from {count} blocks of {length})\n\
         # Rank: rows with the same number may stand in any order"
    )
}

fn write_rows(
    out: &mut impl Write,
    profile: &Profile,
    hists: &hists::Hists,
    columns: &Columns,
    options: &StdioOptions,
) -> io::Result<()> {
    let style = TreeStyle::of(profile, hists, options);
    let (mut text, mut cell) = (String::new(), String::new());
    for row in hists.shown(options.hists.percent_limit) {
        text.clear();
        match options.separator {
            Some(separator) => columns.write_separated(profile, hists, row, separator, &mut text),
            None => columns.write_row(profile, hists, row, options, &mut cell, &mut text),
        }
        write_examples(row, &mut text);
        style.write(&row.chains, hists.weight(row), &mut text);
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Pipes get perf's rows and nothing else; people want to know that there are more.
fn write_left_out(
    out: &mut impl Write,
    hists: &hists::Hists,
    options: &StdioOptions,
) -> io::Result<()> {
    let limit = options.hists.percent_limit;
    let left_out = hists.rows.len() - hists.shown(limit).count();
    if left_out == 0 || !options.counts_left_out {
        return Ok(());
    }
    let rows = units::counted(left_out as u64, "row");
    writeln!(out, "# Left out: {rows} below {limit}%; --percent-limit 0 shows all")
}

/// The single samples of a row, as `whit script` names their moments.
fn write_examples(row: &HistRow, out: &mut String) {
    for sample in &row.examples {
        let (seconds, rest) = (sample.time.0 / 1_000_000_000, sample.time.0 % 1_000_000_000);
        // Writing to a String cannot fail.
        let _ = write!(out, "            sample at {seconds}.{rest:09}  tid {}", sample.tid.0);
        if let Some(cpu) = sample.cpu {
            let _ = write!(out, "  cpu {}", cpu.0);
        }
        out.push('\n');
    }
}

/// The address of a function without a symbol, so that it can be printed as perf does; `None`
/// for a function with a name.
fn symbol_address(function: &FunctionInfo) -> Option<u64> {
    if function.known {
        return None;
    }
    let name = function.name.exact();
    let digits = name.strip_prefix("0x").unwrap_or(name);
    u64::from_str_radix(digits, 16).ok()
}
