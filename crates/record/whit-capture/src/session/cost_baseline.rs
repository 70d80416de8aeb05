//! The moment from which the cost of an output counts.

use std::time::Instant;

use whit_sys::usage::CpuUsage;

use crate::error::CaptureError;

/// A moment, and the recorder's CPU time until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostBaseline {
    begin: Instant,
    usage: CpuUsage,
}

impl CostBaseline {
    /// Measures the cost from the moment of this call.
    pub(super) fn open() -> Result<CostBaseline, CaptureError> {
        let usage = CpuUsage::of_process().map_err(CaptureError::system("read own CPU time"))?;
        Ok(CostBaseline { begin: Instant::now(), usage })
    }

    /// CPU time since then.
    pub(super) fn used(&self) -> CpuUsage {
        CpuUsage::of_process().map(|now| now.since(&self.usage)).unwrap_or_default()
    }

    /// Time since then.
    pub(super) fn age_ns(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.begin).as_nanos() as u64
    }
}
