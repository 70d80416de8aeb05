//! `whit locks` against the counts of a program that takes its own clock around its locks.
//!
//! The load is `mutexes`: it says how often its waiters left their CPUs inside of `pthread_mutex_lock()`, by the
//! kernel's count, and how long the calls took.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use whit_testing::run::{output, stderr};

use crate::support::tools::{command, number, record, text, whit, workload};
use crate::support::{Skip, check, probe};

mod kernel;
mod measured;

const ROUNDS: u64 = 50;

/// The ring engine takes stacks of switches with an event of its own.
const SAMPLED_SWITCHES: [&str; 7] = [
    "-m",
    "16M",
    "--switch-events",
    "--call-graph",
    "dwarf,1024",
    "-e",
    "cpu-clock,software/period=1,name=cs,config=0x3/Duk",
];

/// The program's own figures of one lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    waits: u64,
    wait_ns: u64,
    max_ns: u64,
}

fn counted(text: &str) -> BTreeMap<String, Counted> {
    let lines = text.lines().filter(|line| line.starts_with("lock "));
    let all: BTreeMap<_, _> = lines
        .map(|line| {
            let word = |key: &str| {
                let of_key =
                    |word: &'_ str| Some(word.strip_prefix(key)?.strip_prefix('=')?.to_owned());
                line.split(' ').find_map(of_key).unwrap_or_else(|| panic!("no {key} in {line}"))
            };
            let number = |key: &str| word(key).parse().expect("a number");
            let (waits, wait_ns, max_ns) = (number("waits"), number("wait_ns"), number("max_ns"));
            (word("name"), Counted { waits, wait_ns, max_ns })
        })
        .collect();
    assert_eq!(all.len(), 2, "{text}");
    all
}

/// Records the program; gives its own figures by the symbol of the lock.
fn recorded(data: &Path, arguments: &[&str]) -> Result<BTreeMap<String, Counted>, Skip> {
    recorded_under(whit(), data, arguments)
}

/// The same with a recorder that the end of another command starts.
fn recorded_under(
    mut recorder: Command,
    data: &Path,
    arguments: &[&str],
) -> Result<BTreeMap<String, Counted>, Skip> {
    let mut program = command(workload("mutexes")?);
    let program = program.args(["--rounds", &ROUNDS.to_string()]);
    recorder.args(["record", "--engine=ring", "-q", "-o"]).arg(data).args(arguments);
    recorder.arg("--").arg(program.get_program()).args(program.get_args());
    let said = record(&mut recorder)?;
    Ok(counted(&String::from_utf8_lossy(&said)))
}

pub(crate) fn with_wakeups(data: &Path) -> Result<BTreeMap<String, Counted>, Skip> {
    probe::bpf_stacks()?;
    recorded(data, &["--engine=bpf", "--wakeups"])
}

pub(crate) fn locks(data: &Path, arguments: &[&str]) -> Value {
    let json = text(whit().args(["locks", "--json", "-i"]).arg(data).args(arguments));
    serde_json::from_str(&json).expect("JSON")
}

/// The row of the lock with a symbol.
pub(crate) fn row<'a>(json: &'a Value, symbol: &str) -> &'a Value {
    let of = |row: &&Value| lock(json, row)["symbol"] == symbol;
    let rows = json["rows"].as_array().expect("rows");
    rows.iter().find(of).unwrap_or_else(|| panic!("no {symbol} in {json}"))
}

fn lock<'a>(json: &'a Value, row: &Value) -> &'a Value {
    &json["locks"][row["lock"].as_u64().expect("a lock") as usize]
}

/// Number of waits of certain length by a property.
pub(crate) fn waits_by(
    json: &Value,
    row: &Value,
    key: impl Fn(&Value) -> String,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for index in row["waits"].as_array().expect("waits") {
        let wait = &json["waits"][index.as_u64().expect("an index") as usize];
        *counts.entry(key(wait)).or_default() += number(&wait["sums"], "contended");
    }
    counts.retain(|_, count| *count > 0);
    counts
}

