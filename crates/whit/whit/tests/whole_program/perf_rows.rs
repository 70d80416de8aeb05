//! Rows of branches, of accesses to memory and of tracepoints, columns and filters of `whit report`: the same rows,
//! counts, percentages and titles as the installed perf has of the same recording.

use std::path::{Path, PathBuf};
use std::process::Command;

use whit_perfdata::attr::{Attr, AttrFlags, SampleType as T, pmu_type};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::writer::FileWriter;

use crate::support::tools::{perf, record, repository, text, tracefs, whit, workload};
use crate::support::{Skip, check};

/// Where the golden program `calls` is mapped, and the functions in it.
pub(crate) const START: u64 = 0x5555_5555_4000;
const FUNCTIONS: [u64; 4] = [0x200, 0x240, 0x280, 0x2c0];
/// Process and thread of all samples.
pub(crate) const THREAD: u64 = 7200 << 32 | 7200;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The `index`-th place in the program's functions.
pub(crate) fn place(index: u64) -> u64 {
    START + FUNCTIONS[(index % 4) as usize] + index % 7 * 4
}

/// A recording of the golden program with these samples.
fn write(directory: &Path, sample_type: T, samples: impl Iterator<Item = Vec<u64>>) -> PathBuf {
    let record = |sample: Vec<u64>| (record_type::SAMPLE, misc::USER, sample);
    write_records(directory, sample_type, AttrFlags::default(), samples.map(record))
}

/// A recording of the golden program with these records: types, `misc` and bodies.
pub(crate) fn write_records(
    directory: &Path,
    sample_type: T,
    flags: AttrFlags,
    records: impl Iterator<Item = (u32, u16, Vec<u64>)>,
) -> PathBuf {
    let path = directory.join("perf.data");
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        sample_period_or_freq: 1000,
        sample_type,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::MMAP | AttrFlags::COMM | flags,
        branch_sample_type: 1 << 3,
        ..Attr::default()
    };
    let event = EventDesc { attr, ids: vec![1], name: "cpu-clock".to_owned() };
    let file = std::fs::File::create(&path).expect("create a recording");
    let mut writer = FileWriter::create(file, std::slice::from_ref(&event)).expect("write");
    let program = repository().join("tests/recordings/golden/root/opt/whit-golden/calls");
    let mut out = Vec::new();
    let mut comm = words(&[THREAD]);
    comm.extend(b"calls\0\0\0");
    comm.extend(words(&[THREAD, 1]));
    push_record(&mut out, record_type::COMM, misc::COMM_EXEC, &comm);
    let mut map = words(&[THREAD, START, 0x1000, 0]);
    map.extend(program.as_os_str().as_encoded_bytes());
    map.resize((map.len() + 1).next_multiple_of(8), 0);
    map.extend(words(&[THREAD, 2]));
    push_record(&mut out, record_type::MMAP, misc::USER, &map);
    for (kind, misc, body) in records {
        push_record(&mut out, kind, misc, &words(&body));
    }
    writer.append(&out).expect("write");
    let mut features = Features::default();
    features.set_event_desc(&[event]);
    features.set_string(Feature::ARCH, "x86_64");
    writer.finish(&features).expect("write");
    path
}

/// Samples with three branches each; flags of all kinds.
pub(crate) fn write_branches(directory: &Path) -> PathBuf {
    let sample = |at: u64| {
        let mut words = vec![place(at), THREAD, 100 + at, 3];
        for branch in 0..3 {
            let flags = ((at + branch) % 16) | ((at % 5) << 4);
            words.extend([place(at / 2 + branch), place(at / 3 + 2 * branch), flags]);
        }
        words
    };
    write(directory, T::IP | T::TID | T::TIME | T::BRANCH_STACK, (0..60).map(sample))
}

/// Accesses with all that a CPU may say of them.
fn write_accesses(directory: &Path) -> PathBuf {
    let sample = |at: u64| {
        // perf joins levels that differ in the newer bits alone, and names one of them.
        let level = at % 9;
        let source = 2 | (1 << (1 + level)) << 5 | level << 19 | (at % 3) << 24 | (at % 7) << 26;
        let further = level << 33
            | (level % 2) << 37
            | (level % 4) << 38
            | (at % 8) << 40
            | (level % 5) << 43;
        let address = if at.is_multiple_of(3) { 0x1000 + at % 5 } else { place(at) };
        let weight = ((at % 6) * 10) | ((at % 4) << 32);
        let transaction =
            [0, 1 << 1 | 1 << 2, 1 << 32 | 1 << 5, 1 << 0 | 1 << 3][(at % 4) as usize];
        let pages = [at % 2 * 4096, at % 3 * (2 << 20)];
        let fixed =
            [place(at / 4), THREAD, 100 + at, address, weight, source | further, transaction];
        [&fixed[..], &[(at % 4) << 12], &pages].concat()
    };
    let fields =
        T::IP | T::TID | T::TIME | T::ADDR | T::WEIGHT_STRUCT | T::DATA_SRC | T::TRANSACTION;
    let fields = fields | T::PHYS_ADDR | T::DATA_PAGE_SIZE | T::CODE_PAGE_SIZE;
    write(directory, fields, (0..120).map(sample))
}

