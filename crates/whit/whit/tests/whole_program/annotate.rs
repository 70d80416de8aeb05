//! `whit annotate`: the weights of instructions are those of the report and of perf.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::tools::{command, page_data, perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// About a second of the deep programs.
const ITERATIONS: &str = "60000";
/// Two roundings to two digits.
const ROUNDED: f64 = 0.0101;
/// Functions of the program `deep` that take nearly all of its time.
const HOT: [&str; 3] = ["kernels::hash_block", "kernels::sort_block", "kernels::divide_block"];
const HOT_IN_RUST: [&str; 2] =
    ["<deep::Hash as deep::Kernel>::run", "<deep::Sort as deep::Kernel>::run"];

/// Records with perf, so that both tools read its form.
fn recorded(directory: &Path, program: &Path, events: &[&str]) -> Result<PathBuf, Skip> {
    let path = directory.join("perf.data");
    let mut recorder = perf()?;
    recorder.args(["record", "--no-buildid-cache", "-F", "1999"]).args(events).arg("-o").arg(&path);
    record(recorder.arg("--").arg(program).args(["--iterations", ITERATIONS]))?;
    Ok(path)
}

fn annotate(path: &Path, arguments: &[&str]) -> Command {
    let mut whit = whit();
    whit.args(["annotate", "-i"]).arg(path).args(arguments);
    whit
}

fn json(path: &Path, arguments: &[&str]) -> Value {
    let written = text(annotate(path, &["--json"]).args(arguments));
    serde_json::from_str(&written).expect("JSON")
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().unwrap_or_else(|| panic!("no list {member}: {value}"))
}

/// Samples and periods by event.
type Sums = BTreeMap<u64, (u64, u64)>;

fn add(sums: &mut Sums, event: u64, weight: &Value) {
    let number = |member: &str| weight[member].as_u64().expect("a number");
    let sum = sums.entry(event).or_default();
    *sum = (sum.0 + number("samples"), sum.1 + number("period"));
}

/// The sums of parts of an annotated function.
fn sums_of<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Sums {
    let mut sums = Sums::new();
    for part in parts {
        for weight in list(part, "weights") {
            add(&mut sums, weight["event"].as_u64().expect("an event"), weight);
        }
    }
    sums
}

/// Self weights of the report: of physical functions, by name and binary.
fn report(path: &Path) -> BTreeMap<(String, String), Sums> {
    let mut whit = whit();
    whit.args(["report", "--json", "--no-children", "--self-time", "outer", "--no-inline", "-i"]);
    whit.arg(path).args(["--sort", "dso,symbol", "-g", "none"]);
    let report: Value = serde_json::from_str(&text(&mut whit)).expect("JSON");
    let mut all: BTreeMap<(String, String), Sums> = BTreeMap::new();
    for (event, rows) in (0u64..).zip(list(&report, "events")) {
        for row in list(rows, "rows") {
            let name = |value: &Value| value.as_str().expect("a name").to_owned();
            let key = (name(&row["symbol"]["name"]), name(&row["dso"]["path"]));
            add(all.entry(key).or_default(), event, &row["self"]);
        }
    }
    all
}

#[test]
fn parts_of_functions_of_cpp_add_up_to_the_report() {
    check("annotate::parts_of_functions_of_cpp_add_up_to_the_report", || {
        parts_add_up("deep", &HOT)
    });
}

#[test]
fn parts_of_functions_of_rust_add_up_to_the_report() {
    check("annotate::parts_of_functions_of_rust_add_up_to_the_report", || {
        parts_add_up("deep-rs", &HOT_IN_RUST)
    });
}

