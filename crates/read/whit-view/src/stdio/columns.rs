//! Columns of the table: headings, widths and cells.

use std::fmt::Write as _;

use rustc_hash::FxHashSet;
use whit_profile::model::Profile;
use whit_types::pad;

use super::StdioOptions;
use super::cells::{ADDRESS_DIGITS, branch_end, write_key};
use super::colour::Colour;
use crate::hists::{Field, HistRow, Hists, MemberWeight, SortKey, WeightColumn, percent};
use crate::short_name::shorten;
use crate::width::share_out_before_last;

/// Between columns.
const GAP: usize = 2;
/// Width of a percentage column.
const PERCENT_WIDTH: usize = 8;
/// Width of half an interval.
const PLUS_MINUS_WIDTH: usize = 6;
/// Widest column; longer names shift the columns behind them. A name of a megabyte must not fill each row.
const MAX_COLUMN_WIDTH: usize = 4096;
/// Width of the sample and period columns.
const COUNT_WIDTH: usize = 12;
/// Width of the flags of a transaction, where there are any.
const TRANSACTION_WIDTH: usize = 32;
/// Width of time stamps to the nanosecond.
const NANOSECONDS_WIDTH: usize = 16;

/// One column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
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
    /// Self weight of the kernel.
    Kernel,
    /// Self weight of all else.
    User,
    Samples,
    Period,
    Key(SortKey),
}

impl Column {
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Column::Rank => "Rank",
            Column::Children => "Children",
            Column::ChildrenPlusMinus | Column::OwnPlusMinus => "±",
            Column::Own { heading } | Column::OwnLatency { heading } => heading,
            Column::ChildrenLatency => "Latency",
            Column::Kernel => "sys",
            Column::User => "usr",
            Column::Samples => "Samples",
            Column::Period => "Period",
            Column::Key(key) => key.heading(),
        }
    }

    /// Width of a number of one event.
    fn width_of_one(self) -> usize {
        match self {
            Column::Samples | Column::Period => COUNT_WIDTH,
            Column::OwnLatency { .. } => PERCENT_WIDTH.max(self.heading().len()),
            _ => PERCENT_WIDTH,
        }
    }

    pub(crate) fn is_interval(self) -> bool {
        matches!(self, Column::Rank | Column::ChildrenPlusMinus | Column::OwnPlusMinus)
    }

    pub(crate) fn is_number(self) -> bool {
        !matches!(self, Column::Key(_))
    }
}

/// The columns of one event's table and their widths.
pub(crate) struct Columns {
    pub(super) list: Vec<(Column, usize)>,
    /// True where the last key was left out, so that the column now last is padded, as in perf.
    pad_last: bool,
    /// Number of columns with widths that the user gave: longer texts are cut.
    given: usize,
    /// True where keys are narrowed to the terminal: longer texts are shortened.
    is_narrowed: bool,
    nanoseconds: bool,
}

/// The name that the text of a key stands for, where many rows share one.
fn name_of(key: SortKey, row: &HistRow) -> Option<(u32, bool, bool)> {
    let place = &row.place;
    match key {
        SortKey::Comm => Some((row.context.comm?.0, false, false)),
        SortKey::Dso => Some((place.dso?.0, false, false)),
        SortKey::Symbol => Some((place.function?.0, place.inlined, place.kernel)),
        _ => None,
    }
}

/// perf's columns, with those of intervals.
fn default_columns(hists: &Hists, options: &StdioOptions) -> Vec<Column> {
    let mut list = Vec::new();
    let has_intervals = hists.has_intervals();
    if has_intervals {
        list.push(Column::Rank);
    }
    let shares = hists.shares.list();
    let (mut with_callees, mut own) = (Vec::new(), Vec::new());
    // Intervals are those of the column that orders the rows.
    for (share, place) in shares.iter().zip(0..).filter(|_| hists.children) {
        with_callees.push(match share {
            WeightColumn::Latency => Column::ChildrenLatency,
            WeightColumn::Overhead => Column::Children,
        });
        with_callees.extend((has_intervals && place == 0).then_some(Column::ChildrenPlusMinus));
    }
    for (share, place) in shares.iter().zip(0..) {
        own.push(match (share, hists.children) {
            (WeightColumn::Latency, true) => Column::OwnLatency { heading: "Self latency" },
            (WeightColumn::Latency, false) => Column::OwnLatency { heading: "Latency" },
            (WeightColumn::Overhead, true) => Column::Own { heading: "Self" },
            (WeightColumn::Overhead, false) => Column::Own { heading: "Overhead" },
        });
        own.extend((has_intervals && place == 0).then_some(Column::OwnPlusMinus));
    }
    // The column that orders the rows comes first.
    let (first, second) =
        if options.hists.is_by_own() { (own, with_callees) } else { (with_callees, own) };
    list.extend(first.into_iter().chain(second));
    if options.hists.cpu_modes {
        list.extend([Column::Kernel, Column::User]);
    }
    if options.show_samples {
        list.push(Column::Samples);
    }
    if options.show_period {
        list.push(Column::Period);
    }
    list.extend(options.hists.sort_keys().iter().map(|&key| Column::Key(key)));
    list
}

