//! The result as text.

use super::programs::WORKERS;
use super::{Comparison, Named, Reader, Reading, Row};
use crate::bench::Figures;
use crate::page::{Page, number};

impl Figures for Comparison {
    /// The machine, absent rows with their reasons, and the table.
    fn show(&self, page: &mut Page) {
        self.versions.iter().for_each(|line| page.fact(line));
        for absent in &self.absent {
            let reason = absent.reason.lines().next().unwrap_or_default();
            page.fact(format_args!("not here: {}: {reason}", absent.what));
        }
        let about = "Percentages of samples with the right function / inlined function / line; those with a wrong name";
        page.paragraph(about);
        let readers: Vec<Reader> = self
            .rows
            .first()
            .map_or_else(Vec::new, |row| row.readings.iter().map(|(reader, _)| *reader).collect());
        let heading = ["compiler", "form", "samples"].into_iter().map(str::to_owned);
        let heading = heading.chain(readers.iter().map(Reader::to_string));
        page.table(heading, 2, self.rows.iter().map(row));
        for reader in readers {
            shares_to(page, reader, self);
        }
    }

    fn succeeded(&self) -> bool {
        let readings = self.rows.iter().flat_map(|row| &row.readings);
        let mut of_whit = readings.filter(|(reader, _)| *reader == Reader::Whit);
        of_whit.all(|(_, reading)| reading.named().is_some())
    }
}

/// The shares of functions over all recordings, beside those that the programs have.
fn shares_to(page: &mut Page, reader: Reader, comparison: &Comparison) {
    let readings = comparison.rows.iter().flat_map(|row| &row.readings);
    let named = readings.filter(|(it, _)| *it == reader).filter_map(|(_, reading)| reading.named());
    let mut sums = [0; WORKERS.len()];
    named.for_each(|named| {
        sums.iter_mut().zip(named.shares).for_each(|(sum, count)| *sum += count);
    });
    let all: u64 = sums.iter().sum();
    if all > 0 {
        let shares = sums.map(|sum| number(sum as f64 * 100.0 / all as f64)).join(" / ");
        let known = WORKERS.map(|worker| worker.percent.to_string()).join(" / ");
        page.fact(format_args!(
            "{reader}: functions take {shares} % of {all} samples, by construction {known} %"
        ));
    }
}

fn row(row: &Row) -> Vec<String> {
    let samples = row.readings.iter().find_map(|(_, reading)| reading.named());
    let samples = samples.map_or_else(String::new, |named| named.samples.to_string());
    let mut cells = vec![row.compiler.to_string(), row.form.to_string(), samples];
    cells.extend(row.readings.iter().map(|(_, reading)| match reading {
        Reading::Named(named) => shown(named),
        Reading::Failed { reason } => reason.lines().next().unwrap_or_default().to_owned(),
    }));
    cells
}

fn shown(named: &Named) -> String {
    let levels = named.percentages().map(percent).join(" / ");
    match named.wrong {
        0 => levels,
        wrong => {
            format!("{levels}; wrong: {}", percent(wrong as f64 * 100.0 / named.samples as f64))
        }
    }
}

/// Only all of them are 100.
fn percent(value: f64) -> String {
    match value {
        0.0 | 100.0 => format!("{value:.0}"),
        _ => format!("{:.1}", value.clamp(0.1, 99.9)),
    }
}
