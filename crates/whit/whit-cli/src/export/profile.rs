//! `whit export --format`: a profile in the format of another tool.

use super::ExportArgs;
use super::destination;
use crate::failure::bail_usage;
use crate::message;
use crate::output;
use crate::progress::LoadProgress;
use anyhow::Result;
use std::io::{self, Write};
use std::path::Path;
use whit_export::{Content, ExportError, Format};
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SwitchOptions, Switches};
use whit_profile::{LoadOptions, SinglesWanted, has_cgroups};
use whit_view::warning::warning_text;

/// Stretches of threads' time lines up to which none are joined.
const MAX_SPANS: usize = 1 << 20;

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
    let mut options = args.load.options(recording)?;
    options.facets.cgroup = has_cgroups(recording);
    options.singles = format.shows_time().then_some(args.samples.unwrap_or_default().wanted());
    let (profile, switches) = load(args, format, recording, &options)?;
    profile.warnings.iter().map(warning_text).for_each(message::error);
    let content = Content::new(recording, &profile, switches.as_ref()).on_threads(options.threads);
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

fn load(
    args: &ExportArgs,
    format: Format,
    recording: &Recording,
    options: &LoadOptions,
) -> Result<(Profile, Option<Switches>)> {
    let max_spans = if format.shows_time() { MAX_SPANS } else { 0 };
    let wants_switches = format.shows_switches() && !args.load.chooses_cpus();
    load_with_switches(recording, options, wants_switches.then_some(max_spans))
}

/// The profile, with its context switches where they are wanted, with so many spans, and the recording has them.
/// Switches belong to threads, not to CPUs.
fn load_with_switches(
    recording: &Recording,
    options: &LoadOptions,
    max_spans: Option<usize>,
) -> Result<(Profile, Option<Switches>)> {
    let progress = LoadProgress::new("reading", false);
    let update = |done, total| progress.update(done, total);
    let loaded = match max_spans.filter(|_| switches::may_show(recording)) {
        Some(max_spans) => {
            let wanted = SwitchOptions { max_worst: 0, max_spans, ..SwitchOptions::default() };
            switches::load(recording, options, wanted, &update).map(|(profile, switches)| {
                let has_switches = switches.sources.has_switches();
                (profile, has_switches.then_some(switches))
            })
        }
        None => whit_profile::load(recording, options, &update).map(|profile| (profile, None)),
    };
    progress.finish();
    Ok(loaded?)
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
