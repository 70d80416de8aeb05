//! Shares by weighted samples agree with the truth, although the frequency follows the load that is measured.

#[allow(dead_code)]
mod plant;

use plant::{Load, Plant, Random};
use whit_budget::{Controller, Levers, Waits};

const BUDGET: f64 = 0.01;
/// Normal deviate with one in a hundred thousand beyond it.
const DEVIATE: f64 = 4.4;

/// A sample of the busy function, or of the other.
struct Sample {
    is_busy: bool,
    period_s: f64,
}

/// While the program switches a lot, it is in the busy function nine tenths of the time, else one tenth. Fewer samples are
/// taken then. Gives the samples, and the true share.
fn sampled(seed: u64) -> (Vec<Sample>, f64) {
    let plant = Plant {
        cpus: 1.0,
        frequency_hz: 1000.0,
        sample_ns: 2000.0,
        exact_ns: 400.0,
        sampled_ns: 100.0,
        walk: 0.5,
        noise: 0.15,
    };
    let loads: Vec<Load> = (0..20u32)
        .map(|turn| {
            let switches_per_s = if turn % 2 == 0 { 100.0 } else { 17_000.0 };
            Load { from_s: f64::from(turn) * 15.0, switches_per_s, other: 0.0 }
        })
        .collect();
    // Switches are recorded exactly all the time: the frequency makes room for them.
    let levers = Levers { stretch_max: 64, waits: vec![Waits::Exact], stack_divisor_max: 1 };
    let mut controller = Controller::new(BUDGET, levers);
    let steps = plant.run(&mut controller, &loads, 300.0, seed);
    let mut random = Random(seed ^ 1);
    let (mut samples, mut busy_s, mut until_next) = (Vec::new(), 0.0, 0.0);
    let mut stretch = 0;
    for step in &steps {
        let load = loads.iter().rev().find(|load| load.from_s <= step.begin_s).unwrap();
        let share = if load.switches_per_s > 1000.0 { 0.9 } else { 0.1 };
        busy_s += share * step.seconds;
        let period_s = f64::from(step.settings.stretch) / plant.frequency_hz;
        if step.settings.stretch != stretch {
            // A change begins a new period.
            (stretch, until_next) = (step.settings.stretch, period_s);
        }
        while until_next < step.seconds {
            samples.push(Sample { is_busy: random.next() < share, period_s });
            until_next += period_s * (0.8 + 0.4 * random.next());
        }
        until_next -= step.seconds;
    }
    let whole: f64 = steps.iter().map(|step| step.seconds).sum();
    (samples, busy_s / whole)
}

/// The share and its standard error, of samples with weights.
fn estimate(samples: &[Sample], weight: impl Fn(&Sample) -> f64) -> (f64, f64) {
    let whole: f64 = samples.iter().map(&weight).sum();
    let share = samples.iter().filter(|it| it.is_busy).map(&weight).sum::<f64>() / whole;
    let residual = |it: &Sample| weight(it) * (f64::from(u8::from(it.is_busy)) - share);
    let squares: f64 = samples.iter().map(|it| residual(it).powi(2)).sum();
    (share, squares.sqrt() / whole)
}

#[test]
fn weighted_shares_are_unbiased_and_counts_are_not() {
    let (mut off, mut counted_off) = (0.0, 0.0);
    for seed in 0..20 {
        let (samples, truth) = sampled(seed);
        let (share, error) = estimate(&samples, |sample| sample.period_s);
        assert!((share - truth).abs() < DEVIATE * error, "{share} of {truth}, error {error}");
        off += (share - truth) / error;
        let (counted, error) = estimate(&samples, |_| 1.0);
        counted_off += (counted - truth) / error;
    }
    // Twenty deviates in sum have the deviation of the square root of twenty.
    let bound = DEVIATE * 20f64.sqrt();
    assert!(off.abs() < bound, "{off}");
    assert!(counted_off.abs() > bound, "without weights it would show: {counted_off}");
}

#[test]
fn weights_add_up_to_the_time() {
    let (samples, _) = sampled(3);
    let sum: f64 = samples.iter().map(|sample| sample.period_s).sum();
    assert!((sum - 300.0).abs() < 6.0, "{sum} s of 300 s");
    assert!(samples.len() < 250_000, "{}", samples.len());
}
