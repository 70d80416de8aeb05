//! `whit export --chains`: the recording that it writes has the rows of the original, here and for the installed perf.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::report::{self, assert_same_top};
use crate::support::tools::{perf, record, repository, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Functions of perf's tables that are compared.
const TOP: usize = 40;

/// Fields of a report that say how it is written, and those that depend on how many records a block has.
const OF_THE_FILE: [&str; 2] = ["path", "size_bytes"];

/// Writes the recording with chains; gives the file and whit's messages.
fn chained(path: &Path, more: &[&str]) -> (PathBuf, String) {
    let mut name = path.file_name().expect("a name").to_owned();
    name.push(".chains");
    let out = path.with_file_name(name);
    let mut export = whit();
    export.args(["export", "--chains", "-i"]).arg(path).arg("-o").arg(&out).args(more);
    let output = export.output().expect("run whit");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (out, said)
}

/// All of a report but the facts about the file.
fn facts(path: &Path, more: &[&str]) -> Value {
    let arguments = ["report", "--json", "--no-intervals", "--percent-limit", "0", "-i"];
    let json = text(whit().args(arguments).arg(path).args(more));
    let mut json: Value = serde_json::from_str(&json).expect("JSON");
    let recording = json["recording"].as_object_mut().expect("a recording");
    OF_THE_FILE.iter().for_each(|field| _ = recording.remove(*field));
    let by_type = json["stats"]["by_type"].as_object_mut().expect("counts");
    by_type.retain(|kind, _| !kind.starts_with("COMPRESSED"));
    // Runs count where they stand in one block, and blocks have other ends.
    let warnings = json["warnings"].as_array_mut().expect("warnings");
    warnings.retain(|warning| !warning.as_str().expect("text").starts_with("samples keep step"));
    json
}

/// The kernel's symbols as they are at the first view: other tests load BPF programs meanwhile, and end them.
fn kallsyms(original: &Path) -> String {
    let copy = original.with_file_name("kallsyms");
    if !copy.exists() {
        std::fs::copy("/proc/kallsyms", &copy).expect("copy the kernel's symbols");
    }
    copy.to_str().expect("a path in UTF-8").to_owned()
}

/// Every view of whit is the same for both.
fn assert_same_for_whit(original: &Path, chains: &Path, more: &[&str]) {
    let kallsyms = kallsyms(original);
    let more = &[more, &["--kallsyms", &kallsyms]].concat();
    let (dumps, new) = (facts(original, more), facts(chains, more));
    for (part, dumps) in dumps.as_object().expect("an object") {
        assert_eq!(*dumps, new[part], "{original:?} {part}");
    }
    let view = |path: &Path, arguments: &[&str]| {
        text(whit().args(arguments).arg("-i").arg(path).args(more))
    };
    // Addresses, offsets, inlined functions and lines of each frame.
    let fields = ["script", "-F", "+srcline,+symoff"];
    assert_eq!(view(original, &fields), view(chains, &fields), "{original:?}");
}

/// Tables of functions, by own and by total share.
fn tables(
    tool: impl Fn() -> Result<std::process::Command, Skip>,
    path: &Path,
) -> Result<[Vec<report::Row>; 2], Skip> {
    let mut tables = Vec::new();
    for (order, column) in [("--no-children", "overhead"), ("--children", "overhead_children")] {
        let mut tool = tool()?;
        tool.args(["report", "--stdio", order, "-g", "none", "--no-demangle", "--no-inline"]);
        tool.args(["--percent-limit", "0", "-F", &format!("{column},dso,sym"), "-i"]).arg(path);
        let rows: Vec<_> = report::parse(&text(&mut tool)).into_values().flatten().collect();
        assert!(rows.len() > 5, "{path:?} {order}: {rows:?}");
        tables.push(rows);
    }
    Ok(tables.try_into().expect("two"))
}

/// perf reads from the chains the functions that whit reads from the dumps.
fn assert_same_for_perf(original: &Path, chains: &Path) -> Result<(), Skip> {
    let (theirs, ours) = (tables(perf, chains)?, tables(|| Ok(whit()), original)?);
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_same_top(ours, theirs, TOP);
    }
    Ok(())
}

fn recorded(folder: &Path, options: &str, command: &[&str]) -> Result<PathBuf, Skip> {
    let path = folder.join("original.data");
    let mut recorder = whit();
    recorder
        .args(["record", "--engine=ring"])
        .args(options.split(' '))
        .arg("-o")
        .arg(&path)
        .arg("--");
    record(recorder.arg(workload(command[0])?).args(&command[1..]))?;
    Ok(path)
}

fn size_bytes(path: &Path) -> u64 {
    path.metadata().expect("a file").len()
}

