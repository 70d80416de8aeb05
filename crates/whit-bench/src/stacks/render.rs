//! The comparison as text.

use super::{Agreement, Comparison, Found, Row};
use crate::markdown::{line_to, table_to};

const HEADINGS: [&str; 9] = [
    "program",
    "samples",
    "unpaired",
    "early",
    "frames",
    "framehop %",
    "own %",
    "known: framehop %",
    "known: own %",
];

/// The machine, the options, a line for each program, and how walks ended.
///
/// Equal frames are in percent of those compared: of all samples, and of those without the early ones.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    line_to(&mut text, &format!("- `whit record {}`", comparison.options));
    line_to(&mut text, "");
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(comparison.rows.iter().map(row));
    table_to(&mut text, &rows, 1);
    line_to(
        &mut text,
        "\nEqual frames are in percent of those that were compared; early samples came before it was \
         known what their process had mapped, and are in the first two columns of percents alone.\n\n\
         How the walks ended:\n",
    );
    for row in &comparison.rows {
        if let Some(found) = &row.result {
            line_to(&mut text, &format!("- {}: {}", row.program, ends(found)));
        }
    }
    text
}

fn row(row: &Row) -> Vec<String> {
    let name = row.program.to_string();
    match (&row.result, &row.refused) {
        (Some(found), _) => {
            let mut cells = vec![name];
            cells.extend(figures(found));
            cells
        }
        (None, why) => vec![name, format!("refused: {}", why.as_deref().unwrap_or("no reason"))],
    }
}

fn figures(found: &Found) -> [String; 8] {
    let percent = |agreement: &Agreement| format!("{:.3}", 100.0 * agreement.share());
    [
        found.samples.to_string(),
        found.unpaired.to_string(),
        found.early.to_string(),
        found.offline.frames.to_string(),
        percent(&found.framehop),
        percent(&found.offline),
        percent(&found.known_framehop),
        percent(&found.known_offline),
    ]
}

/// The most frequent first.
fn ends(found: &Found) -> String {
    let mut ended: Vec<_> = found.ended.iter().collect();
    ended.sort_by_key(|(_, walks)| std::cmp::Reverse(**walks));
    let ended: Vec<_> = ended.iter().map(|(end, walks)| format!("{end} {walks}")).collect();
    ended.join(", ")
}