/// The table of a report: its titles, then its rows without blanks at the end, in an order of their own. perf adds a
/// column of instructions per cycle where a key's name has the word `symbol`.
fn table(report: &str) -> Vec<String> {
    let lines: Vec<&str> = report.lines().collect();
    let heading = lines.iter().rposition(|line| line.starts_with("# ..")).expect("a table") - 1;
    let end = lines[heading].find("  IPC   [").unwrap_or(usize::MAX);
    let cut = |line: &str| line.chars().take(end).collect::<String>().trim_end().to_owned();
    let counts = lines.iter().filter(|l| {
        l.starts_with("# Samples: ") || l.starts_with("# Event count") || l.starts_with("# Total w")
    });
    let mut rows: Vec<String> =
        lines.iter().filter(|line| line.starts_with(' ')).map(|line| cut(line)).collect();
    assert!(!rows.is_empty(), "no rows: {report}");
    // perf has addresses where whit names a function by its unwind information. `-w` cuts whit's addresses alone.
    rows.retain(|row| !row.contains("] 0x0") && !row.contains("] fun_"));
    rows.sort_unstable();
    let mut table: Vec<String> =
        counts.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    table.push(cut(lines[heading]));
    table.push(cut(lines[heading + 1]));
    table.extend(rows);
    table
}

fn report(tool: &mut Command, path: &Path, arguments: &[&str]) -> String {
    text(tool.args(["report", "--stdio", "-i"]).arg(path).args(arguments))
}

#[track_caller]
fn assert_same(path: &Path, arguments: &[&str]) -> Result<(), Skip> {
    let theirs = table(&report(&mut perf()?, path, arguments));
    let ours = table(&report(&mut whit(), path, arguments));
    assert_equal(&ours, &theirs, arguments);
    Ok(())
}

