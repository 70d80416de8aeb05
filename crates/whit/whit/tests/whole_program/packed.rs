//! Switches that are packed: as many as were recorded, in every form, here and for perf.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::stats::Stats;
use crate::support::tools::{perf, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::wait::wait_until;

/// Ways from the rings to the disk that treat records differently.
const MODES: [&str; 6] = [
    "",
    "-z",
    "-z9 --aio",
    "--dir --mmap-flush=16K",
    "--threads",
    "--threads --aio=2 -z --affinity=cpu",
];

struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().expect("make a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The recorder of a ping-pong; its tables are made once.
    fn recorder(&self, options: &str, iterations: &str) -> Result<Command, Skip> {
        probe::bpf_stacks()?;
        let mut recorder = whit();
        recorder.args("record -v --engine=bpf --switch-events -e cpu-clock -F 999".split(' '));
        let ring = if options.contains("-m ") { "" } else { "-m 8M" };
        recorder.args(ring.split_whitespace());
        recorder.args(options.split_whitespace()).arg("--").arg(workload("pingpong")?);
        recorder.args(["--threads", "4", "--iterations", iterations]);
        Ok(recorder)
    }

    /// Records; gives whit's messages.
    fn record(&self, name: &str, options: &str) -> Result<String, Skip> {
        let path = self.path(name);
        let options = format!("{options} -o {}", path.to_str().expect("UTF-8"));
        Ok(said(&self.recorder(&options, "4000")?.output().expect("run whit")))
    }
}

/// The messages of a recorder that has succeeded.
fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {said}", output.status);
    said
}

