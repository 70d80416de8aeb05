//! The decision.

use std::time::Duration;

use crate::estimate::{Peak, UnitCost};
use crate::settings::{Cause, Levers, Reading, Settings, Waits};

/// Settings are lowered where they cost more than this part of the allowed cost: costs are measured inexactly.
const LOWER_AT: f64 = 0.85;
/// Then those are taken that cost no more than this part. ...
const LOWER_TO: f64 = 0.7;
/// ... Better ones are taken that cost no more than this part.
const RAISE_TO: f64 = 0.65;
/// For so long the better settings must have been within the budget before they are taken.
const HOLD: Duration = Duration::from_millis(1500);
/// The longest such time: it doubles each time that the better settings cost too much after all.
const HOLD_MAX: Duration = Duration::from_secs(60);
/// A raise that is taken back within this time has failed.
const FAILED_WITHIN: Duration = Duration::from_secs(5);
/// A cost beyond the budget is saved again in this time.
const REPAY_S: f64 = 10.0;
/// Not more than this part of the budget is saved for that.
const REPAY_MAX: f64 = 0.75;
/// A pause is followed by so much recording before the next decision to pause.
const PROBE: Duration = Duration::from_millis(300);
/// The shortest and the longest pause.
const PAUSE: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(10)];
/// Costs of a context switch before they were measured, in nanoseconds: recorded, and with its waits sampled.
const ASSUMED_NS: [f64; 2] = [1000.0, 200.0];

/// This part of a sample's cost does not depend on the depth of its stack. The rest is assumed to go with it: a wrong
/// guess shows in the next reading.
const WITHOUT_DEPTH: f64 = 0.5;

/// Decides about the settings of one recording.
#[derive(Clone, Debug)]
pub struct Controller {
    budget: f64,
    levers: Levers,
    settings: Settings,
    /// The shares that samples would cost without a stretch, and that all else costs.
    samples: Peak,
    other: Peak,
    /// Context switches for each nanosecond of capacity.
    switches: Peak,
    /// The costs of a switch that is recorded, and of one whose wait may be sampled.
    unit_costs: [UnitCost; 2],
    /// Seconds of the capacity that were spent beyond the budget.
    debt: f64,
    calm: Duration,
    hold: Duration,
    since_raise: Option<Duration>,
    pause_left: Duration,
    /// Since the end of a pause.
    probed: Option<Duration>,
}

