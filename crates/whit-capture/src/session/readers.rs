//! How many readers there are, and which rings each of them drains.

use whit_engine::Engine;
use whit_engine::open_event::OpenEvent;
use whit_engine::rings::MappedRing;
use whit_engine::time_layout::TimeLayout;
use whit_host::cpus;
use whit_host::roots::Roots;
use whit_sys::affinity as cpu_affinity;
use whit_sys::usage::CpuUsage;
use whit_types::CpuId;

use super::reader_thread::ReaderThread;
use super::wait::RingWaiter;
use crate::affinity::{self, Affinity, ReaderPlan};
use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::ASYNC_BLOCKS_MAX;
use crate::output::OutputName;
use crate::plan::StreamPlan;
use crate::recording::Recording;
use crate::ring_drainer::{RingDrainer, RingDrainerOptions};
use crate::stream::{AsyncEngine, StreamOptions, StreamSink};

/// The next stream of a recording, for a reader of so many rings.
pub(super) fn stream(
    plan: &StreamPlan,
    nr_rings: usize,
    recording: &mut Recording,
) -> std::io::Result<(StreamSink, Option<AsyncEngine>)> {
    let streaming = &plan.streaming;
    let options = StreamOptions {
        compression_level: streaming.compression_level,
        is_packed: plan.is_packed,
        whole_frames: recording.is_pipe() && streaming.threads.is_some(),
        async_blocks: streaming.async_blocks.min(ASYNC_BLOCKS_MAX) * nr_rings,
        cpus: cpu_affinity::get(0).unwrap_or_default(),
    };
    StreamSink::new(recording.next_stream()?, &options)
}

/// Sets readers up.
pub(super) struct ReaderBuilder<'a> {
    pub(super) plan: &'a StreamPlan,
    pub(super) roots: &'a Roots,
    pub(super) events: &'a [OpenEvent],
    pub(super) engine: &'a dyn Engine,
}

/// The rings of one reader, and where it runs.
struct Share {
    rings: Vec<MappedRing>,
    runs_on: Option<Vec<CpuId>>,
}

impl ReaderBuilder<'_> {
    /// Readers for all rings, each with its stream.
    pub(super) fn build_readers(
        &self,
        rings: Vec<MappedRing>,
        recording: &mut Recording,
        output: &OutputName,
        listener: &mut dyn Listener,
    ) -> Result<Vec<ReaderThread>, CaptureError> {
        let shares = self.shares(rings)?;
        // What is taken from rings that are overwritten is older than what was drained before.
        let all_forward = |share: &Share| share.rings.iter().all(|r| !r.ring.is_backward());
        let marks_rounds =
            shares.len() == 1 && !recording.is_directory() && shares.iter().all(all_forward);
        let mut reader_threads = Vec::with_capacity(shares.len());
        for share in shares {
            let (sink, engine) =
                stream(self.plan, share.rings.len(), recording).map_err(|source| {
                    CaptureError::Output { attempt: "write", output: output.to_string(), source }
                })?;
            if engine == Some(AsyncEngine::Thread) && reader_threads.is_empty() {
                listener.notice(Notice::WritesByThread { pipe: recording.is_pipe() });
            }
            reader_threads.push(self.reader_thread(share, sink, marks_rounds)?);
        }
        Ok(reader_threads)
    }

    fn reader_thread(
        &self,
        share: Share,
        sink: StreamSink,
        marks_rounds: bool,
    ) -> Result<ReaderThread, CaptureError> {
        let streaming = &self.plan.streaming;
        let layout = TimeLayout::new(&self.events[0].event.attr);
        let options = RingDrainerOptions { flush_bytes: streaming.flush_bytes, marks_rounds };
        let waiter = RingWaiter::new(self.events, &share.rings)?;
        let ring_drainer = RingDrainer::new(
            share.rings,
            layout,
            options,
            |ring| match ring.is_sideband {
                // For its sake no reader leaves the CPUs that are recorded.
                true => None,
                false => affinity::place(streaming.affinity, ring.cpu, self.roots),
            },
            |ring| self.engine.decoder(self.events, ring),
        );
        Ok(ReaderThread {
            ring_drainer,
            sink,
            waiter,
            runs_on: share.runs_on,
            wakeups: 0,
            usage: CpuUsage::default(),
            told_bytes: 0,
        })
    }

    /// Who drains what: everything in one hand, or by CPU. Rings of threads, which have no CPU, and of
    /// CPUs that are not recorded are dealt out in turn.
    fn shares(&self, rings: Vec<MappedRing>) -> Result<Vec<Share>, CaptureError> {
        let Some(spec) = &self.plan.streaming.threads else {
            return Ok(vec![Share { rings, runs_on: None }]);
        };
        let by_thread = rings.iter().all(|ring| ring.cpu.is_none());
        let mut cpus: Vec<CpuId> = match by_thread {
            true => cpus::online(self.roots)?,
            false => {
                let recorded = rings.iter().filter(|ring| !ring.is_sideband);
                recorded.filter_map(|ring| ring.cpu).collect()
            }
        };
        cpus.sort_unstable();
        cpus.dedup();
        let mut plans = affinity::reader_plans(spec, &cpus, self.roots)?;
        if by_thread {
            plans.truncate(rings.len().max(1));
        }
        let turns = plans.len();
        let is_pinned = self.plan.streaming.affinity != Affinity::System;
        let mut shares: Vec<Share> = plans
            .iter()
            .map(|plan| {
                let runs_on = is_pinned.then(|| plan.runs_on.clone());
                Share { rings: Vec::new(), runs_on }
            })
            .collect();
        for (number, ring) in rings.into_iter().enumerate() {
            let holds = |plan: &ReaderPlan| ring.cpu.is_some_and(|cpu| plan.rings.contains(&cpu));
            let index = plans.iter().position(holds).unwrap_or(number % turns);
            shares[index].rings.push(ring);
        }
        Ok(shares)
    }
}
