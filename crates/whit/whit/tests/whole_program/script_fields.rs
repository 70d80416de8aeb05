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
    assert!(theirs.lines().count() > 10, "perf prints next to nothing: {theirs}");
    assert_same_samples(&ours, &theirs, arguments);
    Ok(())
}

/// The same lines, but for the names that perf has not.
pub(crate) fn assert_same_samples(ours: &str, theirs: &str, arguments: &[&str]) {
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{arguments:?}");
    for (our, their) in ours.lines().zip(theirs.lines()) {
        assert!(
            our == their
                || their.contains(" @plt")
                || without_plt(our) == their
                || without_vdso_names(our) == their,
            "{arguments:?}\nperf: {their}\nwhit: {our}"
        );
    }
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

#[test]
fn a_thread_with_an_empty_name_has_no_other() {
    check("a_thread_with_an_empty_name_has_no_other", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        // Perl names the thread of the kernel, too.
        let program = "$0 = ''; for ($i = 0; $i < 2_000_000; $i++) {}";
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-F", "999", "-e", "cpu-clock"]);
        record(recorder.arg("-o").arg(&path).args(["--", "perl", "-e", program]))?;
        let fields = ["-F", "comm,tid,time"];
        let theirs = script(&mut perf()?, &path, &fields);
        // It had the name of the program first.
        let is_empty = |line: &&str| line.starts_with(&" ".repeat(17));
        assert!(theirs.lines().filter(is_empty).count() > 10, "{theirs}");
        assert_same(&path, &fields)?;
        let folded = script(&mut whit(), &path, &["--folded"]);
        assert!(folded.starts_with(':') && !folded.contains("\n;"), "{folded}");
        Ok(())
    });
}

#[test]
fn samples_in_several_parts_of_the_time() {
    check("samples_in_several_parts_of_the_time", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let program = workload("deep")?;
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-q", "-F", "1999", "-e", "cpu-clock"]);
        record(
            recorder.arg("-o").arg(&path).arg("--").arg(program).args(["--iterations", "20000"]),
        )?;
        let lines = |parts: &str| script(&mut whit(), &path, &["--time", parts]).lines().count();
        for parts in ["10%/1,10%/10", "30%/1,30%/2", "0%-20%,30%-50%", "20%/3"] {
            assert_same(&path, &["-F", "comm,tid,time,event,ip", "--time", parts])?;
        }
        let all: usize = (1..=4).map(|part| lines(&format!("25%/{part}"))).sum();
        assert_eq!((lines("25%/1,25%/4,25%/2,25%/3"), lines("0%-100%")), (all, all));
        Ok(())
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

/// Address of the program in made recordings.
const MAPPED_AT: u64 = 0x40_0000;

fn write_branches(path: &Path, program: &Path) {
    let mut samples = Vec::new();
    for (at, flags) in (0u64..).zip(branch_flags()) {
        let (from, to) = (0x40_1000 + at * 0x40, 0x40_1800 - at * 0x20);
        samples
            .push((0x40_1100, vec![[from, to, flags], [to, 0x1000, flags], [0x40_1010, from, 0]]));
    }
    write_ways(path, program, &samples);
}

/// Samples with branch stacks, which no virtual machine records: the address of each, and its branches, newest first.
fn write_ways(path: &Path, program: &Path, samples: &[(u64, Vec<[u64; 3]>)]) {
    write_stacks(path, program, samples, 1 << 3);
}

/// The same, of branches that a choice let pass.
fn write_stacks(path: &Path, program: &Path, samples: &[(u64, Vec<[u64; 3]>)], choice: u64) {
    use SampleType as T;
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        sample_period_or_freq: 1000,
        sample_type: T::IP | T::TID | T::TIME | T::BRANCH_STACK,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::MMAP | AttrFlags::COMM,
        branch_sample_type: choice,
        ..Attr::default()
    };
    let event = EventDesc { attr, ids: vec![1], name: "cpu-clock".to_owned() };
    let file = std::fs::File::create(path).expect("create a recording");
    let mut writer = FileWriter::create(file, std::slice::from_ref(&event)).expect("write");
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let thread = 7 << 32 | 7;
    let mut map = words(&[thread, MAPPED_AT, 0x10_0000, 0]);
    map.extend(program.as_os_str().as_encoded_bytes());
    map.resize((map.len() + 1).next_multiple_of(8), 0);
    map.extend(words(&[thread, 1]));
    let mut out = Vec::new();
    push_record(&mut out, record_type::MMAP, misc::USER, &map);
    for (at, (ip, entries)) in (0u64..).zip(samples) {
        let head = [*ip, thread, 100 + at, entries.len() as u64];
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

/// An instruction of a program.
struct Code {
    address: u64,
    text: String,
}

impl Code {
    fn is_branch(&self) -> bool {
        let starts = ["j", "call", "ret", "notrack jmp", "bnd "];
        starts.iter().any(|start| self.text.starts_with(start))
    }
}

/// The code of a program as objdump has it, with the address that it is mapped to.
fn disassembled(program: &Path) -> Result<Vec<Code>, Skip> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Skip("programs are not of x86".to_owned()));
    }
    let mut tool = Command::new("objdump");
    tool.args(["-d", "--no-show-raw-insn", "-j", ".text"]).arg(program);
    let output = tool.output().map_err(|error| Skip(format!("objdump: {error}")))?;
    let listing = String::from_utf8(output.stdout).expect("objdump prints text");
    let code = listing.lines().filter_map(|line| {
        let (address, text) = line.split_once(":\t")?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let text = text.split(['#', '<']).next().unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Code { address: MAPPED_AT + address, text })
    });
    let code: Vec<_> = code.collect();
    assert!(code.len() > 200, "{listing}");
    Ok(code)
}