/// Instructions and lines of each function add up. The program spends its time in functions `hot`.
fn parts_add_up(program: &str, hot: &[&str]) -> Result<(), Skip> {
    let directory = tempfile::tempdir().expect("make a directory");
    let events = ["-e", "cpu-clock,page-faults", "-g"];
    let path = recorded(directory.path(), &workload(program)?, &events)?;
    let report = report(&path);
    let json = json(&path, &["--limit", "40"]);
    let (mut compared, mut with_lines) = (0, 0);
    for function in list(&json, "functions") {
        let name = |value: &Value| value.as_str().expect("a name").to_owned();
        let key = (name(&function["name"]), name(&function["dso"]["path"]));
        let own = sums_of([function]);
        assert_eq!(sums_of(list(function, "instructions")), own, "{key:?}");
        if function["problem"].is_null() {
            assert_eq!(sums_of(list(function, "lines")), own, "{key:?}");
            with_lines += 1;
        }
        // Several functions of one name in a binary are one row of a report.
        let alike = list(&json, "functions").iter().filter(|other| {
            (&other["name"], &other["dso"]["path"]) == (&function["name"], &function["dso"]["path"])
        });
        if alike.count() == 1 {
            assert_eq!(Some(&own), report.get(&key), "{key:?}");
            compared += 1;
        }
    }
    assert!(compared > 5 && with_lines > 5, "{compared} {with_lines}");
    let names: Vec<_> = list(&json, "functions").iter().map(|one| &one["name"]).collect();
    assert!(hot.iter().all(|hot| names.iter().any(|name| *name == hot)), "{names:?}");
    Ok(())
}

/// The table of instructions: percentage by address.
fn rows(table: &str) -> BTreeMap<u64, f64> {
    let row = |line: &str| {
        let (percent, rest) = line.split_once(" : ")?;
        let (address, _) = rest.trim_start().split_once(": ")?;
        Some((u64::from_str_radix(address, 16).ok()?, percent.trim().parse().ok()?))
    };
    table.lines().filter_map(row).collect()
}

#[test]
fn shares_of_addresses_are_those_of_perf() {
    check("annotate::shares_of_addresses_are_those_of_perf", || {
        probe::program("objdump")?;
        let directory = tempfile::tempdir().expect("make a directory");
        for program in ["deep", "deep-static"] {
            let path = recorded(directory.path(), &workload(program)?, &["-e", "cpu-clock"])?;
            // perf 6.1 prints local shares, or zeros, where text should have global ones.
            for (kind, function) in
                ["local-period", "local-hits", "local-period"].into_iter().zip(HOT)
            {
                let mut perf = perf()?;
                perf.args(["annotate", "--stdio", "--percent-type", kind, "-i"]).arg(&path);
                let theirs = rows(&text(perf.args(["-s", function])));
                let options = ["-s", function, "--percent-type", kind];
                let ours = rows(&text(&mut annotate(&path, &options)));
                assert!(ours.len() > 5, "{function}: {ours:?}");
                let addresses =
                    |rows: &BTreeMap<u64, f64>| rows.keys().copied().collect::<Vec<_>>();
                assert_eq!(addresses(&ours), addresses(&theirs), "{function}");
                for (address, percent) in &ours {
                    let theirs = theirs[address];
                    assert!(
                        (percent - theirs).abs() < ROUNDED,
                        "{function} {kind} {address:x}: {percent} {theirs}"
                    );
                }
            }
        }
        Ok(())
    });
}

#[test]
fn functions_of_one_name_in_two_binaries_are_both_shown() {
    check("annotate::functions_of_one_name_in_two_binaries_are_both_shown", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = whit();
        recorder
            .args(["record", "--engine=ring", "-q", "-F", "1999", "-e", "cpu-clock", "-o"])
            .arg(&path);
        let [one, other] = [workload("deep")?, workload("deep-fp")?];
        let both = format!(
            "'{}' --iterations 20000; '{}' --iterations 20000",
            one.display(),
            other.display()
        );
        record(recorder.args(["--", "sh", "-c", &both]))?;
        let dsos = |arguments: &[&str]| {
            let json = json(&path, arguments);
            let functions = list(&json, "functions").iter();
            let mut dsos: Vec<String> =
                functions.map(|one| one["dso"]["name"].as_str().expect("a name").into()).collect();
            dsos.sort();
            dsos
        };
        assert_eq!(dsos(&[HOT[0]]), ["deep", "deep-fp"]);
        assert_eq!(dsos(&[HOT[0], "-d", "deep-fp"]), ["deep-fp"]);
        Ok(())
    });
}

