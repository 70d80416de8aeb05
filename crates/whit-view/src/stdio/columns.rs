//! Columns of the table: headings, widths and cells.

use std::fmt::Write as _;

use whit_profile::model::Profile;
use whit_types::OutsideText;

use super::StdioOptions;
use crate::hists::{HistRow, Hists, SortKey, SourceKey};

/// Width of a percentage column.
const PERCENT_WIDTH: usize = 8;
/// Width of the sample and period columns.
const COUNT_WIDTH: usize = 12;
/// Digits of an address: what perf gives a binary's column at least where a symbol is missing.
const ADDRESS_DIGITS: usize = 16;

/// One column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    Children,
    /// Self weight, headed `Self` beside children and `Overhead` alone.
    Own {
        heading: &'static str,
    },
    Samples,
    Period,
    Key(SortKey),
}

impl Column {
    pub(super) fn heading(self) -> &'static str {
        match self {
            Column::Children => "Children",
            Column::Own { heading } => heading,
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
        if hists.children {
            list.push(Column::Children);
        }
        list.push(Column::Own { heading: if hists.children { "Self" } else { "Overhead" } });
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
            let period = match column {
                Column::Children => row.children_period,
                _ => row.self_period,
            };
            match column {
                Column::Children | Column::Own { .. } => {
                    let percent = hists.percent(period);
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
    !matches!(key, SortKey::Symbol | SortKey::SrcLine | SortKey::SrcFile)
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
            Column::Children | Column::Own { .. } => heading.max(PERCENT_WIDTH),
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
