//! Lines and columns in the width of a terminal.

use crate::short_name::{fold_arguments, shorten};

/// A name gets at least so many columns; else the line is cut where it is.
const MIN_NAME: usize = 8;
/// A column that is cut keeps at least this width.
const MIN_COLUMN: usize = 6;
/// Stand between the functions of a call chain in one line.
const ARROWS: [&str; 2] = [" <- ", " -> "];
/// Marks behind which a name begins.
const BEFORE_NAMES: [&str; 4] = ["  ", "--", "[.] ", "[k] "];

/// Shares `available` columns out among columns that want these widths: narrow ones get all that they want, and the
/// others the same.
pub fn share_out(wanted: &[usize], available: usize) -> Vec<usize> {
    let mut given = wanted.to_vec();
    let mut open: Vec<usize> = (0..wanted.len()).collect();
    let mut rest = available;
    while !open.is_empty() {
        let fair = rest / open.len();
        let (narrow, wide): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|column| wanted[**column] <= fair);
        if narrow.is_empty() {
            for column in wide {
                given[column] = fair.max(MIN_COLUMN).min(wanted[column]);
            }
            break;
        }
        rest -= narrow.iter().map(|column| wanted[*column]).sum::<usize>();
        open = wide;
    }
    given
}

/// The same where the last column has the names that matter most: the others get at most two fifths before it.
pub fn share_out_before_last(wanted: &[usize], available: usize) -> Vec<usize> {
    let Some((last, others)) = wanted.split_last() else { return Vec::new() };
    let of_others = (available * 2 / 5).max(available.saturating_sub(*last));
    let mut given = share_out(others, of_others);
    given.push(available.saturating_sub(given.iter().sum()).min(*last).max(MIN_COLUMN));
    given
}

/// Columns of a terminal between the places that tabs lead to.
const TAB_WIDTH: usize = 8;

/// Visible characters: escape sequences of colours take no room.
fn width_of(line: &str) -> usize {
    let mut width = 0;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => drop(rest.by_ref().find(|c| *c == 'm')),
            _ => width = column_behind(c, width),
        }
    }
    width
}

/// The column behind a visible character that stands in `column`.
fn column_behind(c: char, column: usize) -> usize {
    match c {
        '\t' => (column / TAB_WIDTH + 1) * TAB_WIDTH,
        _ => column + 1,
    }
}

/// A line in at most `width` columns: the beginning of it, where no name at its end matters most. Lines of facts go on in
/// further lines.
pub fn cut_line(line: &str, width: usize) -> String {
    if width_of(line) <= width {
        return line.to_owned();
    }
    facts_of(line).map_or_else(|| cut(line, width), |facts| wrap(facts, width))
}

/// A line of a result in at most `width` columns. The name at its end is shortened; lines of facts, which begin with
/// `#`, go on in further lines.
pub fn fit_line(line: &str, width: usize) -> String {
    if width_of(line) <= width {
        return line.to_owned();
    }
    facts_of(line).map_or_else(|| fit_row(line, width), |facts| wrap(facts, width))
}

/// The text of a line that is neither row nor title of a table.
fn facts_of(line: &str) -> Option<&str> {
    let facts = line.strip_prefix("# ")?;
    let is_prose = !facts.contains("  ") && !facts.contains('\t') && !facts.starts_with("..");
    is_prose.then_some(facts)
}

fn wrap(facts: &str, width: usize) -> String {
    let room = width.saturating_sub(4).max(MIN_NAME);
    let mut lines: Vec<String> = Vec::new();
    for word in facts.split(' ') {
        let mut word = word;
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
                continue;
            }
            _ => {}
        }
        // A word that is longer than a line: a path.
        while let Some((at, _)) = word.char_indices().nth(room) {
            lines.push(word[..at].to_owned());
            word = &word[at..];
        }
        lines.push(word.to_owned());
    }
    let indented = |(number, line): (usize, &String)| match number {
        0 => format!("# {line}"),
        _ => format!("#   {line}"),
    };
    lines.iter().enumerate().map(indented).collect::<Vec<_>>().join("\n")
}

fn fit_row(line: &str, width: usize) -> String {
    let ends = BEFORE_NAMES.iter().filter_map(|mark| Some(line.rfind(mark)? + mark.len()));
    let start = ends.max().unwrap_or(0);
    let (before, name) = line.split_at(start);
    let room = width.saturating_sub(width_of(before));
    if room < MIN_NAME || name.contains(['\x1b', '\t']) {
        return cut(line, width);
    }
    if let Some(arrow) = ARROWS.iter().find(|arrow| name.contains(**arrow)) {
        let folded = name.split(arrow).map(fold_arguments).collect::<Vec<_>>().join(arrow);
        return cut(&format!("{before}{folded}"), width);
    }
    format!("{before}{}", shorten(name, room))
}

