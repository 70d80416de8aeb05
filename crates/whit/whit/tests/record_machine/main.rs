//! `whit record` while the whole machine changes: a CPU goes offline, the `perf_event` controller moves to a hierarchy of
//! version 1. Events of a CPU that went offline never count again, so that recordings by other tests would miss that CPU:
//! this runs alone, in a program of its own, where `WHIT_TEST_MACHINE` is set.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use whit_testing::parse::stats::Stats;
use whit_testing::run::{needs_of, stderr, stdout, text};
use whit_testing::{Skip, check, probe};

const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";

fn whit() -> Command {
    whit_testing::run::whit(env!("CARGO_BIN_EXE_whit"))
}

#[test]
fn a_cpu_that_is_set_offline_ends_nothing() {
    check("a_cpu_that_is_set_offline_ends_nothing", || {
        let _changing = probe::may_change_the_machine()?;
        probe::whole_cpus()?;
        switch("0")?;
        switch("1")?;
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in ["", "--threads --affinity=cpu --aio"] {
            let path = directory.path().join("offline.data");
            let mut whit_record = whit();
            whit_record.args(["record", "--engine=ring", "-e", "cpu-clock", "-F", "999"]);
            whit_record.args(mode.split_ascii_whitespace()).arg("-o").arg(&path);
            whit_record.args(["-a", "--", "sh", "-c", &format!("echo 0 > {SWITCH} && sleep 1")]);
            let output = whit_record.output().expect("run whit");
            switch("1")?;
            let said = stderr(&output);
            assert!(output.status.success(), "{mode}: {said}");
            let stats = text(whit().args(["report", "--stats", "-i"]).arg(&path));
            assert!(Stats::parse(&stats).samples() > 0, "{mode}");
            assert!(said.contains("CPU 1 went offline"), "{mode}: {said}");
        }
        Ok(())
    });
}

/// Switches CPU 1 in each of the ways that it is given. Then a new shell prints its process id, and waits on CPU 1 as
/// often as on CPU 0.
const TO_AND_FRO: &str = "for way; do echo $way > /sys/devices/system/cpu/cpu1/online || exit; done
sh -c 'echo $$; for i in 1 2 3 4 5 6 7 8 9; do
    taskset -p -c 1 $$ >&2; sleep 0.01; taskset -p -c 0 $$ >&2
done'";

/// How many of a thread's waits are taken for whole, and how many are not.
fn waits(data: &Path, tid: u32) -> (usize, usize) {
    let arguments = ["switches", "--json", "--worst", "100000", "--kallsyms", "/dev/null"];
    let json = text(whit().args(arguments).args(["--tid", &tid.to_string(), "-i"]).arg(data));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let waits = json["worst"].as_array().expect("waits");
    let ended = waits.iter().filter(|wait| wait["open"] == false);
    let (lossy, whole): (Vec<_>, Vec<_>) = ended.partition(|wait| wait["lossy"] == true);
    (whole.len(), lossy.len())
}

fn ledger(data: &Path) -> (Value, Value) {
    let json = text(whit().args(["report", "--json", "--kallsyms", "/dev/null", "-i"]).arg(data));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    (json["ledger"]["lost_cpus"].clone(), json["ledger"]["late_cpus"].clone())
}

/// Switches CPU 1 `before` the recording, and in each of the ways `meanwhile`; then a thread runs on it. Gives
/// whit's messages, and that thread's whole and other waits.
fn record_around(
    engine: &str,
    data: &Path,
    before: &str,
    meanwhile: &[&str],
) -> Result<(String, (usize, usize)), Skip> {
    let mut whit_record = whit();
    whit_record.args([
        "record",
        "--engine=ring",
        "-a",
        "--switch-events",
        "-e",
        "cpu-clock",
        "-F",
        "99",
    ]);
    whit_record.arg(format!("--engine={engine}")).arg("-o").arg(data);
    needs_of(&whit_record)?;
    whit_record.args(["--", "sh", "-c", TO_AND_FRO, "sh"]).args(meanwhile);
    switch(before)?;
    let output = whit_record.output().expect("run whit");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let tid = stdout(&output).trim().parse().expect("the shell's process");
    Ok((said, waits(data, tid)))
}