#[test]
fn chains_have_the_rows_of_the_dumps() {
    // Some half a second of CPU time, however busy the machine is.
    let deep: &[&str] = &["deep", "--iterations", "100000"];
    let waits: &[&str] = &["pingpong", "--threads", "4", "--iterations", "5000"];
    for (name, options, command) in [
        ("cpp", "-e cpu-clock:u -F 997 --call-graph dwarf,32768", deep),
        ("compressed", "-e cpu-clock:u -F 997 -z --call-graph dwarf,8192", deep),
        ("threads", "--threads -e cpu-clock:u -F 997 --call-graph dwarf,8192", deep),
        (
            "go",
            "-e cpu-clock:u -F 997 --call-graph dwarf,32768",
            &["deep-go", "--iterations", "100000"],
        ),
        ("waits", "-e cpu-clock -F 997 --switch-events --call-graph dwarf,8192", waits),
    ] {
        check(&format!("chains of {name}"), || {
            let folder = tempfile::tempdir().expect("make a directory");
            let original = recorded(folder.path(), options, command)?;
            let (chains, said) = chained(&original, &[]);
            assert!(said.is_empty(), "{name}: {said}");
            assert_eq!(original.is_dir(), chains.is_dir(), "{name}");
            assert_same_for_whit(&original, &chains, &[]);
            if original.is_file() && name != "waits" && name != "compressed" {
                let (dumps, chains) = (size_bytes(&original), size_bytes(&chains));
                assert!(dumps > 40 * chains, "{name}: {dumps} {chains}");
            }
            if name == "waits" {
                let kallsyms = kallsyms(&original);
                let view = |path| {
                    text(
                        whit()
                            .args(["switches", "--json", "--kallsyms", &kallsyms, "-i"])
                            .arg(path),
                    )
                };
                assert_eq!(view(&original), view(&chains));
            }
            assert_same_for_perf(&original, &chains)
        });
    }
}

#[test]
fn chains_carry_cgroups_and_losses() {
    check("chains of cgroups", || {
        probe::cgroups_v2()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "-a --all-cgroups -e cpu-clock -F 997 --call-graph dwarf,8192";
        let original = recorded(folder.path(), options, &["deep", "--seconds", "0.3"])?;
        let (chains, _) = chained(&original, &[]);
        assert_same_for_whit(&original, &chains, &[]);
        let by_cgroup = facts(&chains, &["-s", "cgroup,sym"]);
        assert_eq!(facts(&original, &["-s", "cgroup,sym"]), by_cgroup);
        assert!(by_cgroup.to_string().contains("\"cgroup\":\"/"), "{by_cgroup}");
        Ok(())
    });
    check("chains of losses", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "-m 16 -e cpu-clock:u -F 9997 --call-graph dwarf,32768";
        let original = recorded(folder.path(), options, &["deep", "--seconds", "0.3"])?;
        let (chains, _) = chained(&original, &[]);
        assert_same_for_whit(&original, &chains, &[]);
        let losses = &facts(&chains, &[])["losses"];
        if losses["lost_records"] == 0 {
            return Err(Skip("the ring of 16 pages has lost no record here".to_owned()));
        }
        Ok(())
    });
}

/// Golden recordings: of perf, of arm64, of a 32-bit process whose stacks nobody unwinds, and without a dump.
#[test]
fn golden_recordings_have_their_rows_as_chains() {
    let golden = repository().join("tests/recordings/golden");
    let symfs = ["--symfs", golden.join("root").to_str().expect("UTF-8")].map(str::to_owned);
    let symfs: Vec<&str> = symfs.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().expect("make a directory");
    for (name, message) in [
        ("perf-dwarf", ""),
        ("arm64-dwarf", ""),
        ("perf-32bit", "7 user stacks were not unwound"),
        ("perf-cgroups", "no stack was dumped"),
        ("losses", "no stack was dumped"),
    ] {
        let original = folder.path().join(name);
        std::fs::copy(golden.join(name).join("recording.data"), &original).expect("copy");
        let (chains, said) = chained(&original, &symfs);
        assert_eq!(said.contains("whit: "), !message.is_empty(), "{name}: {said}");
        assert!(said.contains(message), "{name}: {said}");
        assert_same_for_whit(&original, &chains, &symfs);
        let (again, _) = chained(&chains, &symfs);
        assert!(std::fs::read(&chains).unwrap() == std::fs::read(again).unwrap(), "{name}");
    }
}

/// Packed switches of the BPF engine, whose stacks are chains from the beginning.
#[test]
fn switches_of_the_bpf_engine_stay() {
    check("switches_of_the_bpf_engine_stay", || {
        probe::bpf_stacks()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let options = "--engine=bpf --switch-events -e cpu-clock -F 997";
        let command = ["pingpong", "--threads", "4", "--iterations", "3000"];
        let original = recorded(folder.path(), options, &command)?;
        let (chains, said) = chained(&original, &[]);
        assert!(said.contains("no stack was dumped"), "{said}");
        assert_same_for_whit(&original, &chains, &[]);
        let kallsyms = kallsyms(&original);
        let view = |path| {
            text(whit().args(["switches", "--json", "--kallsyms", &kallsyms, "-i"]).arg(path))
        };
        assert_eq!(view(&original), view(&chains));
        Ok(())
    });
}

#[test]
fn other_options_of_profiles_are_refused_with_chains() {
    let mut export = whit();
    export.args(["export", "--chains", "--pid", "7", "-o", "x"]);
    let output = export.output().expect("run whit");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("'--chains' cannot be used with '--pid <PID,..>'"), "{said}");
}