/// The branches that lead through the blocks of a program, newest first, and places where a sample may stand.
fn ways(code: &[Code]) -> Vec<(u64, Vec<[u64; 3]>)> {
    let blocks: Vec<&[Code]> = code.split_inclusive(Code::is_branch).collect();
    let mut ways = Vec::new();
    for (number, five) in blocks.chunks_exact(5).enumerate() {
        let end = |block: usize| five[block].last().map_or(0, |code| code.address);
        let start = |block: usize| five[block][0].address;
        let flags = [0, 1, 2, 2 | 1 << 2, 2 | 7 << 4, 1 | 3000 << 4][number % 6];
        let mut entries: Vec<_> = (0..4).rev().map(|at| [end(at), start(at + 1), flags]).collect();
        let ip = five[4][five[4].len() / 2].address;
        ways.push(match number % 8 {
            // No branch back from the kernel, and none to it.
            0 => (
                ip,
                [&entries[..1], &[[0xffff_ffff_8100_0010, start(3), 2]], &entries[2..]].concat(),
            ),
            1 => {
                (ip, [&entries[..1], &[[end(2), 0xffff_ffff_8100_0010, 2]], &entries[1..]].concat())
            }
            2 => (end(3), entries),
            3 => (start(0), entries),
            4 => (ip, [&[[end(3), start(4), flags | 1 << 3]], &entries[1..]].concat()),
            // Inside of an instruction, and nowhere.
            5 => (ip, [&entries[..2], &[[end(1) + 1, start(2), flags]], &entries[3..]].concat()),
            6 => (0, [&entries[..1], &[[0, 0, 0], [0x1000, 0x2000, 2]], &entries[2..]].concat()),
            _ => (ip, std::mem::take(&mut entries)),
        });
    }
    ways
}

#[test]
fn instructions_between_branches_are_those_of_perf() {
    check("instructions_between_branches_are_those_of_perf", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let program = workload("deep-fp")?;
        write_ways(&path, &program, &ways(&disassembled(&program)?));
        assert_same(&path, &["-F", "time,brstackinsn"])?;
        assert_same(&path, &["-F", "time,ip,sym,brstackinsn"])
    });
}

#[test]
fn instructions_need_all_branches() {
    let directory = tempfile::tempdir().expect("make a directory");
    let path = directory.path().join("perf.data");
    write_stacks(&path, Path::new("/bin/true"), &[(0, vec![[1, 2, 3]])], 1 << 4);
    let output = whit().args(["script", "-F", "brstackinsn", "-i"]).arg(&path).output();
    let output = output.expect("run whit");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("record again with -b"), "{message}");
}