/// The columns that the user listed. perf renames the overhead only where it chose the columns itself; the latency is
/// renamed where its sum with all callees stands beside it.
fn chosen_columns(hists: &Hists, options: &StdioOptions) -> Vec<Column> {
    let is_renamed =
        hists.children && options.hists.columns.starts_with(&[Field::Children, Field::Overhead]);
    let column = |field: &Field| match field {
        Field::Children => Column::Children,
        Field::Overhead => Column::Own { heading: if is_renamed { "Self" } else { "Overhead" } },
        Field::ChildrenLatency => Column::ChildrenLatency,
        Field::Latency => {
            let has_sum = options.hists.columns.contains(&Field::ChildrenLatency);
            Column::OwnLatency { heading: if has_sum { "Self latency" } else { "Latency" } }
        }
        Field::KernelOverhead => Column::Kernel,
        Field::UserOverhead => Column::User,
        Field::Samples => Column::Samples,
        Field::Period => Column::Period,
        Field::Key(key) => Column::Key(*key),
    };
    options.hists.columns.iter().map(column).collect()
}

impl Columns {
    pub(crate) fn new(profile: &Profile, hists: &Hists, options: &StdioOptions) -> Columns {
        let widths = Widths {
            profile,
            hists,
            dso_filter: !options.hists.filters.dsos.is_empty(),
            nanoseconds: options.nanoseconds,
        };
        let mut columns = Columns::with_widths(hists, options, |column| widths.of(column));
        if let Some(available) = options.width.filter(|_| options.separator.is_none()) {
            columns.narrow(profile, hists, options.hists.percent_limit, available);
        }
        columns
    }

    /// For faces that lay names out themselves: these have no width yet, which saves a look at all rows.
    pub(crate) fn for_cells(profile: &Profile, hists: &Hists, options: &StdioOptions) -> Columns {
        let widths = Widths { profile, hists, dso_filter: false, nanoseconds: options.nanoseconds };
        let width = |column: Column| if column.is_number() { widths.of(column) } else { 0 };
        Columns::with_widths(hists, options, width)
    }

    fn with_widths(
        hists: &Hists,
        options: &StdioOptions,
        width_of: impl Fn(Column) -> usize,
    ) -> Columns {
        let elided = options.elided_keys();
        let is_shown = |column: &Column| match column {
            Column::Key(key) => !elided.contains(key),
            _ => true,
        };
        let all = if options.hists.columns.is_empty() {
            default_columns(hists, options)
        } else {
            chosen_columns(hists, options)
        };
        let pad_last = all.last().is_some_and(|column| !is_shown(column));
        let shown = all.into_iter().filter(is_shown);
        let given = |place: usize| options.column_widths.get(place).copied().filter(|w| *w > 0);
        let width = |(place, column)| (column, given(place).unwrap_or_else(|| width_of(column)));
        Columns {
            list: shown.enumerate().map(width).collect(),
            pad_last,
            given: options.column_widths.len(),
            is_narrowed: false,
            nanoseconds: options.nanoseconds,
        }
    }

