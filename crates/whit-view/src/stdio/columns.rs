//! Columns of the table: headings, widths and cells.

use std::fmt::Write as _;

use whit_profile::model::Profile;
use whit_profile::parallelism::Parallelism;
use whit_types::{OutsideText, short_container_id};

use super::StdioOptions;
use crate::hists::{HistRow, Hists, SortKey, SourceKey, WeightColumn};

/// Width of a percentage column.
const PERCENT_WIDTH: usize = 8;
/// Width of half an interval.
const PLUS_MINUS_WIDTH: usize = 6;
/// Width of the sample and period columns.
const COUNT_WIDTH: usize = 12;
/// Numbers of threads stand right, below their heading.
const PARALLELISM_WIDTH: usize = "Parallelism".len();
/// Digits of an address: what perf gives a binary's column at least where a symbol is missing.
const ADDRESS_DIGITS: usize = 16;

/// One column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// Place in the order, with equal numbers where the order cannot be known.
    Rank,
    Children,
    /// Half the interval of the children weight.
    ChildrenPlusMinus,
    /// Self weight, headed `Self` beside children and `Overhead` alone.
    Own {
        heading: &'static str,
    },
    /// Half the interval of the self weight.
    OwnPlusMinus,
    /// Latency of the row with all that it calls.
    ChildrenLatency,
    /// Latency of the row itself, headed `Latency` where it stands alone.
    OwnLatency {
        heading: &'static str,
    },
    Samples,
    Period,
    Key(SortKey),
}

impl Column {
    pub(super) fn heading(self) -> &'static str {
        match self {
            Column::Rank => "Rank",
            Column::Children => "Children",
            Column::ChildrenPlusMinus | Column::OwnPlusMinus => "±",
            Column::Own { heading } | Column::OwnLatency { heading } => heading,
            Column::ChildrenLatency => "Latency",
            Column::Samples => "Samples",
            Column::Period => "Period",
            Column::Key(key) => key.heading(),
        }
    }

    fn is_number(self) -> bool {
        !matches!(self, Column::Key(_))
    }
}

/// The columns of one event's table and their widths.
pub(super) struct Columns {
    pub(super) list: Vec<(Column, usize)>,
    /// True where the last key was left out, so that the column now last is padded, as in perf.
    pad_last: bool,
}

impl Columns {
    pub(super) fn new(profile: &Profile, hists: &Hists, options: &StdioOptions) -> Columns {
        let mut list = Vec::new();
        let has_intervals = hists.has_intervals();
        if has_intervals {
            list.push(Column::Rank);
        }
        let weights = hists.columns.list();
        for weight in weights.iter().filter(|_| hists.children) {
            match weight {
                WeightColumn::Latency => list.push(Column::ChildrenLatency),
                WeightColumn::Overhead => {
                    list.push(Column::Children);
                    list.extend(has_intervals.then_some(Column::ChildrenPlusMinus));
                }
            }
        }
        for weight in weights {
            match (weight, hists.children) {
                (WeightColumn::Latency, true) => {
                    list.push(Column::OwnLatency { heading: "Self latency" });
                }
                (WeightColumn::Latency, false) => {
                    list.push(Column::OwnLatency { heading: "Latency" });
                }
                (WeightColumn::Overhead, with_children) => {
                    let heading = if with_children { "Self" } else { "Overhead" };
                    list.push(Column::Own { heading });
                    list.extend(has_intervals.then_some(Column::OwnPlusMinus));
                }
            }
        }
        if options.show_samples {
            list.push(Column::Samples);
        }
        if options.show_period {
            list.push(Column::Period);
        }
        let elided = options.elided_keys();
        let keys = options.hists.sort_keys();
        let shown = keys.iter().filter(|k| !elided.contains(k));
        list.extend(shown.map(|&k| Column::Key(k)));
        let widths = Widths { profile, hists, dso_filter: !options.hists.filters.dsos.is_empty() };
        Columns {
            list: list.into_iter().map(|c| (c, widths.of(c))).collect(),
            pad_last: keys.last().is_some_and(|k| elided.contains(k)),
        }
    }

