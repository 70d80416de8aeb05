//! Parts of command lines that several comparisons have.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{RangedU64ValueParser, TypedValueParser};

/// Headings of groups of options in `--help`.
pub(crate) mod heading {
    pub(crate) const COMPARED: &str = "Comparison";
    pub(crate) const RUNS: &str = "Runs";
    pub(crate) const EVENTS: &str = "Events and samples";
    pub(crate) const SETUP: &str = "Setup";
    pub(crate) const SETUP_OF_HOST: &str = "Setup, with --host";
    pub(crate) const RESULTS: &str = "Results";
}

/// Where `make -C bench/workloads` puts the programs that are recorded.
pub(crate) const WORKLOADS: &str = "target/workloads";

/// The most rounds.
const ROUNDS_MAX: u64 = 1000;

/// Rounds, or runs of each case.
pub(crate) fn rounds() -> RangedU64ValueParser<usize> {
    count(ROUNDS_MAX)
}

/// A number of at least 1.
pub(crate) fn count(max: u64) -> RangedU64ValueParser<usize> {
    within(1..=max)
}

/// A number of a range.
pub(crate) fn within(range: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

/// A time in whole seconds.
pub(crate) fn seconds(range: RangeInclusive<u64>) -> impl TypedValueParser<Value = Duration> {
    RangedU64ValueParser::<u64>::new().range(range).map(Duration::from_secs)
}

/// A time in whole milliseconds.
pub(crate) fn milliseconds(range: RangeInclusive<u64>) -> impl TypedValueParser<Value = Duration> {
    RangedU64ValueParser::<u64>::new().range(range).map(Duration::from_millis)
}

/// The folder for recordings; empty where there is no home directory.
pub(crate) fn default_cache() -> PathBuf {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("whit/bench")).unwrap_or_default()
}

/// The whit in the folder of this program.
pub(crate) fn installed_whit() -> PathBuf {
    std::env::current_exe().map(|own| own.with_file_name("whit")).unwrap_or_default()
}
