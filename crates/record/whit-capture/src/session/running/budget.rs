//! Keeping within the budget: decisions take effect.

use std::time::{Duration, Instant};

use whit_budget::Waits;
use whit_perfdata::blocked::Edge;

use super::Running;
use crate::error::CaptureError;
use crate::session::budget::{Step, wait_mode};

impl Running<'_> {
    /// How long nothing is due.
    pub(super) fn timeout(&self, now: Instant) -> Option<Duration> {
        let budget = self.parts.budget.as_ref().and_then(|budget| budget.timeout(now));
        let others = [budget, self.clocks.timeout(now)].into_iter().flatten();
        self.schedule.timeout(now).into_iter().chain(others).min()
    }

    /// The user begins or ends to want a recording. Whether the budget has paused it.
    pub(super) fn wants(&mut self, is_wanted: bool, now: Instant) -> bool {
        let Some(budget) = &mut self.parts.budget else { return false };
        budget.set_wanted(is_wanted, now);
        let is_paused = budget.is_paused();
        self.write_settings();
        is_paused
    }

    /// Takes a reading where it is time to, and records less or more from then on.
    pub(super) fn keep_budget(&mut self) -> Result<(), CaptureError> {
        let now = Instant::now();
        let parts = &mut self.parts;
        let Some(budget) = &mut parts.budget else { return Ok(()) };
        let mut records = Vec::new();
        let step = budget.step(now, &mut parts.control, &parts.meters, &mut records)?;
        self.readers.write(records);
        let Some((step, waits)) = step else { return Ok(()) };
        parts.meters.metering.settle(parts.listener);
        let clock = parts.context.plan.events.clock;
        let is_exact = step != Step::Pause && waits == Waits::Exact;
        if parts.context.plan.events.tracking.switches && !is_exact {
            parts.control.begin_gap(clock);
        }
        if is_exact {
            let records = parts.control.end_gap(clock);
            self.readers.write(records);
        }
        self.take_step(step, waits, now)
    }

    /// Has the settings in force written, for an output that begins or ends.
    pub(super) fn write_settings(&mut self) {
        let parts = &mut self.parts;
        let mut records = Vec::new();
        if let Some(budget) = &mut parts.budget {
            budget.record(&parts.control, &mut records);
        }
        self.readers.write(records);
    }

    fn take_step(&mut self, step: Step, waits: Waits, now: Instant) -> Result<(), CaptureError> {
        match step {
            Step::Pause => {
                self.stop_events(now);
                self.parts.control.set_waits(wait_mode(waits))?;
            }
            Step::Resume => {
                self.parts.control.set_waits(wait_mode(waits))?;
                self.parts.control.switch_on(now)?;
                self.write_blocked(Edge::Begin);
            }
            Step::Go => {
                // Only where switches were recorded, or are from now on, anybody is written.
                self.write_blocked(Edge::End);
                self.parts.control.set_waits(wait_mode(waits))?;
                self.write_blocked(Edge::Begin);
            }
        }
        Ok(())
    }
}
