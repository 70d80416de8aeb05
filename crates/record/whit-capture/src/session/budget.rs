//! Keeps the cost of a recording within the user's budget (`--max-overhead`).
//!
//! The session takes a reading every so often, and `whit_budget` decides. The decision is carried out here and by the
//! session, and stands in the stream as a record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use whit_budget::{Cause, Controller, Levers, Settings, Waits};
use whit_engine_api::{Adjustment, Capabilities};
use whit_perfdata::budget::{BudgetRecord, CostCause, RecordedSettings, RecordedWaits};
use whit_perfdata::budget_history::{BudgetHistory, HistoryBuilder};
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_sys::clock::ClockId;

use super::context::SessionContext;
use super::event_control::EventControl;
use super::ledger::Meters;
use super::stretches::{Stretches, can_change};
use crate::error::CaptureError;
use crate::record_clock;
use crate::ring_drainer::ANY_CPU;
use capacity::Capacity;
use costs::Costs;

mod capacity;
mod costs;

pub(super) use costs::ReaderMeter;

/// Time between two readings while every context switch is recorded: a ping-pong costs a large part of a CPU.
const EXACT_INTERVAL: Duration = Duration::from_millis(60);
/// Time between two readings otherwise.
const INTERVAL: Duration = Duration::from_millis(200);
/// The largest distance between samples, in times of the one that was asked for.
const STRETCH_MAX: u32 = 64;
/// The least depth of stacks is one part in so many of the one that was asked for.
const STACK_DIVISOR_MAX: u32 = 8;
/// The engine's threads may take this part of the budget for new processes and their code.
const FOLLOWED_PART: f64 = 0.3;
/// The stream states the cost so often: each record wakes a reader.
const COST_INTERVAL: Duration = Duration::from_secs(1);
/// Parts of one.
const MILLION: f64 = 1e6;

/// The budget of a recording that runs.
pub(super) struct BudgetKeeper {
    controller: Controller,
    costs: Costs,
    stretches: Arc<Stretches>,
    clock: Option<ClockId>,
    budget_ppm: u32,
    /// The settings in force, as the stream has them.
    settings: RecordedSettings,
    /// All that the output has.
    history: HistoryBuilder,
    next: Option<Instant>,
    /// Time, cost and capacity in nanoseconds since the last record that states a cost.
    open: [f64; 3],
    /// The user wants to record: no command and no schedule has switched it off.
    is_wanted: bool,
}

/// The next state of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// As the settings have it.
    Go,
    /// Events and programs rest.
    Pause,
    /// Again, after a pause.
    Resume,
}

impl BudgetKeeper {
    /// `budget_ppm`: millionths of the capacity that the recording may cost.
    fn new(
        budget_ppm: u32,
        control: &EventControl,
        costs: Costs,
        stretches: Arc<Stretches>,
        clock: Option<ClockId>,
    ) -> BudgetKeeper {
        let can_stretch = control.events().iter().any(can_change);
        let (_, engine) = control.events_and_engine();
        let Capabilities { can_cut_stacks, wait_modes, .. } = engine.capabilities();
        let levers = Levers {
            stretch_max: if can_stretch { STRETCH_MAX } else { 1 },
            waits: wait_modes.into_iter().map(of_engine).collect(),
            stack_divisor_max: if can_cut_stacks { STACK_DIVISOR_MAX } else { 1 },
        };
        BudgetKeeper {
            controller: Controller::new(f64::from(budget_ppm) / MILLION, levers),
            costs,
            stretches,
            clock,
            budget_ppm,
            settings: RecordedSettings::default(),
            history: HistoryBuilder::default(),
            next: None,
            open: [0.0; 3],
            is_wanted: false,
        }
    }

    /// That of a recording, where it has one.
    pub(super) fn of(
        context: &SessionContext<'_>,
        control: &mut EventControl,
    ) -> Result<Option<BudgetKeeper>, CaptureError> {
        let (plan, roots) = (&context.plan, context.roots);
        let Some((budget_ppm, stretches)) = plan.budget_ppm.zip(control.stretches()) else {
            return Ok(None);
        };
        let capacity = Capacity::of(context)?;
        let engine = control.engine();
        let asked = engine.capabilities().wait_modes.first().copied();
        let asked = asked.map_or(Waits::None, of_engine);
        let share = f64::from(budget_ppm) / MILLION * capacity.least() * FOLLOWED_PART;
        engine.adjust(Adjustment::ThreadShare(share))?;
        let costs = Costs::new(control, Arc::default(), asked, capacity, &roots.proc);
        Ok(Some(BudgetKeeper::new(budget_ppm, control, costs, stretches, plan.events.clock)))
    }

    /// Where readers state their work.
    pub(super) fn reader_meter(&self) -> Arc<ReaderMeter> {
        self.costs.readers()
    }

    /// How long until the next reading; `None` where nothing is recorded.
    pub(super) fn timeout(&self, now: Instant) -> Option<Duration> {
        self.next.map(|next| next.saturating_duration_since(now))
    }

    /// Whether the budget has stopped the recording for a while.
    pub(super) fn is_paused(&self) -> bool {
        self.controller.settings().is_paused
    }

    /// The user begins or ends to want a recording.
    pub(super) fn set_wanted(&mut self, is_wanted: bool, now: Instant) {
        self.is_wanted = is_wanted;
        self.next = is_wanted.then(|| now + self.interval());
        if is_wanted {
            self.costs.begin(now);
        }
    }

