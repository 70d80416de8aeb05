//! The source lines of a function, the heaviest first, as `perf annotate -l` has them.

use std::io::{self, Write};

use whit_annotate::Annotation;
use whit_types::OutsideText;

use super::table::{Part, Table};
use super::{AnnotateOptions, line_name};

/// Lines below this share are left out.
const MIN_PERCENT: f64 = 0.5;

/// Prints the summary of one function.
pub(super) fn write(
    out: &mut impl Write,
    binary: &OutsideText,
    code: &Annotation,
    table: &Table<'_>,
    options: &AnnotateOptions,
) -> io::Result<()> {
    let title = format!("Sorted summary for file {binary}");
    writeln!(out, "\n{title}\n{}\n", "-".repeat(title.chars().count() + 1))?;
    let mut lines: Vec<_> = code.lines.iter().collect();
    // The lines of one weight stay in their order.
    lines.sort_by(|a, b| table.percent(&b.weights).total_cmp(&table.percent(&a.weights)));
    for line in lines.iter().filter(|line| table.percent(&line.weights) >= MIN_PERCENT) {
        let mut text = String::new();
        table.append(Part::Line(&line.line), &line.weights, &mut text);
        let name = match &line.line {
            Some(line) => line_name(line, options.full_paths),
            None => "(no line)".to_owned(),
        };
        writeln!(out, "{text} {name}")?;
    }
    Ok(())
}
