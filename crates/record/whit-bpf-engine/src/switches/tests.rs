use std::os::fd::AsFd;

use proptest::prelude::*;

use whit_bpf::stacks::channel::Channels;
use whit_perfdata::encode::push_record;
use whit_perfdata::packed::Unpacker;
use whit_perfdata::record::{RawRecord, SideBand, misc, record_type};
use whit_perfdata::sample::SampleLayout;
use whit_sys::bpf::SharedWords;

use super::*;
use crate::decoder::tests::{BPF_OUTPUT, attr, push, sample, thread};
use crate::decoder::{BpfRecordDecoder, DecoderConfig};
use crate::schedule::tests::{IN_SCHEDULE, scheduler_symbols};
use whit_engine_api::RecordDecoder;

const CPU: u32 = 3;
/// Words of `struct channel` in `bpf/channel.h`: the ring, and the counters in front of it.
const RING_WORDS: usize = 1024;
const HEAD_WORDS: usize = 16;
const LOST_UNTOLD: usize = 1;
const LOST_FROM: usize = 4;
const LOST_TO: usize = 5;
/// Kinds of its records.
const STACK: u64 = 1;
const SWITCH: u64 = 2;
const LOST: u64 = 3;
const CAME: u64 = 4;
const ACCOUNT: u64 = 6;
/// Flags of a switch.
const IS_PREEMPTION: u64 = 1;
const HAS_NEXT: u64 = 4;
const HAS_FUTEX: u64 = 8;
/// The id of the event that wakes the reader.
const WAKEUP_EVENT: u64 = 78;

/// Writes the channel of CPU 3, and decodes it beside the records of a ring: into records as perf's, and
/// packed, which has to come to the same.
struct Cpu {
    words: SharedWords,
    start: usize,
    decoder: BpfRecordDecoder,
    packing: BpfRecordDecoder,
    unpacker: Unpacker,
}

