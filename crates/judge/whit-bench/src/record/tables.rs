//! The tables: workloads and settings.
//!
//! They are those of Budankov, "Linux perf advancements for compute intensive and server
//! systems", Linux Piter 2019, with this repository's own workloads: trace streaming and loss,
//! affinity, compression, context switches, parallel streaming; and a build of short processes.

use clap::ValueEnum;
use serde::Serialize;

use super::workload::Workload;
use crate::named::named;

/// Sampling frequency where a table does not ask for the highest.
const FREQUENCY_HZ: &str = "10000";
/// Every context switch, as Alexey Budankov writes it (Linux Piter 2019): a software event with a period of its own.
pub(crate) const EVERY_SWITCH: &str = "software/period=1,name=cs,config=0x3/Duk";

/// Which table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum TableKind {
    /// Data loss by way of streaming, at the highest rate.
    Loss,
    /// Way of streaming by affinity of the reading thread.
    Affinity,
    /// Level of compression by way of streaming.
    Compression,
    /// Context switches of a futex ping-pong.
    Futex,
    /// Context switches of `sched_yield`.
    Yield,
    /// Context switches of `sleep(0)`.
    Sleep0,
    /// A build of short processes by way of streaming.
    Spawn,
    /// One thread and one stream for each CPU.
    Parallel,
}

impl TableKind {
    /// Heading of the table in the output.
    pub(crate) fn title(self) -> &'static str {
        match self {
            TableKind::Loss => "Data loss at the highest rate, by way of streaming",
            TableKind::Affinity => "Way of streaming by affinity of the reading thread",
            TableKind::Compression => "Level of compression by way of streaming",
            TableKind::Futex => "Context switches of a futex ping-pong",
            TableKind::Yield => "Context switches of threads in sched_yield",
            TableKind::Sleep0 => "Context switches of threads in sleep(0)",
            TableKind::Spawn => "A build of short processes, by way of streaming",
            TableKind::Parallel => "Parallel streaming",
        }
    }
}

named!(TableKind);

/// The user's choices for all tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Tuning {
    pub(crate) event: String,
    /// Samples a second, or `max`; each table's own where it is absent.
    pub(crate) frequency: Option<String>,
    /// Size of each ring: the same for all recorders.
    pub(crate) ring_size: String,
}

/// One way to record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// Options beside the table's.
    pub(crate) options: Vec<String>,
}

/// A table, ready to be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    /// Name of the table, as on the command line.
    pub(crate) kind: TableKind,
    pub(crate) workload: Workload,
    /// The workload takes `seconds / time_divisor` by itself: high rates slow it down by much.
    pub(crate) time_divisor: u32,
    /// Samples a second, or `max`.
    pub(crate) frequency: String,
    pub(crate) stack_bytes: u32,
    /// Options of all settings.
    pub(crate) common: Vec<String>,
    /// The settings; every recorder gets the same.
    pub(crate) settings: Vec<Setting>,
}

