//! Values of the options of `whit stat`.

use std::time::Duration;
use whit_stat::options::{BpfCounters, Repeats, Start};

/// Most runs: their times are kept.
const RUNS_MAX: u32 = 1_000_000;

pub(super) fn positive(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "a number from 1 on".to_owned())
}

/// Milliseconds; -1 is "not before it is asked for".
pub(super) fn delay(text: &str) -> Result<Start, String> {
    match text.parse::<i64>() {
        Ok(-1) => Ok(Start::Disabled),
        Ok(0) => Ok(Start::AtOnce),
        Ok(ms) if ms > 0 => Ok(Start::After(Duration::from_millis(ms as u64))),
        _ => Err("a number of milliseconds, or -1".to_owned()),
    }
}

pub(super) fn repeats(text: &str) -> Result<Repeats, String> {
    match text.parse() {
        Ok(0) => Ok(Repeats::Forever),
        Ok(times) if times <= RUNS_MAX => Ok(Repeats::Times(times)),
        _ => Err(format!("a number up to {RUNS_MAX}; 0 is for ever")),
    }
}

pub(super) fn bpf_counters(text: &str) -> Result<BpfCounters, String> {
    match text {
        "on" => Ok(BpfCounters::On),
        "off" => Ok(BpfCounters::Off),
        "auto" => Ok(BpfCounters::Auto),
        _ => Err("on, off or auto".to_owned()),
    }
}

/// As in perf, `\t` is a tabulator.
pub(super) fn separator(text: &str) -> Result<String, String> {
    match text {
        "" => Err("something to put between fields".to_owned()),
        "\\t" => Ok("\t".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_perf() {
        assert_eq!(delay("-1"), Ok(Start::Disabled));
        assert_eq!(delay("20"), Ok(Start::After(Duration::from_millis(20))));
        assert_eq!((repeats("0"), repeats("5")), (Ok(Repeats::Forever), Ok(Repeats::Times(5))));
        assert_eq!((separator("\\t"), separator(";")), (Ok("\t".into()), Ok(";".into())));
        assert_eq!(positive("7"), Ok(7));
        assert_eq!(bpf_counters("off"), Ok(BpfCounters::Off));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(delay("-2").is_err() && delay("x").is_err());
        assert!(repeats("-1").is_err() && repeats("1000001").is_err());
        assert!(bpf_counters("yes").is_err());
        assert!(separator("").is_err() && positive("0").is_err());
    }
}