impl Cpu {
    fn new(is_cpu_wide: bool) -> Cpu {
        let file = tempfile::tempfile().unwrap();
        let words = (HEAD_WORDS + RING_WORDS) * (CPU as usize + 1);
        file.set_len(words as u64 * 8).unwrap();
        let map = || SharedWords::map(file.as_fd(), words).unwrap();
        let channels = Channels::new(map(), CPU as usize + 1, RING_WORDS);
        let decoder = |is_packed| {
            let channel = channels.of_cpu(CPU).unwrap();
            let bpf_output = (&attr(), BPF_OUTPUT);
            let mut decoder =
                BpfRecordDecoder::new(bpf_output, Vec::new(), DecoderConfig::default());
            let config = ChannelConfig {
                id: BPF_OUTPUT,
                cpu: CPU,
                wakeup_event: Some(WAKEUP_EVENT),
                is_cpu_wide,
                is_packed,
            };
            decoder.add_switches(Switches::new(channel, &attr(), config, scheduler_symbols()));
            decoder
        };
        let start = words - HEAD_WORDS - RING_WORDS;
        Cpu {
            words: map(),
            start,
            decoder: decoder(false),
            packing: decoder(true),
            unpacker: Unpacker::new(&packed::describe(&attr())).unwrap(),
        }
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

    /// So many records were lost at these times, and no record of the channel reports them yet.
    fn lose(&self, count: u64, from: u64, to: u64) {
        for (at, word) in [(LOST_UNTOLD, count), (LOST_FROM, from), (LOST_TO, to)] {
            self.words.store(self.start + at, word);
        }
    }

    /// One round of a reader.
    fn read(&mut self, ring: &[u8]) -> Vec<String> {
        let ordinary = read(&mut self.decoder, ring);
        let packed = read(&mut self.packing, ring);
        assert_eq!(counted(&packed), counted(&ordinary));
        let mut unpacked = Vec::new();
        self.unpacker.unpack(&packed, &mut unpacked);
        assert_eq!(shown(&unpacked), shown(&ordinary));
        assert!(unpacked == ordinary);
        shown(&ordinary)
    }
}

fn read(decoder: &mut BpfRecordDecoder, ring: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    decoder.look();
    while at < ring.len() {
        at += decoder.decode(RingSlices([&ring[at..], &[]]), 1, &mut out);
    }
    while decoder.rest(out.len(), &mut out) {}
    assert_eq!(decoder.available_bytes(), 0);
    out
}

/// Records as perf's readers see them.
fn shown(mut rest: &[u8]) -> Vec<String> {
    let layout = |id: u64| {
        let (mut described, layout) = (attr(), Layout::new(&attr()));
        let is_switch = id == BPF_OUTPUT;
        described.sample_type =
            if is_switch { layout.raw_sample_type() } else { layout.sample_type() };
        SampleLayout::new(&described)
    };
    let mut seen = Vec::new();
    while let Some((record, tail)) = RawRecord::split(rest) {
        rest = tail;
        let word = |at: usize| u64::from_le_bytes(record.body[at..at + 8].try_into().unwrap());
        seen.push(match record.header.kind {
            record_type::SAMPLE => {
                let sample = layout(word(0)).parse(record.body).unwrap();
                let chain: Vec<u64> = sample.callchain.iter().collect();
                let (pid, tid) = sample.pid_tid.unwrap();
                let head = (sample.id.unwrap(), pid.0, tid.0, sample.time.unwrap().0);
                let (ip, period) = (sample.ip.unwrap().0, sample.period.unwrap());
                format!("{head:?} {ip:x} {period} {chain:x?} {:x?}", sample.raw.unwrap_or_default())
            }
            record_type::LOST => {
                assert_eq!(record.body.len(), 56, "{record:?}");
                format!("lost {} from {} to {}", word(8), word(16), word(32))
            }
            record_type::LOST_SAMPLES => {
                assert_eq!((record.body.len(), word(0)), (48, 0), "{record:?}");
                format!("unsure of {} from {} to {}", word(16) >> 32, word(8), word(24))
            }
            record_type::SWITCH_CPU_WIDE => {
                let (other, rest) = (word(0), [1, 2, 3, 4].map(|at| word(at * 8)));
                format!("{} beside {}", switch_of(&record, rest), other >> 32)
            }
            record_type::SWITCH => switch_of(&record, [0, 1, 2, 3].map(|at| word(at * 8))),
            record_type::BPF_EVENT => {
                let Some(SideBand::CpuAccount(account)) = SideBand::parse(record) else { panic!() };
                let [pid_tid, time, cpu, id] = [4, 5, 6, 7].map(|at| word(at * 8));
                assert_eq!((cpu, id), (u64::from(CPU), BPF_OUTPUT));
                format!("{}/{} {account:?} at {time}", pid_tid as u32, pid_tid >> 32)
            }
            kind => format!("kind {kind}"),
        });
    }
    seen
}

/// A thread that comes or goes: thread, time, CPU and id are these words.
fn switch_of(record: &RawRecord<'_>, [pid_tid, time, cpu, id]: [u64; 4]) -> String {
    assert_eq!((cpu, id), (u64::from(CPU), BPF_OUTPUT));
    let (pid, tid) = (pid_tid as u32, pid_tid >> 32);
    let how = match record.header.misc {
        0 => "came",
        misc::SWITCH_OUT => "went",
        both if both == misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT => "taken off",
        misc => panic!("{misc:x}"),
    };
    format!("{pid}/{tid} {how} at {time}")
}

/// A record of the kernel's, at a time.
fn of_kernel(out: &mut Vec<u8>, time: u64) {
    let body: Vec<u8> = [0, time, 3, 55].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    push_record(out, record_type::EXIT, 0, &body);
}

#[test]
fn switches_are_among_the_records_of_their_time() {
    let mut cpu = Cpu::new(false);
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
        "9/10 went at 100".to_owned(),
        "kind 4".to_owned(),
        format!("(77, 9, 11, 200) 401 1 [{in_user}] [0, 0, 0, 80]"),
        "9/11 taken off at 200".to_owned(),
        "kind 4".to_owned(),
        "(77, 9, 10, 300) 501 1 [fffffffffffffe00, 501] [0, 0, 0, 0]".to_owned(),
        "9/10 went at 300".to_owned(),
    ];
    assert_eq!(cpu.read(&ring), wanted);
    let counts = cpu.decoder.counts;
    assert_eq!((counts.records, counts.switches, counts.preemptions), (3, 3, 1));
    assert_eq!((counts.stacks, counts.unknown_stacks), (3, 0));
}