impl Table {
    /// The table of this kind.
    pub(crate) fn new(kind: TableKind, tuning: &Tuning) -> Table {
        let (workload, time_divisor, stack_bytes, frequency) = match kind {
            TableKind::Loss => (Workload::Deep, 4, 32768, "max"),
            TableKind::Affinity => (Workload::Matrix, 1, 1024, FREQUENCY_HZ),
            TableKind::Compression => (Workload::Deep, 1, 8192, FREQUENCY_HZ),
            TableKind::Futex => (Workload::Pingpong, 1, 1024, FREQUENCY_HZ),
            TableKind::Yield => (Workload::Yield, 1, 1024, FREQUENCY_HZ),
            TableKind::Sleep0 => (Workload::Sleep0, 1, 1024, FREQUENCY_HZ),
            TableKind::Spawn => (Workload::Spawn, 1, 8192, FREQUENCY_HZ),
            TableKind::Parallel => (Workload::Deep, 2, 32768, "20000"),
        };
        let frequency = tuning.frequency.clone().unwrap_or_else(|| frequency.to_owned());
        let streaming = streaming_options(tuning, &frequency, stack_bytes);
        let (common, settings) = match kind {
            TableKind::Loss => (streaming, ways_of_streaming()),
            TableKind::Affinity => (streaming, affinities()),
            TableKind::Compression => (streaming, compressions()),
            TableKind::Spawn => (streaming, ways_of_streaming()),
            TableKind::Parallel => (streaming, parallel()),
            TableKind::Futex | TableKind::Yield | TableKind::Sleep0 => {
                (frame(tuning), context_switches(&tuning.event, &frequency, stack_bytes))
            }
        };
        Table { kind, workload, time_divisor, frequency, stack_bytes, common, settings }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn setting(name: &str, options: &str) -> Setting {
    Setting { name: name.to_owned(), options: words(options) }
}

/// Options of every recording: nothing that costs after the end, times, raw bytes, CPUs (which tell
/// rings apart), rings of the same size.
fn frame(tuning: &Tuning) -> Vec<String> {
    words(&format!("-N -B -T -R --sample-cpu -m {}", tuning.ring_size))
}

/// The published command line (Linux Piter 2019): samples with dumped stacks, every context switch twice, as an event
/// and as a record.
fn samples_and_switches(event: &str, frequency: &str, stack_bytes: u32) -> String {
    format!(
        "-F {frequency} --call-graph dwarf,{stack_bytes} --user-regs=IP,SP,BP --switch-events \
         -e {event},{EVERY_SWITCH}"
    )
}

fn streaming_options(tuning: &Tuning, frequency: &str, stack_bytes: u32) -> Vec<String> {
    let mut options = frame(tuning);
    options.extend(words(&samples_and_switches(&tuning.event, frequency, stack_bytes)));
    options
}

/// The ways alone, and their combinations; `r` lets the readers go before everything else. perf
/// refuses the last two: `--threads` excludes `--aio` and `--affinity` there.
fn ways_of_streaming() -> Vec<Setting> {
    vec![
        setting("serial", ""),
        setting("aio", "--aio"),
        setting("aio=4 cpu", "--aio=4 --affinity=cpu"),
        setting("aio=4 cpu z", "--aio=4 --affinity=cpu -z"),
        setting("aio=4 cpu z r", "--aio=4 --affinity=cpu -z -r 1"),
        setting("threads", "--threads=cpu"),
        setting("threads z", "--threads=cpu -z"),
        setting(ALL_TOGETHER, "--threads=cpu --aio --affinity=cpu -z"),
        setting(EVERY_MODE, "--threads=cpu --aio --affinity=cpu -z -r 1"),
    ]
}

/// The name of the setting that has every way of streaming.
pub(crate) const ALL_TOGETHER: &str = "threads aio cpu z";
/// The name of the setting whose readers go before everything else as well.
pub(crate) const EVERY_MODE: &str = "threads aio cpu z r";

fn affinities() -> Vec<Setting> {
    let mut settings = Vec::new();
    for (way, aio) in [("serial", ""), ("aio", "--aio")] {
        settings.push(setting(&format!("{way} sys"), aio));
        for affinity in ["node", "cpu"] {
            let options = format!("{aio} --affinity={affinity}");
            settings.push(setting(&format!("{way} {affinity}"), &options));
        }
    }
    settings
}

fn compressions() -> Vec<Setting> {
    let mut settings = Vec::new();
    for (way, aio) in [("serial", ""), ("aio", "--aio")] {
        settings.push(setting(&format!("{way} z0"), aio));
        for level in [1, 2, 3, 5, 8] {
            settings.push(setting(&format!("{way} z{level}"), &format!("{aio} -z{level}")));
        }
    }
    settings
}

fn parallel() -> Vec<Setting> {
    vec![
        setting("serial", ""),
        setting("threads", "--threads=cpu"),
        setting(ALL_TOGETHER, "--threads=cpu --aio --affinity=cpu -z"),
        setting(EVERY_MODE, "--threads=cpu --aio --affinity=cpu -z -r 1"),
    ]
}

/// Three ways to see context switches, of the command alone and of the whole machine.
fn context_switches(event: &str, frequency: &str, stack_bytes: u32) -> Vec<Setting> {
    let ways = [
        ("stacks", samples_and_switches(event, frequency, stack_bytes)),
        ("switch records", format!("-F {frequency} --switch-events -e {event}")),
        ("sched_switch", "-c 1 -g -e sched:sched_switch".to_owned()),
    ];
    let scopes = [("process", ""), ("system", "-a ")];
    let each = scopes.iter().flat_map(|scope| ways.iter().map(move |way| (scope, way)));
    each.map(|((scope, all), (way, options))| {
        setting(&format!("{way}, {scope}"), &format!("{all}{options}"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn tuning() -> Tuning {
        Tuning { event: "cpu-clock".into(), frequency: None, ring_size: "512K".into() }
    }

    #[test]
    fn settings_of_a_table_differ_in_name_and_options() {
        for &kind in TableKind::value_variants() {
            let table = Table::new(kind, &tuning());
            let names: HashSet<_> = table.settings.iter().map(|s| &s.name).collect();
            let options: HashSet<_> = table.settings.iter().map(|s| &s.options).collect();
            assert_eq!(names.len(), table.settings.len(), "{kind}");
            assert_eq!(options.len(), table.settings.len(), "{kind}");
        }
    }

    #[test]
    fn the_talks_tables_are_whole() {
        let names = |kind| Table::new(kind, &tuning()).settings.into_iter().map(|s| s.name);
        let affinity: Vec<_> = names(TableKind::Affinity).collect();
        let expected =
            ["serial sys", "serial node", "serial cpu", "aio sys", "aio node", "aio cpu"];
        assert_eq!(affinity, expected);
        let levels = ["z0", "z1", "z2", "z3", "z5", "z8"];
        let expected =
            ["serial", "aio"].iter().flat_map(|way| levels.map(|l| format!("{way} {l}")));
        assert!(names(TableKind::Compression).eq(expected));
        for kind in [TableKind::Futex, TableKind::Yield, TableKind::Sleep0] {
            assert_eq!(names(kind).filter(|name| name.ends_with("system")).count(), 3);
        }
        assert!(names(TableKind::Loss).any(|name| name == EVERY_MODE));
    }

    #[test]
    fn every_setting_says_cpus_and_one_ring_size_and_an_event() {
        for &kind in TableKind::value_variants() {
            let table = Table::new(kind, &tuning());
            for setting in &table.settings {
                let all = [&table.common[..], &setting.options[..]].concat();
                assert!(all.iter().any(|word| word == "--sample-cpu"), "{kind} {all:?}");
                assert!(all.windows(2).any(|w| w == ["-m", "512K"]), "{kind} {all:?}");
                assert_eq!(all.iter().filter(|word| *word == "-e").count(), 1, "{kind} {all:?}");
            }
        }
    }

    #[test]
    fn a_frequency_of_the_user_is_that_of_all_tables() {
        let tuning = Tuning { frequency: Some("123".into()), ..tuning() };
        for &kind in TableKind::value_variants() {
            let table = Table::new(kind, &tuning);
            assert_eq!(table.frequency, "123");
            let first = [&table.common[..], &table.settings[0].options[..]].concat();
            assert!(first.windows(2).any(|w| w == ["-F", "123"]), "{first:?}");
        }
    }
}
