//! The proofs in small.

use super::*;
use crate::bench::{page, parsed};

fn options() -> Options {
    Options {
        pairs: 10,
        recordings: 10,
        samples: 4000,
        power_pairs: 2,
        power_samples: 40_000,
        lossy: 3,
        clusters: vec![5],
        real: 0,
        measure_pairs: 4,
        measure_power_pairs: 2,
        measure_seconds: 60,
        planted: 0,
        planted_runs: 1,
        planted_seconds: 1,
        setup: parsed(&[]),
    }
}

#[test]
fn the_proofs_hold_in_small() {
    let proofs = options().run(&mut |_| {}).unwrap();
    let setting = &proofs.settings[0];
    // Seeds are fixed. One false call in twenty is expected at most; three in ten have a probability of 1 %.
    assert!(setting.false_calls.pairs == 10 && setting.false_calls.wrong < 3, "{setting:?}");
    for coverage in &setting.coverage {
        assert!(coverage.held * 100 > coverage.intervals * 85, "{coverage:?}");
    }
    // Clusters of five: an interval for independent samples is a third as wide as it has to be.
    let all = &setting.coverage[1];
    assert!(all.held_if_independent * 100 < all.intervals * 70, "{all:?}");
    // 2 % of the program are 40 % of the function, and easily found.
    assert!(setting.power[1].found == 2 && setting.power[1].theory_alone > 0.9, "{setting:?}");
    assert!(setting.power[0].theory_alone < 0.1);
    for loss in &setting.losses {
        assert_eq!(loss.held, loss.intervals, "{loss:?}");
    }
    assert!(setting.losses[2].held_if_ignored < setting.losses[2].intervals);
    for of in &proofs.measures {
        // Two false calls of eight have a probability of 6 %, and the seeds are fixed.
        assert!(of.single.wrong + of.several.wrong < 2, "{of:?}");
        assert!(of.planted.found == 2 && of.planted.first == 2, "{of:?}");
    }
    assert!(page(None, &proofs).contains("| cluster |"));
    assert!(page(None, &proofs).contains("one query"));
}

/// 5 % and 5.0949 % of 100000 independent samples: the errors are 0.069 % and 0.0695 %, so that the difference is 0.97
/// errors, and above 1.96 of them in 16 of 100 cases.
#[test]
fn theory_is_that_of_two_shares() {
    let options = Options { power_pairs: 0, power_samples: 100_000, ..options() };
    let power = proofs::power(&options, 1.0).unwrap();
    assert!((power[0].theory_alone - 0.16).abs() < 0.005, "{power:?}");
    assert!((power[0].samples_for_80_percent / 840_000.0 - 1.0).abs() < 0.02, "{power:?}");
}
