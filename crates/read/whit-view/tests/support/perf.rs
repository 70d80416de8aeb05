//! Recordings of a small program by the installed `perf`, and perf's reports of them.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use whit_profile::model::{EventId, Profile};
use whit_testing::{Skip, probe, run};

use crate::builder::{At, Builder, Who, at};

/// Recordings that are made until one serves.
const ATTEMPTS: usize = 20;
const WORKLOAD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/workload.c");

/// A recording in a folder of its own.
pub struct Recording {
    _folder: TempDir,
    pub path: PathBuf,
}

impl Recording {
    /// Compiles and records the workload; `None`, said aloud, where `perf` or a C compiler is
    /// missing or the kernel allows no recording.
    ///
    /// With `--children`, perf 6.1 has a row too many of a sample at an address of a file that no symbol
    /// covers: by the address in the file and by that in memory. In one recording of twenty there is
    /// one, in a linkage table of libc; that one is made again.
    pub fn make(test: &str, mode: &str) -> Option<Recording> {
        for _ in 0..ATTEMPTS {
            let recording = Recording::with(test, mode, &["-g", "-e", "cpu-clock,page-faults"])?;
            if !recording.has_unresolved_samples() {
                return Some(recording);
            }
        }
        panic!("in {ATTEMPTS} recordings there are samples that perf does not resolve");
    }

    fn has_unresolved_samples(&self) -> bool {
        let text = self.script(&["-F", "event,ip,sym,dso"]);
        let mut innermost = text.split("\n\n").filter_map(|sample| sample.trim().lines().nth(1));
        innermost.any(|frame| frame.contains(" [unknown] (/"))
    }

    /// As [`Recording::make`], with the options of `perf record` that the test wants.
    pub fn with(test: &str, mode: &str, options: &[&str]) -> Option<Recording> {
        let folder = tempfile::tempdir().unwrap();
        let (program, path) = (folder.path().join("workload"), folder.path().join("perf.data"));
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-g", "-fno-omit-frame-pointer", "-D_GNU_SOURCE", "-pthread", "-o"]);
        compile.arg(&program).arg(WORKLOAD);
        let mut record = run::command(std::env::var_os("PERF").unwrap_or_else(|| "perf".into()));
        record.args(["record", "-q", "-F", "999"]).args(options).arg("-o").arg(&path);
        record.arg("--").arg(&program).arg(mode);
        let missing = probe::program("cc").and(probe::perf()).and_then(|()| run::needs_of(&record));
        if let Err(Skip(reason)) = missing {
            whit_testing::skip(&format!("whit-view {test}"), &reason);
            return None;
        }
        run::succeed(&mut compile);
        run::succeed(&mut record);
        Some(Recording { _folder: folder, path })
    }

    fn run(&self, subcommand: &str, arguments: &[&str]) -> String {
        let mut command = run::perf().expect("it has recorded");
        run::text(command.arg(subcommand).arg("-i").arg(&self.path).args(arguments))
    }

    pub fn report(&self, arguments: &[&str]) -> String {
        self.run("report", &[&["--stdio"], arguments].concat())
    }

    pub fn script(&self, arguments: &[&str]) -> String {
        self.run("script", arguments)
    }
}

/// Builds the profile that `perf script` describes.
pub fn profile_of(recording: &Recording) -> Profile {
    let text = recording.script(&["-F", "comm,pid,tid,period,event,ip,sym,dso"]);
    let mut builder = Builder::default();
    let mut events: Vec<(String, EventId)> = Vec::new();
    for event in ["cpu-clock", "page-faults", "cpu-clock:u"] {
        events.push((event.to_owned(), builder.event(event)));
    }
    for block in text.split("\n\n").filter(|b| !b.trim().is_empty()) {
        add_sample(&mut builder, &events, block.trim_start_matches('\n'));
    }
    builder.profile.recording.has_callchains = true;
    builder.profile
}

/// `comm pid/tid period event: ` and one frame a line, innermost first.
fn add_sample(builder: &mut Builder, events: &[(String, EventId)], block: &str) {
    let (head, frames) = block.split_once('\n').unwrap();
    let mut words = head.split_whitespace().rev();
    let event = words.next().unwrap().trim_end_matches(':');
    let period: u64 = words.next().unwrap().parse().unwrap();
    let (pid, tid) = words.next().unwrap().split_once('/').unwrap();
    let comm = words.rev().collect::<Vec<_>>().join(" ");
    let who = Who { comm: &comm, pid: pid.parse().unwrap(), tid: tid.parse().unwrap(), cpu: None };
    let event = events.iter().find(|(name, _)| name == event).unwrap().1;
    let mut chain: Vec<At> = Vec::new();
    for line in frames.lines() {
        chain.push(frame(line.trim()));
    }
    for i in (0..chain.len()).rev().filter(|&i| chain[i].inlined).collect::<Vec<_>>() {
        // Inlined frames are printed without a binary: it is that of the frame of the same address
        // that they were inlined into. Where the symbol table and the debug information name a
        // function differently, perf takes it for an inlined one; then it is a neighbour's.
        let outer = chain.get(i + 1).filter(|outer| outer.address == chain[i].address);
        let near = outer.or_else(|| chain.get(i.wrapping_sub(1))).or(chain.get(i + 1)).unwrap();
        (chain[i].dso, chain[i].kernel) = (near.dso.clone(), near.kernel);
    }
    chain.reverse();
    builder.sample(event, who, &chain, period);
}

