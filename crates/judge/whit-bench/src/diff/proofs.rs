//! Proofs on recordings whose shares are known.

use std::collections::HashMap;

use statrs::distribution::{ContinuousCDF, Normal};
use whit_estimate::Estimate;
use whit_profile::model::{EventId, Profile};
use whit_view::diff::{Diff, DiffOptions, Judged, Per, Run, Verdict, diff};
use whit_view::hists::{HistsOptions, ShareInterval, SortKey, hists};

use super::synthetic::{self, FIRST_SHARE, FUNCTIONS, Program};
use super::{Coverage, FalseCalls, Loss, Options, Power};
use crate::error::Error;
use crate::random::Random;

/// Functions with fewer samples than that stand in a row of their own.
const FEW_SAMPLES: f64 = 30.0;

/// Level of a single test, and of the intervals.
const LEVEL: f64 = 0.05;

/// Share of the samples that are lost.
const LOST: f64 = 0.2;

/// Samples of a burst of losses.
const BURST: usize = 500;

fn random(stay: f64, purpose: u64) -> Random {
    Random::new(0x9e37_79b9_7f4a_7c15 ^ (stay.to_bits() >> 20) ^ purpose << 48)
}

fn whole(samples: &[u16]) -> Result<Profile, Error> {
    synthetic::profile(samples.iter().copied().map(Some))
}

fn reduced(profile: Profile) -> Result<Run, Error> {
    Ok(Run::of(profile, &DiffOptions::default())?)
}

fn compared(before: Profile, after: Profile) -> Result<Diff, Error> {
    Ok(diff(&[reduced(before)?], &[reduced(after)?], &Per::Share)?)
}

/// Counts a comparison of equal programs.
pub(super) fn count(calls: &mut FalseCalls, diff: &Diff) {
    let rows = diff.events.iter().flat_map(|event| &event.rows);
    let mut judged = rows.flat_map(|row| [Some(row.own), row.total]).flatten();
    calls.pairs += 1;
    calls.tests += diff.events.iter().map(|event| event.tests).sum::<usize>();
    calls.wrong += usize::from(judged.any(|it| it.verdict != Verdict::Undecided));
}

/// Compares runs of one program with each other.
pub(super) fn false_calls(
    options: &Options,
    stay: f64,
    a_side: usize,
) -> Result<FalseCalls, Error> {
    let (program, mut random) = (Program::new(stay), random(stay, a_side as u64 + 8));
    let mut calls = FalseCalls::default();
    for _ in 0..options.pairs {
        let mut side = || -> Result<Vec<Run>, Error> {
            (0..a_side)
                .map(|_| reduced(whole(&program.run(options.samples, &mut random))?))
                .collect()
        };
        count(&mut calls, &diff(&side()?, &side()?, &Per::Share)?);
    }
    Ok(calls)
}

/// Shares of functions with their intervals, by name.
pub(crate) fn intervals(profile: &Profile) -> HashMap<String, (f64, ShareInterval)> {
    let options = HistsOptions {
        sort: vec![SortKey::Symbol],
        children: false,
        intervals: true,
        ..HistsOptions::default()
    };
    let hists = hists(profile, EventId(0), &options);
    let row = |row: &whit_view::hists::HistRow| {
        let function = &profile.functions[row.place.function?.index()];
        let share = hists.percent(row.self_period);
        Some((function.name.exact().to_owned(), (share, row.intervals.as_deref()?.own)))
    };
    hists.rows.iter().filter_map(row).collect()
}

pub(crate) fn holds(interval: &ShareInterval, share: f64) -> bool {
    interval.low <= share && share <= interval.high
}

/// The interval of a share in percent that takes all samples as independent.
pub(super) fn independent(share: f64, samples: f64) -> ShareInterval {
    let value = share / 100.0;
    let variance = value * (1.0 - value) / samples;
    let (low, high) = Estimate { value, variance, freedom: 1e6 }.share_interval(samples);
    ShareInterval { low: 100.0 * low, high: 100.0 * high }
}

/// Judges the intervals of many runs by the shares of a run without end.
pub(super) fn coverage(options: &Options, stay: f64) -> Result<Vec<Coverage>, Error> {
    let (program, mut random) = (Program::new(stay), random(stay, 2));
    let group = |of: &str| Coverage { of: of.to_owned(), ..Coverage::default() };
    let first = format!("a function of {:.0} %", 100.0 * FIRST_SHARE);
    let mut groups =
        [group(&first), group("all with 30 samples or more"), group("those with fewer")];
    for _ in 0..options.recordings {
        let found = intervals(&whole(&program.run(options.samples, &mut random))?);
        for function in 0..FUNCTIONS {
            let truth = 100.0 * program.share(function);
            let Some((share, interval)) = found.get(&synthetic::name(function)) else { continue };
            let is_held = holds(interval, truth);
            let alone = holds(&independent(*share, options.samples as f64), truth);
            let expected =
                program.share(function) * options.samples as f64 / program.design_effect();
            let mut add = |group: usize| {
                groups[group].intervals += 1;
                groups[group].held += usize::from(is_held);
                groups[group].held_if_independent += usize::from(alone);
            };
            add(if expected < FEW_SAMPLES { 2 } else { 1 });
            if function == 0 {
                add(0);
            }
        }
    }
    Ok(groups.into_iter().filter(|group| group.intervals > 0).collect())
}