/// The beginning of the line, with its colours closed.
fn cut(line: &str, width: usize) -> String {
    let (mut kept, mut shown) = (String::new(), 0);
    let mut rest = line.chars();
    let mut is_coloured = false;
    let keep = width.saturating_sub(1);
    if width_of(line) <= width {
        return line.to_owned();
    }
    while let Some(c) = rest.next() {
        if c == '\x1b' {
            is_coloured = true;
            kept.push(c);
            for c in rest.by_ref() {
                kept.push(c);
                if c == 'm' {
                    break;
                }
            }
        } else if column_behind(c, shown) <= keep {
            kept.push(c);
            shown = column_behind(c, shown);
        } else {
            break;
        }
    }
    kept.push('…');
    if is_coloured {
        kept.push_str("\x1b[0m");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn narrow_columns_get_all_and_wide_ones_the_same() {
        assert_eq!(share_out(&[4, 10, 6], 40), [4, 10, 6]);
        assert_eq!(share_out(&[4, 100, 60], 44), [4, 20, 20]);
        assert_eq!(share_out(&[4, 100, 18], 44), [4, 22, 18]);
        assert_eq!(share_out(&[50, 50], 2), [6, 6]);
        assert_eq!(share_out(&[], 2), [] as [usize; 0]);
    }

    #[test]
    fn the_last_column_gets_most() {
        assert_eq!(share_out_before_last(&[7, 20, 90], 43), [7, 10, 26]);
        assert_eq!(share_out_before_last(&[7, 20, 10], 43), [7, 20, 10]);
        assert_eq!(share_out_before_last(&[90], 43), [43]);
        assert_eq!(share_out_before_last(&[], 43), [] as [usize; 0]);
    }

    #[test]
    fn the_name_at_the_end_of_a_row_is_shortened() {
        let row = "    12.00%  server  [.] std::map<int, std::string>::find(int const&)";
        assert_eq!(fit_line(row, 80), row);
        assert_eq!(fit_line(row, 46), "    12.00%  server  [.] std::map<…>::find");
        assert_eq!(fit_line(row, 22), "    12.00%  server  […");
        let chain = "            |--\x1b[31m60.00%\x1b[0m--std::sort<int*, Less>(int*, int*)";
        assert_eq!(fit_line(chain, 40), "            |--\x1b[31m60.00%\x1b[0m--std::sort<…>");
    }

    #[test]
    fn chains_in_a_line_are_cut_at_their_end() {
        let line = "  1.0 s  futex_wait <- std::queue<int, long>::pop <- main";
        assert_eq!(
            fit_line(line, 48),
            "  1.0 s  futex_wait <- std::queue<…>::pop <- ma…".to_owned()
        );
    }

    #[test]
    fn facts_are_never_cut() {
        let facts = "# Lost: 12 records in 2 chunks, data loss 2.00% (rings full)";
        assert_eq!(
            fit_line(facts, 34),
            "# Lost: 12 records in 2 chunks,\n#   data loss 2.00% (rings full)"
        );
        assert_eq!(
            fit_line("# Overhead  Command  Symbol", 20),
            "# Overhead  Command  …".chars().take(19).collect::<String>() + "…"
        );
        let path = format!("# no symbols in /{}", "x".repeat(50));
        assert!(fit_line(&path, 30).lines().all(|line| line.chars().count() <= 30));
        assert_eq!(fit_line(&path, 30).matches('x').count(), 50);
    }

    #[test]
    fn a_line_without_a_name_keeps_its_beginning() {
        let source = "    0.03 :        return (value << bits) | (value >> (64 - bits));";
        assert_eq!(cut_line(source, 80), source);
        assert_eq!(cut_line(source, 40), "    0.03 :        return (value << bits…");
        assert_eq!(cut_line("\t  55d0 main+0x12 (/srv/deep)", 24), "\t  55d0 main+0x1…");
        assert_eq!(cut_line("abcdefg\tx", 8), "abcdefg…");
        let facts = "# Precision: timer, every 250 us: periodic work may keep step";
        assert_eq!(cut_line(facts, 40).lines().count(), 2);
        assert_eq!(
            cut_line("\x1b[31m  12.00\x1b[0m : nop and more", 12),
            "\x1b[31m  12.00\x1b[0m : n…\x1b[0m"
        );
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal(line in "(# )?[a-c<>(): \\-.é\\t]{0,90}", width in 20usize..100) {
            for part in fit_line(&line, width).lines().chain(cut_line(&line, width).lines()) {
                prop_assert!(width_of(part) <= width, "{}", part);
            }
        }
    }
}