fn switch(way: &str) -> Result<(), Skip> {
    let switched = fs::write(SWITCH, way);
    switched.map_err(|error| Skip(format!("CPU 1 cannot be switched to {way}: {error}")))
}

#[test]
fn no_wait_is_trusted_where_a_cpu_is_not_recorded_any_more() {
    for engine in ["ring", "bpf"] {
        check(&format!("no_wait_is_trusted_behind_a_hotplug_{engine}"), || {
            let _changing = probe::may_change_the_machine()?;
            probe::whole_cpus()?;
            let directory = tempfile::tempdir().expect("make a directory");
            let data = directory.path().join("perf.data");
            let (said, waits) = record_around(engine, &data, "1", &[])?;
            assert!(waits.0 > 0, "without a loss waits are whole: {waits:?}");
            assert!(!said.contains("CPU 1 "), "{said}");
            assert_eq!(ledger(&data), (0.into(), 0.into()));

            let (said, waits) = record_around(engine, &data, "1", &["0", "1"])?;
            assert!(waits.0 == 0 && waits.1 > 0, "{waits:?} behind the CPU's end: {said}");
            assert_eq!(said.matches("CPU 1 went offline").count(), 1, "{said}");
            assert_eq!(ledger(&data), (1.into(), 0.into()));

            let came = record_around(engine, &data, "0", &["1"]);
            switch("1")?;
            let (said, waits) = came?;
            assert!(waits.0 == 0 && waits.1 > 0, "{waits:?} on a CPU that came late: {said}");
            assert_eq!(said.matches("CPU 1 came online").count(), 1, "{said}");
            assert_eq!(ledger(&data), (0.into(), 1.into()));
            Ok(())
        });
    }
}

mod measured {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use whit_testing::cgroups::{Limited, OldHierarchy, perf_event_controller};
    use whit_testing::measure::assert_median_at_most;

    /// Counts CPU time of cgroups of version 1.
    const CPUACCT: &str = "/sys/fs/cgroup/cpuacct";

    /// Sampled CPU time by cgroup, in nanoseconds.
    fn sampled(data: &Path) -> BTreeMap<String, f64> {
        let json = text(whit().args(["report", "--json", "-s", "cgroup", "-i"]).arg(data));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let rows = json["events"][0]["rows"].as_array().expect("rows");
        let row = |row: &Value| {
            let name = row["cgroup"].as_str().unwrap_or("N/A").to_owned();
            (name, row["self"]["period"].as_f64().expect("a period"))
        };
        rows.iter().map(row).collect()
    }

    /// The difference of a cgroup's share of the time of two from the share that the kernel counts, in parts of the
    /// latter. Shares, since the shell reads the kernel's counts a moment after the recording begins and before it ends.
    fn difference(engine: &str, is_by_name: bool) -> Result<f64, Skip> {
        let old = OldHierarchy::of_perf_event()?;
        assert_ne!(perf_event_controller().0, 0, "this is about version 1");
        let directory = tempfile::tempdir().expect("make a directory");
        let data = directory.path().join("perf.data");
        let names =
            [30, 60].map(|percent| (format!("whit-{percent}-{}", std::process::id()), percent));
        let mut busy = Vec::new();
        for (name, percent) in &names {
            busy.push(Limited::start_even(&old.mount, name, *percent)?);
        }
        let counts: Vec<PathBuf> =
            busy.iter_mut().map(|one| one.join(Path::new(CPUACCT)).join("cpuacct.usage")).collect();
        let counts: Vec<_> = counts.iter().map(|path| path.display().to_string()).collect();
        let read = format!("cat {}", counts.join(" "));
        let mut recorder = whit();
        recorder.args(["record", "--engine=ring", "-q", "-e", "cpu-clock", "-F", "4999"]);
        // Periods that are drawn scatter the sum of so few samples by a percent.
        recorder.arg("--fixed-periods");
        let both = names.each_ref().map(|(name, _)| name.as_str()).join(",");
        match is_by_name {
            true => recorder.args(["--cgroup", &both]),
            false => recorder.arg("-a"),
        };
        recorder.arg(format!("--engine={engine}")).arg("-o").arg(&data);
        recorder.args(["--", "sh", "-c", &format!("{read}; sleep 2; {read}")]);
        let printed = stdout(&whit_testing::run::record(&mut recorder)?);
        let counted: Vec<f64> =
            printed.lines().map(|line| line.parse().expect("nanoseconds")).collect();
        let counted = [counted[2] - counted[0], counted[3] - counted[1]];
        let sampled = sampled(&data);
        let sampled = names.map(|(name, _)| sampled[&format!("/{name}")]);
        let share = |[one, other]: [f64; 2]| one / (one + other);
        Ok((share(sampled) / share(counted) - 1.0).abs())
    }

