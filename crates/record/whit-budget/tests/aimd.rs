//! The controller beside one that only halves and adds: what prediction is worth.

#[allow(dead_code)]
mod plant;

use plant::{ALL_WAITS, Decides, Load, Plant, changes, levers, mean, worst};
use whit_budget::{Controller, Reading, Settings, Waits};

const BUDGET: f64 = 0.01;
const STRETCHES: usize = 7;
const PLANT: Plant = Plant {
    cpus: 2.0,
    frequency_hz: 997.0,
    sample_ns: 4000.0,
    exact_ns: 600.0,
    sampled_ns: 150.0,
    walk: 0.5,
    noise: 0.15,
};

/// Additive increase, multiplicative decrease over the settings in their order: the frequency first, then the waits. It
/// sees the cost alone.
struct Aimd {
    rung: usize,
    calm_s: f64,
}

impl Decides for Aimd {
    fn settings(&self) -> Settings {
        let waits = ALL_WAITS[(self.rung / STRETCHES).min(2)];
        let stretch = 1 << (self.rung - self.rung / STRETCHES * STRETCHES);
        Settings { stretch, waits, stack_divisor: 1, is_paused: false }
    }

    fn step(&mut self, reading: &Reading) {
        let cost = reading.cost_ns() / reading.capacity_ns;
        if cost > BUDGET * 0.8 {
            self.calm_s = 0.0;
            self.rung = (2 * self.rung + 1).min(3 * STRETCHES - 1);
        } else {
            self.calm_s += reading.elapsed.as_secs_f64();
            if self.calm_s > 1.5 && self.rung > 0 {
                (self.rung, self.calm_s) = (self.rung - 1, 0.0);
            }
        }
    }
}

struct Figures {
    worst_ten: f64,
    worst_settled: f64,
    changes: usize,
    samples: f64,
}

fn figures(who: &mut dyn Decides) -> Figures {
    let load = |from_s, switches_per_s| Load { from_s, switches_per_s, other: 0.0005 };
    let loads = [load(0.0, 500.0), load(20.0, 1e6), load(80.0, 500.0)];
    let steps = PLANT.run(who, &loads, 110.0, 11);
    let kept: Vec<_> = steps.iter().filter(|step| (23.0..80.0).contains(&step.begin_s)).collect();
    let samples = kept.iter().map(|step| step.seconds / f64::from(step.settings.stretch));
    Figures {
        worst_ten: worst(&steps, 10.0, 0.0, 110.0),
        worst_settled: worst(&steps, 1.0, 23.0, 80.0),
        changes: changes(&steps, 23.0, 80.0),
        samples: samples.sum::<f64>() / kept.iter().map(|step| step.seconds).sum::<f64>(),
    }
}

#[test]
fn prediction_keeps_samples_and_does_not_try_what_costs_too_much() {
    let ours = figures(&mut Controller::new(BUDGET, levers()));
    let other = figures(&mut Aimd { rung: 0, calm_s: 0.0 });
    for (name, it) in [("prediction", &ours), ("halving and adding", &other)] {
        println!(
            "{name}: worst ten seconds {:.2}%, worst second from 3 s after the step on {:.2}%, {} changes in 57 s, \
             {:.0}% of the samples",
            100.0 * it.worst_ten,
            100.0 * it.worst_settled,
            it.changes,
            100.0 * it.samples,
        );
    }
    assert!(ours.worst_ten <= 2.0 * BUDGET && ours.worst_settled <= BUDGET);
    assert!(ours.samples > 0.9 && ours.changes <= 4);
    assert!(other.changes > 5 * ours.changes.max(1) && other.samples < 0.5);
    // The machine is the same for both.
    let idle = Load { from_s: 0.0, switches_per_s: 0.0, other: 0.0 };
    let steps = PLANT.run(&mut Aimd { rung: 0, calm_s: 0.0 }, &[idle], 5.0, 1);
    assert!(mean(&steps, 0.0, 5.0) < BUDGET && steps[0].settings.waits == Waits::Exact);
}