#[test]
fn the_futex_of_a_wait_follows_its_state() {
    let mut cpu = Cpu::new(false);
    cpu.put(&[SWITCH | HAS_FUTEX << 8 | 1 << 16 | 10 << 32, 100, 9, 0x1122_3344]);
    let seen = cpu.read(&[]);
    let raw = "[1, 0, 0, 80, 44, 33, 22, 11, 0, 0, 0, 0]";
    assert_eq!(seen, [format!("(77, 9, 10, 100) 0 1 [] {raw}"), "9/10 went at 100".to_owned()]);
}

#[test]
fn an_account_is_in_front_of_the_switch_that_ends_it() {
    let mut cpu = Cpu::new(true);
    cpu.put(&[ACCOUNT | 1 << 8 | 10 << 32, 100, 9, 30, 20, 0]);
    cpu.switch(100, 10, false, 0, 0);
    cpu.put(&[ACCOUNT | 3 << 8, 200, 0, 0, 0, 50]);
    cpu.put(&[CAME | 12 << 32, 200, 11]);
    let mut ring = Vec::new();
    of_kernel(&mut ring, 150);
    let account = |interrupts, stolen_ns| CpuAccount { interrupts, stolen_ns };
    let of_thread = account(Some(InterruptTimes { irq_ns: 30, softirq_ns: 20 }), None);
    let of_idle = account(Some(InterruptTimes::default()), Some(50));
    let wanted = [
        format!("9/10 {of_thread:?} at 100"),
        "(77, 9, 10, 100) 0 1 [] [0, 0, 0, 0]".to_owned(),
        "9/10 went at 100".to_owned(),
        "kind 4".to_owned(),
        format!("0/0 {of_idle:?} at 200"),
        "11/12 came at 200 beside 0".to_owned(),
    ];
    assert_eq!(cpu.read(&ring), wanted);
    assert_eq!(cpu.decoder.counts.records, 3);
}

#[test]
fn an_undefined_stack_is_reported_as_unknown() {
    let mut cpu = Cpu::new(false);
    cpu.switch(100, 10, false, 6, 0);
    assert_eq!(cpu.read(&[]), ["(77, 9, 10, 100) 0 1 [] [0, 0, 0, 0]", "9/10 went at 100"]);
    assert_eq!(cpu.decoder.counts.unknown_stacks, 1);
}

#[test]
fn losses_are_reported_once() {
    let mut cpu = Cpu::new(false);
    cpu.switch(100, 10, false, 0, 0);
    // Behind it.
    cpu.lose(5, 101, 150);
    let gone = |time| format!("(77, 9, 10, {time}) 0 1 [] [0, 0, 0, 0]|9/10 went at {time}");
    assert_eq!(cpu.read(&[]).join("|"), format!("{}|lost 5 from 101 to 150", gone(100)));
    assert_eq!(cpu.read(&[]), [""; 0]);
    // Two more, before there was room.
    cpu.lose(0, 101, 152);
    cpu.put(&[LOST, 152, 7, 101]);
    cpu.switch(200, 10, false, 0, 0);
    assert_eq!(cpu.read(&[]).join("|"), format!("lost 2 from 101 to 152|{}", gone(200)));
    // None more, the second time; and none that was said before.
    cpu.lose(3, 210, 220);
    assert_eq!(cpu.read(&[]), ["lost 3 from 210 to 220"]);
    cpu.lose(0, 210, 220);
    cpu.put(&[LOST, 220, 3, 210]);
    cpu.switch(290, 10, false, 0, 0);
    assert_eq!(cpu.read(&[]).join("|"), gone(290));
    cpu.put(&[LOST, 299, 4, 295]);
    cpu.switch(300, 10, false, 0, 0);
    assert_eq!(cpu.read(&[]).join("|"), format!("lost 4 from 295 to 299|{}", gone(300)));
    assert_eq!(cpu.decoder.counts.lost_switches, 5 + 2 + 3 + 4);
}