    /// The heading, without the leading `# `.
    pub(super) fn heading(&self) -> String {
        let cells = self.list.iter().map(|&(column, width)| {
            let text = column.heading();
            if column.is_number() { format!("{text:>width$}") } else { format!("{text:<width$}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    }

    /// The dotted underline, without the leading `# `.
    pub(super) fn underline(&self) -> String {
        self.list.iter().map(|&(_, width)| ".".repeat(width)).collect::<Vec<_>>().join("  ")
    }

    /// The same for a table whose columns are not padded.
    pub(super) fn separated_heading(&self, separator: char) -> String {
        let cells = self.list.iter().map(|(column, _)| column.heading().trim());
        cells.collect::<Vec<_>>().join(&separator.to_string())
    }

    /// Appends the row's line without padding. No value holds the separator.
    pub(super) fn write_separated(
        &self,
        profile: &Profile,
        hists: &Hists,
        row: &HistRow,
        separator: char,
        out: &mut String,
    ) {
        for (i, &(column, _)) in self.list.iter().enumerate() {
            let mut cell = String::new();
            // Writing to a String cannot fail.
            let _ = match column {
                Column::Rank | Column::ChildrenPlusMinus | Column::OwnPlusMinus => {
                    write_interval(column, 0, row, &mut cell);
                    Ok(())
                }
                Column::Children
                | Column::Own { .. }
                | Column::ChildrenLatency
                | Column::OwnLatency { .. } => write!(cell, "{:.2}%", share(column, hists, row)),
                Column::Samples => write!(cell, "{}", row.self_samples),
                Column::Period => write!(cell, "{}", row.self_period),
                Column::Key(key) => {
                    write_key(profile, key, row, &mut cell);
                    Ok(())
                }
            };
            if i > 0 {
                out.push(separator);
            }
            let dot = |c| if c == separator { '.' } else { c };
            out.extend(cell.trim().chars().map(dot));
        }
        out.push('\n');
    }

    /// Appends the row's line to `out`. `cell` is scratch.
    pub(super) fn write_row(
        &self,
        profile: &Profile,
        hists: &Hists,
        row: &HistRow,
        options: &StdioOptions,
        cell: &mut String,
        out: &mut String,
    ) {
        for (i, &(column, width)) in self.list.iter().enumerate() {
            out.push_str("  ");
            match column {
                Column::Rank | Column::ChildrenPlusMinus | Column::OwnPlusMinus => {
                    write_interval(column, width, row, out);
                }
                Column::Children
                | Column::Own { .. }
                | Column::ChildrenLatency
                | Column::OwnLatency { .. } => {
                    let percent = share(column, hists, row);
                    let text = format_args!("{percent:>width$.2}%", width = width - 1);
                    // Writing to a String cannot fail.
                    let _ = write!(out, "{}", options.colour.percent(percent, text));
                }
                Column::Samples => {
                    let _ = write!(out, "{:>width$}", row.self_samples);
                }
                Column::Period => {
                    let _ = write!(out, "{:>width$}", row.self_period);
                }
                Column::Key(key) => {
                    cell.clear();
                    write_key(profile, key, row, cell);
                    out.push_str(cell);
                    let last = i + 1 == self.list.len() && !self.pad_last && !pads_itself(key);
                    let length = cell.chars().count();
                    if !last && length < width {
                        out.extend(std::iter::repeat_n(' ', width - length));
                    }
                }
            }
        }
        out.push('\n');
    }
}

/// Columns that perf pads even where they are last.
fn pads_itself(key: SortKey) -> bool {
    !matches!(
        key,
        SortKey::Symbol | SortKey::SrcLine | SortKey::SrcFile | SortKey::Time | SortKey::Cgroup
    )
}

struct Widths<'a> {
    profile: &'a Profile,
    hists: &'a Hists,
    dso_filter: bool,
}

impl Widths<'_> {
    fn of(&self, column: Column) -> usize {
        let heading = column.heading().len();
        match column {
            Column::Rank => heading,
            Column::Children
            | Column::Own { .. }
            | Column::ChildrenLatency
            | Column::OwnLatency { .. } => heading.max(PERCENT_WIDTH),
            Column::ChildrenPlusMinus | Column::OwnPlusMinus => PLUS_MINUS_WIDTH,
            Column::Samples | Column::Period => heading.max(COUNT_WIDTH),
            Column::Key(key) => heading.max(self.widest(key)),
        }
    }

    fn widest(&self, key: SortKey) -> usize {
        let mut cell = String::new();
        let width = self.hists.rows.iter().map(|row| {
            cell.clear();
            write_key(self.profile, key, row, &mut cell);
            let width = match key {
                // perf does not count the mark of an inlined function.
                SortKey::Symbol if row.place.inlined => {
                    cell.trim_end_matches(" (inlined)").chars().count()
                }
                // `[k] 0x` and the digits, whatever is printed.
                SortKey::Symbol if self.unresolved(row) => 6 + ADDRESS_DIGITS,
                _ => cell.chars().count(),
            };
            let unresolved = key == SortKey::Dso && !self.dso_filter && self.unresolved(row);
            if unresolved { width.max(ADDRESS_DIGITS) } else { width }
        });
        width.max().unwrap_or(0)
    }

    fn unresolved(&self, row: &HistRow) -> bool {
        row.place.function.is_some_and(|f| !self.profile.functions[f.index()].known)
    }
}

/// The share in a column of shares, in percent.
fn share(column: Column, hists: &Hists, row: &HistRow) -> f64 {
    match column {
        Column::Children => hists.percent(row.children_period),
        Column::ChildrenLatency => hists.latency_percent(row.children_latency),
        Column::OwnLatency { .. } => hists.latency_percent(row.self_latency),
        _ => hists.percent(row.self_period),
    }
}

/// Appends a cell that comes from the row's intervals.
fn write_interval(column: Column, width: usize, row: &HistRow, out: &mut String) {
    let Some(intervals) = &row.intervals else { return };
    // Writing to a String cannot fail.
    let _ = match column {
        Column::Rank => write!(out, "{:>width$}", intervals.rank),
        Column::ChildrenPlusMinus => {
            write!(out, "{:>width$.2}", intervals.children.plus_minus())
        }
        _ => write!(out, "{:>width$.2}", intervals.own.plus_minus()),
    };
}

/// Appends the text of one sort key.
fn write_key(profile: &Profile, key: SortKey, row: &HistRow, out: &mut String) {
    let comm = |id: Option<whit_profile::model::CommId>| {
        id.map_or(OutsideText::new(""), |c| profile.comms[c.index()].borrowed())
    };
    // Writing to a String cannot fail.
    let _ = match key {
        SortKey::Comm => write!(out, "{}", comm(row.context.comm)),
        SortKey::Pid | SortKey::Tid => {
            let tid = row.context.tid.map_or(-1, |t| t.0);
            write!(out, "{tid:>7}:{}", comm(row.context.thread_comm))
        }
        SortKey::Tgid => {
            let pid = row.context.pid.map_or(-1, |p| p.0);
            write!(out, "{pid:>7}:{}", comm(row.context.process_comm))
        }
        SortKey::Cpu => match row.context.cpu {
            Some(cpu) => write!(out, "{:03}", cpu.0),
            None => write!(out, "-001"),
        },
        SortKey::Dso => match row.place.dso {
            Some(dso) => write!(out, "{}", profile.dsos[dso.index()].short_name),
            None => write!(out, "[unknown]"),
        },
        SortKey::Symbol => {
            write_symbol(profile, row, out);
            Ok(())
        }
        SortKey::SrcLine | SortKey::SrcFile => write!(out, "{}", source_text(profile, key, row)),
        SortKey::Parallelism => match row.context.parallelism {
            Some(Parallelism::Threads(count)) => write!(out, "{count:>PARALLELISM_WIDTH$}"),
            Some(Parallelism::Unknown) | None => write!(out, "{:>PARALLELISM_WIDTH$}", "unknown"),
        },
        SortKey::Socket => match row.context.socket {
            Some(socket) => write!(out, "   {socket:03}"),
            None => write!(out, "  -001"),
        },
        SortKey::LocalWeight => write!(out, "{}", row.context.weight.unwrap_or(0)),
        SortKey::Weight => {
            let weight = row.context.weight.unwrap_or(0);
            write!(out, "{}", weight.saturating_mul(row.self_samples))
        }
        SortKey::Time => {
            let ns = row.context.time.map_or(0, |time| time.0);
            write!(out, "{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
        }
        SortKey::Cgroup | SortKey::Container | SortKey::Pod | SortKey::Unit => {
            let name = row.context.cgroup_name(profile, key).unwrap_or("N/A");
            let short = if key == SortKey::Container { short_container_id(name) } else { name };
            write!(out, "{}", OutsideText::new(short))
        }
    };
}

fn write_symbol(profile: &Profile, row: &HistRow, out: &mut String) {
    out.push_str(if row.place.kernel { "[k] " } else { "[.] " });
    let Some(function) = row.place.function else { return };
    let function = &profile.functions[function.index()];
    match super::symbol_address(function) {
        // C's `%#x` gives zero no prefix.
        Some(0) => out.extend(std::iter::repeat_n('0', ADDRESS_DIGITS)),
        Some(address) => {
            let _ = write!(out, "{address:#0width$x}", width = ADDRESS_DIGITS + 2);
        }
        None => out.push_str(&function.name.escaped()),
    }
    if row.place.inlined {
        out.push_str(" (inlined)");
    }
}

/// Source file or line, or what stands for it.
pub(crate) fn source_text(profile: &Profile, key: SortKey, row: &HistRow) -> OutsideText {
    let base = |file: whit_profile::model::FileId| profile.files[file.index()].base_name();
    match row.place.source {
        SourceKey::Line(file, line) if key == SortKey::SrcLine => {
            format!("{}:{line}", base(file).exact()).into()
        }
        SourceKey::Line(file, _) | SourceKey::File(file) => base(file).exact().into(),
        SourceKey::Function(_) | SourceKey::Address(..) if key == SortKey::SrcFile => {
            OutsideText::default()
        }
        SourceKey::Function(f) => profile.functions[f.index()].name.clone(),
        SourceKey::Address(dso, address) => {
            let dso = profile.dsos[dso.index()].short_name.exact();
            format!("{dso}[{address:x}]").into()
        }
        SourceKey::Unused | SourceKey::NoFile => OutsideText::default(),
    }
}