    /// Narrows the keys so that lines take at most `available` columns.
    fn narrow(&mut self, profile: &Profile, hists: &Hists, limit: f64, available: usize) {
        let natural = self.natural_widths(profile, hists, limit);
        let whole: usize = natural.iter().map(|width| GAP + width).sum();
        if whole <= available {
            return;
        }
        let is_key = |place: &usize| !self.list[*place].0.is_number();
        let keys: Vec<usize> = (0..self.list.len()).filter(is_key).collect();
        let wanted: Vec<usize> = keys.iter().map(|place| natural[*place]).collect();
        let of_keys: usize = wanted.iter().sum();
        let given = share_out_before_last(&wanted, available.saturating_sub(whole - of_keys));
        for (place, width) in keys.into_iter().zip(given) {
            self.list[place].1 = width;
        }
        self.is_narrowed = true;
    }

    /// The widths with which no text of a row at or above the limit is cut.
    pub(crate) fn natural_widths(
        &self,
        profile: &Profile,
        hists: &Hists,
        limit: f64,
    ) -> Vec<usize> {
        let mut cell = String::new();
        let natural = |&(column, width): &(Column, usize)| {
            let Column::Key(key) = column else { return width };
            let mut measured = FxHashSet::default();
            let is_new =
                |row: &&HistRow| name_of(key, row).is_none_or(|name| measured.insert(name));
            let cells = hists.shown(limit).filter(is_new).map(|row| {
                cell.clear();
                write_key(profile, key, row, self.nanoseconds, &mut cell);
                cell.chars().count()
            });
            cells.max().unwrap_or(0).max(column.heading().trim_end().len())
        };
        self.list.iter().map(natural).collect()
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = Column> {
        self.list.iter().map(|(column, _)| *column)
    }

    /// The text of one cell, in at most `width` columns where it is a name.
    pub(crate) fn cell(
        &self,
        profile: &Profile,
        hists: &Hists,
        row: &HistRow,
        place: usize,
        width: usize,
    ) -> String {
        let mut cell = String::new();
        match self.list.get(place) {
            Some((Column::Key(key), _)) => {
                write_key(profile, *key, row, self.nanoseconds, &mut cell);
                shorten_cell(&mut cell, width);
            }
            Some((number, _)) => write_number(*number, 1, hists, row, Colour::Never, &mut cell),
            None => {}
        }
        cell
    }

    /// The text of one cell of a row that shows its callers as well, the outermost first: the name of a function comes
    /// behind the way to it, as far as there is room.
    pub(crate) fn cell_below(
        &self,
        profile: &Profile,
        hists: &Hists,
        (above, row): (&[&HistRow], &HistRow),
        place: usize,
        width: usize,
    ) -> String {
        let is_symbol = matches!(self.list.get(place), Some((Column::Key(SortKey::Symbol), _)));
        let [outermost, between @ ..] = above else {
            return self.cell(profile, hists, row, place, width);
        };
        let cell = self.cell(profile, hists, row, place, width);
        if !is_symbol {
            return cell;
        }
        let outermost = self.cell(profile, hists, outermost, place, usize::MAX);
        let outermost = &outermost[level_of(&outermost)..];
        let dots = if between.is_empty() { "" } else { "… -> " };
        let room = width.saturating_sub(cell.chars().count());
        let ways = [format!("{outermost} -> {dots}"), "… -> ".to_owned()];
        let Some(way) = ways.into_iter().find(|way| way.chars().count() <= room) else {
            return cell;
        };
        let (level, name) = cell.split_at(level_of(&cell));
        format!("{level}{way}{name}")
    }

    /// The share of a cell in percent, where it is one.
    pub(crate) fn share(&self, hists: &Hists, row: &HistRow, place: usize) -> Option<f64> {
        let (column, _) = *self.list.get(place)?;
        if column.is_interval() || !column.is_number() {
            return None;
        }
        match Weight::of(column, row, None) {
            Weight::Share(part) => Some(percent(part, total_of(hists, column, None))),
            Weight::Count(_) => None,
        }
    }

    /// The heading, without the leading `# `.
    pub(super) fn heading(&self) -> String {
        let cells = self.list.iter().map(|&(column, width)| {
            let text: String = column.heading().chars().take(width).collect();
            match column.is_number() {
                true => pad::right(text, width).to_string(),
                false => pad::left(text, width).to_string(),
            }
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
            match column {
                Column::Key(key) => write_key(profile, key, row, self.nanoseconds, &mut cell),
                number => write_number(number, 1, hists, row, Colour::default(), &mut cell),
            }
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
                Column::Key(key) => {
                    cell.clear();
                    write_key(profile, key, row, self.nanoseconds, cell);
                    if self.is_narrowed {
                        shorten_cell(cell, width);
                    }
                    let length = cell.chars().count();
                    if i < self.given && length > width {
                        out.extend(cell.chars().take(width));
                        continue;
                    }
                    let last = i + 1 == self.list.len() && !self.pad_last && !pads_itself(key);
                    let padding = std::iter::repeat_n(' ', width.saturating_sub(length));
                    if is_right_aligned(key) {
                        out.extend(padding);
                        out.push_str(cell);
                    } else {
                        out.push_str(cell);
                        out.extend(padding.filter(|_| !last));
                    }
                }
                number => write_number(number, width, hists, row, options.colour, out),
            }
        }
        out.push('\n');
    }
}

/// Bytes of the level of code in front of a name.
fn level_of(cell: &str) -> usize {
    if cell.starts_with("[k] ") || cell.starts_with("[.] ") { 4 } else { 0 }
}

/// Shortens the name of a cell, and leaves the level of code (`[k]`) in front of it.
pub(crate) fn shorten_cell(cell: &mut String, width: usize) {
    let level = level_of(cell);
    let name = shorten(&cell[level..], width.saturating_sub(level)).into_owned();
    cell.truncate(level.min(width));
    cell.push_str(&name);
}

/// Appends a cell of a column that is no key, right-aligned; of a key, nothing.
pub(super) fn write_number(
    column: Column,
    width: usize,
    hists: &Hists,
    row: &HistRow,
    colour: Colour,
    out: &mut String,
) {
    if column.is_interval() {
        return write_interval(column, width, row, out);
    }
    let each = if row.members.is_empty() { width } else { width.min(column.width_of_one()) };
    let weight = Weight::of(column, row, None);
    weight.write(total_of(hists, column, None), each, colour, out);
    for index in 0..row.members.len() {
        if width == 1 {
            out.push(' ');
        }
        let weight = Weight::of(column, row, Some(index));
        weight.write(total_of(hists, column, Some(index)), each, colour, out);
    }
}

/// The sum that shares of a column are of.
fn total_of(hists: &Hists, column: Column, member: Option<usize>) -> u64 {
    match (column, member) {
        (Column::ChildrenLatency | Column::OwnLatency { .. }, None) => hists.total_latency,
        (_, None) => hists.total_period,
        (_, Some(index)) => hists.members.get(index).map_or(0, |member| member.period),
    }
}

/// One number of a cell.
enum Weight {
    Share(u64),
    Count(u64),
}

impl Weight {
    /// That of the event, or of another one of its group.
    fn of(column: Column, row: &HistRow, member: Option<usize>) -> Weight {
        let of_member = member.map(|index| row.members[index]);
        let either = |own: u64, of: fn(&MemberWeight) -> u64| of_member.as_ref().map_or(own, of);
        match column {
            Column::Samples => Weight::Count(either(row.self_samples, |of| of.self_samples)),
            Column::Period => Weight::Count(either(row.self_period, |of| of.self_period)),
            Column::Children => Weight::Share(either(row.children_period, |of| of.children_period)),
            Column::Kernel => Weight::Share(either(row.kernel_period, |of| of.kernel_period)),
            Column::User => {
                let user = |of: &MemberWeight| of.self_period.saturating_sub(of.kernel_period);
                Weight::Share(either(user_period(row), user))
            }
            // Latency is that of the leader alone.
            Column::ChildrenLatency => Weight::Share(either(row.children_latency, |_| 0)),
            Column::OwnLatency { .. } => Weight::Share(either(row.self_latency, |_| 0)),
            _ => Weight::Share(either(row.self_period, |of| of.self_period)),
        }
    }

