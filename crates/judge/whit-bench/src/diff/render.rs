//! The proofs as Markdown.

use super::measures::{Found, OfKind};
use super::planted::Planted;
use super::{Coverage, FalseCalls, Loss, Power, Proofs, Real, Setting};
use crate::bench::Figures;
use crate::page::{Cell, Page};

impl Figures for Proofs {
    /// All tables.
    fn show(&self, page: &mut Page) {
        let Proofs { samples, power_samples, .. } = self;
        if !self.settings.is_empty() {
            self.show_samples(page, *samples, *power_samples);
        }
        if let Some(real) = &self.real {
            page.paragraph(format_args!(
                "{} recordings of `{}`, {} samples, against each other:",
                real.recordings, real.program, real.samples
            ));
            let headings = ["proof", "number", "%", "% if samples were independent"];
            page.table(headings, 1, of_real(real));
        }
        if !self.measures.is_empty() {
            page.paragraph(format_args!(
                "Waits, locks and requests, simulated recordings of {} s (lengths lognormal, in bursts; one of twelve \
                 places is 5 % longer):",
                self.measure_seconds
            ));
            page.columns(2, &MEASURES, &self.measures);
        }
        if let Some(planted) = &self.planted {
            page.paragraph(format_args!(
                "`planted`, {} recordings of {} s on each side:",
                planted.runs, planted.seconds
            ));
            page.table(
                ["comparison", "pairs", "called", "%", "first row %"],
                1,
                of_planted(planted),
            );
        }
    }

    fn of_this_machine(&self) -> bool {
        self.planted.is_some()
    }
}

impl Proofs {
    fn show_samples(&self, page: &mut Page, samples: usize, power_samples: usize) {
        page.fact(format_args!(
            "synthetic recordings of {samples} samples; {power_samples} for the power"
        ));
        page.fact("cluster: samples that the program stays in a function, on average");
        page.paragraph("Equal programs:");
        page.columns(
            2,
            &EQUAL,
            &self.of_settings(|setting| {
                vec![
                    ("one a side", setting.false_calls),
                    ("three a side", setting.false_calls_of_several),
                ]
            }),
        );
        page.paragraph("Intervals at 95 % that hold the true share:");
        page.columns(2, &COVERAGE, &self.of_settings(|setting| setting.coverage.clone()));
        page.paragraph("Slowdowns:");
        page.columns(2, &POWER, &self.of_settings(|setting| setting.power.clone()));
        page.paragraph("Shares of the whole recording, where a part is lost:");
        page.columns(2, &LOSSES, &self.of_settings(|setting| setting.losses.clone()));
    }

    /// The rows of each length of clusters.
    fn of_settings<T>(&self, of: impl Fn(&Setting) -> Vec<T>) -> Vec<(f64, T)> {
        let of = |setting: &Setting| {
            of(setting).into_iter().map(|it| (setting.stay, it)).collect::<Vec<_>>()
        };
        self.settings.iter().flat_map(of).collect()
    }
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1}", 100.0 * part as f64 / of.max(1) as f64)
}

const EQUAL: [Cell<(f64, (&'static str, FalseCalls))>; 6] = [
    ("cluster", |(stay, _)| stay.to_string()),
    ("recordings", |(_, (name, _))| (*name).to_owned()),
    ("tests a pair", |(_, (_, it))| (it.tests / it.pairs.max(1)).to_string()),
    ("pairs", |(_, (_, it))| it.pairs.to_string()),
    ("any row called different", |(_, (_, it))| it.wrong.to_string()),
    ("%", |(_, (_, it))| percent(it.wrong, it.pairs)),
];

const COVERAGE: [Cell<(f64, Coverage)>; 5] = [
    ("cluster", |(stay, _)| stay.to_string()),
    ("functions", |(_, it)| it.of.clone()),
    ("intervals", |(_, it)| it.intervals.to_string()),
    ("%", |(_, it)| percent(it.held, it.intervals)),
    ("% if samples were independent", |(_, it)| percent(it.held_if_independent, it.intervals)),
];

const POWER: [Cell<(f64, Power)>; 7] = [
    ("cluster", |(stay, _)| stay.to_string()),
    ("slower", |(_, it)| it.slowdown.clone()),
    ("pairs", |(_, it)| it.pairs.to_string()),
    ("called %", |(_, it)| percent(it.found, it.pairs)),
    ("by a test alone %", |(_, it)| percent(it.found_alone, it.pairs)),
    ("theory %", |(_, it)| format!("{:.1}", 100.0 * it.theory_alone)),
    ("samples for 80 %", |(_, it)| format!("{:.0}", it.samples_for_80_percent)),
];

const LOSSES: [Cell<(f64, Loss)>; 6] = [
    ("cluster", |(stay, _)| stay.to_string()),
    ("lost", |(_, it)| it.kind.clone()),
    ("lost %", |(_, it)| format!("{:.1}", it.lost_percent)),
    ("intervals", |(_, it)| it.intervals.to_string()),
    ("% that hold it", |(_, it)| percent(it.held, it.intervals)),
    ("% if the loss is ignored", |(_, it)| percent(it.held_if_ignored, it.intervals)),
];

const MEASURES: [Cell<OfKind>; 9] = [
    ("planted in", |it| it.of.to_owned()),
    ("comparison", |it| format!("--{}", it.kind)),
    ("a second", |it| format!("{:.0}", it.per_second)),
    ("mean us", |it| format!("{:.0}", it.mean_ns / 1e3)),
    ("equal pairs, one a side: any row called %", |it| of_false(it.single)),
    ("three a side %", |it| of_false(it.several)),
    ("pairs with the delay", |it| it.planted.pairs.to_string()),
    ("called %", |it| percent(it.planted.found, it.planted.pairs)),
    ("first row %", |it| percent(it.planted.first, it.planted.pairs)),
];

fn of_false(calls: FalseCalls) -> String {
    format!("{} of {}", percent(calls.wrong, calls.pairs), calls.pairs)
}

fn of_planted(planted: &Planted) -> Vec<Vec<String>> {
    let equal = planted.equal.iter().map(|(of, calls)| {
        let pairs = calls.pairs.to_string();
        let (wrong, share) = (calls.wrong.to_string(), percent(calls.wrong, calls.pairs));
        vec![format!("equal runs, {of}"), pairs, wrong, share, String::new()]
    });
    let row = |of: String, found: &Found| {
        let (share, first) = (percent(found.found, found.pairs), percent(found.first, found.pairs));
        vec![of, found.pairs.to_string(), found.found.to_string(), share, first]
    };
    let longer = planted.longer.iter().map(|(of, found)| row(format!("5 % longer: {of}"), found));
    let swapped = "mutex as spin lock: waits less, spins more".to_owned();
    equal.chain(longer).chain([row(swapped, &planted.swapped)]).collect()
}

fn of_real(real: &Real) -> Vec<Vec<String>> {
    let sides = [("one", real.single), ("three", real.several)].map(|(side, calls)| {
        let name = format!("{side} a side: any row called different");
        vec![name, calls.pairs.to_string(), percent(calls.wrong, calls.pairs), String::new()]
    });
    let intervals = real.coverage.iter().map(|it| {
        vec![
            format!("intervals of {}", it.of),
            it.intervals.to_string(),
            percent(it.held, it.intervals),
            percent(it.held_if_independent, it.intervals),
        ]
    });
    sides.into_iter().chain(intervals).collect()
}
