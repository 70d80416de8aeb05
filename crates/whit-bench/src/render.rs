//! A comparison as text: Markdown tables that read well in a terminal as they are.

use crate::markdown::{line_to, number, spread, table_to};
use crate::peer::PeerKind;
use crate::report::{Comparison, FileResult};
use whit_measure::summary::{Spread, Summary};
use whit_types::ByteSize;

const HEADINGS: [&str; 6] = ["", "wall s", "user s", "sys s", "peak MiB", "of whit's time"];

/// The whole comparison: the machine, who took part, one table per recording.
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in comparison.system.lines() {
        line_to(&mut text, &format!("- {line}"));
    }
    for peer in &comparison.peers {
        line_to(&mut text, &format!("- {}: `{}` ({})", peer.kind, peer.command, peer.version));
    }
    for absent in &comparison.absent {
        line_to(&mut text, &format!("- {}: not here ({})", absent.kind, absent.reason));
    }
    for file in &comparison.files {
        file_to(&mut text, file);
    }
    text
}

fn file_to(text: &mut String, file: &FileResult) {
    let recording = &file.recording;
    let events = match recording.events.as_slice() {
        [] => String::new(),
        events => format!(", event {}", events.join(", ")),
    };
    line_to(text, "");
    // The origin of a recording that somebody else made is unknown.
    let what = if recording.command.is_empty() { "" } else { " of dumped stacks" };
    line_to(text, &format!("{}{what}{events}", ByteSize(recording.size_bytes)));
    line_to(text, "");
    let whit = file.results.iter().find(|result| result.peer.is_whit());
    let whit_s = whit.and_then(|result| match &result.summary {
        Summary::Measured { wall_s, .. } => Some(wall_s.median),
        _ => None,
    });
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    let mut notes = Vec::new();
    for result in &file.results {
        rows.push(row(result.peer, &result.summary, whit_s).to_vec());
        if let Summary::Failed { reason } | Summary::NotRun { reason } = &result.summary {
            notes.push(format!("{}: {reason}", result.peer));
        }
    }
    if file.results.iter().any(|result| result.printed_bytes.is_some()) {
        rows[0].push("printed bytes".to_owned());
        for (row, result) in rows[1..].iter_mut().zip(&file.results) {
            row.push(result.printed_bytes.map_or("–".to_owned(), |bytes| bytes.to_string()));
        }
    }
    table_to(text, &rows, 1);
    if !notes.is_empty() {
        line_to(text, "");
    }
    for note in notes {
        line_to(text, &format!("- {note}"));
    }
}

fn row(peer: PeerKind, summary: &Summary, whit_s: Option<f64>) -> [String; 6] {
    let name = peer.name().to_owned();
    let dash = || "–".to_owned();
    let ratio = |prefix: &str| match (summary.wall_s_at_least(), whit_s) {
        (Some(wall_s), Some(whit_s)) if whit_s > 0.0 => {
            format!("{prefix}{}×", number(wall_s / whit_s))
        }
        _ => dash(),
    };
    match summary {
        Summary::Measured { wall_s, user_s, sys_s, max_rss_bytes, .. } => {
            let mib = |bytes: f64| bytes / f64::from(1 << 20);
            let memory = Spread {
                median: mib(max_rss_bytes.median),
                min: mib(max_rss_bytes.min),
                max: mib(max_rss_bytes.max),
            };
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
    use crate::compare::PeerResult;
    use crate::peer::{AbsentPeer, Peer};
    use crate::recording::Recording;
    use crate::report::SCHEMA;
    use crate::system::System;
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
            schema: SCHEMA,
            system: System { kernel: "Linux 6".into(), cpus: 2, ..System::default() },
            peers: vec![Peer {
                kind: PeerKind::Whit,
                program: "whit".into(),
                version: "whit 0.1.0".into(),
                command: "whit report -i FILE".into(),
                function: String::new(),
            }],
            absent: vec![AbsentPeer { kind: PeerKind::PerfScriptNoInline, reason: "gone".into() }],
            files: vec![FileResult { recording, results }],
        }
    }

    #[test]
    fn the_table_has_medians_spread_and_failures() {
        let expected = "\
- kernel: Linux 6 
- CPU: , 2 usable
- memory: 0B
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
        assert_eq!(markdown(&comparison()), expected);
    }

    #[test]
    fn printed_bytes_have_a_column_where_they_were_counted() {
        let mut comparison = comparison();
        comparison.files[0].results[0].printed_bytes = Some(4096);
        let text = markdown(&comparison);
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
        assert_eq!(json["schema"], 1);
        let whit = &json["files"][0]["results"][0];
        assert_eq!(whit["peer"], "whit");
        assert_eq!(whit["runs"].as_array().unwrap().len(), 3);
        assert_eq!(whit["summary"]["wall_s"]["median"], 1.5);
        assert_eq!(json["files"][0]["results"][2]["summary"]["kind"], "timed_out");
    }
}
