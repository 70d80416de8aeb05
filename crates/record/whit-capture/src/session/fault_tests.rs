//! Recordings with faults on order: a ring without a kernel, a disk that fails, and the recorder's whole way in
//! between. No test here needs the right to record.
//!
//! The law of all of them: the records that were taken from the ring are those in the recording and those that are
//! counted as unwritten.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use whit_engine_api::event::EventSpec;
use whit_engine_api::open_event::InstanceIndex;
use whit_engine_api::rings::{AnyRing, MappedRing};
use whit_engine_api::time_layout::TimeLayout;
use whit_host::roots::Roots;
use whit_host::target::{CpuScope, Plan, ThreadScope};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType, pmu_type};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{CompressedDesc, EventDesc, Features};
use whit_perfdata::ledger::{Ledger, PmiMeasurement};
use whit_perfdata::reader::{OpenError, Recording};
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::StreamReader;
use whit_sys::{Errno, PerfEventFd, affinity, system};
use whit_testing::fault::{FakeRing, Faults, FaultyFile};
use whit_types::CpuId;

use super::context::SessionContext;
use super::cost_baseline::CostBaseline;
use super::cpu_watch::CpuWatch;
use super::header::KnownHeader;
use super::ledger::{Ending, Meters};
use super::metering::Metering;
use super::output_file::OutputFile;
use super::outputs::Outputs;
use super::reader_share::ReaderShare;
use super::reader_thread::Reader;
use super::wait::RingWaiter;
use crate::loss::{Mappings, RingCounts, Tally};
use crate::options::{Output, Streaming};
use crate::plan::RecordPlan;
use crate::ring_drainer::{Pass, RingDrainer, RingDrainerOptions};
use crate::stream::{DECODED_BYTES_MAX, Medium, SinkError, StreamOptions, StreamSink};

mod full_disk;
mod killed;
mod law;
mod stalled;
mod threads;

/// The event's id.
const ID: u64 = 7;
const PAGES: usize = 8;

static ROOTS: LazyLock<Roots> = LazyLock::new(Roots::default);

impl Medium for FaultyFile {
    fn write_at(&self, offset: u64, pieces: [&[u8]; 2]) -> io::Result<usize> {
        FaultyFile::write_at(self, offset, pieces)
    }

    fn append(&self, pieces: [&[u8]; 2]) -> io::Result<usize> {
        FaultyFile::append(self, pieces)
    }

    fn set_len(&self, size_bytes: u64) -> io::Result<()> {
        FaultyFile::set_len(self, size_bytes)
    }

    fn file(&self) -> Option<&Arc<File>> {
        None
    }
}

