//! Augmented call stacks: where a stack dump was too small, branch records continue the chain.
//!
//! No machine at hand has an LBR that keeps call stacks. Its content is known, though: the calls of
//! a chain that was unwound from a large dump. The same samples are written again with a small dump
//! and these calls in a branch stack.

use std::collections::HashMap;
use std::path::Path;

use whit_perfdata::attr::SampleType;
use whit_perfdata::encode::push_record;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::SampleLayout;
use whit_perfdata::stream::StreamReader;
use whit_perfdata::writer::FileWriter;

use crate::support::check;
use crate::support::script::{self, Sample};
use crate::support::tools::{record, text, whit, workload};

/// `PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK`.
const USER_CALL_STACK: u64 = 1 | 1 << 11;
/// Bytes of the dump that remain: enough for some frames of `deep`, by far not for all.
const SMALL_DUMP_BYTES: usize = 512;
/// A direct call on x86-64.
const CALL_BYTES: u64 = 5;

/// Physical frames by the time of their sample, as the head line has it.
type Chains = HashMap<String, Vec<(u64, String)>>;

fn chains(path: &Path) -> Chains {
    let arguments = ["script", "--ns", "--no-inline", "-F", "time,ip,sym", "-i"];
    let samples = script::parse(&text(whit().args(arguments).arg(path)));
    let frames = |sample: &Sample| {
        let frame = |frame: &script::Frame| {
            let address = u64::from_str_radix(&frame.address, 16).expect("an address");
            (address, frame.symbol.clone())
        };
        sample.frames.iter().map(frame).collect()
    };
    samples
        .iter()
        .map(|sample| (sample.head.trim_end_matches(':').into(), frames(sample)))
        .collect()
}

fn names(chain: &[(u64, String)]) -> Vec<&str> {
    chain.iter().map(|(_, symbol)| symbol.as_str()).collect()
}

/// Writes the recording again with small dumps, and with branch stacks where `calls` are given.
fn rewrite(from: &Path, to: &Path, calls: Option<&Chains>) {
    let recording = Recording::open(from).expect("open the recording");
    let table = EventTable::new(&recording.events);
    let mut events = recording.events.clone();
    if calls.is_some() {
        for event in &mut events {
            event.attr.sample_type |= SampleType::BRANCH_STACK;
            event.attr.branch_sample_type = USER_CALL_STACK;
        }
    }
    let file = std::fs::File::create(to).expect("create a recording");
    let mut writer = FileWriter::create(file, &events).expect("write a header");
    for stream in &recording.streams {
        let mut reader = StreamReader::new(stream.clone());
        let mut block = Vec::new();
        while reader.next_block(&mut block).expect("read a block").is_some() {
            let mut rest = &block[..];
            let mut out = Vec::new();
            while let Some((record, tail)) = RawRecord::split(rest) {
                let bytes = &rest[..rest.len() - tail.len()];
                match record.header.kind {
                    record_type::SAMPLE => {
                        let layout = table.layout(0).expect("a layout");
                        let body = sample(record.body, layout, calls);
                        push_record(&mut out, record_type::SAMPLE, record.header.misc, &body);
                    }
                    _ => out.extend_from_slice(bytes),
                }
                rest = tail;
            }
            writer.append(&out).expect("write records");
        }
    }
    writer.finish(&recording.features).expect("write features");
}

fn sample(body: &[u8], layout: &SampleLayout, calls: Option<&Chains>) -> Vec<u8> {
    let parsed = layout.parse(body).expect("a sample");
    if parsed.user_stack.is_empty() {
        panic!("a sample of user code without a stack");
    }
    let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().expect("a word"));
    // ... | branches | abi, registers | size, stack, size that was used
    let stack = parsed.user_stack.as_ptr().addr() - body.as_ptr().addr();
    let stack_end = stack + word(stack - 8) as usize;
    let registers = parsed.user_regs.expect("registers").mask.count_ones() as usize;
    let branches = stack - 8 - 8 * (1 + registers);
    let mut out = body[..branches].to_vec();
    let mut push = |word: u64| out.extend_from_slice(&word.to_le_bytes());
    if let Some(chains) = calls {
        let time = parsed.time.expect("a time").0;
        let time = format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        let chain = &chains[&time];
        let callers = &chain[1..];
        push(callers.len() as u64);
        for (index, (address, _)) in callers.iter().enumerate() {
            push(address - CALL_BYTES);
            // Into the function whose frame is the one before.
            push(chain[index].0 & !0xfff);
            push(0);
        }
    }
    out.extend_from_slice(&body[branches..stack - 8]);
    let dumped = parsed.user_stack.len().min(SMALL_DUMP_BYTES);
    out.extend_from_slice(&(SMALL_DUMP_BYTES as u64).to_le_bytes());
    out.extend_from_slice(&body[stack..stack + SMALL_DUMP_BYTES]);
    out.extend_from_slice(&(dumped as u64).to_le_bytes());
    out.extend_from_slice(&body[stack_end + 8..]);
    out
}

#[test]
fn branch_records_continue_chains_of_a_small_dump() {
    check("branch_records_continue_chains_of_a_small_dump", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = |name: &str| directory.path().join(name);
        let (full, cut, augmented) = (path("full"), path("cut"), path("augmented"));
        let mut recorder = whit();
        recorder.args(["record", "-F", "2000", "-e", "cpu-clock:u", "--call-graph", "dwarf,16384"]);
        recorder.arg("-o").arg(&full).arg("--").arg(workload("deep")?);
        record(recorder.args(["--iterations", "20000"]))?;
        let whole = chains(&full);
        assert!(whole.len() > 50, "only {} samples", whole.len());
        rewrite(&full, &cut, None);
        rewrite(&full, &augmented, Some(&whole));

        let (short, long) = (chains(&cut), chains(&augmented));
        let is_cut = |(time, chain): &(&String, &Vec<_>)| short[*time].len() < chain.len();
        let cut_count = whole.iter().filter(is_cut).count();
        assert!(cut_count * 2 > whole.len(), "{cut_count} of {} are cut", whole.len());
        for (time, chain) in &whole {
            assert_eq!(names(&long[time]), names(chain), "{time}");
        }
        let stats = text(whit().args(["report", "--stats", "-i"]).arg(&augmented));
        let line = format!("{cut_count}  of these go on with the calls in their branch records");
        assert!(stats.contains(&line), "{line} in {stats}");
        Ok(())
    });
}
