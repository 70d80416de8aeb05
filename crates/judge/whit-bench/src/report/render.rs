//! A comparison as text: Markdown tables that read well in a terminal as they are.

use crate::bench::Figures;
use crate::compare::PeerResult;
use crate::page::{MIB, NONE, Page, number, scaled, spread};
use crate::report::{Comparison, FileResult};
use whit_measure::summary::Summary;
use whit_types::ByteSize;

const HEADINGS: [&str; 6] = ["", "wall s", "user s", "sys s", "peak MiB", "of whit's time"];

impl Figures for Comparison {
    /// The whole comparison: the machine, who took part, one table per recording.
    fn show(&self, page: &mut Page) {
        for peer in &self.peers {
            page.fact(format_args!("{}: `{}` ({})", peer.kind, peer.command, peer.version));
        }
        for absent in &self.absent {
            page.fact(format_args!("{}: not here ({})", absent.kind, absent.reason));
        }
        for file in &self.files {
            file_to(page, file);
        }
    }

    fn succeeded(&self) -> bool {
        let whit = |file: &FileResult| {
            let mut results = file.results.iter().filter(|result| result.peer.is_whit());
            results.all(|result| matches!(result.summary, Summary::Measured { .. }))
        };
        self.files.iter().all(whit)
    }
}

fn file_to(page: &mut Page, file: &FileResult) {
    let recording = &file.recording;
    let events = match recording.events.as_slice() {
        [] => String::new(),
        events => format!(", event {}", events.join(", ")),
    };
    // The origin of a recording that somebody else made is unknown.
    let what = if recording.command.is_empty() { "" } else { " of dumped stacks" };
    page.paragraph(format_args!("{}{what}{events}", ByteSize(recording.size_bytes)));
    let whit = file.results.iter().find(|result| result.peer.is_whit());
    let whit_s = whit.and_then(|result| match &result.summary {
        Summary::Measured { wall_s, .. } => Some(wall_s.median),
        _ => None,
    });
    let mut headings = HEADINGS.to_vec();
    let mut rows: Vec<_> = file.results.iter().map(|it| row(it, whit_s).to_vec()).collect();
    if file.results.iter().any(|result| result.printed_bytes.is_some()) {
        headings.push("printed bytes");
        for (row, result) in rows.iter_mut().zip(&file.results) {
            row.push(result.printed_bytes.map_or(NONE.to_owned(), |bytes| bytes.to_string()));
        }
    }
    page.table(headings, 1, rows);
    page.notes(file.results.iter().filter_map(|result| match &result.summary {
        Summary::Failed { reason } | Summary::NotRun { reason } => {
            Some(format!("{}: {reason}", result.peer))
        }
        _ => None,
    }));
}

fn row(PeerResult { peer, summary, .. }: &PeerResult, whit_s: Option<f64>) -> [String; 6] {
    let name = peer.to_string();
    let dash = || NONE.to_owned();
    let ratio = |prefix: &str| match (summary.wall_s_at_least(), whit_s) {
        (Some(wall_s), Some(whit_s)) if whit_s > 0.0 => {
            format!("{prefix}{}×", number(wall_s / whit_s))
        }
        _ => dash(),
    };
    match summary {
        Summary::Measured { wall_s, user_s, sys_s, max_rss_bytes, .. } => {
            let memory = scaled(max_rss_bytes, 1.0 / MIB);
            [name, spread(wall_s), spread(user_s), spread(sys_s), spread(&memory), ratio("")]
        }
        Summary::TimedOut { limit_s, max_rss_bytes } => {
            let memory = format!("> {}", max_rss_bytes >> 20);
            [name, format!("> {limit_s}"), dash(), dash(), memory, ratio("> ")]
        }
        Summary::Failed { .. } => [name, "failed".into(), dash(), dash(), dash(), dash()],
        Summary::NotRun { .. } => [name, "not run".into(), dash(), dash(), dash(), dash()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::page;
    use crate::compare::PeerResult;
    use crate::installed::Absent;
    use crate::peer::{Peer, PeerKind};
    use crate::recording::Recording;
    use whit_measure::measure::{Measurement, Outcome};

    fn run(wall_s: f64, outcome: Outcome) -> Measurement {
        let max_rss_bytes = 100 << 20;
        Measurement { outcome, wall_s, user_s: wall_s, sys_s: 0.123, max_rss_bytes }
    }

    fn result(peer: PeerKind, runs: Vec<Measurement>) -> PeerResult {
        PeerResult { peer, summary: Summary::of(&runs), printed_bytes: None, runs }
    }

    fn comparison() -> Comparison {
        let ok = |wall_s| run(wall_s, Outcome::Success);
        let failed = Outcome::Failed { status: "signal 11".into(), stderr: "oops".into() };
        let results = vec![
            result(PeerKind::Whit, vec![ok(1.0), ok(2.0), ok(1.5)]),
            result(PeerKind::PerfReport, vec![ok(30.0)]),
            result(PeerKind::PerfScript, vec![run(600.0, Outcome::TimedOut { limit_s: 600 })]),
            result(PeerKind::Samply, vec![run(0.1, failed)]),
        ];
        let recording = Recording {
            path: "x.data".into(),
            size_bytes: 500 << 20,
            events: vec!["cpu-clock".into()],
            command: "perf record".into(),
        };
        Comparison {
            peers: vec![Peer {
                kind: PeerKind::Whit,
                program: "whit".into(),
                version: "whit 0.1.0".into(),
                command: "whit report -i FILE".into(),
                function: String::new(),
            }],
            absent: vec![Absent { kind: PeerKind::PerfScriptNoInline, reason: "gone".into() }],
            files: vec![FileResult { recording, results }],
        }
    }

    #[test]
    fn the_table_has_medians_spread_and_failures() {
        let expected = "\
- whit: `whit report -i FILE` (whit 0.1.0)
- perf-script-no-inline: not here (gone)

500M of dumped stacks, event cpu-clock

|             |           wall s |           user s |            sys s |      peak MiB | of whit's time |
| ----------- | ---------------: | ---------------: | ---------------: | ------------: | -------------: |
| whit        | 1.50 (1.00–2.00) | 1.50 (1.00–2.00) | 0.12 (0.12–0.12) | 100 (100–100) |          1.00× |
| perf-report | 30.0 (30.0–30.0) | 30.0 (30.0–30.0) | 0.12 (0.12–0.12) | 100 (100–100) |          20.0× |
| perf-script |            > 600 |                – |                – |         > 100 |         > 400× |
| samply      |           failed |                – |                – |             – |              – |

- samply: signal 11: oops
";
        assert_eq!(page(None, &comparison()), expected);
    }

    #[test]
    fn printed_bytes_have_a_column_where_they_were_counted() {
        let mut comparison = comparison();
        comparison.files[0].results[0].printed_bytes = Some(4096);
        let text = page(None, &comparison);
        let columns = |peer: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(peer)).unwrap();
            line.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(columns("| whit ")[7], "4096");
        assert_eq!(columns("| perf-report ")[7], "–");
    }

    #[test]
    fn the_json_has_every_run() {
        let json = serde_json::to_value(comparison()).unwrap();
        let whit = &json["files"][0]["results"][0];
        assert_eq!(whit["peer"], "whit");
        assert_eq!(whit["runs"].as_array().unwrap().len(), 3);
        assert_eq!(whit["summary"]["wall_s"]["median"], 1.5);
        assert_eq!(json["files"][0]["results"][2]["summary"]["kind"], "timed_out");
    }
}
