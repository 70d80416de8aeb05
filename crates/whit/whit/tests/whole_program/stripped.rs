//! Code without symbols: functions of stripped binaries, and code of JIT compilers without names.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::report::parse;
use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check, probe, record};

/// Rows of this share count: all that have a few samples.
const LEAST_PERCENT: f64 = 0.5;

/// Percentage by function of one binary, without the user's caches.
fn shares(place: &Path, dso: &str) -> BTreeMap<String, f64> {
    let mut report = whit();
    report.env("HOME", place).args(["report", "--no-children", "-g", "none", "--no-inline"]);
    report.args(["--no-demangle", "--sort", "dso,symbol", "-i"]).arg(place.join("perf.data"));
    let tables = parse(&text(&mut report));
    let rows = tables.into_values().flatten().filter(|row| row.dso == dso);
    rows.map(|row| (row.symbol, row.percent)).collect()
}

/// Functions by name, as the linker has them.
fn addresses(program: &Path) -> BTreeMap<String, u64> {
    let listed = text(command("nm").arg(program));
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((words.nth(1)?.to_owned(), address))
    };
    listed.lines().filter_map(line).collect()
}

#[test]
fn functions_of_a_stripped_program_have_the_shares_that_they_had_by_name() {
    check("stripped_program", || {
        probe::program("strip")?;
        probe::program("nm")?;
        let place = tempfile::tempdir().expect("make a directory");
        let program = place.path().join("deep");
        whit_testing::run::copy_program(workload("deep")?, &program);
        let mut recorder = perf()?;
        recorder.args(["record", "--no-buildid-cache", "-e", "cpu-clock:u", "-F", "1999", "-o"]);
        recorder.arg(place.path().join("perf.data")).arg(&program);
        record(recorder.args(["--iterations", "40000"]))?;
        let named = shares(place.path(), "deep");
        let addresses = addresses(&program);
        // The build id stays.
        text(command("strip").arg(&program));
        let stripped = shares(place.path(), "deep");
        // The linker has no symbols of the entries that calls into libraries lead through.
        let has_symbol = |name: &str| addresses.contains_key(name);
        let heavy =
            named.iter().filter(|(name, share)| **share >= LEAST_PERCENT && has_symbol(name));
        let heavy: Vec<_> = heavy.collect();
        assert!(heavy.len() >= 3, "{named:?}");
        for (name, share) in heavy {
            let stand_in = format!("fun_{:x}@deep", addresses[name]);
            assert_eq!(stripped.get(&stand_in), Some(share), "{name}: {stripped:#?}");
        }
        Ok(())
    });
}

#[test]
fn code_that_a_jit_compiler_did_not_name_is_one_row() {
    check("jit_without_names", || {
        let place = tempfile::tempdir().expect("make a directory");
        let mut recorder = perf()?;
        recorder.args(["record", "-e", "cpu-clock:u", "-F", "1999", "-o"]);
        recorder.arg(place.path().join("perf.data")).arg(workload("jit")?);
        record(recorder.args(["--seconds", "0.5"]))?;
        let rows = || {
            let mut report = whit();
            report.args(["report", "--no-children", "--sort", "dso,symbol", "-i"]);
            let tables = parse(&text(report.arg(place.path().join("perf.data"))));
            let rows: Vec<_> = tables.into_values().flatten().collect();
            let map = rows.iter().map(|row| row.dso.clone()).find(|dso| dso.ends_with(".map"));
            let map = map.expect("samples of the code");
            let jitted = rows.into_iter().filter(|row| row.dso == map);
            (map.clone(), jitted.map(|row| (row.symbol, row.percent)).collect::<Vec<_>>())
        };
        let (map, named) = rows();
        let all: f64 = named.iter().map(|(_, share)| share).sum();
        assert!(named.iter().any(|(name, _)| name == "jit_inner"), "{named:?}");
        std::fs::remove_file(Path::new("/tmp").join(&map)).expect("remove the map");
        let (_, unnamed) = rows();
        let [(name, share)] = &unnamed[..] else { panic!("several rows: {unnamed:?}") };
        assert!(name.starts_with("jit_") && name.ends_with(&map), "{name}");
        assert!((share - all).abs() < 0.02 * named.len() as f64, "{named:?} {unnamed:?}");
        Ok(())
    });
}

/// Runs code in memory without a file: a loop of x86-64.
const UNNAMED_CODE: &str = "\
#include <string.h>
#include <sys/mman.h>
#include <time.h>
int main(void) {
    unsigned char code[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 };
    void (*loop)(int) = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(loop, code, sizeof code);
    while (clock() < CLOCKS_PER_SEC / 2) loop(1000000);
}
";

/// The recorder's own command gets a number that another process had, and finds the map of that.
#[test]
fn a_map_of_an_earlier_process_names_nothing() {
    check("jit_stale_map", || {
        if !cfg!(target_arch = "x86_64") {
            return Err(Skip("the program is of x86-64".to_owned()));
        }
        probe::program("cc")?;
        let place = tempfile::tempdir().expect("make a directory");
        let (source, program) = (place.path().join("code.c"), place.path().join("code"));
        std::fs::write(&source, UNNAMED_CODE).expect("write a source");
        text(command("cc").args(["-O1", "-o"]).arg(&program).arg(&source));
        // The map stands for all code.
        let script = "map=/tmp/perf-$$.map; echo '1000 7fffffff0000 stale_name' >$map; \
                      touch -d '1 hour ago' $map; exec \"$0\"";
        let mut recorder = whit();
        // A clock that the recording can tell in times of day.
        recorder.args(["record", "-N", "--engine=ring", "-k", "mono", "-e", "cpu-clock:u", "-o"]);
        recorder.arg(place.path().join("perf.data")).args(["--", "sh", "-c", script]);
        record(recorder.arg(&program))?;
        let mut report = whit();
        report.args(["report", "--stdio", "--no-children", "--sort", "dso,symbol", "-i"]);
        let printed = text(report.arg(place.path().join("perf.data")));
        let map = printed.split_whitespace().find(|word| word.ends_with(".map"));
        let map = Path::new("/tmp").join(map.expect("samples of the code"));
        let _ = std::fs::remove_file(map);
        assert!(printed.contains("older than the process"), "{printed}");
        assert!(!printed.contains("stale_name"), "{printed}");
        Ok(())
    });
}
