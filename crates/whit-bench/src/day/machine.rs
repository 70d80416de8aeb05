//! A machine whose processes come and go, as the stream of a recorder.

use std::collections::VecDeque;
use std::fs;

use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_perfdata::record::{RecordHeader, misc, record_type};

use crate::random::Random;

/// Where real libraries are, whose symbols are read.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
/// So many of them.
const LIBRARIES_MAX: usize = 100;
/// Mappings of a new process.
const MAPPINGS: u64 = 8;
/// Bytes of a mapping; code in it is sampled anywhere.
const MAPPING_BYTES: u64 = 1 << 20;
/// Longest life of a process in seconds.
const LIFE_S: usize = 30;
/// Processes that run all day, and map something new once a minute.
const SERVERS: i32 = 40;
/// Process ids are used again.
const PID_MAX: i32 = 30_000;
const SEED: u64 = 1;

/// A process that runs.
struct Running {
    pid: i32,
    ends_s: u64,
    mappings: u64,
}

/// Processes with random lives.
pub(super) struct Machine {
    random: Random,
    libraries: Vec<String>,
    servers: Vec<Running>,
    running: VecDeque<Running>,
    samples: usize,
    processes: usize,
    begun: u64,
}

impl Machine {
    pub(super) fn new(samples: usize, processes: usize) -> Machine {
        let mut libraries: Vec<String> = fs::read_dir(LIBRARIES)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().display().to_string())
            .filter(|path| path.contains(".so"))
            .collect();
        libraries.sort();
        libraries.truncate(LIBRARIES_MAX);
        Machine {
            random: Random::new(SEED),
            libraries,
            servers: Vec::new(),
            running: VecDeque::new(),
            samples,
            processes,
            begun: 0,
        }
    }

    /// Processes that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    pub(super) fn is_alive(&self, pid: i32) -> bool {
        self.servers.iter().chain(&self.running).any(|running| running.pid == pid)
    }

    /// The head of the stream, and the processes that run all day.
    pub(super) fn begin(&mut self) -> Vec<u8> {
        let attr = Attr {
            sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let body = [attr.to_bytes(), 5u64.to_le_bytes().to_vec()].concat();
        let head = record(record_type::HEADER_ATTR, 0, &body);
        let mut out = [b"PERFILE2".as_slice(), &16u64.to_le_bytes(), &head].concat();
        for pid in 1..=SERVERS {
            let server = self.start(pid, u64::MAX, 1, &mut out);
            self.servers.push(server);
        }
        out
    }

    /// The records of a second.
    pub(super) fn second(&mut self, now_s: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let time = now_s * 1_000_000_000;
        while self.running.front().is_some_and(|process| process.ends_s <= now_s)
            && let Some(ended) = self.running.pop_front()
        {
            // The records of some ends are lost.
            if self.random.below(10) > 0 {
                out.extend(task(record_type::EXIT, ended.pid, 1, time));
            }
        }
        for _ in 0..self.processes {
            let pid = SERVERS + 1 + (self.begun % (PID_MAX as u64)) as i32;
            out.extend(task(record_type::FORK, pid, 1, time));
            let ends_s = now_s + 1 + self.random.below(LIFE_S) as u64;
            let process = self.start(pid, ends_s, time, &mut out);
            let at = self.running.partition_point(|other| other.ends_s <= ends_s);
            self.running.insert(at, process);
        }
        if now_s.is_multiple_of(60) {
            for at in 0..self.servers.len() {
                let (pid, number) = (self.servers[at].pid, self.servers[at].mappings);
                self.map(pid, number, time, &mut out);
                self.servers[at].mappings += 1;
            }
        }
        for _ in 0..self.samples {
            self.sample(time, &mut out);
        }
        out
    }

    fn start(&mut self, pid: i32, ends_s: u64, time: u64, out: &mut Vec<u8>) -> Running {
        self.begun += 1;
        out.extend(named(
            record_type::COMM,
            misc::COMM_EXEC,
            pid,
            &[],
            &format!("job-{}", self.begun),
            time,
        ));
        (0..MAPPINGS).for_each(|number| self.map(pid, number, time, out));
        Running { pid, ends_s, mappings: MAPPINGS }
    }

    /// A real library, or a file that only this process had.
    fn map(&mut self, pid: i32, number: u64, time: u64, out: &mut Vec<u8>) {
        let path = match self.libraries.len() {
            count if count > 0 && self.random.below(4) > 0 => {
                self.libraries[self.random.below(count)].clone()
            }
            _ => format!("/srv/job-{pid}/plugin-{number}-of-{time}.so"),
        };
        let words = [address_of(number), MAPPING_BYTES, 0].map(u64::to_le_bytes).concat();
        out.extend(named(record_type::MMAP, misc::USER, pid, &words, &path, time));
    }

    fn sample(&mut self, time: u64, out: &mut Vec<u8>) {
        let count = self.servers.len() + self.running.len();
        let chosen = self.random.below(count);
        let process = match chosen.checked_sub(self.servers.len()) {
            Some(at) => &self.running[at],
            None => &self.servers[chosen],
        };
        let (pid, mappings) = (process.pid, process.mappings);
        let mapping = self.random.below(mappings as usize) as u64;
        let ip = address_of(mapping) + self.random.below(MAPPING_BYTES as usize) as u64;
        let body = [ip.to_le_bytes().to_vec(), trailer(pid, time)].concat();
        out.extend(record(record_type::SAMPLE, misc::USER, &body));
    }
}

fn address_of(mapping: u64) -> u64 {
    0x4000_0000 + mapping * 2 * MAPPING_BYTES
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size_bytes = (8 + body.len()) as u16;
    [&RecordHeader { kind, misc, size_bytes }.to_bytes(), body].concat()
}

/// Process, thread and time, at the end of each record.
fn trailer(pid: i32, time: u64) -> Vec<u8> {
    [&pid.to_le_bytes()[..], &pid.to_le_bytes(), &time.to_le_bytes()].concat()
}

/// A record of a process with words and a text.
fn named(kind: u32, misc: u16, pid: i32, words: &[u8], text: &str, time: u64) -> Vec<u8> {
    let mut text = text.as_bytes().to_vec();
    text.resize(text.len() / 8 * 8 + 8, 0);
    let ids = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
    record(kind, misc, &[&ids[..], words, &text, &trailer(pid, time)].concat())
}

/// Fork or exit.
fn task(kind: u32, pid: i32, parent: i32, time: u64) -> Vec<u8> {
    let ids = [pid, parent, pid, parent].map(i32::to_le_bytes).concat();
    record(kind, 0, &[&ids[..], &time.to_le_bytes(), &trailer(pid, time)].concat())
}