fn number_before(text: &str, word: &str) -> u64 {
    let (before, _) = text.split_once(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    let number = before.split_whitespace().last().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number before {word} in {text}"))
}

fn export(from: &Path, to: &Path) -> Output {
    let mut export = whit();
    export.args(["export", "--perf", "-i"]).arg(from).arg("-o").arg(to);
    export.output().expect("run whit")
}

fn exported(from: &Path, to: &Path) {
    let output = export(from, to);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn stats(mut tool: Command, path: &Path) -> Stats {
    Stats::parse(&text(tool.args(["report", "--stats", "-i"]).arg(path)))
}

/// All samples, sorted: directories are read stream by stream.
fn lines(mut tool: Command, fields: &str, path: &Path) -> Vec<String> {
    let text = text(tool.args(["script", "-F", fields, "-i"]).arg(path));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    // With its call chain a sample is several lines.
    let between = if fields.contains("ip") { "\n\n" } else { "\n" };
    let mut lines: Vec<String> = text.split(between).map(words).collect();
    lines.sort();
    lines
}

fn assert_same(mode: &str, some: &[String], others: &[String]) {
    let different = some.iter().zip(others).find(|(one, other)| one != other);
    assert!(different.is_none(), "{mode}: {different:?}");
    assert_eq!(some.len(), others.len(), "{mode}");
}

fn totals(path: &Path) -> Value {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(path));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    json["total"].clone()
}

/// Without what only says how records are kept.
fn of_content(mut stats: Stats) -> Stats {
    ["TOTAL", "COMPRESSED"].iter().for_each(|kind| {
        stats.by_type.remove(*kind);
    });
    stats
}

#[test]
fn packed_switches_come_back_in_every_mode() {
    check("packed_modes", || {
        let place = TestFolder::new();
        for (number, mode) in MODES.iter().enumerate() {
            let name = format!("data{number}");
            let said = place.record(&name, mode)?;
            assert!(said.contains("; lost 0 "), "{mode}: {said}");
            let switches = number_before(&said, " switches of ");
            // A thread on another CPU may find the token before it waits: that is no switch.
            assert!(switches > 4_000, "{mode}: {said}");
            let (data, out) = (place.path(&name), place.path(&format!("exported{number}")));
            let ours = stats(whit(), &data);
            assert_eq!(ours.samples(), number_before(&said, " samples, "), "{mode}");
            assert_eq!(ours.samples_by_event["context-switches"], switches, "{mode}");
            // perf reads the other samples, those by the clock, as they are.
            let packed = stats(perf()?, &data).samples_by_event;
            assert_eq!(packed["cpu-clock"], ours.samples_by_event["cpu-clock"], "{mode}");
            assert!(packed["whit-switches"] < switches / 5, "{mode}: {packed:?}");
            // And all of it, written for it.
            exported(&data, &out);
            let ours = of_content(ours);
            assert_eq!(of_content(stats(perf()?, &out)), ours, "{mode}");
            assert_eq!(of_content(stats(whit(), &out)), ours, "{mode}");
            // In directories, perf reads a thread's first samples before its name.
            let heads = "tid,time,event";
            assert_same(mode, &lines(perf()?, heads, &out), &lines(whit(), heads, &out));
            let chains = "comm,tid,time,event,ip";
            assert_same(mode, &lines(whit(), chains, &data), &lines(whit(), chains, &out));
            assert_eq!(totals(&data), totals(&out), "{mode}");
        }
        Ok(())
    });
}

#[test]
fn a_packed_switch_takes_a_fraction_of_an_unpacked_one() {
    check("packed_bytes", || {
        let place = TestFolder::new();
        let bytes_per_switch = |options: &str| -> Result<u64, Skip> {
            let said = place.record("data", options)?;
            let bytes = place.path("data").metadata().expect("a file").len();
            Ok(bytes / number_before(&said, " switches of "))
        };
        // With the samples by the clock, and the header.
        let packed = bytes_per_switch("")?;
        assert!(packed < 64, "{packed} bytes");
        let ordinary = bytes_per_switch("--no-pack")?;
        assert!(ordinary > 3 * packed, "{ordinary} and {packed} bytes");
        assert_eq!(stats(perf()?, &place.path("data")), stats(whit(), &place.path("data")));
        Ok(())
    });
}

#[test]
fn every_file_of_several_defines_its_stacks() {
    check("packed_files", || {
        let place = TestFolder::new();
        for mode in ["", "--threads -z"] {
            let folder = tempfile::tempdir_in(place.0.path()).expect("make a directory");
            let size = if mode.is_empty() { "300K" } else { "40K" };
            let data = folder.path().join("data");
            let options = format!("{mode} -m 256K --switch-output={size} -o {}", data.display());
            let output = place.recorder(&options, "10000")?.output().expect("run whit");
            let said = said(&output);
            let files: Vec<_> = std::fs::read_dir(folder.path()).expect("files").collect();
            // A file ends where the reader looks: beside others it may have a whole ring to take at once.
            assert!(files.len() > 1, "{mode}: {} files: {said}", files.len());
            let (mut switches, mut without) = (0, 0);
            for file in files {
                let file = file.expect("a file").path();
                let printed = text(whit().args(["script", "-F", "event,ip", "-i"]).arg(file));
                let samples = printed.split("\n\n").filter(|it| it.contains("context-switches:"));
                for sample in samples {
                    switches += 1;
                    without += u64::from(sample.trim().lines().count() < 4);
                }
            }
            assert!(switches > 20_000, "{mode}: {switches}: {said}");
            // Processes that were not known yet, and ends of processes.
            assert!(without * 100 < switches, "{mode}: {without} of {switches} have no stacks");
        }
        Ok(())
    });
}

#[test]
fn a_killed_recorders_file_can_be_read_and_exported() {
    check("packed_killed", || {
        let place = TestFolder::new();
        place.record("tables", "")?;
        let data = place.path("data");
        let mut recorder = place.recorder(&format!("-o {}", data.display()), "100000000")?;
        let mut recorder = recorder
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("run whit");
        wait_until("data is written", || data.metadata().map_or(0, |data| data.len()) >= 1 << 20);
        recorder.kill().expect("kill whit");
        recorder.wait().expect("it ends");
        // The load goes on.
        let group = format!("-{}", recorder.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(totals(&data)["sync_count"].as_u64().expect("a count") > 10_000);
        let out = place.path("exported");
        let output = export(&data, &out);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("did not end properly"), "{said}");
        assert_eq!(of_content(stats(perf()?, &out)), of_content(stats(whit(), &data)));
        Ok(())
    });
}

#[test]
fn packed_switches_go_through_pipes() {
    check("packed_pipe", || {
        let place = TestFolder::new();
        place.record("tables", "")?;
        for mode in ["", "-z"] {
            let piped = place.path("piped");
            let file = std::fs::File::create(&piped).expect("make a file");
            let mut recorder = place.recorder(&format!("{mode} -o -"), "4000")?;
            let output = recorder.stdout(file).output().expect("run whit");
            let switches = number_before(&said(&output), " switches of ");
            let ours = stats(whit(), &piped);
            assert_eq!(ours.samples_by_event["context-switches"], switches, "{mode}");
            let out = place.path(&format!("exported{mode}"));
            exported(&piped, &out);
            let theirs = stats(perf()?, &out).samples_by_event;
            assert_eq!(theirs, ours.samples_by_event, "{mode}");
        }
        Ok(())
    });
}

#[test]
fn failed_exports_are_reported_and_nothing_is_lost() {
    let place = TestFolder::new();
    let said = |output: Output| {
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (data, out) = (place.path("data"), place.path("out"));
    std::fs::write(&data, "PERFILE3, and so on").expect("write");
    std::fs::write(&out, "precious").expect("write");
    assert!(said(export(&data, &place.path("new"))).contains("is not a perf.data recording"));
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/recordings");
    let recording = recordings.join("demo/demo.data");
    let aux = recordings.join("golden/auxtrace/recording.data");
    assert!(said(export(&aux, &place.path("new"))).contains("AUX area data"));
    assert!(!place.path("new").exists());
    assert!(said(export(&recording, &out)).contains("out exists: choose another name"));
    let mut forced = whit();
    let copy = place.path("copy");
    std::fs::copy(&recording, &copy).expect("copy");
    forced.args(["export", "--perf", "-f", "-i"]).arg(&copy).arg("-o").arg(&copy);
    assert!(said(forced.output().expect("run whit")).contains("is the recording itself"));
    let nowhere = place.path("no/such/folder");
    assert!(said(export(&recording, &nowhere)).contains("make the folder first"));
    assert!(said(export(&recording, Path::new("-"))).contains("name a file"));
    assert_eq!(std::fs::read_to_string(&out).expect("read"), "precious");
    // A directory of somebody's is not a recording that can be replaced.
    let mut directory = whit();
    std::fs::create_dir(place.path("home")).expect("make a directory");
    std::fs::write(place.path("home/letter"), "dear").expect("write");
    directory.args(["export", "--perf", "-f", "-i"]).arg(&recording).arg("-o");
    assert!(!directory.arg(place.path("home")).status().expect("run whit").success());
    assert!(place.path("home/letter").exists());
}
