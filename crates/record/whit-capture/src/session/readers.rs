//! How many readers there are, and which rings each of them drains.

use std::sync::Arc;

use whit_engine_api::Engine;
use whit_engine_api::open_event::OpenEvent;
use whit_engine_api::rings::MappedRing;
use whit_engine_api::time_layout::TimeLayout;
use whit_host::cpus;
use whit_host::roots::Roots;
use whit_perfdata::attr::AttrFlags;
use whit_types::CpuId;

use super::reader_thread::Reader;
use super::stretched_decoder::StretchedDecoder;
use super::stretches::Stretches;
use super::wait::RingWaiter;
use crate::affinity::{self, Affinity, ReaderPlan};
use crate::error::CaptureError;
use crate::loss::Mappings;
use crate::plan::StreamPlan;
use crate::ring_drainer::{RingDrainer, RingDrainerOptions};

/// Sets readers up.
pub(super) struct ReaderBuilder<'a> {
    pub(super) plan: &'a StreamPlan,
    pub(super) roots: &'a Roots,
    pub(super) events: &'a [OpenEvent],
    pub(super) engine: &'a dyn Engine,
    /// Where the distance between samples changes.
    pub(super) stretches: Option<Arc<Stretches>>,
    /// Whether outputs describe the files that were mapped.
    pub(super) describes_code: bool,
}

/// The rings of one reader, and where it runs.
pub(super) struct RingShare {
    pub(super) rings: Vec<MappedRing>,
    runs_on: Option<Vec<CpuId>>,
}

impl ReaderBuilder<'_> {
    /// Readers for all rings. The only stream of a recording marks rounds.
    pub(super) fn build(
        &self,
        shares: Vec<RingShare>,
        is_directory: bool,
    ) -> Result<Vec<Reader>, CaptureError> {
        // Records of rings that are overwritten are older than those that were drained before.
        let all_forward = |share: &RingShare| share.rings.iter().all(|r| !r.ring.is_backward());
        let marks_rounds = shares.len() == 1 && !is_directory && shares.iter().all(all_forward);
        shares.into_iter().map(|share| self.reader(share, marks_rounds)).collect()
    }

    fn reader(&self, share: RingShare, marks_rounds: bool) -> Result<Reader, CaptureError> {
        let streaming = &self.plan.streaming;
        let layout = TimeLayout::new(&self.events[0].event.attr);
        let asks = |event: &OpenEvent| event.event.attr.has(AttrFlags::BUILD_ID);
        let options = RingDrainerOptions {
            flush_bytes: streaming.flush_bytes,
            marks_rounds,
            mappings: Mappings {
                have_build_ids: self.events.iter().any(asks),
                are_described: self.describes_code,
            },
        };
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
            |ring| {
                let decoder = self.engine.decoder(self.events, ring);
                let Some(stretches) = &self.stretches else { return decoder };
                let stretches = stretches.clone();
                Some(Box::new(StretchedDecoder::new(decoder, self.events, stretches)))
            },
        );
        Ok(Reader { ring_drainer, waiter, runs_on: share.runs_on })
    }

    /// All rings for one reader, or rings by CPU. Rings of threads, which have no CPU, and of
    /// CPUs that are not recorded are dealt out in turn.
    pub(super) fn shares(&self, rings: Vec<MappedRing>) -> Result<Vec<RingShare>, CaptureError> {
        let Some(spec) = &self.plan.streaming.threads else {
            return Ok(vec![RingShare { rings, runs_on: None }]);
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
        let mut shares: Vec<RingShare> = plans
            .iter()
            .map(|plan| {
                let runs_on = is_pinned.then(|| plan.runs_on.clone());
                RingShare { rings: Vec::new(), runs_on }
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
