//! The accounts close: recorded + lost = produced, by a counter of the same event that whit knows
//! nothing of.

use super::control::Channel;
use super::support::{TestFolder, samples, stderr};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_sys::{OpenFlags, PerfEventFd};

/// `PERF_COUNT_SW_PAGE_FAULTS`.
const PAGE_FAULTS: u64 = 2;
/// Larger than the allocator's cache: each piece of this size is mapped anew.
const PIECE_BYTES: usize = 48 << 20;
const PIECES: usize = 3;
const PAGE_BYTES: usize = 4096;

/// A thread that waits for a command, and then touches memory that it has never touched before.
struct Toucher {
    tid: i32,
    go: Option<std::sync::mpsc::Sender<()>>,
    thread: JoinHandle<()>,
}

impl Toucher {
    fn start() -> Toucher {
        let (say, tid) = channel();
        let (go, wait) = channel();
        let thread = std::thread::spawn(move || touch(&say, &wait));
        Toucher { tid: tid.recv().unwrap(), go: Some(go), thread }
    }

    fn run_to_the_end(mut self) {
        self.go = None;
        self.thread.join().unwrap();
    }
}

fn touch(say: &std::sync::mpsc::Sender<i32>, wait: &Receiver<()>) {
    let path = std::fs::read_link("/proc/thread-self").unwrap();
    say.send(path.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
    assert!(wait.recv().is_err());
    for _ in 0..PIECES {
        let mut piece = vec![0u8; PIECE_BYTES];
        for page in piece.chunks_mut(PAGE_BYTES) {
            page[0] = std::hint::black_box(1);
        }
    }
}

/// Counts page faults of a thread in user mode from now on.
fn counter(tid: i32) -> PerfEventFd {
    let flags = AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    let attr = Attr { pmu_type: pmu_type::SOFTWARE, config: PAGE_FAULTS, flags, ..Attr::default() };
    PerfEventFd::open(&attr.to_bytes(), tid, -1, None, OpenFlags::default()).unwrap()
}

fn produced(counter: &PerfEventFd) -> u64 {
    let mut value = [0];
    counter.read(&mut value).unwrap();
    value[0]
}

/// The number behind ` lost ` in the line after the recording.
fn lost(text: &str) -> u64 {
    let (_, rest) = text.rsplit_once("; lost ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

fn assert_closed(mode: &[&str], ring_pages: &str) -> u64 {
    let place = TestFolder::new();
    let mut channel = Channel::make(&place);
    let toucher = Toucher::start();
    let tid = toucher.tid.to_string();
    let counter = counter(toucher.tid);
    let fixed = ["-e", "page-faults:u", "-c", "1", "-t", &tid, "-m", ring_pages];
    let rest = ["--call-graph", "dwarf,16384", "-D", "-1", "--control", "fifo:ctl,ack"];
    let whit = place.start(&[&fixed[..], &rest, mode, &["-o", "out"]].concat());
    channel.ask("enable");
    let before = produced(&counter);
    toucher.run_to_the_end();
    let produced = produced(&counter) - before;
    let output = whit.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{mode:?}: {text}");
    let lost = lost(&text);
    // The thread's own end is a record as well, and may be one of those that are lost.
    let recorded = samples(&output)[0];
    assert!(recorded > 0 && produced > 0, "{mode:?}: {text}");
    assert!(
        recorded + lost == produced || recorded + lost == produced + 1,
        "{mode:?}: {recorded} recorded, {lost} lost, {produced} produced"
    );
    println!("{mode:?}: {recorded} recorded + {lost} lost = {produced} produced");
    lost
}

#[test]
fn recorded_and_lost_add_up_to_the_produced() {
    let modes: [&[&str]; 7] = [
        &[],
        &["--aio"],
        &["-z"],
        &["-z", "--aio=4"],
        &["--dir", "--affinity=cpu"],
        &["--threads"],
        &["--threads", "--aio=2", "-z", "--affinity=cpu", "--mmap-flush=16K"],
    ];
    let lost: u64 = modes.iter().map(|mode| assert_closed(mode, "16")).sum();
    if lost == 0 {
        whit_testing::skip(
            "losses in rings of 64 KiB",
            "this machine is so fast that there were none",
        );
    }
}
