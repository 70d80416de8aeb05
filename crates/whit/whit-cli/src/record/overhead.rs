//! `whit record --measure-overhead`: what this recording costs this command.

use crate::failure::bail_usage;
use crate::{message, output};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;
use whit_measure::overhead::{self, PAIRS_MIN, Slowdown};

/// Pairs of runs without `=N`.
pub(super) const DEFAULT_PAIRS: &str = "5";
/// Most pairs that can be asked for.
const PAIRS_MAX: usize = 1000;
/// Longest run that is waited for.
const LIMIT: Duration = Duration::from_secs(3600);
const OPTION: &str = "--measure-overhead";

pub(super) fn parse_pairs(text: &str) -> Result<usize, String> {
    let pairs = text.parse().ok().filter(|pairs| (PAIRS_MIN..=PAIRS_MAX).contains(pairs));
    pairs.ok_or_else(|| format!("{PAIRS_MIN} to {PAIRS_MAX} pairs of runs"))
}

/// Runs the command without and with whit, which is started anew with the same options. Prints each
/// pair unless `quiet`, and the result.
pub(super) fn measure(command: &[OsString], pairs: usize, quiet: bool) -> Result<u8> {
    let Some((program, arguments)) = command.split_first() else {
        bail_usage!("{OPTION} needs a command: it is run without and with recording");
    };
    let whit = std::env::current_exe().context("cannot find this program")?;
    let options = own_options(command.len());
    let without = || {
        let mut run = Command::new(program);
        run.args(arguments);
        run
    };
    let with = || {
        let mut run = Command::new(&whit);
        run.args(&options).arg("--").args(command);
        run
    };
    let mut on_pair = |pair: usize, without: f64, with: f64| {
        if !quiet {
            let slower = (with / without - 1.0) * 100.0;
            message::answer(format_args!(
                "pair {:>3}: {without:.3} s, recorded {with:.3} s ({slower:+.1}%)",
                pair + 1
            ));
        }
    };
    let times = overhead::pairs(without, with, pairs, LIMIT, &mut on_pair)?;
    let slowdown = Slowdown::of(&times).context("runs too short to be measured")?;
    output::line(describe(&slowdown))?;
    Ok(0)
}

/// This program's arguments up to the command, without the option itself.
fn own_options(command_length: usize) -> Vec<OsString> {
    let all: Vec<OsString> = std::env::args_os().skip(1).collect();
    let own = &all[..all.len() - command_length];
    let is_other = |arg: &&OsString| {
        let text = arg.to_string_lossy();
        *arg != "--" && text != OPTION && !text.starts_with(&format!("{OPTION}="))
    };
    own.iter().filter(is_other).cloned().collect()
}

fn describe(slowdown: &Slowdown) -> String {
    let percent = |factor: f64| format!("{:+.2}%", (factor - 1.0) * 100.0);
    let (low, high) = slowdown.interval;
    let certainty = match slowdown.is_certain() {
        true => "",
        false => "; no difference that is more than chance",
    };
    format!(
        "recording changes the run time by {} ({} to {} with 95% confidence, {} pairs of runs){}",
        percent(slowdown.factor),
        percent(low),
        percent(high),
        slowdown.pairs,
        certainty
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_printed_with_its_significance() {
        let slowdown = Slowdown { pairs: 5, factor: 1.02, interval: (0.99, 1.05) };
        assert_eq!(
            describe(&slowdown),
            "recording changes the run time by +2.00% (-1.00% to +5.00% with 95% confidence, 5 \
             pairs of runs); no difference that is more than chance"
        );
        let certain = Slowdown { interval: (1.01, 1.03), ..slowdown };
        assert!(describe(&certain).ends_with("runs)"));
    }

    #[test]
    fn one_pair_is_no_measure() {
        assert!(parse_pairs("1").is_err() && parse_pairs("x").is_err());
        assert_eq!(parse_pairs("2"), Ok(2));
    }
}
