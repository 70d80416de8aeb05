//! The tables as Markdown.

use super::{Accuracy, Gain, Noticed, Row};
use crate::markdown::{line_to, number, table_to};

/// All tables.
pub fn markdown(accuracy: &Accuracy) -> String {
    let mut text = String::from("## `whit bench accuracy`\n\n");
    for line in accuracy.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    let Accuracy { event, seconds, runs, .. } = accuracy;
    line_to(
        &mut text,
        &format!(
            "- event `{event}`; {runs} recordings of {seconds} s of each workload by each recorder"
        ),
    );
    for (name, version) in &accuracy.recorders {
        line_to(&mut text, &format!("- `{name}`: {version}"));
    }
    for (name, why) in &accuracy.missing {
        line_to(&mut text, &format!("- `{name}` is missing: {why}"));
    }
    section(&mut text, "Shares against counts, in percentage points", &shares(&accuracy.shares), 3);
    section(
        &mut text,
        "Gain of a faster function, in percent of the program's time",
        &gains(&accuracy.gains),
        2,
    );
    section(
        &mut text,
        "Threads that wake up in step with the samples, and whether `whit switches` says so",
        &noticed(&accuracy.noticed),
        1,
    );
    text
}

fn section(text: &mut String, title: &str, rows: &[Vec<String>], names: usize) {
    if rows.len() > 1 {
        line_to(text, &format!("\n{title}:\n"));
        table_to(text, rows, names);
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn shares(rows: &[Row]) -> Vec<Vec<String>> {
    let heading = row([
        "workload",
        "Hz",
        "recorder",
        "samples",
        "mean error",
        "largest error",
        "intervals",
        "hold the truth %",
    ]);
    let cells = |row: &Row| {
        vec![
            row.workload.clone(),
            row.hz.to_string(),
            row.recorder.clone(),
            row.samples.to_string(),
            number(row.mean_error),
            number(row.largest_error),
            row.functions.to_string(),
            format!("{:.1}", 100.0 * row.held as f64 / row.functions.max(1) as f64),
        ]
    };
    std::iter::once(heading).chain(rows.iter().map(cells)).collect()
}

fn gains(gains: &[Gain]) -> Vec<Vec<String>> {
    let heading = row(["faster by", "from", "gain"]);
    let of = |gain: &Gain| {
        let by = format!("{} %", gain.faster_percent);
        let line = |from: &str, cell: String| vec![by.clone(), from.to_owned(), cell];
        let [median, least, greatest] = gain.measured;
        let measured = format!("{} ({}–{})", number(median), number(least), number(greatest));
        let predicted = gain.predicted.iter().map(|(name, gain)| line(name, number(*gain)));
        let mut lines = vec![line("the program's counts", number(gain.by_counts))];
        lines.extend(predicted);
        lines.push(line("measured, median of pairs", measured));
        lines
    };
    std::iter::once(heading).chain(gains.iter().flat_map(of)).collect()
}

fn noticed(rows: &[Noticed]) -> Vec<Vec<String>> {
    let heading =
        row(["recorder", "wake-ups a second", "Hz", "recordings", "said of", "mean error"]);
    let cells = |row: &Noticed| {
        vec![
            row.recorder.clone(),
            row.waking_hz.to_string(),
            row.hz.to_string(),
            row.recordings.to_string(),
            row.said.to_string(),
            number(row.mean_error),
        ]
    };
    std::iter::once(heading).chain(rows.iter().map(cells)).collect()
}
