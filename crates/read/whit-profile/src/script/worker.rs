//! Formatting samples: one thread's part.

use super::frame_texts::{FrameContext, FrameTexts};
use super::{Candidate, Format, RecordStart, ScriptedRecord, ScriptedSample};
use crate::call_chain::chain::{Chain, ChainMaker};
use crate::first_pass::prepare::Prepared;
use crate::in_order::ordered::{Batch, PendingSample};
use crate::in_order::ordered_pool;
use crate::naming::lookup::Lookup;
use crate::naming::place_names::PlaceNames;
use crate::reading::Reading;
use std::mem;
use whit_perfdata::attr::{AttrFlags, SampleType};
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_perfdata::sample::Sample;
use whit_types::{OutsideText, Pid, Tid, TimestampNs};

/// Bytes of text from which on a job's text is handed over in parts.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// The inputs that all workers share.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) reading: Reading<'a>,
    pub(super) prepared: &'a Prepared,
    pub(super) format: &'a dyn Format,
}

/// Samples to format, and their text.
#[derive(Default)]
pub(super) struct Job {
    pub(super) samples: Batch,
    /// From when the time of each sample is shown; empty where that is the clock's zero.
    pub(super) shown_since: Vec<TimestampNs>,
    pub(super) text: Vec<u8>,
    pub(super) formatted: u64,
    /// Samples shorter than their fields say.
    pub(super) unreadable: u64,
    /// Samples whose stack whit cannot unwind.
    pub(super) foreign_stacks: u64,
}

/// Formats samples. One per thread.
pub(super) struct Worker<'a> {
    work: Work<'a>,
    maker: ChainMaker<'a>,
    names: PlaceNames<'a>,
    chain: Chain,
    texts: FrameTexts,
}

impl<'a> Worker<'a> {
    pub(super) fn new(work: Work<'a>) -> Self {
        Worker {
            work,
            maker: ChainMaker::new(work.prepared.chain_context(work.reading.options.max_stack)),
            names: PlaceNames::new(work.prepared),
            chain: Chain::default(),
            texts: FrameTexts::default(),
        }
    }
}

impl ordered_pool::Worker for Worker<'_> {
    type Job = Job;
    type Rest = ();

    /// Fills the job's text.
    fn run(&mut self, job: &mut Job, hand_over: &mut dyn FnMut(Job)) {
        (job.formatted, job.unreadable, job.foreign_stacks) = (0, 0, 0);
        job.text.clear();
        for (index, pending) in job.samples.iter().enumerate() {
            let shown_since = job.shown_since.get(index).copied().unwrap_or(TimestampNs(0));
            match self.format(&pending, shown_since, &mut job.text) {
                Formatted::Yes => {
                    job.formatted += 1;
                    job.foreign_stacks += u64::from(self.chain.is_foreign);
                }
                Formatted::Unreadable => job.unreadable += 1,
                Formatted::Unwanted | Formatted::Other => {}
            }
            if job.text.len() > MAX_TEXT_BYTES {
                hand_over(Job { text: mem::take(&mut job.text), ..Job::default() });
            }
        }
        // The blocks that the samples stand in are free again.
        job.samples.clear();
    }

    fn end(self) {}
}

impl Worker<'_> {
    fn format(
        &mut self,
        pending: &PendingSample<'_>,
        shown_since: TimestampNs,
        out: &mut Vec<u8>,
    ) -> Formatted {
        let record = pending.record();
        let Work { reading: Reading { recording, .. }, prepared, format, .. } = self.work;
        if record.header.kind != record_type::SAMPLE {
            self.record(pending, record, shown_since, out);
            return Formatted::Other;
        }
        let Chosen { event, sample, pid, tid, comm } = match self.choose(pending, record) {
            Ok(chosen) => chosen,
            Err(why) => return why,
        };
        let event_desc = &recording.events[event];
        let attr = &event_desc.attr;
        let deferred = prepared.deferred_chain(&sample, pending.block());
        // An exec may lie between a sample and the return to user mode.
        let chain_time = deferred.and_then(|chain| chain.time).unwrap_or(pending.time);
        let epoch = prepared.model.space_at(pid, chain_time);
        self.texts.begin();
        self.chain.is_foreign = false;
        if format.wants_chain(event) {
            let cpu_mode = record.header.cpu_mode();
            self.maker.make(&sample, cpu_mode, attr, epoch, deferred, &mut self.chain);
            let in_chain =
                attr.sample_type.contains(SampleType::CALLCHAIN) && format.shows_chain(event);
            let (names, maker) = (&self.names, &self.maker);
            let space = epoch.map(|epoch| epoch.id);
            let is_jitted = prepared.binaries.has_jitdump(pid);
            let context =
                FrameContext { prepared, names, format, event, in_chain, space, is_jitted };
            let len = if in_chain { self.chain.entries.len() } else { 1 };
            for entry in self.chain.entries.iter().take(len) {
                let locate = || maker.locate(*entry, pid, epoch, chain_time);
                if self.texts.push(*entry, context, locate) {
                    break;
                }
            }
        }
        let fixed = if attr.has(AttrFlags::FREQ) { 1 } else { attr.sample_period_or_freq };
        let (names, maker, time) = (&self.names, &self.maker, pending.time);
        let epoch = prepared.model.space_at(pid, time);
        let scripted = ScriptedSample {
            event,
            event_desc,
            start: RecordStart {
                comm,
                comm_tid: tid,
                pid,
                tid,
                cpu: sample.cpu,
                time,
                shown_since,
                misc: record.header.misc,
            },
            period: sample.period.unwrap_or(fixed),
            sample: &sample,
            chain: self.texts.chain(),
            lookup: &Lookup { prepared, names, maker, pid, epoch, time },
        };
        format.sample(&scripted, out);
        Formatted::Yes
    }
}

