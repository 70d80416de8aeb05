//! A result as text: Markdown that reads well in a terminal as it is.

use std::fmt::{Display, Write};

use whit_measure::summary::Spread;

/// Narrowest column: three dashes make a rule.
const COLUMN_MIN_CHARS: usize = 3;
/// Where there is no figure.
pub(crate) const NONE: &str = "–";
/// Bytes of a unit in tables of sizes.
pub(crate) const MIB: f64 = (1u64 << 20) as f64;

/// A column: its heading, and the text of a row there.
pub(crate) type Cell<R> = (&'static str, fn(&R) -> String);

/// Facts, tables and conclusions, in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Page(String);

impl Page {
    /// Text without any mark.
    pub(crate) fn line(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{text}");
    }

    /// An entry of a list.
    pub(crate) fn fact(&mut self, text: impl Display) {
        self.line(format_args!("- {text}"));
    }

    /// Lines with a free line in front.
    pub(crate) fn paragraph(&mut self, text: impl Display) {
        self.separate();
        self.line(text);
    }

    /// A title with a free line in front and behind.
    pub(crate) fn section(&mut self, title: impl Display) {
        self.paragraph(format_args!("### {title}\n"));
    }

    /// A list with a free line in front, where it has entries.
    pub(crate) fn notes(&mut self, notes: impl IntoIterator<Item = String>) {
        let notes: Vec<String> = notes.into_iter().collect();
        if !notes.is_empty() {
            self.separate();
        }
        notes.iter().for_each(|note| self.fact(note));
    }

    /// A table with a free line in front. The first `names` columns are aligned to the left, the others to the
    /// right. The last cell of a row that is shorter than the heading may be of any length.
    pub(crate) fn table<H: Into<String>>(
        &mut self,
        heading: impl IntoIterator<Item = H>,
        names: usize,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        let heading: Vec<String> = heading.into_iter().map(H::into).collect();
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let widths: Vec<usize> = (0..heading.len()).map(|at| width(at, &heading, &rows)).collect();
        self.separate();
        self.row(&heading, &widths, names);
        self.line(rule(&widths, names));
        rows.iter().for_each(|row| self.row(row, &widths, names));
    }

    /// A table of rows that have a value in each column.
    pub(crate) fn columns<'a, R: 'a>(
        &mut self,
        names: usize,
        columns: &[Cell<R>],
        rows: impl IntoIterator<Item = &'a R>,
    ) {
        let headings = columns.iter().map(|(heading, _)| *heading);
        let cells = |row: &'a R| columns.iter().map(|(_, cell)| cell(row)).collect();
        self.table(headings, names, rows.into_iter().map(cells));
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn separate(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
    }

    fn row(&mut self, row: &[String], widths: &[usize], names: usize) {
        let short = row.len() < widths.len();
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            match column < names || short {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        self.line(format_args!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
    }
}

/// Cells that end a short row do not count.
fn width(column: usize, heading: &[String], rows: &[Vec<String>]) -> usize {
    let shaping = rows.iter().filter(|row| row.len() == heading.len() || column + 1 < row.len());
    let cells = shaping.filter_map(|row| row.get(column)).chain([&heading[column]]);
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(COLUMN_MIN_CHARS)
}

fn rule(widths: &[usize], names: usize) -> String {
    let rules = widths.iter().enumerate().map(|(column, width)| {
        if column < names { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
    });
    format!("| {} |", rules.collect::<Vec<_>>().join(" | "))
}

/// Median (minimum–maximum).
pub(crate) fn spread(spread: &Spread) -> String {
    format!("{} ({}–{})", number(spread.median), number(spread.min), number(spread.max))
}

/// In another unit.
pub(crate) fn scaled(spread: &Spread, factor: f64) -> Spread {
    let Spread { median, min, max } = *spread;
    Spread { median: median * factor, min: min * factor, max: max * factor }
}

/// The median alone.
pub(crate) fn median(spread: &Spread) -> String {
    number(spread.median)
}

/// The median of whole numbers.
pub(crate) fn whole(spread: &Spread) -> String {
    format!("{:.0}", spread.median)
}

/// About three significant digits, never more than two decimals.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_short_rows_shape_nothing() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows = [row(&["a", "b", "1.00"]), row(&["longer name", "refused: a long story"])];
        let mut page = Page::default();
        page.fact("a fact");
        page.table(["name", "", "value"], 2, rows);
        let expected = "\
- a fact

| name        |     | value |
| ----------- | --- | ----: |
| a           | b   |  1.00 |
| longer name | refused: a long story |
";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn parts_have_one_free_line_between_them() {
        let mut page = Page::default();
        page.section("one");
        page.paragraph("two");
        page.notes([]);
        page.notes(["three".to_owned(), "four".to_owned()]);
        assert_eq!(page.into_text(), "### one\n\ntwo\n\n- three\n- four\n");
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            (number(0.0), number(9.994), number(12.34)),
            ("0.00".into(), "9.99".into(), "12.3".into())
        );
        assert_eq!((number(-3.0), number(99.96)), ("-3.00".into(), "100".into()));
    }
}
