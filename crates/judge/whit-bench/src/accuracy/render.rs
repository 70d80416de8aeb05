//! The tables as Markdown.

use super::{Accuracy, Gain, Noticed, Row};
use crate::bench::Figures;
use crate::page::{Cell, Page, number};

impl Figures for Accuracy {
    /// All tables.
    fn show(&self, page: &mut Page) {
        let Accuracy { event, seconds, runs, .. } = self;
        page.fact(format_args!(
            "event `{event}`; {runs} recordings of {seconds} s of each workload by each recorder"
        ));
        for (name, version) in &self.recorders {
            page.fact(format_args!("`{name}`: {version}"));
        }
        for (name, why) in &self.missing {
            page.fact(format_args!("`{name}` is missing: {why}"));
        }
        if !self.shares.is_empty() {
            page.paragraph("Shares against counts, in percentage points:");
            page.columns(3, &SHARES, &self.shares);
        }
        if !self.gains.is_empty() {
            page.paragraph("Gain of a faster function, in percent of the program's time:");
            page.table(["faster by", "from", "gain"], 2, self.gains.iter().flat_map(gain));
        }
        if !self.noticed.is_empty() {
            let title = "Threads that wake up in step with the samples, and whether `whit switches` says so";
            page.paragraph(format_args!("{title}:"));
            page.columns(1, &NOTICED, &self.noticed);
        }
    }
}

const SHARES: [Cell<Row>; 8] = [
    ("workload", |row| row.workload.clone()),
    ("Hz", |row| row.hz.to_string()),
    ("recorder", |row| row.recorder.clone()),
    ("samples", |row| row.samples.to_string()),
    ("mean error", |row| number(row.mean_error)),
    ("largest error", |row| number(row.largest_error)),
    ("intervals", |row| row.functions.to_string()),
    ("hold the truth %", |row| {
        format!("{:.1}", 100.0 * row.held as f64 / row.functions.max(1) as f64)
    }),
];

const NOTICED: [Cell<Noticed>; 6] = [
    ("recorder", |row| row.recorder.clone()),
    ("wake-ups a second", |row| row.waking_hz.to_string()),
    ("Hz", |row| row.hz.to_string()),
    ("recordings", |row| row.recordings.to_string()),
    ("said of", |row| row.said.to_string()),
    ("mean error", |row| number(row.mean_error)),
];

fn gain(gain: &Gain) -> Vec<Vec<String>> {
    let by = format!("{} %", gain.faster_percent);
    let line = |from: &str, cell: String| vec![by.clone(), from.to_owned(), cell];
    let [median, least, greatest] = gain.measured;
    let measured = format!("{} ({}–{})", number(median), number(least), number(greatest));
    let predicted = gain.predicted.iter().map(|(name, gain)| line(name, number(*gain)));
    let mut lines = vec![line("the program's counts", number(gain.by_counts))];
    lines.extend(predicted);
    lines.push(line("measured, median of pairs", measured));
    lines
}