    fn interval(&self) -> Duration {
        match self.controller.settings().waits {
            Waits::Exact => EXACT_INTERVAL,
            _ => INTERVAL,
        }
    }

    /// Takes a reading where it is time to. Gives what changes; the distance between samples has changed by then. A record
    /// of it, or of the cost, is appended to `out`.
    pub(super) fn step(
        &mut self,
        now: Instant,
        control: &mut EventControl,
        meters: &Meters,
        out: &mut Vec<u8>,
    ) -> Result<Option<(Step, Waits)>, CaptureError> {
        if !self.is_wanted || self.next.is_none_or(|next| now < next) {
            return Ok(None);
        }
        let before = self.controller.settings();
        let Some(reading) = self.costs.read(now, before, control, meters) else { return Ok(None) };
        let cost = [reading.elapsed.as_nanos() as f64, reading.cost_ns(), reading.capacity_ns];
        self.open.iter_mut().zip(cost).for_each(|(sum, now)| *sum += now);
        let settings = self.controller.step(&reading);
        self.next = Some(now + self.interval());
        if let Some(settings) = settings {
            self.settings = self.recorded(before, settings);
        }
        if settings.is_some() || self.open[0] >= COST_INTERVAL.as_nanos() as f64 {
            self.record(control, out);
        }
        let Some(settings) = settings else { return Ok(None) };
        if settings.stretch != before.stretch {
            self.stretches.set(control.events(), settings.stretch);
        }
        if settings.stack_divisor != before.stack_divisor {
            control.engine().adjust(Adjustment::StackDivisor(settings.stack_divisor))?;
        }
        Ok(Some((kind(before, settings), settings.waits)))
    }

    /// As the stream has the settings. The reason is that of the last change to less.
    fn recorded(&self, before: Settings, now: Settings) -> RecordedSettings {
        let (cause, cost_ppm) = if order(now) > order(before) {
            let cause = match self.controller.cause() {
                Cause::Samples => CostCause::Samples,
                Cause::Waits => CostCause::Switches,
                Cause::Other => CostCause::Other,
            };
            (cause, (self.costs.share() * MILLION) as u32)
        } else {
            (self.settings.cause, self.settings.cost_ppm)
        };
        RecordedSettings {
            stretch: now.stretch,
            waits: recorded(now.waits, self.costs.asked()),
            stack_divisor: now.stack_divisor,
            is_paused: now.is_paused,
            cause,
            cost_ppm,
        }
    }

    /// Appends a record of the settings in force, and of the cost since the one before. Readers of a part of the stream have
    /// nothing else that tells.
    pub(super) fn record(&mut self, control: &EventControl, out: &mut Vec<u8>) {
        let Ok(time) = record_clock::now(self.clock) else { return };
        let [elapsed_ns, cost_ns, capacity_ns] = std::mem::take(&mut self.open);
        let has_cost = elapsed_ns > 0.0 && capacity_ns > 0.0;
        let record = BudgetRecord {
            budget_ppm: self.budget_ppm,
            capacity_millicpus: self.costs.capacity_millicpus(),
            settings: self.settings,
            mean_ppm: if has_cost { (cost_ns / capacity_ns * MILLION) as u32 } else { 0 },
            mean_over_ms: if has_cost { (elapsed_ns / 1e6).round() as u32 } else { 0 },
        };
        self.history.push(time, &record);
        let mut events = control.events().iter().filter(|event| !event.instances.is_empty());
        let Some(event) = events.next() else { return };
        let encoder = RecordEncoder::new(SampleLayout::new(&event.event.attr));
        let instance = &event.instances[0];
        let cpu = Some(instance.cpu.unwrap_or(ANY_CPU));
        let id = SampleId { pid_tid: None, time: Some(time), id: Some(instance.id), cpu };
        encoder.budget(out, &record, id);
    }

    /// The history of an output that ends. To be called behind its last record.
    pub(super) fn lap(&mut self) -> Option<BudgetHistory> {
        std::mem::take(&mut self.history).finish()
    }
}

/// Grows where less is recorded.
fn order(settings: Settings) -> (bool, Waits, u32, u32) {
    (settings.is_paused, settings.waits, settings.stretch, settings.stack_divisor)
}

fn kind(before: Settings, now: Settings) -> Step {
    match (before.is_paused, now.is_paused) {
        (false, true) => Step::Pause,
        (true, false) => Step::Resume,
        _ => Step::Go,
    }
}

fn of_engine(waits: whit_engine_api::WaitMode) -> Waits {
    match waits {
        whit_engine_api::WaitMode::Exact => Waits::Exact,
        whit_engine_api::WaitMode::Sampled => Waits::Sampled,
        whit_engine_api::WaitMode::None => Waits::None,
    }
}

/// As the engine names it.
pub(super) fn wait_mode(waits: Waits) -> whit_engine_api::WaitMode {
    match waits {
        Waits::Exact => whit_engine_api::WaitMode::Exact,
        Waits::Sampled => whit_engine_api::WaitMode::Sampled,
        Waits::None => whit_engine_api::WaitMode::None,
    }
}

fn recorded(waits: Waits, asked: Waits) -> RecordedWaits {
    match waits {
        waits if waits == asked => RecordedWaits::AsAsked,
        Waits::Sampled => RecordedWaits::Sampled,
        _ => RecordedWaits::None,
    }
}
