//! Markdown tables that read well in a terminal as they are.

use std::fmt::Write;

use whit_measure::summary::Spread;

/// Narrowest column: three dashes make a rule.
const COLUMN_MIN_CHARS: usize = 3;

/// Median (minimum–maximum).
pub(crate) fn spread(spread: &Spread) -> String {
    format!("{} ({}–{})", number(spread.median), number(spread.min), number(spread.max))
}

/// About three significant digits, never more than two decimals.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The first row is the heading. The first `names` columns stand to the left, the others to the
/// right. The last cell of a row that is shorter than the heading may be of any length.
pub(crate) fn table_to(text: &mut String, rows: &[Vec<String>], names: usize) {
    let Some(heading) = rows.first() else { return };
    let columns = heading.len();
    let width = |column: usize| {
        let shaping = rows.iter().filter(|row| row.len() == columns || column + 1 < row.len());
        let cells = shaping.filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(COLUMN_MIN_CHARS)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (index, row) in rows.iter().enumerate() {
        let short = row.len() < columns;
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < names || short {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        line_to(text, &format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
        if index == 0 {
            line_to(text, &rule(&widths, names));
        }
    }
}

fn rule(widths: &[usize], names: usize) -> String {
    let rules = widths.iter().enumerate().map(|(column, width)| {
        if column < names { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
    });
    format!("| {} |", rules.collect::<Vec<_>>().join(" | "))
}

pub(crate) fn line_to(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_short_rows_shape_nothing() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<Vec<String>> = vec![
            row(&["name", "", "value"]),
            row(&["a", "b", "1.00"]),
            row(&["longer name", "refused: a long story"]),
        ];
        let mut text = String::new();
        table_to(&mut text, &rows, 2);
        let expected = "\
| name        |     | value |
| ----------- | --- | ----: |
| a           | b   |  1.00 |
| longer name | refused: a long story |
";
        assert_eq!(text, expected);
        table_to(&mut text, &[], 1);
        assert_eq!(text, expected, "no rows, no table");
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