pub(crate) fn function(json: &Value, index: &Value) -> String {
    let index = index.as_u64().map(|index| index as usize);
    index.map_or("-".to_owned(), |index| {
        json["functions"][index]["name"].as_str().expect("a name").to_owned()
    })
}

fn holder(json: &Value, wait: &Value) -> String {
    let thread = &json["threads"][wait["holder"]["thread"].as_u64().expect("a holder") as usize];
    format!("{} {}", thread["comm"].as_str().unwrap(), function(json, &wait["holder"]["function"]))
}

/// A call may take longer than the wait in it, never shorter. Counts are the kernel's to the last one. Where the kernel
/// hid that a thread came, the length of its wait is uncertain, and no record is lost.
pub(crate) fn agree(json: &Value, all: &BTreeMap<String, Counted>) {
    let has_window = json["loss_windows_ns"].as_array().is_some_and(|windows| !windows.is_empty());
    for (name, of_program) in all {
        let sums = &row(json, name)["sums"];
        let uncertain = number(sums, "uncertain");
        let waits = number(sums, "contended") + uncertain;
        assert_eq!(waits, of_program.waits, "{name} {of_program:?} {sums}");
        assert!(number(sums, "total_ns") <= of_program.wait_ns, "{name} {of_program:?} {sums}");
        assert!(number(sums, "max_ns") <= of_program.max_ns, "{name} {of_program:?} {sums}");
        assert!(has_window || uncertain == 0, "{name} {sums}");
    }
}

#[test]
fn locks_are_those_of_the_program() {
    check("locks_are_those_of_the_program", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let all = with_wakeups(&data)?;
        let json = locks(&data, &[]);
        agree(&json, &all);
        let slow = row(&json, "slow_lock");
        assert_eq!(
            (&lock(&json, slow)["kind"], &lock(&json, slow)["offset"]),
            (&"data".into(), &0.into())
        );
        let binary = lock(&json, slow)["binary"].as_str().expect("a binary");
        assert!(binary.ends_with("/mutexes"), "{binary}");
        // Its owner holds it for 3 ms.
        assert!(number(&slow["sums"], "p50_ns") > 2_000_000, "{slow}");
        let one =
            |key: &str| BTreeMap::from([(key.to_owned(), number(&slow["sums"], "contended"))]);
        let site = |wait: &Value| function(&json, &wait["call_site"]);
        assert_eq!(waits_by(&json, slow, site), one("take_slow"));
        assert_eq!(
            waits_by(&json, slow, |wait| wait["comm"].as_str().unwrap().to_owned()),
            one("slow-waiter")
        );
        assert_eq!(waits_by(&json, slow, |wait| holder(&json, wait)), one("slow-owner hold_slow"));
        // Behind four numbers of eight bytes.
        let fast = row(&json, "table");
        assert_eq!(lock(&json, fast)["offset"], 32);
        let holders = waits_by(&json, fast, |wait| holder(&json, wait));
        let of = |name: &str| holders.get(name).copied().unwrap_or(0);
        // The owner lets one waiter in, which lets the other in.
        let both = of("fast-owner hold_fast") + of("fast-waiter take_fast");
        assert_eq!(both, number(&fast["sums"], "contended"), "{holders:?}");
        assert!(
            of("fast-owner hold_fast") >= ROUNDS / 2 && of("fast-waiter take_fast") > 0,
            "{holders:?}"
        );
        views_have_the_same_waits(&data, &json);
        functions_need_no_version(&data);
        Ok(())
    });
}

