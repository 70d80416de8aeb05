//! `whit script` with the fields that few events have, compared with the installed perf.

use std::path::Path;
use std::process::Command;

use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::writer::FileWriter;

use crate::support::tools::{perf, record, text, whit, workload};
use crate::support::{Skip, check};

fn script(tool: &mut Command, path: &Path, arguments: &[&str]) -> String {
    text(tool.arg("script").args(arguments).arg("-i").arg(path))
}

/// Ends of branch lines since perf 6.2.
const SPECULATION: [&str; 4] =
    ["/- ", "/SPEC_WRONG_PATH ", "/NON_SPEC_CORRECT_PATH ", "/SPEC_CORRECT_PATH "];

/// A line without the names of PLT entries and the offsets in them.
fn without_plt(line: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+');
    let mut pieces = line.split("@plt");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.truncate(out.trim_end_matches(is_name).len());
        out.push_str("[unknown]");
        out.push_str(piece.trim_start_matches(is_name));
    }
    out
}

/// A line without the name of a function of the vdso: perf has its symbols from a cache that the tests leave alone.
fn without_vdso_names(line: &str) -> String {
    let named = line.split_once(" ([vdso])").and_then(|(before, after)| {
        let (address, _) = before.rsplit_once(' ')?;
        Some(format!("{address} [unknown] ([vdso]){after}"))
    });
    named.unwrap_or_else(|| line.to_owned())
}

/// perf 6.1 names every entry of a PLT `@plt`, and those of a second PLT (`.plt.got`) not at all.
fn assert_same(path: &Path, arguments: &[&str]) -> Result<(), Skip> {
    let (mut ours, theirs) =
        (script(&mut whit(), path, arguments), script(&mut perf()?, path, arguments));
    if SPECULATION.iter().all(|text| !theirs.contains(text)) {
        SPECULATION.iter().for_each(|text| ours = ours.replace(text, " "));
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{arguments:?}");
    assert!(theirs.lines().count() > 10, "perf prints next to nothing: {theirs}");
    for (our, their) in ours.lines().zip(theirs.lines()) {
        assert!(
            our == their
                || their.contains(" @plt")
                || without_plt(our) == their
                || without_vdso_names(our) == their,
            "{arguments:?}\nperf: {their}\nwhit: {our}"
        );
    }
    Ok(())
}

#[test]
fn only_the_name_of_a_function_of_the_vdso_is_left_out() {
    let named = "ls 1 0 [unknown] ([vvar]) 7fa8d70a0b26 __vdso_clock_gettime+0x36 ([vdso]) ABI:2";
    let nameless = "ls 1 0 [unknown] ([vvar]) 7fa8d70a0b26 [unknown] ([vdso]) ABI:2";
    assert_eq!(without_vdso_names(named), nameless);
    assert_eq!(without_vdso_names("ls main+0x1 (ls)"), "ls main+0x1 (ls)");
}

#[test]
fn addresses_of_page_faults_and_registers() {
    check("addresses_of_page_faults_and_registers", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-e", "page-faults", "-c", "1"]);
        recorder.args(["-d", "--phys-data", "--intr-regs=AX,IP,SP", "--user-regs=SP,IP,R8"]);
        record(recorder.arg("-o").arg(&path).args(["--", "ls", "-l", "/"]))?;
        assert_same(&path, &["-F", "+addr,+phys_addr,+iregs,+uregs"])?;
        assert_same(&path, &["-F", "addr,ip,sym,dso"])?;
        assert_same(&path, &["-F", "time,iregs"])
    });
}

#[test]
fn places_of_samples_without_chains() {
    check("places_of_samples_without_chains", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let program = workload("deep")?;
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-F", "1999", "-e", "cpu-clock"]);
        record(
            recorder.arg("-o").arg(&path).arg("--").arg(program).args(["--iterations", "20000"]),
        )?;
        assert_same(&path, &[])
    });
}

/// Branch flags: bits for mispredicted, predicted, in a transaction, aborted; cycles from bit 4,
/// kind from bit 20, speculation from bit 24, further kinds from bit 26.
fn branch_flags() -> Vec<u64> {
    let kinds = (0..15).map(|kind| kind << 20);
    let outcomes = (0..16).map(|bits| bits | 7 << 4 | 4 << 20);
    let speculation = (0..4).map(|spec| 2 | spec << 24 | 1234 << 4);
    let further = (0..8).map(|kind| 15 << 20 | kind << 26);
    kinds.chain(outcomes).chain(speculation).chain(further).collect()
}

/// Samples with branch stacks, which no virtual machine records.
fn write_branches(path: &Path, program: &Path) {
    use SampleType as T;
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        sample_period_or_freq: 1000,
        sample_type: T::IP | T::TID | T::TIME | T::BRANCH_STACK,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::MMAP | AttrFlags::COMM,
        branch_sample_type: 1 << 3,
        ..Attr::default()
    };
    let event = EventDesc { attr, ids: vec![1], name: "cpu-clock".to_owned() };
    let file = std::fs::File::create(path).expect("create a recording");
    let mut writer = FileWriter::create(file, std::slice::from_ref(&event)).expect("write");
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let thread = 7 << 32 | 7;
    let mut map = words(&[thread, 0x40_0000, 0x10_0000, 0]);
    map.extend(program.as_os_str().as_encoded_bytes());
    map.resize((map.len() + 1).next_multiple_of(8), 0);
    map.extend(words(&[thread, 1]));
    let mut out = Vec::new();
    push_record(&mut out, record_type::MMAP, misc::USER, &map);
    for (at, flags) in (0u64..).zip(branch_flags()) {
        let (from, to) = (0x40_1000 + at * 0x40, 0x40_1800 - at * 0x20);
        let entries = [[from, to, flags], [to, 0x1000, flags], [0x40_1010, from, 0]];
        let head = [0x40_1100, thread, 100 + at, entries.len() as u64];
        let body = words(&[&head[..], &entries.concat()].concat());
        push_record(&mut out, record_type::SAMPLE, misc::USER, &body);
    }
    writer.append(&out).expect("write");
    let mut features = Features::default();
    features.set_event_desc(&[event]);
    features.set_string(Feature::ARCH, "x86_64");
    writer.finish(&features).expect("write");
}

#[test]
fn branch_stacks() {
    check("branch_stacks", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        write_branches(&path, &workload("deep")?);
        for fields in
            ["time,brstack", "time,brstacksym", "ip,sym,dso,brstack", "time,dso,ip,brstacksym"]
        {
            assert_same(&path, &["-F", fields])?;
        }
        Ok(())
    });
}
