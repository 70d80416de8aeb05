//! The proofs as Markdown.

use super::{Coverage, FalseCalls, Proofs, Real, Setting};
use crate::markdown::{line_to, table_to};

/// All tables.
pub fn markdown(proofs: &Proofs) -> String {
    let mut text = String::from("## `whit bench diff`\n\n");
    let Proofs { samples, power_samples, .. } = proofs;
    line_to(
        &mut text,
        &format!("- synthetic recordings of {samples} samples; {power_samples} for the power"),
    );
    line_to(&mut text, "- cluster: samples that the program stays in a function, on average");
    section(&mut text, "Equal programs", &equal(proofs), 2);
    section(&mut text, "Intervals at 95 % that hold the true share", &coverage(proofs), 2);
    section(&mut text, "Slowdowns", &power(proofs), 2);
    section(&mut text, "Shares of the whole recording, where a part is lost", &losses(proofs), 2);
    if let Some(real) = &proofs.real {
        let title = format!(
            "{} recordings of `{}`, {} samples, against each other",
            real.recordings, real.program, real.samples
        );
        section(&mut text, &title, &of_real(real), 1);
    }
    text
}

fn section(text: &mut String, title: &str, rows: &[Vec<String>], names: usize) {
    line_to(text, &format!("\n{title}:\n"));
    table_to(text, rows, names);
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1}", 100.0 * part as f64 / of.max(1) as f64)
}

fn per_setting(
    heading: Vec<String>,
    proofs: &Proofs,
    rows: impl Fn(&Setting) -> Vec<Vec<String>>,
) -> Vec<Vec<String>> {
    let rows = proofs.settings.iter().flat_map(|setting| {
        let with_stay = |row: Vec<String>| [vec![setting.stay.to_string()], row].concat();
        rows(setting).into_iter().map(with_stay).collect::<Vec<_>>()
    });
    std::iter::once(heading).chain(rows).collect()
}

fn calls(calls: &FalseCalls) -> Vec<String> {
    let FalseCalls { pairs, wrong, tests } = *calls;
    vec![
        (tests / pairs.max(1)).to_string(),
        pairs.to_string(),
        wrong.to_string(),
        percent(wrong, pairs),
    ]
}

fn equal(proofs: &Proofs) -> Vec<Vec<String>> {
    let heading =
        row(["cluster", "recordings", "tests a pair", "pairs", "any row called different", "%"]);
    per_setting(heading, proofs, |setting| {
        let cells = |name: &str, counted| [row([name]), calls(counted)].concat();
        vec![
            cells("one a side", &setting.false_calls),
            cells("three a side", &setting.false_calls_of_several),
        ]
    })
}

fn covered(coverage: &Coverage) -> Vec<String> {
    let Coverage { of, intervals, held, held_if_independent } = coverage;
    vec![
        of.clone(),
        intervals.to_string(),
        percent(*held, *intervals),
        percent(*held_if_independent, *intervals),
    ]
}

fn coverage(proofs: &Proofs) -> Vec<Vec<String>> {
    let heading = row(["cluster", "functions", "intervals", "%", "% if samples were independent"]);
    per_setting(heading, proofs, |setting| setting.coverage.iter().map(covered).collect())
}

fn power(proofs: &Proofs) -> Vec<Vec<String>> {
    let heading = row([
        "cluster",
        "slower",
        "pairs",
        "called %",
        "by a test alone %",
        "theory %",
        "samples for 80 %",
    ]);
    per_setting(heading, proofs, |setting| {
        let cells = |power: &super::Power| {
            vec![
                power.slowdown.clone(),
                power.pairs.to_string(),
                percent(power.found, power.pairs),
                percent(power.found_alone, power.pairs),
                format!("{:.1}", 100.0 * power.theory_alone),
                format!("{:.0}", power.samples_for_80_percent),
            ]
        };
        setting.power.iter().map(cells).collect()
    })
}

fn losses(proofs: &Proofs) -> Vec<Vec<String>> {
    let heading = row([
        "cluster",
        "lost",
        "lost %",
        "intervals",
        "% that hold it",
        "% if the loss is ignored",
    ]);
    per_setting(heading, proofs, |setting| {
        let cells = |loss: &super::Loss| {
            vec![
                loss.kind.clone(),
                format!("{:.1}", loss.lost_percent),
                loss.intervals.to_string(),
                percent(loss.held, loss.intervals),
                percent(loss.held_if_ignored, loss.intervals),
            ]
        };
        setting.losses.iter().map(cells).collect()
    })
}

fn of_real(real: &Real) -> Vec<Vec<String>> {
    let mut rows = vec![row(["proof", "number", "%", "% if samples were independent"])];
    for (name, calls) in [
        ("one a side: any row called different", real.single),
        ("three a side: any row called different", real.several),
    ] {
        rows.push(vec![
            name.to_owned(),
            calls.pairs.to_string(),
            percent(calls.wrong, calls.pairs),
            String::new(),
        ]);
    }
    rows.extend(real.coverage.iter().map(|coverage| {
        let mut cells = covered(coverage);
        cells[0] = format!("intervals of {}", cells[0]);
        cells
    }));
    rows
}
