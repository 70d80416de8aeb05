//! Precision of events in reports, and precise events with the BPF engine.

use crate::perf_rows::{THREAD, place, write_records};
use crate::support::tools::{record, text, whit};
use crate::support::{check, probe};
use whit_perfdata::attr::{AttrFlags, SampleType};
use whit_perfdata::record::{misc, record_type};
use whit_testing::workload;

/// The first event of a report.
fn event(path: &std::path::Path) -> serde_json::Value {
    let report = text(whit().args(["report", "--json", "-g", "none", "-i"]).arg(path));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    report["events"][0].clone()
}

/// Software events take `precise_ip` and do nothing with it; the kernel's rule for programs is that of all events.
#[test]
fn the_bpf_engine_takes_precise_events() {
    check("the_bpf_engine_takes_precise_events", || {
        probe::bpf_stacks()?;
        let (folder, deep) = (tempfile::tempdir().expect("make a directory"), workload("deep")?);
        let path = folder.path().join("perf.data");
        let mut recorder = whit();
        recorder
            .args(["record", "-q", "--engine=bpf", "-e", "page-faults:p", "-c", "1", "-o"])
            .arg(&path);
        record(recorder.arg("--").arg(deep).args(["--iterations", "2000"]))?;
        let event = event(&path);
        assert!(event["samples"].as_u64() > Some(50), "{}", event["samples"]);
        assert_eq!(event["precision"]["kind"], "exact");
        let chains = text(whit().args(["script", "-F", "ip,sym", "-i"]).arg(&path));
        assert!(chains.contains("main"), "there are stacks");
        let attributes = text(whit().args(["report", "--header-only", "-i"]).arg(&path));
        assert!(attributes.contains("page-faults:p"), "{attributes}");
        Ok(())
    });
}

#[test]
fn reports_say_where_samples_are() {
    check("reports_say_where_samples_are", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let (folder, deep) = (tempfile::tempdir().expect("make a directory"), workload("deep")?);
        let path = folder.path().join("perf.data");
        let record = |line: &[&str]| {
            let mut recorder = whit();
            recorder
                .args(["record", "--engine=ring", "-q", "-e", "cpu-clock", "-F", "1999"])
                .args(line);
            record(
                recorder.arg("-o").arg(&path).arg("--").arg(&deep).args(["--iterations", "150000"]),
            )?;
            Ok::<_, crate::support::Skip>(event(&path)["precision"].clone())
        };
        let drawn = record(&["--engine=bpf"])?;
        assert_eq!((&drawn["kind"], drawn["period_ns"].as_u64()), (&"timer".into(), Some(500_250)));
        assert!(drawn["redraws"].as_u64() > Some(5), "{drawn}");
        let header = text(whit().args(["report", "-g", "none", "-i"]).arg(&path));
        let line = header.lines().find(|line| line.starts_with("# Precision: timer, every 500 us"));
        assert!(line.is_some_and(|line| line.contains("redrawn")), "{header}");
        for line in [&["--engine=bpf", "--fixed-periods"][..], &["--engine=ring"]] {
            let fixed = record(line)?;
            assert_eq!(fixed["redraws"], 0, "{line:?}");
            assert!(fixed["text"].as_str().expect("text").contains("keep step"), "{fixed}");
        }
        Ok(())
    });
}

/// Runs of 400 us that begin each millisecond, and a sample at a distance of its own.
fn write_runs(directory: &std::path::Path, distance_ns: u64) -> std::path::PathBuf {
    let runs = (1..=3000u64).flat_map(|number| {
        let (from, to) = (number * 1_000_000, number * 1_000_000 + 400_000);
        let switch = |time, bits| (record_type::SWITCH, bits, vec![THREAD, time]);
        let next = (from + 399_999) / distance_ns * distance_ns;
        let sample = (next >= from)
            .then(|| (record_type::SAMPLE, misc::USER, vec![place(number), THREAD, next]));
        [Some(switch(from, 0)), sample, Some(switch(to, misc::SWITCH_OUT))]
    });
    let fields = SampleType::IP | SampleType::TID | SampleType::TIME;
    write_records(directory, fields, AttrFlags::CONTEXT_SWITCH, runs.flatten())
}

#[test]
fn the_plain_report_notices_samples_in_step_with_recorded_runs() {
    check("the_plain_report_notices_samples_in_step_with_recorded_runs", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let warns = |distance_ns: u64| {
            let path = write_runs(folder.path(), distance_ns);
            let report = text(whit().args(["report", "-i"]).arg(path));
            report.contains("samples keep step with the recorded threads")
        };
        assert!(warns(1_000_000));
        assert!(warns(500_000));
        // The golden ratio is in step with nothing.
        assert!(!warns(618_034));
        Ok(())
    });
}

mod measured {
    use super::*;
    use crate::support::Skip;
    use std::path::Path;
    use whit_testing::measure::assert_median_at_most;

    /// The largest error of a share, in parts of one, where work keeps step with the samples.
    fn error(shares: &Path, line: &[&str]) -> Result<f64, Skip> {
        let folder = tempfile::tempdir().expect("make a directory");
        let path = folder.path().join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "-q", "-e", "cpu-clock", "-F", "1000", "--engine=bpf"]).args(line);
        recorder.arg("-o").arg(&path).arg("--").arg(shares).args(["locked:1000", "3"]);
        let counts = String::from_utf8(record(&mut recorder)?).expect("text");
        let counts = counts.lines().filter_map(|line| line.strip_prefix("share ")?.split_once(' '));
        let counts: Vec<(&str, f64)> =
            counts.map(|(name, units)| (name, units.parse().expect("a number"))).collect();
        let all: f64 = counts.iter().map(|(_, units)| units).sum();
        let report = text(
            whit()
                .args(["report", "--json", "-s", "symbol", "--no-children", "-g", "none", "-i"])
                .arg(&path),
        );
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let rows = report["events"][0]["rows"].as_array().expect("rows");
        let samples = |name: &str| {
            let row =
                rows.iter().find(|row| row["symbol"]["name"] == name || row["symbol"] == name);
            row.map_or(0.0, |row| row["self"]["samples"].as_f64().expect("samples"))
        };
        let sampled: f64 = counts.iter().map(|(name, _)| samples(name)).sum();
        assert!(sampled > 300.0, "{report}");
        let errors =
            counts.iter().map(|(name, units)| (samples(name) / sampled - units / all).abs());
        Ok(errors.fold(0.0, f64::max))
    }

    #[test]
    fn work_in_step_with_the_samples_has_its_share() {
        check("work_in_step_with_the_samples_has_its_share", || {
            probe::bpf_stacks()?;
            let shares = workload("shares")?;
            assert_median_at_most("error", 0.05, || error(&shares, &[]))?;
            // The test would notice fixed periods.
            let fixed = error(&shares, &["--fixed-periods"])?;
            assert!(fixed > 0.1, "{fixed}");
            Ok(())
        });
    }
}
