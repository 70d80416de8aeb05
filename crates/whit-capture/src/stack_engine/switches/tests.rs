use std::os::fd::AsFd;

use whit_bpf::stacks::channel::Channels;
use whit_perfdata::record::RawRecord;
use whit_perfdata::sample::SampleLayout;
use whit_sys::bpf::SharedWords;

use super::*;
use crate::stack_engine::expand::tests::{CARRIER, attr};
use crate::stack_engine::expand::{Expander, Given};
use crate::stack_engine::schedule::tests::{IN_SCHEDULE, landmarks};

const CPU: u32 = 3;
/// Of `struct channel` in `bpf/channel.h`: the ring, and in front of it where words are.
const RING_WORDS: usize = 1024;
const HEAD_WORDS: usize = 16;
const LOST_UNTOLD: usize = 1;
/// Kinds of its records.
const STACK: u64 = 1;
const SWITCH: u64 = 2;
const LOST: u64 = 3;

/// Writes the channel of CPU 3, and expands it beside the records of a ring.
struct Cpu {
    words: SharedWords,
    start: usize,
    expander: Expander,
}

impl Cpu {
    fn new() -> Cpu {
        let file = tempfile::tempfile().unwrap();
        let words = (HEAD_WORDS + RING_WORDS) * (CPU as usize + 1);
        file.set_len(words as u64 * 8).unwrap();
        let map = || SharedWords::map(file.as_fd(), words).unwrap();
        let channels = Channels::new(map(), CPU as usize + 1, RING_WORDS);
        let channel = channels.of_cpu(CPU).unwrap();
        let layout = Layout::new(&attr());
        let mut expander = Expander::new(layout, CARRIER, Vec::new(), Given::default());
        expander.add_switches(Switches::new(channel, &attr(), CARRIER, CPU, landmarks()));
        let start = words - HEAD_WORDS - RING_WORDS;
        Cpu { words: map(), start, expander }
    }

    fn put(&self, words: &[u64]) {
        let written = self.words.load(self.start);
        for (at, word) in words.iter().enumerate() {
            let at = (written as usize + at) % RING_WORDS;
            self.words.store(self.start + HEAD_WORDS + at, *word);
        }
        self.words.store(self.start, written + words.len() as u64);
    }

    fn stack(&self, place: u64, reason: u64, frames: &[u64]) {
        self.put(&[STACK | reason << 8 | (frames.len() as u64) << 16 | place << 32]);
        self.put(frames);
    }

    fn switch(&self, time: u64, tid: u64, is_preemption: bool, user: u64, kernel: u64) {
        let flags = u64::from(is_preemption);
        self.put(&[SWITCH | flags << 8 | tid << 32, time, 9 | user << 32 | kernel << 48]);
    }

    /// One round of a reader.
    fn read(&mut self, ring: &[u8]) -> Vec<String> {
        let (mut out, mut at) = (Vec::new(), 0);
        self.expander.look();
        while at < ring.len() {
            at += self.expander.expand(Pieces([&ring[at..], &[]]), 1, &mut out);
        }
        while self.expander.rest(out.len(), &mut out) {}
        assert_eq!(self.expander.available_bytes(), 0);
        shown(&out)
    }
}

/// Records as perf's readers see them.
fn shown(mut rest: &[u8]) -> Vec<String> {
    let mut described = attr();
    described.sample_type = Layout::new(&described).raw_sample_type();
    let layout = SampleLayout::new(&described);
    let mut seen = Vec::new();
    while let Some((record, tail)) = RawRecord::split(rest) {
        rest = tail;
        let word = |at: usize| u64::from_le_bytes(record.body[at..at + 8].try_into().unwrap());
        seen.push(match record.header.kind {
            record_type::SAMPLE => {
                let sample = layout.parse(record.body).unwrap();
                let chain: Vec<u64> = sample.callchain.iter().collect();
                let (pid, tid) = sample.pid_tid.unwrap();
                let head = (sample.id.unwrap(), pid.0, tid.0, sample.time.unwrap().0);
                let (ip, period) = (sample.ip.unwrap().0, sample.period.unwrap());
                format!("{head:?} {ip:x} {period} {chain:x?} {:x?}", sample.raw.unwrap())
            }
            record_type::LOST => format!("lost {} at {}", word(8), word(24)),
            kind => format!("kind {kind}"),
        });
    }
    seen
}

