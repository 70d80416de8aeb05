//! The comparison as text.

use super::{Agreement, Comparison, Found, Row};
use crate::bench::Figures;
use crate::page::Page;

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

impl Figures for Comparison {
    /// The machine, the options, a line for each program, and how walks ended.
    ///
    /// Equal frames are in percent of those compared: of all samples, and of those without the early ones.
    fn show(&self, page: &mut Page) {
        page.fact(format_args!("`whit record {}`", self.options));
        page.table(HEADINGS, 1, self.rows.iter().map(row));
        page.paragraph(
            "Equal frames are in percent of those that were compared; early samples came before it was \
             known what their process had mapped, and are in the first two columns of percents alone.\n\n\
             How the walks ended:",
        );
        page.notes(self.rows.iter().filter_map(|row| {
            let found = row.result.as_ref()?;
            Some(format!("{}: {}", row.program, ends(found)))
        }));
    }

    fn succeeded(&self) -> bool {
        self.rows.iter().all(|row| row.refused.is_none())
    }
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
