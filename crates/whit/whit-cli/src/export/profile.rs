//! `whit export --format`: a profile in the format of another tool.

use super::ExportArgs;
use super::destination;
use crate::failure::bail_usage;
use crate::message;
use crate::output;
use crate::page::SwitchesWhereRecorded;
use crate::progress::answer;
use anyhow::Result;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use whit_export::{Content, ExportError, Format, Request, Requests};
use whit_perfdata::reader::Recording;
use whit_perfdata::request::request_of;
use whit_profile::model::{Profile, ThreadId};
use whit_profile::switches::{SwitchOptions, Switches};
use whit_profile::{ReadOptions, Reading, Samples, SinglesWanted, has_cgroups};
use whit_types::Tid;
use whit_view::warning::warning_text;
use whit_why::{EachCall, RecordedCall, RecordedCalls};

/// Stretches of threads' time lines up to which none are joined.
const MAX_SPANS: usize = 1 << 20;
/// Requests that a trace has.
const MAX_REQUESTS: usize = 1 << 20;

/// Loads the recording and writes it.
pub(super) fn run(
    args: &ExportArgs,
    format: Format,
    recording: &Recording,
    output: &Path,
) -> Result<u8> {
    if args.samples.is_some() && !format.shows_time() {
        bail_usage!(
            "--samples has no effect with --format={format}, which has no times of samples"
        );
    }
    let options = args.load.options(recording)?;
    let (profile, switches) = load(args, format, recording, &options)?;
    profile.warnings.iter().map(warning_text).for_each(message::error);
    let mut content =
        Content::new(recording, &profile, switches.as_ref()).on_threads(options.threads);
    let requests = requests(format, recording, &options, &profile)?;
    if let Some(requests) = &requests {
        content = content.with_requests(requests);
    }
    if let Some(slice_ns) = content.slice_ns() {
        message::note(format_args!(
            "samples of one call chain within {:.1} ms are joined (--samples=each writes each of them)",
            slice_ns as f64 / 1e6
        ));
    }
    let fill = |out: &mut dyn Write| Ok(whit_export::write(format, &content, out).map_err(cause)?);
    let bytes = destination::write(output, fill)?;
    if !destination::is_pipe(output) {
        let samples: u64 = profile.events.iter().map(|event| event.samples).sum();
        let mib = bytes as f64 / f64::from(1 << 20);
        let output = output.display();
        output::line(format_args!("[ whit export: {samples} samples, {mib:.1} MiB in {output} ]"))?;
    }
    Ok(0)
}

/// The requests of threads of the profile, where the format shows time and the recording has any.
fn requests(
    format: Format,
    recording: &Recording,
    options: &ReadOptions,
    profile: &Profile,
) -> Result<Option<Requests>> {
    let has_requests = || recording.events.iter().any(|event| request_of(&event.name).is_some());
    if !format.shows_time() || !has_requests() {
        return Ok(None);
    }
    let RecordedCalls { names, mut calls } =
        answer(Reading::open(recording, options), EachCall, false)?;
    calls.retain(|call| call.is_certain);
    if calls.len() > MAX_REQUESTS {
        calls.sort_by_key(|it| Reverse(it.call.duration_ns()));
        calls.truncate(MAX_REQUESTS);
        message::note(format_args!("only the longest {MAX_REQUESTS} requests are written"));
    }
    let threads = profile.threads.iter().zip(0..);
    let numbers: HashMap<_, _> =
        threads.map(|(thread, number)| ((thread.pid, thread.tid), ThreadId(number))).collect();
    let requests = calls.into_iter().filter_map(|RecordedCall { name, thread, call, .. }| {
        let key = call.key.map(|key| key.to_string());
        let (pid, goroutine) = (thread.0, call.goroutine.map(|id| id.number()));
        // Any thread may run a goroutine: the first one stands for its process.
        let first = goroutine.and_then(|_| numbers.get(&(pid, Tid(pid.0))));
        let thread = *first.or_else(|| numbers.get(&thread))?;
        Some(Request { thread, goroutine, from: call.from, to: call.to, name, key })
    });
    let names = names.iter().map(|name| name.to_string()).collect();
    Ok(Some(Requests::new(names, requests.collect())))
}

/// Writes a loaded profile for Firefox Profiler.
pub fn firefox(
    recording: &Recording,
    profile: &Profile,
    switches: Option<&Switches>,
    out: &mut dyn Write,
) -> Result<()> {
    let content = Content::new(recording, profile, switches);
    Ok(whit_export::write(Format::Firefox, &content, out)?)
}

/// The error of the output, which tells the remedy. Errors of JSON hold one that is not among their causes.
fn cause(error: ExportError) -> io::Error {
    match error {
        ExportError::Write(error) => error,
        ExportError::Json(error) => error.into(),
    }
}

/// The profile, with its context switches where the format shows them and the recording has any. Switches belong to
/// threads, not to CPUs.
fn load(
    args: &ExportArgs,
    format: Format,
    recording: &Recording,
    options: &ReadOptions,
) -> Result<(Profile, Option<Switches>)> {
    let singles = format.shows_time().then_some(args.samples.unwrap_or_default().wanted());
    let mut samples = Samples { singles, ..Samples::default() };
    samples.facets.cgroup = has_cgroups(recording);
    let max_spans = if format.shows_time() { MAX_SPANS } else { 0 };
    let wants_switches = format.shows_switches() && !args.load.chooses_cpus();
    let switches = SwitchOptions { max_worst: 0, max_spans, ..SwitchOptions::default() };
    let question = SwitchesWhereRecorded { samples, switches: wants_switches.then_some(switches) };
    let (profile, switches) = answer(Reading::open(recording, options), question, false)?;
    Ok((profile, switches.filter(|switches| switches.sources.has_switches())))
}

/// How samples are written in formats that show time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(super) enum SamplesArg {
    /// Each with its time, up to a million; joined above
    #[default]
    Auto,
    /// Each with its time, however many; memory grows with them
    Each,
    /// Those of one call chain and thread joined within 1/200 of the recorded time
    Joined,
}

impl SamplesArg {
    fn wanted(self) -> SinglesWanted {
        match self {
            SamplesArg::Auto => SinglesWanted::Few,
            SamplesArg::Each => SinglesWanted::Each,
            SamplesArg::Joined => SinglesWanted::Joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk without room.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_has_a_way_out_in_the_middle_of_an_export() {
        let of_json = serde_json::to_writer(Full, "text").unwrap_err();
        let of_bytes = Full.write_all(b"bytes").unwrap_err();
        for error in [ExportError::Json(of_json), ExportError::Write(of_bytes)] {
            let error = anyhow::Error::from(cause(error));
            assert!(destination::way_out(&error).contains("make room"), "{error:#}");
        }
    }
}