/// Samples came through the ring all the while that the channel was full, and the other way round.
#[test]
fn a_loss_keeps_its_beginning_behind_any_record() {
    let mut cpu = Cpu::new(false);
    let mut ring = Vec::new();
    of_kernel(&mut ring, 150);
    of_kernel(&mut ring, 250);
    cpu.put(&[LOST, 200, 7, 110]);
    cpu.switch(300, 10, false, 0, 0);
    let seen = cpu.read(&ring);
    assert_eq!(seen[..3], ["kind 4", "lost 7 from 110 to 200", "kind 4"]);
    // The kernel's own record of the ring, behind a switch.
    let mut ring = Vec::new();
    let words = [55, 9, 0, 400, u64::from(CPU), 55];
    let body: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    push_record(&mut ring, record_type::LOST, 0, &body);
    cpu.switch(350, 10, false, 0, 0);
    let seen = cpu.read(&ring);
    assert_eq!(seen[2..], ["lost 9 from 250 to 400"]);
}

/// Thread 10 goes, and 12 of process 11 comes; then the idle thread, and 12 again.
fn comings(cpu: &Cpu) {
    let switch_to = |tid: u64, flags: u64| SWITCH | (HAS_NEXT | flags) << 8 | tid << 32;
    cpu.put(&[switch_to(10, IS_PREEMPTION), 100, 9, 11 | 12 << 32]);
    cpu.put(&[switch_to(12, 0), 200, 11, 0]);
    cpu.put(&[CAME | 12 << 32, 300, 11]);
}

#[test]
fn threads_that_come_are_recorded_behind_those_that_go() {
    let mut cpu = Cpu::new(false);
    comings(&cpu);
    let seen = cpu.read(&[]);
    let switches: Vec<_> = seen.iter().filter(|seen| !seen.starts_with('(')).collect();
    let wanted =
        ["9/10 taken off at 100", "11/12 came at 100", "11/12 went at 200", "11/12 came at 300"];
    assert_eq!(switches, wanted);
    assert_eq!(seen.len(), 6);
}

#[test]
fn switches_of_whole_cpus_name_both_threads() {
    let mut cpu = Cpu::new(true);
    comings(&cpu);
    let switches = cpu.read(&[]).into_iter().filter(|seen| !seen.starts_with('('));
    let wanted = [
        "9/10 taken off at 100 beside 12",
        "11/12 came at 100 beside 10",
        "11/12 went at 200 beside 0",
        "11/12 came at 300 beside 0",
    ];
    assert_eq!(switches.collect::<Vec<_>>(), wanted);
}

