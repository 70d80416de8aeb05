//! Sort keys: what makes two samples fall into the same row.

use std::num::NonZeroU64;
use whit_profile::WantedFacets;

use super::latency::WeightColumn;

/// One key of `--sort`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SortKey {
    /// Task: thread id and command name (perf's `pid`, whose man page says "tid of the task").
    Pid,
    /// The same rows as [`SortKey::Pid`] under the heading that says what the number is.
    Tid,
    /// Process: thread group id and command name.
    Tgid,
    /// Command name.
    Comm,
    /// Binary.
    Dso,
    /// Function.
    Symbol,
    /// CPU.
    Cpu,
    /// Source file and line.
    SrcLine,
    /// Source file.
    SrcFile,
    /// Socket of the CPU.
    Socket,
    /// Weight of one sample.
    LocalWeight,
    /// Weight of one sample times the number of samples, as in perf.
    Weight,
    /// Path of the task's control group.
    Cgroup,
    /// Container, by the cgroup's path.
    Container,
    /// Pod, by the cgroup's path.
    Pod,
    /// Unit of systemd, by the cgroup's path.
    Unit,
    /// Stretch of time.
    Time,
    /// Threads of the profiled set that ran at the time of the sample.
    Parallelism,
}

/// The words that name columns of shares beside keys.
const COLUMNS: [(&str, WeightColumn); 2] =
    [("overhead", WeightColumn::Overhead), ("latency", WeightColumn::Latency)];

/// The argument of `--sort`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SortList {
    /// Columns of shares, in the order in which they were named.
    pub columns: Vec<WeightColumn>,
    /// The parts of samples that make rows, likewise.
    pub keys: Vec<SortKey>,
}

/// A word in a `--sort` list that names no key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "cannot sort by `{word}`: no such key; the keys are {}",
    SortKey::ALL.map(SortKey::name).join(", ") + ", and the columns overhead and latency"
)]
pub struct UnknownSortKey {
    /// The word.
    pub word: String,
}

impl SortKey {
    /// Every key, in the order in which an abbreviation is looked up.
    pub const ALL: [SortKey; 18] = [
        SortKey::Pid,
        SortKey::Tid,
        SortKey::Tgid,
        SortKey::Comm,
        SortKey::Dso,
        SortKey::Symbol,
        SortKey::Cpu,
        SortKey::SrcLine,
        SortKey::SrcFile,
        SortKey::Socket,
        SortKey::LocalWeight,
        SortKey::Weight,
        SortKey::Cgroup,
        SortKey::Container,
        SortKey::Pod,
        SortKey::Unit,
        SortKey::Time,
        SortKey::Parallelism,
    ];

    /// perf's default: `comm,dso,symbol`.
    pub const DEFAULT: [SortKey; 3] = [SortKey::Comm, SortKey::Dso, SortKey::Symbol];

