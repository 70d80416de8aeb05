//! Samples by cgroup, with both engines: the kernel's own counts and the installed perf are the yardsticks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::tools::{perf, record, text, whit};
use crate::support::{Skip, check, probe};

const ENGINES: [&str; 2] = ["ring", "bpf"];

/// CPU time by cgroup in nanoseconds, as the report has it.
fn sampled(path: &Path) -> BTreeMap<String, f64> {
    let report = text(whit().args(["report", "--json", "-s", "cgroup", "-i"]).arg(path));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let rows = report["events"][0]["rows"].as_array().expect("rows");
    let row = |row: &serde_json::Value| {
        let name = row["cgroup"].as_str().unwrap_or("N/A").to_owned();
        (name, row["self"]["period"].as_f64().expect("a period"))
    };
    rows.iter().map(row).collect()
}

/// The same in percent of all, as perf has it.
fn by_perf(path: &Path) -> Result<BTreeMap<String, f64>, Skip> {
    let report = text(
        perf()?
            .args(["report", "--stdio", "-g", "none", "--no-children"])
            .args(["-s", "cgroup", "-i"])
            .arg(path),
    );
    let lines = report.lines().filter_map(|line| line.trim().split_once('%'));
    let row = |(share, name): (&str, &str)| Some((name.trim().to_owned(), share.parse().ok()?));
    Ok(lines.filter_map(row).collect())
}

#[test]
fn cgroups_are_recorded_of_whole_machines_by_both_engines() {
    check("cgroups_are_recorded_of_whole_machines_by_both_engines", || {
        let mount = probe::cgroups_v2()?;
        for engine in ENGINES {
            let directory = tempfile::tempdir().expect("make a directory");
            let path = directory.path().join("perf.data");
            // One that does not exist when the recording begins, and is gone when it ends.
            let name = format!("whit-later-{engine}-{}.service", std::process::id());
            let group = mount.join(&name);
            let script = format!(
                "mkdir {0}; echo $$ > {0}/cgroup.procs; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); \
                 done; echo $$ > {1}/cgroup.procs; rmdir {0}",
                group.display(),
                mount.display()
            );
            let mut recorder = whit();
            recorder.args(["record", "--engine=ring", "-a", "-q", "-e", "cpu-clock", "-F", "1999"]);
            recorder.arg(format!("--engine={engine}")).arg("-o").arg(&path);
            record(recorder.args(["--", "sh", "-c", &script]))?;
            let (ours, theirs) = (sampled(&path), by_perf(&path)?);
            let own = format!("/{name}");
            assert!(ours.contains_key(&own), "{engine}: {ours:?}");
            let total: f64 = ours.values().sum();
            for (cgroup, share) in theirs {
                let ours = 100.0 * ours.get(&cgroup).copied().unwrap_or_default() / total;
                // perf prints two decimals.
                assert!((ours - share).abs() < 0.006, "{engine}: {cgroup}: {ours} {share}");
            }
            let samples = text(whit().args(["script", "-F", "comm,cgroup", "-i"]).arg(&path));
            let line = samples.lines().find(|line| line.ends_with(&own));
            assert!(line.is_some_and(|line| line.trim().starts_with("sh ")), "{engine}: {line:?}");
            let chosen = text(
                whit()
                    .args(["report", "-s", "unit", "-g", "none", "--cgroup", &name, "-i"])
                    .arg(&path),
            );
            assert!(chosen.contains("100.00%") && chosen.contains(&name), "{engine}: {chosen}");
        }
        Ok(())
    });
}

/// Without version 2 and `perf_event`, threads are in the cgroups of `cpu` alone: here in one that was there, and in one
/// that was made later. Other tests make cgroups meanwhile, so version 2 is missing in a namespace of mounts only.
#[test]
fn cgroups_of_cpu_are_read_where_perf_events_have_none() {
    check("cgroups_of_cpu_are_read_where_perf_events_have_none", || {
        let (mount, others) = probe::cgroups_v1("cpu")?;
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let names = ["old", "new"].map(|name| format!("whit-v1-{name}-{}", std::process::id()));
        let [old, new] = names.each_ref().map(|name| mount.join(name).display().to_string());
        // On a quiet machine, only the wait for a child leaves the CPU. The last command of a shell is no child.
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sh -c :; :";
        let script = format!(
            "echo $$ > {old}/cgroup.procs; {work}; mkdir {new}; echo $$ > {new}/cgroup.procs; {work}"
        );
        let hide: String =
            others.iter().map(|it| format!("umount -l {}; ", it.display())).collect();
        let recorder = whit();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &format!("{hide}exec \"$@\""), "sh"]);
        command.arg(recorder.get_program());
        // Every hit of the tracepoint.
        command.args(["record", "-a", "-q", "--engine=bpf", "-e", "cpu-clock/freq=999/"]);
        command.args(["-e", "sched:sched_switch", "-o"]).arg(&path);
        command.args(["--", "sh", "-c", &script]);
        fs::create_dir(&old).expect("make a cgroup");
        let recorded = record(&mut command);
        for group in [&old, &new] {
            let _ = fs::remove_dir(group);
        }
        recorded?;
        let sampled = sampled(&path);
        let samples = text(whit().args(["script", "-F", "comm,event,cgroup", "-i"]).arg(&path));
        for name in names {
            let name = format!("/{name}");
            assert!(sampled.get(&name).is_some_and(|period| *period > 1e7), "{name}: {sampled:?}");
            let of = |event: &str| {
                let has = |line: &&str| line.contains(event) && line.ends_with(&name);
                samples.lines().filter(has).count()
            };
            assert!(of("cpu-clock") > 10 && of("sched_switch") > 0, "{name}: {samples}");
        }
        assert!(sampled.contains_key("/"), "{sampled:?}");
        Ok(())
    });
}