/// All three tables add the same waits up, and `whit switches` has their sum.
fn views_have_the_same_waits(data: &Path, by_lock: &Value) {
    let total = |json: &Value| {
        let rows = json["rows"].as_array().expect("rows").iter();
        let sums =
            rows.map(|row| (number(&row["sums"], "contended"), number(&row["sums"], "total_ns")));
        sums.fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1))
    };
    for by in ["callsite", "holder"] {
        assert_eq!(total(&locks(data, &["--by", by])), total(by_lock), "{by}");
    }
    for length in [&[][..], &["--min-wait", "2ms"]] {
        let mut switches = whit();
        switches.args(["switches", "--json", "--only-class", "lock", "-i"]).arg(data).args(length);
        let json: Value = serde_json::from_str(&text(&mut switches)).expect("JSON");
        let sums = &json["total"];
        let certain = number(sums, "sync_count") - number(sums, "lossy_count");
        let switched = (certain, number(sums, "sync_wait_ns"));
        assert_eq!(switched, total(&locks(data, length)), "{length:?}");
        assert!(switched.0 > 0, "{length:?}");
    }
    let named = text(whit().args(["locks", "-g", "-i"]).arg(data));
    for words in ["slow_lock (mutexes)", "ended by hold_slow <- hold_often"] {
        assert!(named.contains(words), "{words}: {named}");
    }
    let first = text(whit().args(["locks", "--limit", "1", "-i"]).arg(data));
    // Threads now and then meet at a lock of the C library or of the kernel.
    let left_off = match by_lock["rows"].as_array().expect("rows").len() - 1 {
        1 => "[1 more row: --limit]".to_owned(),
        rows => format!("[{rows} more rows: --limit]"),
    };
    assert!(first.contains(&left_off), "{first}");
}

/// The C library's functions have versions behind their names.
fn functions_need_no_version(data: &Path) {
    let of = |name: &str| number(&locks(data, &["-S", name])["total"], "contended");
    assert!(of("pthread_mutex_lock") >= 2 * ROUNDS);
    assert_eq!(of("pthread_mutex_loc"), 0);
}

#[test]
fn recordings_without_addresses_stacks_or_wakers_are_explained() {
    check("recordings_without_addresses_stacks_or_wakers_are_explained", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let refused = |arguments: &[&str], words: &[&str]| {
            let said = output(whit().args(["locks", "-i"]).arg(&data).args(arguments));
            assert_eq!(said.status.code(), Some(1), "{arguments:?}");
            for words in words {
                assert!(stderr(&said).contains(words), "{words}: {}", stderr(&said));
            }
        };
        recorded(&data, &["-e", "cpu-clock"])?;
        refused(&[], &["has no context switches", "--engine=bpf --wakeups"]);
        recorded(&data, &["--switch-events", "-e", "cpu-clock"])?;
        refused(&[], &["no call stacks of switches", "whit record --engine=bpf --wakeups"]);
        let all = recorded(&data, &SAMPLED_SWITCHES)?;
        refused(&["--by", "holder"], &["no wake-ups", "whit record --engine=bpf --wakeups"]);
        let table = text(whit().args(["locks", "-i"]).arg(&data));
        for words in [
            "Who ended waits is unknown",
            "no addresses were recorded (whit record --engine=bpf",
            "[no address] in take_slow (mutexes)",
        ] {
            assert!(table.contains(words), "{words}: {table}");
        }
        assert_sites(&data, &all);
        Ok(())
    });
}

/// A task's pinned event comes behind the other recorder's in the kernel's loop, and its samples have that one's id.
#[test]
fn another_recorder_takes_no_samples_away() {
    check("another_recorder_takes_no_samples_away", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let mut other = whit();
        other.args([
            "record",
            "--engine=ring",
            "-q",
            "-a",
            "-m",
            "16M",
            "-e",
            "cs",
            "-c",
            "1",
            "-o",
        ]);
        other.arg(dir.path().join("other.data")).arg("--").arg(whit().get_program());
        let all = recorded_under(other, &data, &SAMPLED_SWITCHES)?;
        assert_sites(&data, &all);
        Ok(())
    });
}

/// The waits of both locks were seen.
fn assert_sites(data: &Path, all: &BTreeMap<String, Counted>) {
    let json = locks(data, &["--by", "callsite"]);
    let rows = json["rows"].as_array().expect("rows").iter();
    let by_site: BTreeMap<_, _> = rows
        .map(|row| (function(&json, &row["function"]), number(&row["sums"], "contended")))
        .collect();
    // The kernel throttles samples of switches, which have the stacks.
    for (site, lock) in [("take_slow", "slow_lock"), ("take_fast", "table")] {
        let most = all[lock].waits;
        let count = by_site.get(site).copied().unwrap_or(0);
        assert!((1..=most).contains(&count), "{site} {most} {by_site:?}");
    }
}