    #[test]
    fn cgroups_of_version_1_get_the_time_that_the_kernel_counts() {
        check("cgroups_of_version_1_get_the_time_that_the_kernel_counts", || {
            let _changing = probe::may_change_the_machine()?;
            probe::whole_cpus()?;
            probe::bpf_stacks()?;
            if !Path::new(CPUACCT).join("cpuacct.usage").exists() {
                return Err(Skip(format!("no controller cpuacct is mounted at {CPUACCT}")));
            }
            for (engine, by_name) in [("ring", false), ("bpf", true)] {
                let name = format!("{engine}, by name: {by_name}");
                assert_median_at_most(&name, 0.02, || difference(engine, by_name))?;
            }
            Ok(())
        });
    }
}

/// Programs of BPF in a copy of the kernel's list of symbols: address and name.
fn programs_in(list: &Path) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(list).expect("read the list");
    let program = |line: &str| {
        let (symbol, module) = line.split_once('\t')?;
        let mut words = symbol.split(' ');
        let (address, name) = (words.next()?, words.nth(1)?);
        // Trampolines are no programs, and have records of their own.
        let is_program = module == "[bpf]" && name.starts_with("bpf_prog_");
        is_program.then(|| (address.to_owned(), name.to_owned()))
    };
    text.lines().filter_map(program).collect()
}

/// Names by the kernel's list at the time of the report would be those of other programs. Alone: recorders of other tests
/// load and unload the same programs at the same addresses.
#[test]
fn programs_that_were_loaded_before_have_records_with_the_kernel_s_names() {
    check("programs_that_were_loaded_before_have_records_with_the_kernel_s_names", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let place = tempfile::tempdir().expect("make a directory");
        let path = |name: &str| place.path().join(name);
        let whit_path = whit().get_program().to_string_lossy().into_owned();
        // The outer recorder has programs loaded all the time.
        let script = format!(
            "cat /proc/kallsyms > before; '{whit_path}' record -q --engine=ring -a -F 9 -o inner.data -- true; \
             cat /proc/kallsyms > after"
        );
        let mut outer = whit();
        outer.args(["record", "-q", "--engine=bpf", "-o", "outer.data", "--", "sh", "-c", &script]);
        text(outer.current_dir(place.path()));
        let (before, after) = (programs_in(&path("before")), programs_in(&path("after")));
        let there: BTreeSet<_> = before.intersection(&after).collect();
        assert!(there.len() >= 3, "{before:?}");
        let mut script = whit();
        script.args(["script", "--show-bpf-events", "-F", "event", "-i"]).arg(path("inner.data"));
        let records = text(&mut script);
        for (address, name) in there {
            let is_it = |line: &&str| line.contains(address) && line.ends_with(name);
            assert!(
                records.lines().any(|line| is_it(&line)),
                "{address} {name} is not in\n{records}"
            );
        }
        Ok(())
    });
}