impl Controller {
    /// `budget`: the part of the capacity that the recording may cost, above 0. Begins with all that was asked for.
    pub fn new(budget: f64, levers: Levers) -> Controller {
        Controller {
            budget,
            settings: levers.full(),
            levers,
            samples: Peak::default(),
            other: Peak::default(),
            switches: Peak::default(),
            unit_costs: ASSUMED_NS.map(UnitCost::assumed),
            debt: 0.0,
            calm: Duration::ZERO,
            hold: HOLD,
            since_raise: None,
            pause_left: Duration::ZERO,
            probed: None,
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The share that the settings in force are expected to cost.
    pub fn expected(&self) -> f64 {
        self.predict(self.settings)
    }

    /// The largest part of it.
    pub fn cause(&self) -> Cause {
        let full = Settings { is_paused: false, ..self.levers.full() };
        let (samples, waits) = (self.samples.get(), self.waits(full.waits));
        let other = self.other.get();
        if other >= samples.max(waits) {
            Cause::Other
        } else if waits >= samples {
            Cause::Waits
        } else {
            Cause::Samples
        }
    }

    /// Takes a reading. Gives new settings where they change.
    pub fn step(&mut self, reading: &Reading) -> Option<Settings> {
        if reading.capacity_ns <= 0.0 {
            return None;
        }
        self.observe(reading);
        let before = self.settings;
        if before.is_paused {
            self.pause_left = self.pause_left.saturating_sub(reading.elapsed);
            if self.pause_left.is_zero() {
                self.settings = self.levers.least();
                self.probed = Some(Duration::ZERO);
                // The load may be another by now.
                self.samples = Peak::default();
            }
        } else if self.predict(before) > self.allowed() * LOWER_AT {
            self.lower();
        } else {
            self.raise(reading.elapsed);
        }
        (self.settings != before).then_some(self.settings)
    }

    fn observe(&mut self, reading: &Reading) {
        let seconds = reading.elapsed.as_secs_f64();
        let share = |ns: f64| ns / reading.capacity_ns;
        let spent = (share(reading.cost_ns()) - self.budget) * seconds;
        self.debt = (self.debt + spent).max(0.0);
        self.since_raise = self.since_raise.map(|since| since + reading.elapsed);
        self.probed = self.probed.map(|probed| probed + reading.elapsed);
        self.other.observe(share(reading.other_ns), seconds);
        self.switches.observe(share(reading.switches), seconds);
        let Settings { stretch, waits, stack_divisor, is_paused } = self.settings;
        if is_paused {
            return;
        }
        let full = f64::from(stretch) / by_depth(stack_divisor);
        self.samples.observe(share(reading.samples_ns) * full, seconds);
        if let Some(unit) = unit(waits) {
            self.unit_costs[unit].observe(reading.waits_ns, reading.switches, seconds);
        }
    }

    /// The allowed cost: less than the budget as long as too much was spent before.
    fn allowed(&self) -> f64 {
        self.budget - (self.debt / REPAY_S).min(self.budget * REPAY_MAX)
    }

    fn waits(&self, waits: Waits) -> f64 {
        unit(waits).map_or(0.0, |unit| self.unit_costs[unit].ns() * self.switches.get())
    }

    fn predict(&self, settings: Settings) -> f64 {
        if settings.is_paused {
            return self.other.get();
        }
        let samples = self.samples.get() / f64::from(settings.stretch);
        let samples = samples * by_depth(settings.stack_divisor);
        samples + self.waits(settings.waits) + self.other.get()
    }

    /// The first settings in order that cost no more than a part of the allowed cost.
    fn first_within(&self, part: f64) -> Option<Settings> {
        let most = self.allowed() * part;
        self.levers.all().find(|settings| self.predict(*settings) <= most)
    }

    fn lower(&mut self) {
        self.calm = Duration::ZERO;
        if self.since_raise.take().is_some_and(|since| since < FAILED_WITHIN) {
            self.hold = (self.hold * 2).min(HOLD_MAX);
        }
        match self.first_within(LOWER_TO) {
            Some(settings) => self.settings = settings,
            None if self.probed.is_some_and(|probed| probed < PROBE) => {}
            // A pause would save nothing of it.
            None if self.other.get() >= self.allowed() * LOWER_TO => {
                self.settings = self.levers.least();
            }
            None => self.pause(),
        }
    }

    /// Long enough that recording for a moment and pausing cost what may be spent together.
    fn pause(&mut self) {
        let other = self.other.get();
        let most = self.allowed() * LOWER_TO - other;
        let cost = self.predict(self.levers.least()) - other;
        let recorded = self.probed.take().unwrap_or(PROBE).max(PROBE);
        let ratio = (cost / most.max(f64::MIN_POSITIVE) - 1.0).clamp(0.0, 1e3);
        let [least, longest] = PAUSE;
        self.pause_left = recorded.mul_f64(ratio).clamp(least, longest);
        self.settings = Settings { is_paused: true, ..self.levers.least() };
    }

    fn raise(&mut self, elapsed: Duration) {
        if self.since_raise.is_some_and(|since| since > self.hold.max(FAILED_WITHIN)) {
            self.since_raise = None;
            self.hold = (self.hold / 2).max(HOLD);
        }
        let Some(better) = self.better() else {
            self.calm = Duration::ZERO;
            return;
        };
        self.calm += elapsed;
        if self.calm >= self.hold {
            self.settings = better;
            (self.calm, self.since_raise) = (Duration::ZERO, Some(Duration::ZERO));
        }
    }

    /// The next settings on the way back: one step of one lever.
    fn better(&self) -> Option<Settings> {
        let best = self.first_within(RAISE_TO)?;
        let now = self.settings;
        let order = |of: Settings| (of.waits, of.stretch, of.stack_divisor);
        if order(best) >= order(now) {
            return None;
        }
        if best.stack_divisor < now.stack_divisor {
            return Some(Settings { stack_divisor: now.stack_divisor / 2, ..now });
        }
        if best.waits < now.waits {
            let at = self.levers.waits.iter().position(|waits| *waits == now.waits)?;
            let waits = *self.levers.waits.get(at.checked_sub(1)?)?;
            let next = |settings: &Settings| settings.waits == waits;
            let most = self.allowed() * RAISE_TO;
            return self.levers.all().filter(next).find(|one| self.predict(*one) <= most);
        }
        Some(Settings { stretch: best.stretch.max(now.stretch / 2), ..best })
    }
}

/// The part of a sample's cost that is left where stacks are cut.
fn by_depth(stack_divisor: u32) -> f64 {
    WITHOUT_DEPTH + (1.0 - WITHOUT_DEPTH) / f64::from(stack_divisor.max(1))
}

fn unit(waits: Waits) -> Option<usize> {
    match waits {
        Waits::Exact => Some(0),
        Waits::Sampled => Some(1),
        Waits::None => None,
    }
}