/// For some threads the kernel hides that they go: the next one on their CPU shows it.
#[test]
fn a_thread_with_a_hidden_switch_out_is_gone_when_another_comes() {
    let switch_to =
        |tid: u64, next: u64| [SWITCH | HAS_NEXT << 8 | tid << 32, 100, 9, 11 | next << 32];
    let switches = |cpu: &mut Cpu| -> Vec<String> {
        cpu.read(&[]).into_iter().filter(|seen| !seen.starts_with('(')).skip(2).collect()
    };
    let mut cpu = Cpu::new(true);
    cpu.put(&switch_to(10, 12));
    cpu.put(&[CAME | 13 << 32, 300, 11]);
    assert_eq!(switches(&mut cpu), ["11/12 went at 300 beside 13", "11/13 came at 300 beside 0"]);
    // A thread that appears again, and that came where none ran.
    let mut cpu = Cpu::new(true);
    cpu.put(&switch_to(10, 12));
    cpu.put(&[CAME | 12 << 32, 300, 11]);
    assert_eq!(switches(&mut cpu), ["11/12 came at 300 beside 0"]);
    let mut cpu = Cpu::new(true);
    cpu.put(&switch_to(10, 0));
    cpu.put(&[CAME | 13 << 32, 300, 11]);
    assert_eq!(cpu.read(&[]).iter().filter(|seen| seen.contains("went")).count(), 1);
    // It is uncertain when it went, where it is uncertain when the other came.
    let mut cpu = Cpu::new(true);
    cpu.put(&[SWITCH | HAS_NEXT << 8 | 10 << 32, 400, 9, 11 | 12 << 32]);
    cpu.read(&[]);
    cpu.put(&[CAME | 13 << 32, 300, 11]);
    let wanted = [
        "unsure of 13 from 300 to 400",
        "unsure of 12 from 300 to 400",
        "11/12 went at 400 beside 13",
        "11/13 came at 400 beside 0",
    ];
    assert_eq!(cpu.read(&[]), wanted);
    // Behind a loss no running thread is known; with some processes alone, no record says that a
    // thread has gone.
    let mut cpu = Cpu::new(true);
    cpu.put(&switch_to(10, 12));
    cpu.put(&[LOST, 200, 7, 190]);
    cpu.put(&[CAME | 13 << 32, 300, 11]);
    assert_eq!(switches(&mut cpu), ["lost 7 from 190 to 200", "11/13 came at 300 beside 0"]);
    let mut cpu = Cpu::new(false);
    cpu.put(&switch_to(10, 12));
    cpu.put(&[CAME | 13 << 32, 300, 11]);
    assert_eq!(switches(&mut cpu), ["11/13 came at 300"]);
}

#[test]
fn a_thread_seen_late_came_after_all_sorted_records() {
    let mut cpu = Cpu::new(false);
    cpu.switch(200, 10, false, 0, 0);
    cpu.read(&[]);
    cpu.put(&[CAME | 12 << 32, 150, 11]);
    cpu.put(&[CAME | 13 << 32, 250, 11]);
    // Until then it seems to have waited.
    let wanted = ["unsure of 12 from 150 to 200", "11/12 came at 200", "11/13 came at 250"];
    assert_eq!(cpu.read(&[]), wanted);
}

/// Readers would take it for a loss of all threads' records.
#[test]
fn the_idle_thread_comes_late_without_a_doubt() {
    let mut cpu = Cpu::new(false);
    cpu.switch(200, 10, false, 0, 0);
    cpu.read(&[]);
    cpu.put(&[CAME, 150, 0]);
    assert_eq!(cpu.read(&[]), ["0/0 came at 200"]);
}

#[test]
fn a_sample_shows_a_thread_that_came_unseen() {
    let mut cpu = Cpu::new(false);
    let (mut ring, mut written) = (Vec::new(), sample(5, 0, 0));
    written[4..8].copy_from_slice(&400u32.to_ne_bytes());
    push(&mut ring, thread(11, 12), 1000, &written);
    let seen = cpu.read(&ring);
    assert_eq!(seen[0], "11/12 came at 600");
    assert!(seen.len() == 2 && seen[1].starts_with("(5, 11, 12, 1000)"), "{seen:?}");
    push(&mut ring, thread(11, 12), 1000, &sample(5, 0, 0));
    assert_eq!(cpu.read(&ring[ring.len() / 2..]).len(), 1);
}