    /// The key's name in `--sort`.
    pub const fn name(self) -> &'static str {
        match self {
            SortKey::Pid => "pid",
            SortKey::Tid => "tid",
            SortKey::Tgid => "tgid",
            SortKey::Comm => "comm",
            SortKey::Dso => "dso",
            SortKey::Symbol => "symbol",
            SortKey::Cpu => "cpu",
            SortKey::SrcLine => "srcline",
            SortKey::SrcFile => "srcfile",
            SortKey::Socket => "socket",
            SortKey::LocalWeight => "local_weight",
            SortKey::Weight => "weight",
            SortKey::Cgroup => "cgroup",
            SortKey::Container => "container",
            SortKey::Pod => "pod",
            SortKey::Unit => "unit",
            SortKey::Time => "time",
            SortKey::Parallelism => "parallelism",
        }
    }

    /// Column heading, as perf has it.
    pub const fn heading(self) -> &'static str {
        match self {
            SortKey::Pid | SortKey::Tgid => "    Pid:Command",
            SortKey::Tid => "    Tid:Command",
            SortKey::Comm => "Command",
            SortKey::Dso => "Shared Object",
            SortKey::Symbol => "Symbol",
            SortKey::Cpu => "CPU",
            SortKey::SrcLine => "Source:Line",
            SortKey::SrcFile => "Source File",
            SortKey::Socket => "Socket",
            SortKey::LocalWeight => "Local Weight",
            SortKey::Weight => "Weight      ",
            SortKey::Cgroup => "Cgroup",
            SortKey::Container => "Container",
            SortKey::Pod => "Pod",
            SortKey::Unit => "Unit",
            SortKey::Time => "Time        ",
            SortKey::Parallelism => "Parallelism",
        }
    }

    /// The parts of samples that rows under these keys are told apart by.
    pub fn wanted_facets(keys: &[SortKey], time_quantum_ns: NonZeroU64) -> WantedFacets {
        let has = |wanted: &[SortKey]| keys.iter().any(|key| wanted.contains(key));
        WantedFacets {
            cpu: has(&[SortKey::Cpu, SortKey::Socket]),
            cgroup: has(&SortKey::OF_CGROUPS),
            time_quantum_ns: has(&[SortKey::Time]).then_some(time_quantum_ns),
            weight: has(&[SortKey::Weight, SortKey::LocalWeight]),
            parallelism: has(&[SortKey::Parallelism]),
        }
    }

    /// Keys that need the cgroups of samples.
    pub const OF_CGROUPS: [SortKey; 4] =
        [SortKey::Cgroup, SortKey::Container, SortKey::Pod, SortKey::Unit];

    /// Parses a comma-separated list. As in perf, a key may be abbreviated to any prefix and case
    /// does not matter; a key that is named twice counts once.
    ///
    /// # Errors
    /// [`UnknownSortKey`] for a word that is no prefix of a key.
    pub fn parse_list(list: &str) -> Result<Vec<SortKey>, UnknownSortKey> {
        let mut keys = Vec::new();
        for word in words(list) {
            add_new(&mut keys, SortKey::parse(word)?);
        }
        Ok(keys)
    }

    fn parse(word: &str) -> Result<SortKey, UnknownSortKey> {
        let lower = word.to_ascii_lowercase();
        SortKey::ALL
            .into_iter()
            .find(|k| k.name().starts_with(&lower))
            .ok_or_else(|| UnknownSortKey { word: word.to_owned() })
    }
}

impl SortList {
    /// Parses a list in which `overhead` and `latency` may stand, too.
    ///
    /// # Errors
    /// [`UnknownSortKey`] for a word that is no prefix of any.
    pub fn parse(list: &str) -> Result<SortList, UnknownSortKey> {
        let mut parsed = SortList::default();
        for word in words(list) {
            let lower = word.to_ascii_lowercase();
            match (SortKey::parse(word), COLUMNS.iter().find(|(name, _)| name.starts_with(&lower)))
            {
                (Ok(key), _) => add_new(&mut parsed.keys, key),
                (Err(_), Some((_, column))) => add_new(&mut parsed.columns, *column),
                (Err(error), None) => return Err(error),
            }
        }
        Ok(parsed)
    }
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ']).filter(|word| !word.is_empty())
}

fn add_new<T: PartialEq>(list: &mut Vec<T>, value: T) {
    if !list.contains(&value) {
        list.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_abbreviations_and_drop_repetitions() {
        assert_eq!(
            SortKey::parse_list("sym,Comm,dso,sym,srcl").unwrap(),
            [SortKey::Symbol, SortKey::Comm, SortKey::Dso, SortKey::SrcLine]
        );
        assert_eq!(SortKey::parse_list("").unwrap(), []);
    }

    #[test]
    fn columns_stand_among_keys() {
        let list = SortList::parse("Latency,paral,over,lat,l").unwrap();
        assert_eq!(list.columns, [WeightColumn::Latency, WeightColumn::Overhead]);
        // An abbreviation means a key before it means a column.
        assert_eq!(list.keys, [SortKey::Parallelism, SortKey::LocalWeight]);
        assert!(SortList::parse("latencies").unwrap_err().to_string().contains("overhead"));
    }

    #[test]
    fn an_unknown_key_is_named_with_the_known_ones() {
        let error = SortKey::parse_list("comm,weather").unwrap_err().to_string();
        assert!(error.contains("`weather`") && error.contains("srcline"), "{error}");
    }
}