/// A record of the kernel's, at a time.
fn of_kernel(out: &mut Vec<u8>, time: u64) {
    let body: Vec<u8> = [0, time, 3, 55].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    push_record(out, record_type::SWITCH, 0, &body);
}

#[test]
fn switches_stand_among_the_records_of_their_time() {
    let mut cpu = Cpu::new();
    let kernel = [0xffff_ffff_c000_0000, IN_SCHEDULE, 0xffff_ffff_8000_1999];
    cpu.stack(5, 1, &[0x401, 0x402]);
    cpu.stack(6, 0, &kernel);
    cpu.switch(100, 10, false, 6, 7);
    cpu.switch(200, 11, true, 6, 0);
    // Another stack takes the place.
    cpu.stack(5, 1, &[0x501]);
    cpu.switch(300, 10, false, 6, 0);
    let mut ring = Vec::new();
    [150, 200].iter().for_each(|time| of_kernel(&mut ring, *time));
    let in_kernel = "ffffffffffffff80, ffffffff821f8298, ffffffff80001999";
    let in_user = "fffffffffffffe00, 401, 402";
    let wanted = [
        format!("(77, 9, 10, 100) ffffffff821f8298 1 [{in_kernel}, {in_user}] [0, 0, 0, 0]"),
        "kind 14".to_owned(),
        format!("(77, 9, 11, 200) 401 1 [{in_user}] [0, 0, 0, 80]"),
        "kind 14".to_owned(),
        "(77, 9, 10, 300) 501 1 [fffffffffffffe00, 501] [0, 0, 0, 0]".to_owned(),
    ];
    assert_eq!(cpu.read(&ring), wanted);
    let counts = cpu.expander.counts;
    assert_eq!((counts.records, counts.switches, counts.preemptions), (3, 3, 1));
    assert_eq!((counts.stacks, counts.unknown_stacks), (3, 0));
}

#[test]
fn a_stack_that_nobody_told_of_is_said_to_be_unknown() {
    let mut cpu = Cpu::new();
    cpu.switch(100, 10, false, 6, 0);
    assert_eq!(cpu.read(&[]), ["(77, 9, 10, 100) 0 1 [] [0, 0, 0, 0]"]);
    assert_eq!(cpu.expander.counts.unknown_stacks, 1);
}

#[test]
fn what_was_lost_is_told_of_once() {
    let mut cpu = Cpu::new();
    cpu.switch(100, 10, false, 0, 0);
    // Five found no room behind it, and the channel has not told of them.
    cpu.words.store(cpu.start + LOST_UNTOLD, 5);
    let first = "(77, 9, 10, 100) 0 1 [] [0, 0, 0, 0]";
    assert_eq!(cpu.read(&[]), [first, "lost 5 at 100"]);
    assert_eq!(cpu.read(&[]), [""; 0]);
    // Two more, before there was room.
    cpu.words.store(cpu.start + LOST_UNTOLD, 0);
    cpu.put(&[LOST, 200, 7]);
    cpu.switch(200, 10, false, 0, 0);
    assert_eq!(cpu.read(&[]), ["lost 2 at 200", "(77, 9, 10, 200) 0 1 [] [0, 0, 0, 0]"]);
    cpu.put(&[LOST, 300, 4]);
    cpu.switch(300, 10, false, 0, 0);
    assert_eq!(cpu.read(&[]), ["lost 4 at 300", "(77, 9, 10, 300) 0 1 [] [0, 0, 0, 0]"]);
}
