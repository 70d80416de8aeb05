//! `drain` on the control channel: the records of this moment are in the output when it is answered.

use super::control::Channel;
use super::support::{TestFolder, WORK, stderr, wait_for_command, wait_for_work};
use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use whit_perfdata::event_table::EventTable;
use whit_perfdata::reader::event_of_attr_record;
use whit_perfdata::record::{RawRecord, record_type};
use whit_sys::clock::ClockId;

/// Drains of one recording. Rings are emptied once a second anyway, which may hit one of them.
const DRAINS: u64 = 5;
/// Work of the program between two drains. It is sampled four thousand times a second.
const BETWEEN: Duration = Duration::from_millis(1);
/// A stream that has no mark in this time will have none.
const PATIENCE: Duration = Duration::from_secs(60);

/// The stream of a recorder, taken while it is written.
struct Stream {
    bytes: Vec<u8>,
    pieces: Receiver<Vec<u8>>,
}

impl Stream {
    fn of(recorder: &mut Child) -> Stream {
        let mut out = recorder.stdout.take().unwrap();
        let (sender, pieces) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while let Ok(read @ 1..) = out.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Stream { bytes: Vec::new(), pieces }
    }

    /// The latest time of a sample in front of the mark, in nanoseconds.
    fn until_mark(&mut self, number: u64) -> u64 {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(latest_ns) = latest_before(&self.bytes, number) {
                return latest_ns;
            }
            let left = end.saturating_duration_since(Instant::now());
            self.bytes.extend(self.pieces.recv_timeout(left).expect("a mark in the stream"));
        }
    }
}

fn latest_before(stream: &[u8], number: u64) -> Option<u64> {
    let (mut events, mut table) = (Vec::new(), EventTable::new(&[]));
    let mut latest_ns = 0;
    let mut rest = stream.get(16..)?;
    while let Some((record, behind)) = RawRecord::split(rest) {
        rest = behind;
        match record.header.kind {
            record_type::HEADER_ATTR => {
                events.extend(event_of_attr_record(record.body));
                table = EventTable::new(&events);
            }
            record_type::SAMPLE => {
                let event = table.event_of_sample(record.body);
                let layout = event.and_then(|event| table.layout(event));
                let time = layout.and_then(|layout| layout.sample_time(record.body));
                latest_ns = time.map_or(latest_ns, |time| time.0.max(latest_ns));
            }
            record_type::TRACING_DATA => panic!("no tracepoint is recorded"),
            record_type::FINISHED_ROUND if record.body == number.to_le_bytes() => {
                return Some(latest_ns);
            }
            _ => {}
        }
    }
    None
}

#[test]
fn records_of_this_moment_are_in_the_stream_when_a_drain_is_answered() {
    whit_testing::check("records_of_this_moment_are_in_the_stream", || {
        for engine in ["--engine=ring", "--engine=bpf"] {
            whit_testing::run::needs_of_line([engine])?;
            let place = TestFolder::new();
            let mut channel = Channel::make(&place);
            let fixed = ["--control", "fifo:ctl,ack", "-o", "-", "-k", "mono", "--switch-events"];
            let sleeps = "while :; do sleep 0.001; done";
            let command = ["--no-pack", engine, "-e", "cpu-clock", "--", "sh", "-c", sleeps];
            let mut whit = place.start(&[&fixed[..], &command].concat());
            let program = wait_for_command(&whit, "sh");
            let mut stream = Stream::of(&mut whit);
            for number in 1..=DRAINS {
                let begin_ns = ClockId::MONOTONIC.now_ns().unwrap();
                wait_for_work(program, BETWEEN);
                channel.ask(&format!("drain {number}"));
                let latest_ns = stream.until_mark(number);
                assert!(
                    latest_ns > begin_ns,
                    "{engine}: {BETWEEN:?} of work and {} ns before it are missing",
                    begin_ns - latest_ns
                );
            }
            channel.ask("stop");
            drop(stream);
            let output = whit.wait_with_output().unwrap();
            assert!(stderr(&output).contains("whit record"), "{}", stderr(&output));
        }
        Ok(())
    });
}

#[test]
fn drains_go_with_parallel_asynchronous_compressed_streams() {
    for modes in [&[][..], &["--threads", "--aio", "-z"]] {
        let place = TestFolder::new();
        let mut channel = Channel::make(&place);
        let fixed = ["-e", "cpu-clock:u", "--control", "fifo:ctl,ack", "-o", "out"];
        let command = ["--", "sh", "-c", "while :; do :; done"];
        let whit = place.start(&[&fixed[..], modes, &command].concat());
        let program = wait_for_command(&whit, "sh");
        let size = || size_bytes(&place.path("out"));
        let mut last = size();
        for _ in 0..DRAINS {
            wait_for_work(program, WORK);
            channel.ask("drain");
            let now = size();
            assert!(now > last, "{modes:?}: {last} bytes before and {now} behind");
            last = now;
        }
        channel.ask("stop");
        let output = whit.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        if super::support::has_perf("drains_go_with_all_streams") {
            let samples = super::support::samples(&output)[0];
            let of_perf = super::support::count(&place.path("out"), "SAMPLE");
            assert_eq!(of_perf, samples, "{modes:?}");
        }
    }
}

/// Bytes of a file, or of all files of a directory.
fn size_bytes(path: &std::path::Path) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| size_bytes(&entry.unwrap().path())).sum(),
        Err(_) => path.metadata().unwrap().len(),
    }
}