fn attr() -> Attr {
    let sample_type = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU;
    Attr { sample_type, flags: AttrFlags::SAMPLE_ID_ALL, ..Attr::default() }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The kernel's side of a ring. Samples have numbers, in place of addresses.
#[derive(Debug)]
struct Kernel {
    ring: FakeRing,
    samples: u64,
    /// Samples that did not fit the ring.
    lost: u64,
    /// Those among them that no LOST record has reported.
    unreported: u64,
}

impl Kernel {
    fn new() -> Kernel {
        let ring = FakeRing::new(system::page_size(), PAGES).unwrap();
        Kernel { ring, samples: 0, lost: 0, unreported: 0 }
    }

    fn map(&self, is_backward: bool) -> AnyRing {
        let event = PerfEventFd::fake(self.ring.descriptor().unwrap());
        AnyRing::map(&event, PAGES, is_backward).unwrap()
    }

    /// The next sample, with more words behind its fields.
    fn sample(&mut self, more_words: usize) -> Vec<u8> {
        self.samples += 1;
        let time = 1000 + self.samples * 10;
        let mut body = words(&[ID, self.samples, 1 << 32 | 1, time, 0]);
        body.resize(body.len() + 8 * more_words, self.samples as u8);
        let mut record = Vec::new();
        push_record(&mut record, record_type::SAMPLE, 0, &body);
        record
    }

    fn sample_bytes(&self, more_words: usize) -> usize {
        48 + 8 * more_words
    }

    /// Writes a sample, with a LOST record in front where samples were lost. Both fit, or neither is written.
    fn emit(&mut self, more_words: usize) {
        let mut bytes = Vec::new();
        if self.unreported > 0 {
            let time = 1005 + self.samples * 10;
            let body = words(&[ID, self.unreported, 1 << 32 | 1, time, 0, ID]);
            push_record(&mut bytes, record_type::LOST, 0, &body);
        }
        bytes.extend(self.sample(more_words));
        if self.ring.push(&bytes).unwrap() {
            self.unreported = 0;
        } else {
            self.lost += 1;
            self.unreported += 1;
        }
    }
}

/// A reader between a kernel and a disk, with all that a session has for its output.
struct Rig {
    kernel: Kernel,
    is_backward: bool,
    drainer: RingDrainer,
    sink: StreamSink,
    disk: Arc<FaultyFile>,
    path: PathBuf,
    /// Where records begin in the file.
    start: u64,
    file: OutputFile,
    outputs: Outputs,
    context: SessionContext<'static>,
    meters: Meters,
}

impl Rig {
    /// `faults` are those of the disk; the argument is the place of the first record.
    fn new(place: &Path, streaming: &Streaming, faults: impl FnOnce(u64) -> Faults) -> Rig {
        let kernel = Kernel::new();
        let ring = kernel.map(false);
        Rig::with_ring(place, streaming, faults, kernel, ring)
    }

    fn with_ring(
        place: &Path,
        streaming: &Streaming,
        faults: impl FnOnce(u64) -> Faults,
        kernel: Kernel,
        ring: AnyRing,
    ) -> Rig {
        let path = place.join("perf.data");
        let context = context(&path, streaming);
        let outputs = Outputs::new(header(streaming), vec![1]);
        let baseline = CostBaseline::open().unwrap();
        let output = outputs.create(&context.plan, baseline, &mut |_| ()).unwrap();
        let (file, streams) = output.into_parts();
        let start = std::fs::metadata(&path).unwrap().len();
        let disk = File::options().read(true).write(true).open(&path).unwrap();
        let disk = Arc::new(FaultyFile::new(disk, faults(start)));
        let options = StreamOptions {
            compression_level: streaming.compression_level,
            is_packed: false,
            whole_frames: false,
            async_blocks: streaming.async_blocks,
            cpus: affinity::get(0).unwrap_or_default(),
        };
        let stream = streams[0].file().clone().on(disk.clone());
        let (sink, _) = StreamSink::new(stream, &options).unwrap();
        let is_backward = ring.is_backward();
        let members = is_backward.then_some(InstanceIndex { event: 0, instance: 0 });
        let members = members.into_iter().collect();
        let rings = vec![MappedRing { ring, cpu: Some(CpuId(0)), is_sideband: false, members }];
        let metering = Metering::Off(PmiMeasurement::NoPmuEvent);
        let meters = Meters::new(metering, CpuWatch::default(), &rings);
        let mappings = Mappings { have_build_ids: false, are_described: true };
        let options = RingDrainerOptions { flush_bytes: 1, marks_rounds: true, mappings };
        let drainer =
            RingDrainer::new(rings, TimeLayout::new(&attr()), options, |_| None, |_| None);
        Rig {
            kernel,
            is_backward,
            drainer,
            sink,
            disk,
            path,
            start,
            file,
            outputs,
            context,
            meters,
        }
    }

    fn pass(&mut self, which: Pass) -> Result<u64, SinkError> {
        self.drainer.pass(&mut self.sink, which)
    }

    /// Bytes that wait in the ring; one that is overwritten never has any.
    fn unread_bytes(&self) -> u64 {
        if self.is_backward { 0 } else { self.kernel.ring.unread_bytes().unwrap() }
    }

    /// Empties the ring, has all of it written, and completes the output as a session does.
    fn end(mut self, failed: Option<io::Error>) -> Recorded {
        let mut failed = failed;
        while failed.is_none() && self.unread_bytes() > 0 {
            failed = self.pass(Pass::Everything).err().map(|error| error.0);
        }
        let unread = self.unread_bytes();
        let Rig { kernel, drainer, sink, path, file, outputs, context, meters, .. } = self;
        let share = reader(drainer).with_stream(sink).into_share();
        let mut way_out = WayOut { outputs, context, meters };
        let (share, ledger, has_failed) = way_out.complete(file, share, failed);
        let stored = Stored::read(&path).unwrap();
        Recorded { kernel, unread, share, has_failed, stored, ledger }
    }
}

/// The parts by which a session completes its outputs.
struct WayOut {
    outputs: Outputs,
    context: SessionContext<'static>,
    meters: Meters,
}

impl WayOut {
    /// Completes an output as a session does. Gives the reader's counts, the ledger, and whether anything failed.
    fn complete(
        &mut self,
        file: OutputFile,
        share: ReaderShare,
        failed: Option<io::Error>,
    ) -> (ShareCounts, Ledger, bool) {
        let WayOut { outputs, context, meters } = self;
        let mut ended = file.ended(vec![share], failed);
        ended.settle(&context.synthesis(&[]), &mut |_| ());
        let ending = Ending { stopped: Instant::now(), used_ns: 0, enabled: Duration::ZERO };
        let ledger = ended.ledger(meters, &ending, &[], &ROOTS);
        let [share] = ended.shares() else { panic!("one reader") };
        let counts = share.sink.counts();
        let share = ShareCounts { taken: share.rings[0], unwritten: counts.unwritten };
        let (summary, failed) = outputs.close(ended, context, ledger, &mut |_| ());
        (share, summary.ledger, failed.is_some())
    }
}

/// A reader that waits for orders alone.
fn reader(ring_drainer: RingDrainer) -> Reader {
    let waiter = RingWaiter::new(&[], []).unwrap();
    Reader { ring_drainer, waiter, runs_on: None }
}

fn context(path: &Path, streaming: &Streaming) -> SessionContext<'static> {
    let event = EventSpec::new("cpu-clock", pmu_type::SOFTWARE, 0);
    let mut plan = RecordPlan::for_command(vec![event], Output::File(path.to_owned()));
    plan.streams.streaming = streaming.clone();
    plan.output.compression_level = streaming.compression_level;
    let targets = Plan { cpus: CpuScope::Any, threads: ThreadScope::All, inherit: false };
    SessionContext { plan, roots: &ROOTS, targets, known_files: Arc::default() }
}

