//! A simulated machine with the costs of a recording: loads step, costs are measured late and inexactly, and the settings of
//! the controller are in force from reading to reading.

use std::time::Duration;

use whit_budget::{Controller, Levers, Reading, Settings, Waits};

/// The machine and its costs, which no controller knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plant {
    pub(crate) cpus: f64,
    pub(crate) frequency_hz: f64,
    /// The costs of a sample, of a recorded switch, and of a switch whose wait may be sampled.
    pub(crate) sample_ns: f64,
    pub(crate) exact_ns: f64,
    pub(crate) sampled_ns: f64,
    /// The part of a sample's cost that goes with the depth of stacks.
    pub(crate) walk: f64,
    /// Measurements are off by up to this part.
    pub(crate) noise: f64,
}

/// The work of the machine from a moment on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) from_s: f64,
    pub(crate) switches_per_s: f64,
    /// CPU time of the recorder for other things than samples and switches, of all CPU time.
    pub(crate) other: f64,
}

/// One reading's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) begin_s: f64,
    pub(crate) seconds: f64,
    /// The true share.
    pub(crate) cost: f64,
    pub(crate) settings: Settings,
}

/// Anything that decides.
pub(crate) trait Decides {
    fn settings(&self) -> Settings;
    fn step(&mut self, reading: &Reading);
}

impl Decides for Controller {
    fn settings(&self) -> Settings {
        Controller::settings(self)
    }

    fn step(&mut self, reading: &Reading) {
        Controller::step(self, reading);
    }
}

/// SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    /// Between 0 and 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(crate) const ALL_WAITS: [Waits; 3] = [Waits::Exact, Waits::Sampled, Waits::None];

pub(crate) fn levers() -> Levers {
    Levers { stretch_max: 64, waits: ALL_WAITS.to_vec(), stack_divisor_max: 8 }
}

impl Plant {
    /// The true costs by their kinds, as shares.
    fn costs(&self, load: &Load, settings: Settings) -> [f64; 3] {
        if settings.is_paused {
            return [0.0, 0.0, load.other];
        }
        let per_cpu = self.frequency_hz / f64::from(settings.stretch);
        let unit = match settings.waits {
            Waits::Exact => self.exact_ns,
            Waits::Sampled => self.sampled_ns,
            Waits::None => 0.0,
        };
        let waits = load.switches_per_s * unit / 1e9 / self.cpus;
        let walk = self.walk / f64::from(settings.stack_divisor) + 1.0 - self.walk;
        [per_cpu * self.sample_ns * walk / 1e9, waits, load.other]
    }

    /// Runs until `end_s`. Loads are in the order of time.
    pub(crate) fn run(
        &self,
        who: &mut dyn Decides,
        loads: &[Load],
        end_s: f64,
        seed: u64,
    ) -> Vec<Step> {
        let mut random = Random(seed);
        let (mut now, mut steps) = (0.0, Vec::new());
        // The kernel times programs in one window of each half second.
        let (mut window, mut wrong) = (-1.0, 1.0);
        while now < end_s {
            let seconds = 0.05 + 0.03 * random.next();
            if now - window > 0.5 {
                window = now;
                wrong = 1.0 + self.noise * (2.0 * random.next() - 1.0);
            }
            let load = loads.iter().rev().find(|load| load.from_s <= now).unwrap_or(&loads[0]);
            let settings = who.settings();
            let [samples, waits, other] = self.costs(load, settings);
            let capacity_ns = self.cpus * seconds * 1e9;
            steps.push(Step { begin_s: now, seconds, cost: samples + waits + other, settings });
            who.step(&Reading {
                elapsed: Duration::from_secs_f64(seconds),
                capacity_ns,
                samples_ns: samples * capacity_ns * wrong,
                waits_ns: waits * capacity_ns * wrong,
                other_ns: other * capacity_ns * (1.0 + self.noise * (random.next() - 0.5)),
                switches: load.switches_per_s * seconds,
            });
            now += seconds;
        }
        steps
    }
}

/// The mean cost from one moment to another.
pub(crate) fn mean(steps: &[Step], from_s: f64, to_s: f64) -> f64 {
    let (mut cost, mut time) = (0.0, 0.0);
    for step in steps {
        let (begin, end) = (step.begin_s.max(from_s), (step.begin_s + step.seconds).min(to_s));
        if begin < end {
            cost += step.cost * (end - begin);
            time += end - begin;
        }
    }
    if time > 0.0 { cost / time } else { 0.0 }
}

/// The largest mean of any window of this length.
pub(crate) fn worst(steps: &[Step], length_s: f64, from_s: f64, to_s: f64) -> f64 {
    let begins = steps.iter().map(|step| step.begin_s);
    let windows = begins.filter(|begin| *begin >= from_s && begin + length_s <= to_s);
    windows.map(|begin| mean(steps, begin, begin + length_s)).fold(0.0, f64::max)
}

/// How often settings changed in a time.
pub(crate) fn changes(steps: &[Step], from_s: f64, to_s: f64) -> usize {
    let within =
        steps.windows(2).filter(|pair| pair[1].begin_s > from_s && pair[1].begin_s <= to_s);
    within.filter(|pair| pair[0].settings != pair[1].settings).count()
}
