//! Samples of waits have the sums of the context switches, whatever the threshold.

use std::fs::File;
use std::path::{Path, PathBuf};

use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::off_cpu::OffCpuSample;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::sample::context;
use whit_perfdata::writer::FileWriter;
use whit_profile::switches::{OffCpuError, OffCpuSamples, OffCpuTotals, SamplesAndSwitches};
use whit_profile::{ReadOptions, Reading};

/// Threads, and waits of each: thread `t` waits `WAITS` times at two call chains in turn.
const THREADS: u64 = 3;
const WAITS: u64 = 40;
/// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
const CONTEXT_SWITCHES: u64 = 3;
/// Time between the beginnings of waits.
const STEP_NS: u64 = 10_000;

/// How long a wait takes.
fn wait_ns(thread: u64, wait: u64) -> u64 {
    100 * thread + 10 * wait + 1
}

fn words(out: &mut Vec<u8>, words: &[u64]) {
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn ids(thread: u64) -> u64 {
    1 | (10 + thread) << 32
}

/// A sample at a switch, with its call chain.
fn sample(thread: u64, time: u64, chain: &[u64], out: &mut Vec<u8>) {
    let mut body = Vec::new();
    words(&mut body, &[chain[1], ids(thread), time, thread, 1, chain.len() as u64]);
    words(&mut body, chain);
    push_record(out, record_type::SAMPLE, misc::KERNEL, &body);
}

fn switch(thread: u64, time: u64, bits: u16, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    words(&mut body, &[ids(thread), time, thread]);
    push_record(out, record_type::SWITCH, bits, &body);
}

/// Waits of all threads, each thread on a CPU of its own; a preemption; and a wait without an end.
fn records() -> Vec<u8> {
    let mut out = Vec::new();
    for wait in 0..WAITS {
        for thread in 0..THREADS {
            let time = 1_000_000 + STEP_NS * wait;
            let user = 0x1000 + wait % 2;
            sample(
                thread,
                time,
                &[context::KERNEL, 0xffff_ffff_8100_0000, context::USER, user],
                &mut out,
            );
            switch(thread, time, misc::SWITCH_OUT, &mut out);
            switch(thread, time + wait_ns(thread, wait), 0, &mut out);
        }
    }
    let time = 1_000_000 + STEP_NS * WAITS;
    switch(0, time, misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT, &mut out);
    switch(0, time + 500, 0, &mut out);
    switch(1, time, misc::SWITCH_OUT, &mut out);
    out
}

fn recording(directory: &Path) -> Recording {
    let path: PathBuf = directory.join("perf.data");
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        config: CONTEXT_SWITCHES,
        sample_period_or_freq: 1,
        sample_type: SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::PERIOD
            | SampleType::CALLCHAIN,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::CONTEXT_SWITCH,
        ..Attr::default()
    };
    let events = vec![EventDesc { attr, ids: vec![1], name: "context-switches".into() }];
    let file = File::create(&path).expect("make a file");
    let mut writer = FileWriter::create(file, &events).expect("write");
    writer.append(&records()).expect("write");
    writer.finish(&Features::default()).expect("write");
    Recording::open(&path).expect("open what was written")
}

/// The sum of all waits by the views of switches.
fn of_switches(recording: &Recording) -> u64 {
    let options = ReadOptions::without_names(1);
    let loaded = Reading::open(recording, &options).answer(SamplesAndSwitches::default());
    let (_, switches) = loaded.expect("load switches");
    switches.rows.iter().map(|row| row.sums.sync_wait_ns).sum()
}

/// Totals, and the samples: thread, end, period, last address.
fn samples(recording: &Recording, threshold_ns: u64) -> (OffCpuTotals, Vec<(i32, u64, u64, u64)>) {
    let mut samples = Vec::new();
    let mut emit = |sample: &OffCpuSample<'_>| {
        let last = sample.chain.last().copied().unwrap_or(0);
        assert_eq!(sample.chain.len(), 4, "both parts of the chain");
        samples.push((sample.tid.0, sample.time.0, sample.period_ns, last));
        Ok(())
    };
    let options = ReadOptions::without_names(1);
    let question = OffCpuSamples { threshold_ns, emit: &mut emit };
    let totals = Reading::open(recording, &options).answer(question);
    (totals.expect("make samples"), samples)
}

#[test]
fn sums_are_those_of_the_switches_whatever_the_threshold() {
    let directory = tempfile::tempdir().expect("make a directory");
    let recording = recording(directory.path());
    let all = || (0..THREADS).flat_map(|thread| (0..WAITS).map(move |wait| (thread, wait)));
    let sum: u64 = all().map(|(thread, wait)| wait_ns(thread, wait)).sum();
    assert_eq!(of_switches(&recording), sum);
    for threshold_ns in [0, 250, u64::MAX] {
        let (totals, samples) = samples(&recording, threshold_ns);
        let alone = all().filter(|(thread, wait)| wait_ns(*thread, *wait) >= threshold_ns).count();
        let is_below = |thread: u64, chain: u64| {
            all().any(|(t, w)| t == thread && w % 2 == chain && wait_ns(t, w) < threshold_ns)
        };
        let rows = (0..THREADS).flat_map(|thread| [(thread, 0), (thread, 1)]);
        let rows = rows.filter(|(thread, chain)| is_below(*thread, *chain)).count();
        assert_eq!(samples.len(), alone + rows, "{threshold_ns}");
        assert_eq!(samples.iter().map(|sample| sample.2).sum::<u64>(), sum, "{threshold_ns}");
        let waits = THREADS * WAITS;
        // The last wait has no end, and a preemption is no wait.
        let wanted = OffCpuTotals {
            samples: samples.len() as u64,
            waits,
            wait_ns: sum,
            uncertain: 1,
            without_chain: 0,
        };
        assert_eq!(totals, wanted, "{threshold_ns}");
    }
}

#[test]
fn a_sample_is_at_its_call_chain_and_at_the_end_of_its_last_wait() {
    let directory = tempfile::tempdir().expect("make a directory");
    let recording = recording(directory.path());
    let (_, mut samples) = samples(&recording, u64::MAX);
    samples.sort_unstable();
    let sample = |thread: u64, chain: u64| {
        let waits = (0..WAITS).filter(|wait| wait % 2 == chain);
        let last = WAITS - 2 + chain;
        let end = 1_000_000 + STEP_NS * last + wait_ns(thread, last);
        let sum = waits.map(|wait| wait_ns(thread, wait)).sum();
        (10 + thread as i32, end, sum, 0x1000 + chain)
    };
    let wanted: Vec<_> =
        (0..THREADS).flat_map(|thread| [sample(thread, 0), sample(thread, 1)]).collect();
    assert_eq!(samples, wanted);
}

#[test]
fn an_error_of_the_writer_is_given_back() {
    let directory = tempfile::tempdir().expect("make a directory");
    let recording = recording(directory.path());
    for threshold_ns in [0, u64::MAX] {
        let mut emit = |_: &OffCpuSample<'_>| Err(std::io::Error::other("full"));
        let question = OffCpuSamples { threshold_ns, emit: &mut emit };
        let error = Reading::open(&recording, &ReadOptions::without_names(1)).answer(question);
        assert!(matches!(error, Err(OffCpuError::Write(_))), "{error:?}");
    }
}
