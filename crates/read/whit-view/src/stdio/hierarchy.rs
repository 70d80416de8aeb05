//! Rows in levels as text: columns of numbers, then the keys of the row's level, as `perf report --hierarchy` has them.

use std::io::{self, Write};

use whit_profile::model::Profile;
use whit_types::pad;

use super::StdioOptions;
use super::cells::write_key;
use super::columns::{Column, Columns, pads_itself, write_number};
use super::tree::TreeStyle;
use crate::hists::{HistRow, Hists, Level, SortKey};

/// Columns by which a level stands further right.
const INDENT: usize = 3;
/// Between columns.
const GAP: &str = "  ";

struct Writer<'a> {
    profile: &'a Profile,
    hists: &'a Hists,
    columns: &'a Columns,
    options: &'a StdioOptions,
}

/// Prints the titles and the rows.
pub(super) fn write(
    out: &mut impl Write,
    profile: &Profile,
    hists: &Hists,
    places: &[Level],
    columns: &Columns,
    options: &StdioOptions,
) -> io::Result<()> {
    let writer = Writer { profile, hists, columns, options };
    if !options.quiet {
        out.write_all(writer.titles().as_bytes())?;
    }
    let style = TreeStyle::of(profile, hists, options);
    let mut text = String::new();
    for (index, (place, row)) in places.iter().zip(&hists.rows).enumerate() {
        if !hists.is_shown(row, options.hists.percent_limit) {
            continue;
        }
        text.clear();
        writer.write_row(*place, row, &mut text);
        if place.is_leaf {
            super::write_examples(row, &mut text);
            style.write(&row.chains, hists.weight(row), &mut text);
        } else if !writer.has_shown_children(places, index) {
            writer.write_no_entry(*place, &mut text);
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

impl Writer<'_> {
    fn levels(&self) -> &[Vec<SortKey>] {
        &self.options.hists.levels
    }

    /// The columns that stand to the left of the levels.
    fn numbers(&self) -> impl Iterator<Item = (Column, usize)> {
        self.columns.list.iter().copied().filter(|(column, _)| column.is_number())
    }

    fn width_of(&self, key: SortKey) -> usize {
        let of_key = |(column, _): &&(Column, usize)| *column == Column::Key(key);
        self.columns.list.iter().find(of_key).map_or(0, |(_, width)| *width)
    }

    /// Room for the levels below the outermost one, in front of the numbers of their rows and behind those of others.
    fn indent(&self) -> usize {
        (self.levels().len() - 1) * INDENT
    }

    fn titles(&self) -> String {
        let join = |keys: &Vec<SortKey>| {
            keys.iter().map(|key| key.heading().trim()).collect::<Vec<_>>().join("+")
        };
        let keys = self.levels().iter().map(join).collect::<Vec<_>>().join(" / ");
        if let Some(separator) = self.options.separator {
            let numbers =
                self.numbers().map(|(column, _)| format!("{}{separator}", column.heading()));
            return format!("#\n# {}{keys}\n", numbers.collect::<String>());
        }
        let number = |(column, width): (Column, usize)| {
            format!("{}{GAP}", pad::right(column.heading(), width))
        };
        let numbers = self.numbers().map(number);
        let heading: String = numbers.collect();
        let dots: Vec<_> = self.numbers().map(|(_, width)| ".".repeat(width)).collect();
        let width_of_level = |(depth, keys): (usize, &Vec<SortKey>)| {
            let widths: usize = keys.iter().map(|key| self.width_of(*key)).sum();
            depth * INDENT + widths + keys.len() - 1
        };
        let widest = self.levels().iter().enumerate().map(width_of_level).max().unwrap_or(0);
        format!(
            "#\n# {}{heading}{keys}\n# {}{}{GAP}{}\n#\n",
            pad::blanks(self.indent()),
            ".".repeat(self.indent()),
            dots.join(".."),
            ".".repeat(widest.max(keys.chars().count())),
        )
    }

    fn write_row(&self, place: Level, row: &HistRow, out: &mut String) {
        let separator = self.options.separator;
        out.extend(std::iter::repeat_n(' ', place.depth * INDENT));
        for (index, (column, width)) in self.numbers().enumerate() {
            let width = if separator.is_some() { 1 } else { width };
            self.write_gap(index > 0, out);
            write_number(column, width, self.hists, row, self.options.colour, out);
        }
        if separator.is_none() {
            out.extend(std::iter::repeat_n(' ', self.indent()));
        }
        let mut cell = String::new();
        for key in &self.levels()[place.depth] {
            self.write_gap(true, out);
            cell.clear();
            write_key(self.profile, *key, row, self.options.nanoseconds, &mut cell);
            let text = cell.trim_start();
            match separator {
                Some(separator) => {
                    let dot = |c| if c == separator { '.' } else { c };
                    out.extend(text.trim_end().chars().map(dot));
                }
                None if pads_itself(*key) => {
                    let cut = cell.chars().count() - text.chars().count();
                    let width = self.width_of(*key).saturating_sub(cut);
                    out.push_str(text);
                    let missing = width.saturating_sub(text.chars().count());
                    out.extend(std::iter::repeat_n(' ', missing));
                }
                None => out.push_str(text),
            }
        }
        out.push('\n');
    }

    fn write_gap(&self, is_between: bool, out: &mut String) {
        match self.options.separator {
            Some(separator) if is_between => out.push(separator),
            Some(_) => {}
            None => out.push_str(GAP),
        }
    }

    /// True where a row directly below that of `index` reaches the limit.
    fn has_shown_children(&self, places: &[Level], index: usize) -> bool {
        let depth = places[index].depth;
        let below = places.iter().zip(&self.hists.rows).skip(index + 1);
        let mut children = below.take_while(|(place, _)| place.depth > depth);
        children.any(|(place, row)| {
            place.depth == depth + 1 && self.hists.is_shown(row, self.options.hists.percent_limit)
        })
    }

    fn write_no_entry(&self, place: Level, out: &mut String) {
        let numbers: usize = self.numbers().map(|(_, width)| width + GAP.len()).sum();
        let levels = match self.options.separator {
            Some(_) => 0,
            None => (self.levels().len() + place.depth) * INDENT,
        };
        let indent = levels + numbers + GAP.len();
        let limit = self.options.hists.percent_limit;
        out.push_str(&format!("{}no entry >= {limit:.2}%\n", pad::blanks(indent)));
    }
}