/// Slows the first function down, by a part of its own time, and by a part of the program's.
pub(super) fn power(options: &Options, stay: f64) -> Result<Vec<Power>, Error> {
    const SLOWER: f64 = 0.02;
    let of_function = ("the function of 5 % by 2 % of itself", 1.0 + SLOWER);
    let of_program = ("the function of 5 % by 2 % of the program", 1.0 + SLOWER / FIRST_SHARE);
    let mut powers = Vec::new();
    for (purpose, (slowdown, factor)) in (3..).zip([of_function, of_program]) {
        let before = Program::new(stay);
        let after = before.with_first(factor);
        let mut random = random(stay, purpose);
        let mut power = Power { slowdown: slowdown.to_owned(), ..Power::default() };
        for _ in 0..options.power_pairs {
            let mut run =
                |program: &Program| whole(&program.run(options.power_samples, &mut random));
            let (one, other) = (run(&before)?, run(&after)?);
            let diff = compared(one, other)?;
            let rows = diff.events.iter().flat_map(|event| &event.rows);
            let own = rows.filter(|row| row.name.function == *synthetic::name(0).as_str());
            let own: Option<Judged> = own.map(|row| row.own).next();
            let is = |test: fn(&Judged) -> bool| usize::from(own.as_ref().is_some_and(test));
            power.pairs += 1;
            power.found += is(|own| own.verdict == Verdict::Slower);
            power.found_alone += is(|own| own.difference.p <= LEVEL && own.difference.change > 0.0);
        }
        (power.theory_alone, power.samples_for_80_percent) =
            theory(&before, &after, options.power_samples as f64);
        powers.push(power);
    }
    Ok(powers)
}

/// The probability that a single test at [`LEVEL`] finds the difference of the first function, and the number of samples
/// for which it is 80 %.
fn theory(before: &Program, after: &Program, samples: f64) -> (f64, f64) {
    let Ok(normal) = Normal::new(0.0, 1.0) else { return (f64::NAN, f64::NAN) };
    let scatter =
        |program: &Program| program.share(0) * (1.0 - program.share(0)) * program.design_effect();
    let (variance, change) = (scatter(before) + scatter(after), after.share(0) - before.share(0));
    let limit = normal.inverse_cdf(1.0 - LEVEL / 2.0);
    let power = normal.cdf(change / (variance / samples).sqrt() - limit);
    let needed = variance * ((limit + normal.inverse_cdf(0.8)) / change).powi(2);
    (power, needed)
}

/// Loses samples in several ways. The truth is the share in the whole recording.
pub(super) fn losses(options: &Options, stay: f64) -> Result<Vec<Loss>, Error> {
    let kinds: [(&str, Keep); 3] = [
        ("at random", |_, random| random.unit() >= LOST),
        ("in bursts", keep_between_bursts),
        ("most of the function of 5 %, some of the others", keep_few_of_first),
    ];
    let (program, mut random) = (Program::new(stay), random(stay, 5));
    let mut losses = Vec::new();
    for (kind, keep) in kinds {
        let mut loss = Loss { kind: kind.to_owned(), ..Loss::default() };
        let mut lost = 0;
        for _ in 0..options.lossy {
            let samples = program.run(options.samples, &mut random);
            let kept: Vec<Option<u16>> = keep_some(&samples, keep, &mut random);
            lost += kept.iter().filter(|sample| sample.is_none()).count();
            let mut profile = synthetic::profile(kept.into_iter())?;
            let known = intervals(&profile);
            profile.losses = Default::default();
            profile.events.iter_mut().for_each(|event| event.lost_samples = 0);
            judge_loss(&mut loss, &samples, &known, &intervals(&profile));
        }
        loss.lost_percent = 100.0 * lost as f64 / (options.lossy * options.samples).max(1) as f64;
        losses.push(loss);
    }
    Ok(losses)
}

/// Whether the first of the samples, which are those from here on, is kept.
type Keep = fn(&[u16], &mut Random) -> bool;

fn keep_some(samples: &[u16], keep: Keep, random: &mut Random) -> Vec<Option<u16>> {
    let sample = |(at, sample): (usize, &u16)| keep(&samples[at..], random).then_some(*sample);
    samples.iter().enumerate().map(sample).collect()
}

/// One of five bursts is lost, by their place before the end.
fn keep_between_bursts(samples: &[u16], _: &mut Random) -> bool {
    (samples.len() / BURST) % 5 != 2
}

/// Losses cluster where the first function runs.
fn keep_few_of_first(samples: &[u16], random: &mut Random) -> bool {
    let lost = if samples[0] == 0 { 0.8 } else { 0.1 };
    random.unit() >= lost
}

fn judge_loss(
    loss: &mut Loss,
    samples: &[u16],
    known: &HashMap<String, (f64, ShareInterval)>,
    ignored: &HashMap<String, (f64, ShareInterval)>,
) {
    for function in 0..FUNCTIONS {
        let hits = samples.iter().filter(|sample| usize::from(**sample) == function).count();
        let truth = 100.0 * hits as f64 / samples.len() as f64;
        let name = synthetic::name(function);
        let (Some((_, known)), Some((_, ignored))) = (known.get(&name), ignored.get(&name)) else {
            // A function without any sample left has no row.
            continue;
        };
        loss.intervals += 1;
        loss.held += usize::from(holds(known, truth));
        loss.held_if_ignored += usize::from(holds(ignored, truth));
    }
}