impl<'a> Worker<'a> {
    /// Decodes a sample that the filters let pass.
    fn choose<'r>(
        &self,
        pending: &PendingSample<'r>,
        record: RawRecord<'r>,
    ) -> Result<Chosen<'a, 'r>, Formatted> {
        let Work { reading, prepared, format, .. } = self.work;
        let event = prepared.events.event_of_sample(record.body).ok_or(Formatted::Unwanted)?;
        let sample = prepared.events.layout(event).and_then(|layout| layout.parse(record.body));
        let mut sample = sample.ok_or(Formatted::Unreadable)?;
        pending.block().bytes.complete(&mut sample);
        let (pid, tid) = sample.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let time = pending.time;
        let is_wanted = prepared.filter.wants(&sample, time, &prepared.cgroups);
        let selection = reading.selection();
        if !(is_wanted && selection.wants(pid, tid) && selection.wants_moment(tid, time)) {
            return Err(Formatted::Unwanted);
        }
        let comm = prepared.model.comm_at(pid, tid, time);
        let comm = comm.and_then(|comm| prepared.model.comm_names().get(comm.0 as usize));
        let comm = comm.map(|comm| OutsideText::new(&**comm));
        let (names, maker) = (&self.names, &self.maker);
        let epoch = prepared.model.space_at(pid, time);
        let lookup = Lookup { prepared, names, maker, pid, epoch, time };
        let candidate = Candidate { event, comm, address: sample.ip, lookup: &lookup };
        if !format.wants(&candidate) {
            return Err(Formatted::Unwanted);
        }
        Ok(Chosen { event, sample, pid, tid, comm })
    }

    /// Formats a record that is no sample.
    fn record(
        &self,
        pending: &PendingSample<'_>,
        record: RawRecord<'_>,
        shown_since: TimestampNs,
        out: &mut Vec<u8>,
    ) {
        let Work { prepared, format, .. } = self.work;
        let record = prepared.events.own(record);
        let trailer = prepared.events.parse_id_trailer(record);
        let event = trailer.id.and_then(|id| prepared.events.event_of_id(id)).unwrap_or(0);
        let (pid, tid) = trailer.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        // The thread that the record is about, not the one that was running.
        let about = match SideBand::parse(record) {
            Some(SideBand::Comm { pid, tid, .. }) => (pid, tid),
            Some(SideBand::Fork(task) | SideBand::Exit(task)) => (task.pid, task.tid),
            Some(SideBand::Mmap(map)) => (map.pid, map.tid),
            _ => namespaces_of(record).unwrap_or((pid, tid)),
        };
        // The kernel's mappings are those of the idle task.
        let process = if about.1 == Tid(0) { Pid(0) } else { about.0 };
        let comm = prepared.model.comm_at(process, about.1, pending.time);
        let comm = comm.and_then(|comm| prepared.model.comm_names().get(comm.0 as usize));
        let comm = comm.map(|comm| OutsideText::new(&**comm));
        let (time, cpu) = (pending.time, trailer.cpu);
        let (comm_tid, misc) = (about.1, record.header.misc);
        let start = RecordStart { comm, comm_tid, pid, tid, cpu, time, shown_since, misc };
        let scripted = ScriptedRecord { event, start, record };
        format.record(&scripted, out);
    }

    /// Whether a sample or record will be printed.
    pub(super) fn prints(&self, pending: &PendingSample<'_>) -> bool {
        if pending.header.kind != record_type::SAMPLE {
            return true;
        }
        self.choose(pending, pending.record()).is_ok()
    }
}

/// Process and thread of a NAMESPACES record.
fn namespaces_of(record: RawRecord<'_>) -> Option<(Pid, Tid)> {
    let word = |at: usize| Some(i32::from_le_bytes(*record.body.get(at..)?.first_chunk()?));
    (record.header.kind == record_type::NAMESPACES).then(|| Some((Pid(word(0)?), Tid(word(4)?))))?
}

/// A sample that is printed.
struct Chosen<'a, 'r> {
    event: usize,
    sample: Sample<'r>,
    pid: Pid,
    tid: Tid,
    comm: Option<OutsideText<&'a str>>,
}

enum Formatted {
    Yes,
    /// A record that is no sample.
    Other,
    Unwanted,
    Unreadable,
}
