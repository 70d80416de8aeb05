//! The same names as the installed perf for real samples of real binaries.
//!
//! Needs `perf` and the right to record; says aloud when it has to pass.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_testing::{Skip, check, probe, run};

use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig};
use whit_types::{Avma, FileOffset, Svma};

/// A mapping of executable memory, as `perf script --show-mmap-events` prints it.
struct Mapping {
    pid: i32,
    start: u64,
    size: u64,
    offset: u64,
    path: String,
}

struct Sample {
    pid: i32,
    ip: u64,
    symbol: String,
    dso: String,
}

/// Busy in many functions of several libraries, and short.
const WORKLOAD: &str = "find /usr/share/doc /usr/lib -name '*e*' | sort -r | md5sum; \
    perf list >/dev/null; awk 'BEGIN { for (i = 0; i < 300000; i++) s = s sprintf(\"%x\", i) % 7; \
    print length(s) }'; seq 200000 | sort -n | gzip | wc -c";

fn record(dir: &Path, workload: &[&str]) -> Result<PathBuf, Skip> {
    let data = dir.join("perf.data");
    let mut perf = run::perf()?;
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "15000", "-o"]).arg(&data).arg("--");
    run::record(perf.args(workload))?;
    Ok(data)
}

/// `… PERF_RECORD_MMAP2 12/12: [0x55d0(0x1000) @ 0x2000 fe:00 123 0]: r-xp /usr/bin/sort`
fn parse_mapping(line: &str) -> Option<Mapping> {
    let (_, rest) = line.split_once("PERF_RECORD_MMAP2 ")?;
    let (pid, rest) = rest.split_once('/')?;
    let (_, rest) = rest.split_once('[')?;
    let (start, rest) = rest.split_once('(')?;
    let (size, rest) = rest.split_once(") @ ")?;
    let (offset, rest) = rest.split_once(' ')?;
    let (_, rest) = rest.split_once("]: ")?;
    let (protection, path) = rest.split_once(' ')?;
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    protection.contains('x').then_some(())?;
    Some(Mapping {
        pid: pid.trim().parse().ok()?,
        start: hex(start)?,
        size: hex(size)?,
        offset: hex(offset)?,
        path: path.trim().into(),
    })
}

/// ` 123  7f0012 malloc (/usr/lib/libc.so.6)`
fn parse_sample(line: &str) -> Option<Sample> {
    let (pid, rest) = line.trim().split_once(' ')?;
    let (ip, rest) = rest.trim().split_once(' ')?;
    let (symbol, dso) = rest.trim().rsplit_once(" (")?;
    Some(Sample {
        pid: pid.parse().ok()?,
        ip: u64::from_str_radix(ip, 16).ok()?,
        symbol: symbol.into(),
        dso: dso.trim_end_matches(')').into(),
    })
}

fn compare(data: &Path, demangle: bool) {
    let script = |extra: &[&str]| {
        let mut perf = run::perf().expect("it has recorded");
        run::text(perf.args(["script", "-i"]).arg(data).args(extra))
    };
    let mut fields = vec!["-F", "pid,ip,sym,dso"];
    if !demangle {
        fields.push("--no-demangle");
    }
    let mappings: Vec<Mapping> =
        script(&["--show-mmap-events", "-F", "pid,ip"]).lines().filter_map(parse_mapping).collect();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut config = SymbolizerConfig::new(DebugDirs::standard(home.as_deref()));
    (config.demangle, config.inlines, config.lines) = (demangle, false, false);
    config.vdso = whit_elf::own_vdso().ok();
    let symbolizer = Symbolizer::new(config);

    let (mut compared, mut functions) = (0, HashSet::new());
    let mut differing = BTreeMap::new();
    for sample in script(&fields).lines().filter_map(parse_sample) {
        let Some(ours) = name_of(&symbolizer, &mappings, &sample) else { continue };
        compared += 1;
        functions.insert((sample.dso.clone(), sample.symbol.clone()));
        if ours != sample.symbol {
            *differing.entry((sample.dso, sample.symbol, ours)).or_insert(0) += 1;
        }
    }
    eprintln!("{compared} samples of {} functions compared", functions.len());
    // perf before 6.3 does not name the linkage stubs of indirect functions and of .plt.got. Where
    // a table has both kinds of stubs (as the C library) it mixes up their names. `_init`, a label
    // without a size, may hide them.
    differing.retain(|(_, theirs, ours), _| !(ours.ends_with("@plt") && is_stub(theirs)));
    assert!(compared > 500, "too few samples compared: {compared}");
    assert!(differing.is_empty(), "{differing:#?}");
}

fn is_stub(name: &str) -> bool {
    name.ends_with("@plt") || matches!(name, "_init" | "[unknown]")
}

fn name_of(symbolizer: &Symbolizer, mappings: &[Mapping], sample: &Sample) -> Option<String> {
    let spec = |kind, path: &str| DsoSpec::new(kind, path.into());
    let (dso, address) = if sample.dso == "[kernel.kallsyms]" {
        (symbolizer.open(&spec(DsoKind::Kernel, "")), Svma(sample.ip))
    } else {
        // The last one counts: an exec replaces earlier mappings.
        let mapping = mappings.iter().rev().find(|mapping| {
            mapping.pid == sample.pid
                && mapping.path == sample.dso
                && sample.ip.checked_sub(mapping.start).is_some_and(|at| at < mapping.size)
        })?;
        let kind = if mapping.path == "[vdso]" { DsoKind::Vdso } else { DsoKind::Elf };
        let dso = symbolizer.open(&spec(kind, &mapping.path));
        let offset = FileOffset(mapping.offset);
        let bias = dso.bias_of_mapping(Avma(mapping.start), offset, mapping.size)?;
        let svma = bias.to_svma(Avma(sample.ip));
        let by_offset = dso.svma_of(FileOffset(sample.ip - mapping.start + mapping.offset));
        assert_eq!(by_offset, Some(svma), "two ways to the address in {}", mapping.path);
        (dso, svma)
    };
    let name = dso.resolve(address).function.map(|function| function.name.to_string());
    Some(name.unwrap_or_else(|| "[unknown]".into()))
}

#[test]
fn names_of_a_mixed_workload() {
    check("whit-symbolize names_of_a_mixed_workload", || {
        let dir = tempfile::tempdir().unwrap();
        let data = record(dir.path(), &["sh", "-c", WORKLOAD])?;
        compare(&data, false);
        compare(&data, true);
        Ok(())
    });
}

/// A C++ program with templates, lambdas and operators, compiled here.
#[test]
fn names_of_a_cpp_program() {
    check("whit-symbolize names_of_a_cpp_program", || {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("work.cpp");
        std::fs::write(&source, include_str!("work.cpp")).unwrap();
        let program = dir.path().join("work");
        probe::program("c++")?;
        let mut compiler = Command::new("c++");
        run::succeed(compiler.args(["-O2", "-g", "-o"]).arg(&program).arg(&source));
        let data = record(dir.path(), &[program.to_str().unwrap()])?;
        compare(&data, false);
        compare(&data, true);
        Ok(())
    });
}
