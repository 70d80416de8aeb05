//! Recording a program, and the names that readers print for its samples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use whit_measure::measure;

use super::built::Built;
use super::judge::{Frame, Sample, judge};
use super::run::run;
use super::{Options, Reader, Reading, samply};
use crate::error::{self, Error, come_through};
use crate::peer::perf;

/// perf looks for inlined functions in stacks that it unwinds from dumps; these are small, for the innermost frames.
const CALL_GRAPH: &str = "dwarf,1024";
/// The mark of an inlined function in text.
const INLINED: &str = "(inlined)";

/// Records the program, in a form that all readers know.
pub(super) fn record(built: &Built, options: &Options) -> Result<PathBuf, Error> {
    let data = built.program.with_file_name("perf.data");
    let mut recorder = Command::new(&options.setup.whit);
    recorder.args(["record", "-q", "-N", "--engine=ring", "-e", "cpu-clock:u", "-F", "997"]);
    recorder.args(["--call-graph", CALL_GRAPH, "-o"]).arg(&data).arg("--").arg(&built.program);
    recorder.arg(options.seconds.to_string());
    let command = format!("{recorder:?}");
    let measured =
        measure::run(recorder, options.setup.limit).map_err(error::run(&options.setup.whit))?;
    match come_through(&measured) {
        Ok(()) => Ok(data),
        Err(outcome) => Err(error::recording(&command, outcome, "")),
    }
}

/// Has a reader name the samples.
pub(super) fn read(reader: Reader, data: &Path, built: &Built, options: &Options) -> Reading {
    let samples = match reader {
        Reader::Whit => script(&options.setup.whit, data, built, options, |address| address),
        // perf prints offsets in files.
        Reader::Perf => script(&perf(), data, built, options, |at| at + built.file_bias),
        Reader::Samply => samply::read(data, built, options),
    };
    match samples.map(|samples| judge(samples, built)) {
        Ok(named) if named.samples > 0 => Reading::Named(named),
        Ok(_) => Reading::Failed { reason: "no sample of the program's functions".to_owned() },
        Err(reason) => Reading::Failed { reason },
    }
}

fn script(
    reader: &Path,
    data: &Path,
    built: &Built,
    options: &Options,
    stated: impl Fn(u64) -> u64,
) -> Result<Vec<Sample>, String> {
    let mut command = Command::new(reader);
    command.args(["script", "--max-stack", "2", "-F", "ip,sym,dso,srcline", "-i"]).arg(data);
    let text = built.program.with_file_name("script.txt");
    run(command, &text, built, options)?;
    let printed = fs::read(&text).map_err(|error| format!("{}: {error}", text.display()))?;
    let mut samples = samples(&String::from_utf8_lossy(&printed), &built.program);
    samples.iter_mut().for_each(|sample| sample.address = stated(sample.address));
    Ok(samples)
}

/// The samples that a reader printed whose innermost address lies in the program. Frames of one address stand together;
/// only the outermost has its binary.
pub(super) fn samples(printed: &str, program: &Path) -> Vec<Sample> {
    let dso = format!("({})", program.display());
    printed.split("\n\n").filter_map(|text| sample(text, &dso)).collect()
}

fn sample(text: &str, dso: &str) -> Option<Sample> {
    let mut sample: Option<Sample> = None;
    let mut is_in_program = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Some((address, rest)) = address(line) else {
            let frame = sample.as_mut().and_then(|sample| sample.frames.last_mut())?;
            let (line, is_inlined) = source_line(line);
            frame.line = line;
            frame.is_inlined |= is_inlined;
            continue;
        };
        let sample = sample.get_or_insert(Sample { address, frames: Vec::new() });
        if sample.address != address {
            break;
        }
        is_in_program |= rest.contains(dso);
        let is_inlined = rest.contains(INLINED);
        let function = rest.replace(dso, "").replace(INLINED, "").trim().to_owned();
        sample.frames.push(Frame { function, is_inlined, line: None });
    }
    sample.filter(|_| is_in_program)
}

/// The address of a frame, and the rest of its line.
fn address(line: &str) -> Option<(u64, &str)> {
    let (word, rest) = line.strip_prefix('\t')?.trim_start().split_once(' ')?;
    Some((u64::from_str_radix(word, 16).ok()?, rest))
}

/// `file.cpp:12`, maybe with the mark of an inlined function behind it.
fn source_line(line: &str) -> (Option<(String, u32)>, bool) {
    let place = line.trim().trim_end_matches(INLINED).trim_end();
    let place = place.rsplit_once(':').and_then(|(file, number)| {
        let number = number.parse().ok().filter(|number| *number > 0)?;
        Some((file.to_owned(), number))
    });
    (place, line.contains(INLINED))
}