/// A sample has 32 bits for that: the largest number stands for all that are larger.
#[test]
fn a_thread_that_came_very_long_ago_came_behind_the_last_switch() {
    let mut cpu = Cpu::new(false);
    let (mut ring, mut written) = (Vec::new(), sample(5, 0, 0));
    written[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
    cpu.switch(100, 10, false, 0, 0);
    push(&mut ring, thread(11, 12), 10_000_000_000, &written);
    let seen = cpu.read(&ring);
    assert_eq!(seen[2..4], ["unsure of 12 from 100 to 5705032705", "11/12 came at 5705032705"]);
}

#[test]
fn wake_up_events_are_not_recorded() {
    let mut cpu = Cpu::new(false);
    let mut ring = Vec::new();
    let words = [WAKEUP_EVENT, 0, 0, 100, 3, 12, 0];
    let body: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
    push_record(&mut ring, record_type::SAMPLE, 0, &body);
    of_kernel(&mut ring, 150);
    assert_eq!(cpu.read(&ring), ["kind 4"]);
}

#[test]
fn every_stream_defines_the_stacks_that_it_needs() {
    let mut cpu = Cpu::new(false);
    cpu.stack(6, 1, &[500, 501]);
    cpu.stack(7, 1, &[600]);
    cpu.switch(100, 10, false, 7, 0);
    let first = cpu.read(&[]);
    assert!(first[0].contains("[fffffffffffffe00, 1f4, 1f5]"), "{first:?}");
    // Another stream: a reader of it knows nothing of the first.
    cpu.packing.start_stream();
    cpu.decoder.start_stream();
    cpu.unpacker = Unpacker::new(&packed::describe(&attr())).unwrap();
    cpu.switch(200, 10, false, 8, 0);
    cpu.switch(300, 10, false, 7, 0);
    let seen = cpu.read(&[]);
    assert!(seen[0].contains("[fffffffffffffe00, 258]"), "{seen:?}");
    assert!(seen[2].contains("[fffffffffffffe00, 1f4, 1f5]"), "{seen:?}");
    // If its place has another stack by now, a new one is defined.
    cpu.stack(6, 1, &[700]);
    cpu.switch(400, 10, false, 7, 0);
    assert!(cpu.read(&[])[0].contains("[fffffffffffffe00, 2bc]"));
}

/// A CPU with events: behaves as `bpf/channel.h` does, and as the kernel with a ring for few records. Each
/// moment is a number.
struct Running {
    cpu: Cpu,
    now: u64,
    /// Losses of the channel that no record reports yet: how many, the earliest time and the latest.
    untold: [u64; 3],
    ring: Vec<u8>,
    ring_records: usize,
    ring_lost: u64,
    /// Moments of the records that did not fit.
    dropped: Vec<u64>,
    /// Moments of the decoded records; of losses the first and last moment and the number; by stream.
    seen: Vec<u64>,
    windows: Vec<Vec<[u64; 3]>>,
}

impl Running {
    const RING_RECORDS: usize = 5;

    fn new() -> Running {
        Running {
            cpu: Cpu::new(false),
            now: 1,
            untold: [0; 3],
            ring: Vec::new(),
            ring_records: 0,
            ring_lost: 0,
            dropped: Vec::new(),
            seen: Vec::new(),
            windows: vec![Vec::new()],
        }
    }

    fn switch(&mut self) {
        let (time, [count, from, to]) = (self.now, self.untold);
        let record = [SWITCH | 7 << 32, time, 9];
        let whole = [&[LOST, to, count, from][..], &record].concat();
        let words = if count > 0 { &whole[..] } else { &record };
        let [written, read] = [0, 8].map(|at| self.cpu.words.load(self.cpu.start + at));
        let has_room = written + words.len() as u64 - read <= RING_WORDS as u64;
        self.untold = match (has_room, count) {
            (true, _) => [0; 3],
            (_, 0) => [1, time, time],
            _ => [count + 1, from, time],
        };
        if has_room {
            self.cpu.put(words);
        } else {
            self.dropped.push(time);
        }
        let [count, from, to] = self.untold;
        self.cpu.lose(count, from, to);
        self.now += 1;
    }

    fn ring_record(&mut self) {
        let time = self.now;
        self.now += 1;
        let needed = 1 + usize::from(self.ring_lost > 0);
        if self.ring_records + needed > Running::RING_RECORDS {
            self.ring_lost += 1;
            self.dropped.push(time);
            return;
        }
        if self.ring_lost > 0 {
            let words = [55, self.ring_lost, 0, time, u64::from(CPU), 55];
            let body: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
            push_record(&mut self.ring, record_type::LOST, 0, &body);
        }
        of_kernel(&mut self.ring, time);
        self.ring_records += needed;
        self.ring_lost = 0;
    }

    fn read(&mut self) {
        let ring = std::mem::take(&mut self.ring);
        self.ring_records = 0;
        for line in self.cpu.read(&ring) {
            let numbers: Vec<u64> =
                line.split([' ', ',', ')']).filter_map(|word| word.parse().ok()).collect();
            match line.split(' ').next() {
                Some("lost") => {
                    let window = [numbers[1], numbers[2], numbers[0]];
                    self.windows.last_mut().unwrap().push(window);
                }
                Some("9/7") => self.seen.push(numbers[0]),
                _ => {}
            }
        }
    }

    fn start_stream(&mut self) {
        self.read();
        self.cpu.decoder.start_stream();
        self.cpu.packing.start_stream();
        self.cpu.unpacker = Unpacker::new(&packed::describe(&attr())).unwrap();
        self.windows.push(Vec::new());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Switches(u16),
    RingRecords(u8),
    Read,
    StartStream,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u16..500).prop_map(Step::Switches),
        4 => (1u8..9).prop_map(Step::RingRecords),
        3 => Just(Step::Read),
        1 => Just(Step::StartStream),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    // Each takes 0.05 s in a development build.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any drops of the channel and the ring, and any order of reading: each moment of a drop lies in a window
    /// that the recording opens, and counts add up. A stream reports all drops of the channel before the stream's end.
    #[test]
    fn each_drop_lies_in_a_window(steps in steps()) {
        let mut running = Running::new();
        let mut switches = 0;
        for step in steps {
            match step {
                Step::Switches(count) => {
                    switches += u64::from(count);
                    (0..count).for_each(|_| running.switch());
                }
                Step::RingRecords(count) => (0..count).for_each(|_| running.ring_record()),
                Step::Read => running.read(),
                Step::StartStream => {
                    running.start_stream();
                    let dropped = running.cpu.decoder.counts.lost_switches;
                    prop_assert_eq!(running.seen.len() as u64 + dropped, switches);
                }
            }
        }
        // The kernel reports losses of the ring in front of its next record.
        running.read();
        running.ring_record();
        running.read();
        let all: Vec<_> = running.windows.iter().flatten().collect();
        for time in &running.dropped {
            let is_covered = all.iter().any(|window| (window[0]..=window[1]).contains(time));
            prop_assert!(is_covered, "{} of {:?}", time, all);
        }
        let counted: u64 = all.iter().map(|window| window[2]).sum();
        prop_assert_eq!(counted, running.dropped.len() as u64);
        let dropped = running.cpu.decoder.counts.lost_switches;
        prop_assert_eq!(running.seen.len() as u64 + dropped, switches);
    }
}

#[test]
fn losses_that_the_kernel_reports_by_the_wake_up_event_name_a_known_event() {
    let mut cpu = Cpu::new(true);
    let report = |id: u64| {
        let words = [id, 17, thread(9, 10), 500, 3, id];
        let mut ring = Vec::new();
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        push_record(&mut ring, record_type::LOST, 0, &body);
        ring
    };
    for (reported, known) in [(WAKEUP_EVENT, BPF_OUTPUT), (5, 5)] {
        let out = read(&mut cpu.decoder, &report(reported));
        let (record, _) = RawRecord::split(&out).unwrap();
        let words: Vec<_> = record
            .body
            .chunks(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(record.header.kind, record_type::LOST);
        assert_eq!((words[0], words[1], words.last()), (known, 17, Some(&known)));
    }
}

/// Records and samples, each packed one for as many as it stands for.
fn counted(bytes: &[u8]) -> (u64, u64) {
    let slices = RingSlices([bytes, &[]]);
    let word = |at| slices.word(at).unwrap();
    let one = |seen: RecordRef| match seen.kind {
        record_type::SAMPLE if word(seen.at + 8) == packed::PACKED_ID => {
            packed::tally(word(seen.at + seen.size - packed::TAIL_BYTES + 8))
        }
        kind => (1, u64::from(kind == record_type::SAMPLE)),
    };
    slices.records_from(0).map(one).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}