/// Standard error of a failure with wrong usage.
#[track_caller]
fn refusal(whit: &mut Command) -> String {
    let output = whit.output().expect("run whit");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

#[test]
fn a_name_without_samples_is_answered_with_others() {
    check("annotate::a_name_without_samples_is_answered_with_others", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = recorded(directory.path(), &workload("deep")?, &["-e", "cpu-clock"])?;
        let said = |name: &str| refusal(&mut annotate(&path, &[name]));
        let part = said("hash_block");
        assert!(part.contains("did you mean 'kernels::hash_block'?"), "{part}");
        let misspelt = said("kernels::hash_blck");
        assert!(misspelt.contains("did you mean 'kernels::hash_block'?"), "{misspelt}");
        assert!(misspelt.contains("whit report --no-children -s dso,symbol"), "{misspelt}");
        let inlined = said("kernels::scramble_round");
        assert!(inlined.contains("only inlined") && inlined.contains(HOT[0]), "{inlined}");
        let event = refusal(&mut annotate(&path, &["--event", "cycles", HOT[0]]));
        assert!(event.contains("its events are cpu-clock"), "{event}");
        Ok(())
    });
}

#[test]
fn another_build_of_the_program_is_not_shown() {
    check("annotate::another_build_of_the_program_is_not_shown", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let program = directory.path().join("deep");
        whit_testing::run::copy_program(workload("deep")?, &program);
        let path = recorded(directory.path(), &program, &["-e", "cpu-clock"])?;
        let named = text(annotate(&path, &[HOT[0]]).env("HOME", directory.path()));
        assert!(!rows(&named).is_empty(), "{named}");
        std::fs::remove_file(&program).expect("remove a program");
        whit_testing::run::copy_program(workload("deep-fp")?, &program);
        let said = refusal(annotate(&path, &[HOT[0]]).env("HOME", directory.path()));
        assert!(said.contains("deep: is another build"), "{said}");
        std::fs::remove_file(&program).expect("remove a program");
        let said = refusal(annotate(&path, &[HOT[0]]).env("HOME", directory.path()));
        assert!(said.contains("deep: not there any more") && !said.contains("--symfs"), "{said}");
        Ok(())
    });
}

#[test]
fn functions_of_a_stripped_program_are_found_by_address() {
    check("annotate::functions_of_a_stripped_program_are_found_by_address", || {
        probe::program("strip")?;
        let directory = tempfile::tempdir().expect("make a directory");
        let program = directory.path().join("deep");
        whit_testing::run::copy_program(workload("deep")?, &program);
        let path = recorded(directory.path(), &program, &["-e", "cpu-clock"])?;
        let plain = ["--no-source", "-q"];
        let table = |name: &str| {
            let shown = text(annotate(&path, &plain).arg(name).env("HOME", directory.path()));
            rows(&shown)
        };
        let named = table(HOT[0]);
        text(command("strip").arg(&program));
        let first = named.keys().next().expect("an instruction");
        assert_eq!(table(&format!("fun_{first:x}@deep")), named);
        assert_eq!(table(&format!("{:#x}", first + 3)), named);
        Ok(())
    });
}

