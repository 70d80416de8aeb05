//! The result as text.

use super::{Comparison, Program, Round};
use crate::markdown::{line_to, spread, table_to};

const MIB: f64 = (1u64 << 20) as f64;

/// A column: its heading, and the figure of a round.
type Column = (&'static str, fn(&Round) -> f64);

/// Sizes and times of names.
const NAMES: [Column; 12] = [
    ("samples", |round| round.without.samples as f64),
    ("recording MiB", |round| round.without.bytes as f64 / MIB),
    ("hot: KiB", |round| round.hot.names_kib as f64),
    ("hot: MiB in all", |round| round.hot.bytes as f64 / MIB),
    ("hot: s", |round| round.hot.seconds),
    ("all: KiB", |round| round.all.names_kib as f64),
    ("all: MiB in all", |round| round.all.bytes as f64 / MIB),
    ("all: s", |round| round.all.seconds),
    ("archive MiB", |round| round.archive.bytes as f64 / MIB),
    ("archive: s", |round| round.archive.seconds),
    ("archive: CPU s", |round| round.archive.cpu_s),
    ("archive: peak MiB", |round| round.archive.peak_bytes as f64 / MIB),
];

/// The end of a recording, with copies of binaries and without.
const COPIES: [Column; 7] = [
    ("-N: end ms", |round| round.without.end_ms),
    ("empty cache: end ms", |round| round.first.end_ms),
    ("of that, copies ms", |round| round.first.copying_ms),
    ("binaries", |round| round.first.binaries as f64),
    ("copied MiB", |round| round.first.copied_bytes as f64 / MIB),
    ("again: end ms", |round| round.again.end_ms),
    ("of that, copies ms", |round| round.again.copying_ms),
];

/// The machine, and both tables.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines().iter().chain([&comparison.version]) {
        line_to(&mut text, &format!("- {line}"));
    }
    line_to(&mut text, &format!("- each program runs for {} s", comparison.seconds));
    for program in &comparison.programs {
        line_to(&mut text, &format!("- {}: `whit record {}`", program.load, program.options));
    }
    table(&mut text, "Names: medians (minimum–maximum)", &NAMES, comparison);
    table(&mut text, "Copies of binaries at the end of a recording", &COPIES, comparison);
    text
}

fn table(text: &mut String, title: &str, columns: &[Column], comparison: &Comparison) {
    line_to(text, &format!("\n### {title}\n"));
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned());
    let mut rows = vec![[String::from("program")].into_iter().chain(headings).collect()];
    rows.extend(comparison.programs.iter().map(|program| row(program, columns)));
    table_to(text, &rows, 1);
}

fn row(program: &Program, columns: &[Column]) -> Vec<String> {
    let mut cells = vec![program.load.to_string()];
    if let Some(reason) = &program.failed {
        cells.push(format!("failed: {}", reason.lines().last().unwrap_or_default()));
        return cells;
    }
    let cell =
        |of: &fn(&Round) -> f64| program.spread(of).map_or_else(String::new, |it| spread(&it));
    cells.extend(columns.iter().map(|(_, of)| cell(of)));
    cells
}
