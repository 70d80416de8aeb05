//! Keeps the cost of a recording within the user's budget (`--max-overhead`).
//!
//! The session takes a reading every so often, and `whit_budget` decides. The decision is carried out here and by the
//! session, and stands in the output as a history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use whit_budget::{Cause, Controller, Levers, Reading, Settings, Waits};
use whit_host::cpus;
use whit_perfdata::budget::{
    BudgetHistory, CHANGES_MAX, CostCause, CostOverTime, RecordedWaits, SettingsChange,
};
use whit_sys::clock::ClockId;
use whit_types::TimestampNs;

use super::context::SessionContext;
use super::event_control::EventControl;
use super::ledger::Meters;
use super::stretches::{Stretches, can_change};
use crate::error::CaptureError;
use crate::record_clock;
use costs::Costs;

mod costs;

pub(super) use costs::ReaderMeter;

/// Time between two readings while every context switch is recorded: a ping-pong costs a large part of a CPU.
const EXACT_INTERVAL: Duration = Duration::from_millis(60);
/// Time between two readings otherwise.
const INTERVAL: Duration = Duration::from_millis(200);
/// The largest distance between samples, in times of the one that was asked for.
const STRETCH_MAX: u32 = 64;
/// The engine's threads may take this part of the budget for new processes and their code.
const FOLLOWED_PART: f64 = 0.3;
/// The cost over time is kept in intervals of this length at first.
const COST_INTERVAL_MS: u32 = 500;
/// Parts of one.
const MILLION: f64 = 1e6;