/// Lines in one order, without the names of PLT entries: perf 6.1 has none for those of the loader.
fn without_plt_names(table: &[String]) -> Vec<String> {
    let line = |line: &String| {
        let Some((before, after)) = line.split_once("@plt") else { return line.clone() };
        let name = before.rfind(' ').map_or(0, |at| at + 1);
        let words = format!("{} @plt {after}", &before[..name]);
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<_> = table.iter().map(line).collect();
    lines.sort_unstable();
    lines
}

/// Says which lines only one of the two has.
#[track_caller]
fn assert_equal(ours: &[String], theirs: &[String], arguments: &[&str]) {
    let has_objects = ours.iter().any(|line| line.contains("Shared Object"));
    let compared = |table: &[String]| if has_objects { narrow(table) } else { table.to_vec() };
    let (ours, theirs) = (compared(ours), compared(theirs));
    let (ours, theirs) = (&without_plt_names(&ours)[..], &without_plt_names(&theirs)[..]);
    let only = |these: &[String], others: &[String]| {
        let lines: Vec<_> = these.iter().filter(|line| !others.contains(line)).cloned().collect();
        lines.join("\n")
    };
    let difference = || format!("whit:\n{}\nperf:\n{}", only(ours, theirs), only(theirs, ours));
    assert!(ours == theirs, "{arguments:?}: {}", difference());
}

pub(crate) fn in_directory(name: &str, test: impl FnOnce(&Path) -> Result<(), Skip>) {
    check(name, || test(tempfile::tempdir().expect("make a directory").path()));
}

#[test]
fn branches_have_perfs_rows() {
    in_directory("branches_have_perfs_rows", |directory| {
        let path = write_branches(directory);
        assert_same(&path, &["-b"])?;
        // Where `--sort` has the word `symbol`, perf disassembles, and may crash.
        for columns in
            ["overhead,symbol_from,symbol_to", "symbol_to,sample", "period,symbol_from,cycles"]
        {
            assert_same(&path, &["-b", "-F", columns])?;
        }
        // perf does not order predictions and transactions, and has several rows of one.
        for keys in ["dso_from,dso_to", "cycles,comm", "comm,local_weight,weight", "dso"] {
            assert_same(&path, &["-b", "-s", keys])?;
        }
        assert_same(&path, &["-b", "-s", "cycles,dso_to", "-n", "--show-total-period"])
    });
}

#[test]
fn accesses_to_memory_have_perfs_rows() {
    in_directory("accesses_to_memory_have_perfs_rows", |directory| {
        let path = write_accesses(directory);
        for keys in [
            "local_weight,mem",
            "mem,snoop",
            "tlb,locked,blocked",
            "dso_daddr,mem",
            "phys_daddr",
            "data_page_size,code_page_size",
            "local_ins_lat,ins_lat,weight",
            "transaction",
            "sym,dso",
        ] {
            assert_same(&path, &["--mem-mode", "-s", keys])?;
        }
        assert_same(&path, &["--mem-mode"])?;
        assert_same(&path, &["-s", "transaction,local_weight"])
    });
}

#[test]
fn texts_of_tracepoints_make_perfs_rows() {
    in_directory("texts_of_tracepoints_make_perfs_rows", |directory| {
        tracefs()?;
        let path = directory.join("perf.data");
        let mut recorder = perf()?;
        let events = ["-e", "sched:sched_process_exit", "-e", "sched:sched_process_fork"];
        recorder.args(["record", "--no-buildid-cache", "-q"]).args(events);
        record(
            recorder.arg("-o").arg(&path).arg("--").arg(workload("forks")?).args(["--count", "20"]),
        )?;
        assert_same(&path, &["-s", "trace"])?;
        assert_same(&path, &["-s", "comm,trace", "--raw-trace"])
    });
}

/// Samples of one function per path, so that perf and whit name all of them alike.
pub(crate) fn record_program(directory: &Path) -> Result<PathBuf, Skip> {
    let path = directory.join("perf.data");
    let mut recorder = perf()?;
    recorder.args(["record", "--no-buildid-cache", "-q", "-F", "1999", "-e", "cpu-clock:u", "-g"]);
    let program = workload("deep-fp")?;
    record(recorder.arg("-o").arg(&path).arg("--").arg(program).args(["--iterations", "30000"]))?;
    Ok(path)
}

#[test]
fn columns_and_their_order_are_perfs() {
    in_directory("columns_and_their_order_are_perfs", |directory| {
        let path = record_program(directory)?;
        for options in [
            &["-s", "sym,sample"][..],
            &["-s", "comm,overhead,dso"],
            &["-s", "+cpu"],
            &["-F", "sample,comm,overhead"],
            &["-F", "comm,overhead,period", "-s", "dso"],
            &["-F", "+period"],
            &["-F", "overhead_us,overhead_sys,overhead,comm"],
            &["--show-cpu-utilization", "-s", "dso"],
            &["--showcpuutilization", "-s", "dso"],
            &["-s", "dso_size,comm"],
            &["-w", "12,4,6,9"],
            &["--symbol-filter=a"],
        ] {
            let own = ["--no-children", "-g", "none"];
            let all = [&own[..], &["--self-time", "outer"], options].concat();
            let theirs = [&own[..], options].concat();
            let ours = table(&report(&mut whit(), &path, &all));
            let theirs = table(&report(&mut perf()?, &path, &theirs));
            assert_equal(&ours, &theirs, options);
        }
        Ok(())
    });
}

/// Columns without their widths. perf widens the column of objects where the first sample of a row has no symbol. Rows
/// of whit have no first sample, and whit names functions by their unwind information.
pub(crate) fn narrow(table: &[impl AsRef<str>]) -> Vec<String> {
    let word = |word: &str| match word.trim_matches('.') {
        "" => ".".to_owned(),
        _ => word.to_owned(),
    };
    let words = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    table.iter().map(|line| words(line.as_ref())).collect()
}

#[test]
fn callers_by_pattern_are_perfs() {
    in_directory("callers_by_pattern_are_perfs", |directory| {
        let path = record_program(directory)?;
        for options in [
            &["-p", "^main$"][..],
            &["-p", "a", "-s", "parent"],
            &["-p", "descend", "-x", "-s", "sym"],
        ] {
            let chosen = ["--no-children", "-g", "none", "--no-inline", "-d", "deep-fp"];
            let all = [&chosen[..], options].concat();
            let ours = table(&report(&mut whit(), &path, &all));
            assert_equal(&ours, &table(&report(&mut perf()?, &path, &all)), options);
        }
        Ok(())
    });
}