#[test]
fn source_lines_come_from_where_they_lie_now() {
    check("annotate::source_lines_come_from_where_they_lie_now", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = recorded(directory.path(), &workload("deep")?, &["-e", "cpu-clock"])?;
        let with_source = text(&mut annotate(&path, &[HOT[0]]));
        let line = "return value * 0x9E3779B97F4A7C15ull;";
        assert!(with_source.contains(line), "{with_source}");
        let empty = directory.path().join("empty");
        let prefix = ["--prefix", empty.to_str().expect("a path in UTF-8"), "--prefix-strip", "99"];
        let output = annotate(&path, &prefix).arg(HOT[0]).output().expect("run whit");
        let (shown, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(shown.contains("deep.cpp:43\n") && !shown.contains(line), "{shown}");
        assert_eq!(said.matches("deep.cpp").count(), 1, "{said}");
        let without = text(&mut annotate(&path, &["--no-source", HOT[0]]));
        assert_eq!(rows(&without), rows(&with_source));
        assert!(!without.contains("deep.cpp"), "{without}");
        Ok(())
    });
}

#[test]
fn code_of_the_kernel_is_shown_or_refused_with_the_way_out() {
    check("annotate::code_of_the_kernel_is_shown_or_refused_with_the_way_out", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let path = directory.path().join("perf.data");
        let mut recorder = perf()?;
        recorder
            .args(["record", "--no-buildid-cache", "-F", "1999", "-e", "cpu-clock", "-o"])
            .arg(&path);
        let copy = ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000000"];
        record(recorder.args(copy))?;
        let hottest = report(&path)
            .into_iter()
            .filter(|((name, dso), _)| dso == "[kernel.kallsyms]" && !name.starts_with("0x"))
            .max_by_key(|(_, sums)| sums.values().map(|(samples, _)| *samples).max());
        let Some(((name, _), sums)) = hottest else {
            return Err(Skip("the kernel's functions have no names for this user".to_owned()));
        };
        let output = annotate(&path, &["--json", &name]).output().expect("run whit");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let function = &list(&json, "functions")[0];
        assert_eq!(sums_of(list(function, "instructions")), sums, "{name}");
        let said = String::from_utf8_lossy(&output.stderr);
        if std::fs::File::open("/proc/kcore").is_ok() {
            assert!(output.status.success() && function["problem"].is_null(), "{said}");
            assert!(list(function, "instructions").iter().all(|row| row["text"] != "(bad)"));
        } else {
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("/proc/kcore") && said.contains("--vmlinux FILE"), "{said}");
        }
        Ok(())
    });
}

#[test]
fn the_page_has_the_weights_of_annotate() {
    check("the_page_has_the_weights_of_annotate", || {
        let directory = tempfile::tempdir().expect("a folder");
        let data = directory.path().join("whit.data");
        let mut recorder = whit();
        recorder
            .args(["record", "--engine=ring", "-q", "-F", "1999", "-g", "-e", "cpu-clock", "-o"])
            .arg(&data);
        record(recorder.arg("--").arg(workload("deep-fp")?).args(["--iterations", ITERATIONS]))?;
        let page = directory.path().join("page.html");
        text(whit().args(["report", "-i"]).arg(&data).arg("--html").arg(&page));
        let of_page = page_data(&page);
        let annotated = json(&data, &["--limit", "1"]);
        let (function, hottest) = (&of_page["code"]["functions"][0], &annotated["functions"][0]);
        let number = function["function"].as_u64().expect("a function") as usize;
        assert_eq!(of_page["functions"]["names"][number], hottest["name"]);
        let samples = |weight: &Value| weight.as_u64().expect("samples");
        let expected = list(hottest, "instructions")
            .iter()
            .enumerate()
            .filter_map(|(row, it)| Some((row as u64, samples(&it["weights"].get(0)?["samples"]))));
        let found = list(function, "rowWeights");
        let found = found.iter().map(|weight| (samples(&weight[0]), samples(&weight[2])));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(
            list(function, "rowWeights").iter().any(|weight| weight[4].is_number()),
            "intervals"
        );

        text(whit().args(["report", "--no-source", "-i"]).arg(&data).arg("--html").arg(&page));
        assert_eq!(page_data(&page)["code"], Value::Null);
        let output = whit().args(["report", "--no-source", "-i"]).arg(&data).output().expect("run");
        assert_eq!(output.status.code(), Some(2), "--no-source is for pages");
        Ok(())
    });
}