/// The budget of a recording that runs.
pub(super) struct BudgetKeeper {
    controller: Controller,
    costs: Costs,
    stretches: Arc<Stretches>,
    clock: Option<ClockId>,
    history: BudgetHistory,
    next: Option<Instant>,
    /// Time, cost and capacity in nanoseconds of the interval of the history that has not ended.
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
        let waits = engine.wait_modes().iter().copied().map(of_engine).collect();
        let levers = Levers { stretch_max: if can_stretch { STRETCH_MAX } else { 1 }, waits };
        let mut keeper = BudgetKeeper {
            controller: Controller::new(f64::from(budget_ppm) / MILLION, levers),
            costs,
            stretches,
            clock,
            history: BudgetHistory { budget_ppm, costs: no_costs(), ..BudgetHistory::default() },
            next: None,
            open: [0.0; 3],
            is_wanted: false,
        };
        keeper.note(TimestampNs(0), Cause::Samples, 0.0);
        keeper
    }

    /// That of a recording, where it has one.
    pub(super) fn of(
        context: &SessionContext<'_>,
        control: &EventControl,
    ) -> Result<Option<BudgetKeeper>, CaptureError> {
        let (plan, roots) = (&context.plan, context.roots);
        let Some((budget_ppm, stretches)) = plan.budget_ppm.zip(control.stretches()) else {
            return Ok(None);
        };
        let online = cpus::online(roots)?.len();
        let recorded = plan
            .events
            .target
            .covers_cpus()
            .then(|| plan.events.target.cpus().map_or(online, <[_]>::len));
        let (_, engine) = control.events_and_engine();
        let asked = engine.wait_modes().first().copied().map_or(Waits::None, of_engine);
        let capacity = recorded.unwrap_or(1) as f64;
        engine.set_thread_share(f64::from(budget_ppm) / MILLION * capacity * FOLLOWED_PART);
        let costs = Costs::new(control, Arc::default(), asked, (recorded, online), &roots.proc);
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
            if self.history.begin == TimestampNs(0) {
                self.history.begin = record_clock::now(self.clock).unwrap_or_default();
            }
        }
    }

    fn interval(&self) -> Duration {
        match self.controller.settings().waits {
            Waits::Exact => EXACT_INTERVAL,
            _ => INTERVAL,
        }
    }

    /// Takes a reading where it is time to. Gives what changes; the distance between samples has changed by then.
    pub(super) fn step(
        &mut self,
        now: Instant,
        control: &EventControl,
        meters: &Meters,
    ) -> Option<(Step, Waits)> {
        if !self.is_wanted || self.next.is_none_or(|next| now < next) {
            return None;
        }
        let before = self.controller.settings();
        let reading = self.costs.read(now, before, control, meters)?;
        self.keep_cost(&reading);
        self.history.capacity_millicpus = self.costs.capacity_millicpus();
        let settings = self.controller.step(&reading);
        self.next = Some(now + self.interval());
        let settings = settings?;
        let (cause, cost) = (self.controller.cause(), self.costs.share());
        if let Ok(from) = record_clock::now(self.clock) {
            self.note(from, cause, cost);
        }
        if settings.stretch != before.stretch {
            self.stretches.set(control.events(), settings.stretch);
        }
        Some((kind(before, settings), settings.waits))
    }

    /// Adds a reading to the cost over time.
    fn keep_cost(&mut self, reading: &Reading) {
        let now = [reading.elapsed.as_nanos() as f64, reading.cost_ns(), reading.capacity_ns];
        self.open.iter_mut().zip(now).for_each(|(sum, now)| *sum += now);
        loop {
            let [elapsed_ns, cost_ns, capacity_ns] = self.open;
            let interval_ns = f64::from(self.history.costs.interval_ms) * 1e6;
            if elapsed_ns < interval_ns || capacity_ns <= 0.0 {
                break;
            }
            self.history.costs.push((cost_ns / capacity_ns * MILLION) as u32);
            // The rest of the reading belongs to the next interval.
            let rest = 1.0 - interval_ns / elapsed_ns;
            self.open = self.open.map(|sum| sum * rest);
        }
    }

    fn note(&mut self, from: TimestampNs, cause: Cause, cost: f64) {
        let settings = self.controller.settings();
        let asked = self.costs.asked();
        if self.history.changes.len() >= CHANGES_MAX {
            self.history.left_out += 1;
            return;
        }
        self.history.changes.push(SettingsChange {
            from,
            stretch: settings.stretch,
            waits: recorded(settings.waits, asked),
            is_paused: settings.is_paused,
            cause: match cause {
                Cause::Samples => CostCause::Samples,
                Cause::Waits => CostCause::Switches,
                Cause::Other => CostCause::Other,
            },
            cost_ppm: (cost * MILLION) as u32,
        });
    }

    /// The history of an output that ends. The next one begins with the settings in force.
    pub(super) fn lap(&mut self) -> BudgetHistory {
        let now = record_clock::now(self.clock).unwrap_or_default();
        self.history.end = now;
        let ended = self.history.clone();
        (self.history.begin, self.history.left_out) = (now, 0);
        self.history.costs = no_costs();
        self.open = [0.0; 3];
        if let Some(last) = self.history.changes.pop() {
            self.history.changes = vec![SettingsChange { from: TimestampNs(0), ..last }];
        }
        ended
    }
}

fn no_costs() -> CostOverTime {
    CostOverTime { interval_ms: COST_INTERVAL_MS, costs_ppm: Vec::new() }
}

fn kind(before: Settings, now: Settings) -> Step {
    match (before.is_paused, now.is_paused) {
        (false, true) => Step::Pause,
        (true, false) => Step::Resume,
        _ => Step::Go,
    }
}

fn of_engine(waits: whit_engine::WaitMode) -> Waits {
    match waits {
        whit_engine::WaitMode::Exact => Waits::Exact,
        whit_engine::WaitMode::Sampled => Waits::Sampled,
        whit_engine::WaitMode::None => Waits::None,
    }
}

/// As the engine names it.
pub(super) fn wait_mode(waits: Waits) -> whit_engine::WaitMode {
    match waits {
        Waits::Exact => whit_engine::WaitMode::Exact,
        Waits::Sampled => whit_engine::WaitMode::Sampled,
        Waits::None => whit_engine::WaitMode::None,
    }
}

fn recorded(waits: Waits, asked: Waits) -> RecordedWaits {
    match waits {
        waits if waits == asked => RecordedWaits::AsAsked,
        Waits::Sampled => RecordedWaits::Sampled,
        _ => RecordedWaits::None,
    }
}