/// `address symbol (dso)` or `address symbol (inlined)`.
fn frame(line: &str) -> At {
    let (address, rest) = line.split_once(' ').unwrap();
    let (symbol, dso) = rest.rsplit_once(" (").unwrap();
    let dso = dso.trim_end_matches(')');
    let ip = u64::from_str_radix(address, 16).unwrap();
    let mut frame = match symbol {
        "[unknown]" => at(&format!("{ip:#x}"), dso, ip).unknown(),
        symbol => at(symbol, dso, ip),
    };
    if dso == "inlined" {
        frame = frame.inlined();
    } else if dso == "[kernel.kallsyms]" || dso.starts_with("bpf_prog_") {
        frame = frame.kernel();
    }
    frame
}

/// The lines of a report that both tools must print alike: perf's tip and the lines that only whit
/// has are taken out. perf marks the rest of a branching by an uninitialized byte as inlined or
/// not; here it is never marked. perf gives a frame outside of all mappings the level of the frame
/// that it looked at before; here it is always `[.]`.
pub fn table(report: &str) -> Vec<String> {
    let skipped = ["# (Tip", "# (Cannot", "# Ledger", "# Lost"];
    let lines = report.lines().filter(|l| !skipped.iter().any(|s| l.starts_with(s)));
    let level = |l: &str| {
        if l.contains("[unknown]") || l.contains("[k] 0") {
            l.replacen("[k] ", "[.] ", 1)
        } else {
            l.to_owned()
        }
    };
    let mut lines: Vec<String> =
        lines.map(|l| level(&l.replace("[...] (inlined)", "[...]"))).collect();
    while lines.last().is_some_and(|l| l.is_empty() || l == "#") {
        lines.pop();
    }
    lines
}

/// Cuts a report into rows with their call graphs, and single other lines.
pub fn blocks(lines: &[String]) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in lines {
        match blocks.last_mut() {
            Some(row) if row_weight(row[0]).is_some() && !starts_block(line) => row.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    blocks
}

fn starts_block(line: &str) -> bool {
    line.starts_with('#') || row_weight(line).is_some()
}

/// The functions and percentages of a call graph, without the drawing around them, in order.
pub fn branches<'l>(block: &[&'l str]) -> Vec<&'l str> {
    let mut branches: Vec<&str> = block.iter().map(|l| l.trim_matches([' ', '|', '-'])).collect();
    branches.sort_unstable();
    branches
}

/// Sorts runs of equally heavy rows, each with its call graph.
pub fn sort_ties(lines: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut run: Vec<Vec<String>> = Vec::new();
    let mut weight: Option<String> = None;
    let flush = |run: &mut Vec<Vec<String>>, out: &mut Vec<String>| {
        // Blank lines behind the last row end its table, whichever row that is.
        let mut blank = Vec::new();
        while let Some(last) = run.last_mut().filter(|row| row.last().is_some_and(String::is_empty))
        {
            blank.extend(last.pop());
        }
        run.sort();
        out.extend(run.drain(..).flatten());
        out.append(&mut blank);
    };
    for line in lines {
        match row_weight(line) {
            Some(w) => {
                if weight.as_ref() != Some(&w) {
                    flush(&mut run, &mut out);
                    weight = Some(w);
                }
                run.push(vec![line.clone()]);
            }
            None if line.starts_with('#') || run.is_empty() => {
                flush(&mut run, &mut out);
                weight = None;
                out.push(line.clone());
            }
            None => run.last_mut().unwrap().push(line.clone()),
        }
    }
    flush(&mut run, &mut out);
    out
}

/// The first percentage of a table row: rows begin with it after blanks, and two or more words
/// follow.
fn row_weight(line: &str) -> Option<String> {
    let (share, rest) = line.get(2..).filter(|_| line.starts_with("  "))?.split_once('%')?;
    share.trim().parse::<f64>().ok()?;
    rest.starts_with("  ").then(|| share.trim().to_owned())
}