    fn write(&self, total: u64, width: usize, colour: Colour, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = match self {
            Weight::Count(count) => write!(out, "{}", pad::right(count, width)),
            Weight::Share(part) => {
                let share = percent(*part, total);
                let text = pad::right(format_args!("{share:.2}%"), width);
                write!(out, "{}", colour.percent(share, text))
            }
        };
    }
}

/// Columns that perf pads even where they are last.
pub(super) fn pads_itself(key: SortKey) -> bool {
    use SortKey as K;
    !matches!(
        key,
        K::Symbol
            | K::SrcLine
            | K::SrcFile
            | K::Time
            | K::Cgroup
            | K::Trace
            | K::SymbolFrom
            | K::SymbolTo
            | K::SymbolDaddr
            | K::DcacheLine
            | K::Locked
            | K::Blocked
    )
}

fn is_right_aligned(key: SortKey) -> bool {
    matches!(key, SortKey::SymbolSize | SortKey::DsoSize)
}

fn user_period(row: &HistRow) -> u64 {
    row.self_period.saturating_sub(row.kernel_period)
}

struct Widths<'a> {
    profile: &'a Profile,
    hists: &'a Hists,
    dso_filter: bool,
    nanoseconds: bool,
}

impl Widths<'_> {
    fn of(&self, column: Column) -> usize {
        let heading = column.heading().len();
        match column {
            Column::Rank => heading,
            Column::ChildrenPlusMinus | Column::OwnPlusMinus => PLUS_MINUS_WIDTH,
            Column::Key(key) => heading.max(self.least(key)).max(self.widest(key)),
            number => heading.max(number.width_of_one() * (1 + self.hists.members.len())),
        }
    }

    /// The least width that perf gives a column.
    fn least(&self, key: SortKey) -> usize {
        let is_transaction = key == SortKey::Transaction
            && self.hists.rows.iter().any(|row| {
                let facets = row.context.facets.and_then(|id| self.profile.facets.get(id.index()));
                facets.and_then(|facets| facets.transaction).is_some_and(|flags| flags != 0)
            });
        match key {
            _ if is_transaction => TRANSACTION_WIDTH,
            SortKey::Time if self.nanoseconds => NANOSECONDS_WIDTH,
            _ => key.min_width(),
        }
    }

    fn widest(&self, key: SortKey) -> usize {
        // Longer texts shift the columns behind them, as in perf.
        if key.min_width() > 0 && key != SortKey::Cgroup {
            return 0;
        }
        let mut cell = String::new();
        let width = self.hists.rows.iter().map(|row| {
            cell.clear();
            write_key(self.profile, key, row, self.nanoseconds, &mut cell);
            let width = match key {
                // perf does not count the mark of an inlined function.
                SortKey::Symbol if row.place.inlined => {
                    cell.trim_end_matches(" (inlined)").chars().count()
                }
                // `[k] 0x` and the digits, in every form of output.
                SortKey::Symbol if self.unresolved(row) => 6 + ADDRESS_DIGITS,
                // perf counts the longest address behind the name of data.
                SortKey::SymbolDaddr | SortKey::DcacheLine => {
                    let name = cell.rfind("+0x").map_or(&cell[..], |plus| &cell[..plus]);
                    let line = usize::from(key == SortKey::DcacheLine);
                    // Behind the level, as in `[.] 0x…`.
                    let is_address = name
                        .get(4..)
                        .is_some_and(|name| name.starts_with("0x") || name.starts_with("0000"));
                    let width = if is_address { 4 } else { name.chars().count() + line };
                    width + ADDRESS_DIGITS + 2
                }
                _ => cell.chars().count(),
            };
            let unresolved = match key {
                SortKey::Dso => self.unresolved(row),
                SortKey::DsoFrom | SortKey::DsoTo => branch_end(self.profile, row, key)
                    .is_none_or(|end| !self.profile.functions[end.function.index()].known),
                SortKey::DsoDaddr => cell == "[unknown]",
                _ => false,
            };
            if unresolved && !self.dso_filter { width.max(ADDRESS_DIGITS) } else { width }
        });
        width.max().unwrap_or(0).min(MAX_COLUMN_WIDTH)
    }

    fn unresolved(&self, row: &HistRow) -> bool {
        row.place.function.is_some_and(|f| !self.profile.functions[f.index()].known)
    }
}

/// The share in a column of shares, in percent.
/// Appends a cell that comes from the row's intervals.
fn write_interval(column: Column, width: usize, row: &HistRow, out: &mut String) {
    let Some(intervals) = &row.intervals else { return };
    let number = match column {
        Column::Rank => intervals.rank.to_string(),
        Column::ChildrenPlusMinus => format!("{:.2}", intervals.children.plus_minus()),
        _ => format!("{:.2}", intervals.own.plus_minus()),
    };
    // Writing to a String cannot fail.
    let _ = write!(out, "{}", pad::right(number, width));
}