#[test]
fn cgroups_can_be_left_out() {
    check("cgroups_can_be_left_out", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = whit();
        recorder.args([
            "record",
            "--engine=ring",
            "-a",
            "-q",
            "-e",
            "cpu-clock",
            "--no-all-cgroups",
            "-o",
        ]);
        record(recorder.arg(&path).args(["--", "sleep", "0.1"]))?;
        let mut report = whit();
        let output = report.args(["report", "-s", "cgroup", "-i"]).arg(&path).output();
        let message = output.expect("run whit").stderr;
        let message = String::from_utf8_lossy(&message);
        assert!(message.contains("record again with --all-cgroups"), "{message}");
        Ok(())
    });
}

mod measured {
    use super::*;
    use whit_testing::cgroups::Limited;
    use whit_testing::measure::assert_median_at_most;

    /// CPU time that the kernel counted, in nanoseconds, as two lines of `cpu.stat` have it.
    fn counted(stats: &str, nth: usize) -> f64 {
        let mut of_cgroup = stats.lines().filter_map(|line| line.strip_prefix("usage_usec "));
        of_cgroup.nth(nth).and_then(|us| us.parse::<f64>().ok()).expect("usage_usec") * 1000.0
    }

    /// How far a cgroup's share of the time of two is from the kernel's, in parts of that share. Shares, since the shell reads the
    /// kernel's counts a moment after the recording begins and before it ends.
    fn difference(engine: &str, is_by_name: bool) -> Result<f64, Skip> {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let names =
            [30, 60].map(|percent| (format!("whit-{percent}-{}", std::process::id()), percent));
        let mount = probe::cgroups_v2()?;
        let busy = names.iter().map(|(name, percent)| Limited::start_even(&mount, name, *percent));
        let busy: Vec<Limited> = busy.collect::<Result<_, _>>()?;
        let stats: Vec<_> =
            busy.iter().map(|busy| busy.cgroup.join("cpu.stat").display().to_string()).collect();
        let read = format!("cat {}", stats.join(" "));
        let mut recorder = whit();
        recorder.args(["record", "--engine=ring", "-q", "-e", "cpu-clock", "-F", "4999"]);
        // Periods that are drawn scatter the sum of so few samples by a percent.
        recorder.arg("--fixed-periods");
        let both = names.each_ref().map(|(name, _)| name.as_str()).join(",");
        match is_by_name {
            true => recorder.args(["--cgroup", &both]),
            false => recorder.arg("-a"),
        };
        recorder.arg(format!("--engine={engine}")).arg("-o").arg(&path);
        let stats = record(recorder.args(["--", "sh", "-c", &format!("{read}; sleep 2; {read}")]))?;
        let stats = String::from_utf8(stats).expect("text");
        let sampled = sampled(&path);
        if is_by_name {
            // A thread that ends is in no cgroup any more.
            let ours: f64 = names.iter().map(|(name, _)| sampled[&format!("/{name}")]).sum();
            let all: f64 = sampled.values().sum();
            assert!(ours >= 0.999 * all, "{engine}: {sampled:?}");
        }
        let counted = [0, 1].map(|nth| counted(&stats, nth + 2) - counted(&stats, nth));
        let sampled = names.map(|(name, _)| sampled[&format!("/{name}")]);
        let share = |[one, other]: [f64; 2]| one / (one + other);
        Ok((share(sampled) / share(counted) - 1.0).abs())
    }

    #[test]
    fn cgroups_get_the_time_that_the_kernel_counts() {
        check("cgroups_get_the_time_that_the_kernel_counts", || {
            for (engine, is_by_name) in ENGINES.into_iter().flat_map(|e| [(e, false), (e, true)]) {
                let what = format!("{engine}, by name: {is_by_name}");
                assert_median_at_most(&what, 0.02, || difference(engine, is_by_name))?;
            }
            Ok(())
        });
    }
}