fn header(streaming: &Streaming) -> KnownHeader {
    let event = EventDesc { attr: attr(), ids: vec![ID], name: "cpu-clock".to_owned() };
    let mut features = Features::default();
    if let Some(level) = streaming.compression_level {
        features.set_compressed(&CompressedDesc::zstd(level as u32, 1, DECODED_BYTES_MAX));
    }
    KnownHeader { descriptions: vec![event], features }
}

/// All ways of writing a file.
fn ways() -> Vec<Streaming> {
    let with = |(compression_level, async_blocks)| Streaming {
        compression_level,
        async_blocks,
        ..Streaming::default()
    };
    [(None, 0), (None, 1), (None, 3), (Some(1), 0), (Some(1), 1), (Some(1), 3)].map(with).into()
}

/// The contents of a recording.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stored {
    /// Records that the kernel wrote.
    records: u64,
    /// The numbers of the samples.
    samples: Vec<u64>,
    /// Losses that LOST records report.
    lost: u64,
    /// LOST_SAMPLES records that report none: windows of rings that are overwritten.
    gaps: u64,
    /// The end of a stream is no whole record.
    is_truncated: bool,
    /// A stream cannot be read to its end.
    is_broken: bool,
    /// The header was never completed.
    is_cut: bool,
    ledger: Option<Ledger>,
}

impl Stored {
    fn read(path: &Path) -> Result<Stored, OpenError> {
        let recording = Recording::open(path)?;
        let mut stored = Stored {
            is_cut: recording.is_cut,
            ledger: recording.features.ledger(),
            ..Stored::default()
        };
        for stream in recording.streams {
            let mut reader = StreamReader::new(stream);
            let mut block = Vec::new();
            loop {
                match reader.next_block(&mut block) {
                    Ok(Some(_)) => stored.add(&block),
                    Ok(None) => break,
                    Err(_) => {
                        stored.is_broken = true;
                        break;
                    }
                }
            }
            stored.is_truncated |= reader.truncation().is_some();
        }
        Ok(stored)
    }

    fn add(&mut self, block: &[u8]) {
        let word =
            |body: &[u8], at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
        let mut rest = block;
        while let Some((record, behind)) = RawRecord::split(rest) {
            rest = behind;
            match record.header.kind {
                record_type::FINISHED_ROUND => continue,
                record_type::SAMPLE => self.samples.push(word(record.body, 8)),
                record_type::LOST => self.lost += word(record.body, 8),
                record_type::LOST_SAMPLES => {
                    self.gaps += 1;
                    continue;
                }
                other => panic!("no record of ours: {other}"),
            }
            self.records += 1;
        }
    }
}

/// The counts of a reader, when all was written.
#[derive(Clone, Copy, Debug)]
struct ShareCounts {
    taken: RingCounts,
    unwritten: Tally,
}

/// A recording that has ended.
struct Recorded {
    kernel: Kernel,
    /// Bytes that are still in the ring.
    unread: u64,
    share: ShareCounts,
    has_failed: bool,
    stored: Stored,
    ledger: Ledger,
}

/// The law, and all that follows from it.
fn assert_law(share: &ShareCounts, stored: &Stored, ledger: &Ledger, how: &dyn Debug) {
    let &ShareCounts { taken, unwritten } = share;
    let samples = stored.samples.len() as u64;
    assert_eq!(taken.records, stored.records + unwritten.records, "{how:?}: {stored:?}");
    assert_eq!(taken.samples, samples + unwritten.samples, "{how:?}: {stored:?}");
    assert!(!stored.is_broken && !stored.is_truncated && !stored.is_cut, "{how:?}");
    assert!(stored.samples.is_sorted(), "{how:?}: {stored:?}");
    assert_eq!(ledger.samples, samples, "{how:?}");
    assert_eq!(ledger.unwritten_records, unwritten.records, "{how:?}");
    assert_eq!(ledger.lost_records, taken.lost_records + unwritten.records, "{how:?}");
    assert_eq!(stored.ledger.as_ref(), Some(ledger), "{how:?}");
}

impl Recorded {
    fn assert_law(&self, how: &dyn Debug) {
        let Recorded { kernel, share, stored, ledger, .. } = self;
        assert_law(share, stored, ledger, how);
        if self.has_failed {
            return;
        }
        assert_eq!((share.unwritten, self.unread), (Tally::default(), 0), "{how:?}");
        assert_eq!(kernel.samples, stored.samples.len() as u64 + kernel.lost, "{how:?}");
        assert_eq!(stored.lost + kernel.unreported, kernel.lost, "{how:?}");
    }
}
