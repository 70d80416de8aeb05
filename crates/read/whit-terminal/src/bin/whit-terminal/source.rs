//! More of a recording for the interface.

use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use whit_annotate::{AnnotatedFunction, Syntax, Wanted, Weights, annotate};
use whit_cli::output;
use whit_cli::sources::{Place, Sources};
use whit_cli::wall::needs_switches;
use whit_perfdata::reader::Recording;
use whit_profile::companions::Companions;
use whit_profile::model::Profile;
use whit_profile::switches::SamplesAndSwitches;
use whit_profile::time_filter::TimeFilter;
use whit_profile::{CodeFinder, ReadOptions, Reading, Samples, SinglesWanted, WithCode};
use whit_terminal::{CodeText, Explain, Function, Progress, RequestsText, Source, Span, Waits};
use whit_types::OutsideText;
use whit_view::annotate::{AnnotateOptions, Annotated, write_text};
use whit_view::stdio::{Colour, StdioOptions, write_report};
use whit_view::{requests, why};
use whit_why::{AllRequests, ChosenRequests, Interval, WhichRequests};

/// The recordings behind an interface.
pub(crate) struct RecordingSource<'a> {
    recordings: &'a [Recording],
    /// Those of the only recording.
    options: Option<ReadOptions>,
    samples: Samples,
    /// Changes that the options of the report make in a loaded profile.
    change: Change<'a>,
    /// The code of a range of time; made when code is first wanted.
    code: Mutex<Option<(Option<Span>, Profile, CodeFinder)>>,
}

type Change<'a> = Box<dyn Fn(&mut Profile) + Sync + 'a>;

impl<'a> RecordingSource<'a> {
    /// `options` choose the samples, and `samples` the rows of the report; of the only recording.
    pub(crate) fn new(
        recordings: &'a [Recording],
        options: Option<ReadOptions>,
        samples: Samples,
    ) -> RecordingSource<'a> {
        let change = Box::new(|_: &mut Profile| ());
        RecordingSource { recordings, options, samples, change, code: Mutex::default() }
    }

    /// With changes that loaded profiles get.
    pub(crate) fn changing(self, change: impl Fn(&mut Profile) + Sync + 'a) -> Self {
        RecordingSource { change: Box::new(change), ..self }
    }

    /// The only recording, and how to read a range of its time.
    fn only(&self, span: Option<Span>) -> Result<(&Recording, ReadOptions)> {
        match (self.recordings, &self.options) {
            ([recording], Some(options)) => {
                let mut options = options.clone();
                // The first view fetched all that there is; keys do not wait for servers.
                options.names.companions = Companions::Off;
                if let Some(span) = span {
                    options.selection.time = Some(TimeFilter::span(span.from, span.to));
                }
                Ok((recording, options))
            }
            _ => Err(anyhow!(
                "this takes one recording, and here are {}: name one with -i",
                self.recordings.len()
            )),
        }
    }

    fn load_samples(&self, span: Span, progress: Progress<'_>) -> Result<Profile> {
        let (recording, options) = self.only(Some(span))?;
        let reading = Reading::open(recording, &options).with_progress(progress);
        let mut profile = reading.answer(self.samples)?;
        (self.change)(&mut profile);
        Ok(profile)
    }

    fn load_waits(&self, span: Option<Span>, progress: Progress<'_>) -> Result<Waits> {
        let (recording, options) = self.only(span)?;
        let reading = Reading::open(recording, &options).with_progress(progress);
        let (profile, switches) = reading.answer(SamplesAndSwitches::default())?;
        needs_switches(&profile, &switches)?;
        Ok(Waits { profile: Arc::new(profile), switches })
    }

    fn load_times(&self, progress: Progress<'_>) -> Result<Profile> {
        let (recording, options) = self.only(None)?;
        let singles = Some(SinglesWanted::Few);
        // Neither stacks nor names of functions are shown.
        let samples = Samples { leaves: true, names_kernel: false, singles, ..Samples::default() };
        Ok(Reading::open(recording, &options).with_progress(progress).answer(samples)?)
    }

    fn load_code(
        &self,
        function: &Function,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<CodeText> {
        let (recording, options) = self.only(span)?;
        let mut kept = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(of, ..)| *of != span) {
            let samples = Samples { leaves: true, blocks: true, ..Samples::default() };
            let reading = Reading::open(recording, &options).with_progress(progress);
            let (profile, finder) = reading.answer(WithCode(samples))?;
            *kept = Some((span, profile, finder));
        }
        let (_, profile, finder) = kept.as_ref().context("the code was not loaded")?;
        code_text(profile, finder, function)
    }
}

fn code_text(profile: &Profile, finder: &CodeFinder, wanted: &Function) -> Result<CodeText> {
    let weights = Weights::new(profile);
    let choice = Wanted { dsos: vec![wanted.dso.clone()], event: Some(wanted.event) };
    let mut found = weights.find(&wanted.name, &choice, finder);
    let mut lines = Vec::new();
    let name = OutsideText::new(&*wanted.name);
    if found.is_empty()
        && let Some(around) = weights.inlined_into(&wanted.name, finder).first()
    {
        lines.push(format!("# {name} is inlined; this is {around}, which it is a part of"));
        found = weights.find(around.exact(), &choice, finder);
    }
    let Some(chosen) = found.into_iter().next() else {
        return Err(anyhow!("no sample is in the code of {name} itself: it only called others"));
    };
    let dso = chosen.dso;
    let function = annotate(chosen, finder, Syntax::default());
    finder.release(dso);
    lines.extend(text_of(profile, finder, &weights, &function, wanted)?);
    let hottest = hottest(&lines);
    Ok(CodeText { lines, hottest })
}

fn text_of(
    profile: &Profile,
    finder: &CodeFinder,
    weights: &Weights<'_>,
    function: &AnnotatedFunction,
    wanted: &Function,
) -> Result<Vec<String>> {
    let functions = std::slice::from_ref(function);
    let annotated = Annotated { profile, weights, functions };
    let options = AnnotateOptions {
        intervals: true,
        source: true,
        inline: true,
        quiet: true,
        event: Some(wanted.event),
        colour: Colour::Never,
        ..AnnotateOptions::default()
    };
    let mut sources = Sources::new(Place::default());
    let mut bytes = Vec::new();
    write_text(&mut bytes, &annotated, &options, &mut |line| {
        finder.own_line(line).or_else(|| sources.text(line))
    })?;
    let mut lines = lines(&bytes);
    lines.extend(sources.missing().map(|path| {
        let path = path.display().to_string();
        format!("# not at hand: {} (whit annotate --prefix names the root)", OutsideText::new(path))
    }));
    Ok(lines)
}

/// The line of the largest share, which stands in front.
fn hottest(lines: &[String]) -> usize {
    let share = |line: &String| {
        let first = line.split_whitespace().next()?;
        first.parse::<f64>().ok().filter(|_| first.contains('.') && line.starts_with(' '))
    };
    let shares = lines.iter().enumerate().filter_map(|(at, line)| Some((at, share(line)?)));
    let best = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    shares.fold((0, 0.0), best).0
}

/// Requests of a name that are listed one by one.
const SLOWEST: usize = 100;
/// Pieces of a path that a user reads in order of time.
const PIECES_MAX: usize = 1000;

impl RecordingSource<'_> {
    fn load_requests(&self, progress: Progress<'_>) -> Result<RequestsText> {
        let (recording, options) = self.only(None)?;
        let reading = Reading::open(recording, &options).with_progress(progress);
        let requests = reading.answer(AllRequests::default())?;
        let options = requests::TextOptions { limit: None, slowest: 0, is_quiet: false };
        let mut bytes = Vec::new();
        requests::write_text(&mut bytes, &requests, &options)?;
        let mut text = RequestsText { lines: lines(&bytes), requests: Vec::new() };
        for of_name in requests.names.iter().filter(|of_name| !of_name.calls.is_empty()) {
            let (shown, all) = (of_name.calls.len().min(SLOWEST), of_name.calls.len());
            let title = format!("# {}: the slowest {shown} of {all}, one by one", of_name.name);
            text.lines.extend([String::new(), title, requests::slowest_head(of_name)]);
            for (rank, line) in requests::slowest_lines(&requests, of_name).take(SLOWEST) {
                let explain = |rank| Explain::Request(of_name.name.to_string(), rank);
                let at = text.lines.len();
                text.requests.extend(rank.map(|rank| (at, explain(rank))));
                text.lines.push(line);
            }
        }
        Ok(text)
    }

    fn load_why(
        &self,
        what: &Explain,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<Vec<String>> {
        let (recording, options) = self.only(None)?;
        let interval = match what {
            Explain::Request(name, rank) => {
                let which = WhichRequests::Rank(*rank);
                let chosen = ChosenRequests { name: name.clone(), key: None, which };
                Interval { requests: Some(chosen), ..Interval::default() }
            }
            Explain::Thread(tid) => {
                let time = span.map(|span| TimeFilter::span(span.from, span.to));
                Interval { tid: *tid, time, ..Interval::default() }
            }
        };
        let why = Reading::open(recording, &options).with_progress(progress).answer(interval)?;
        let mut options = why::TextOptions { limit: None, is_path: false, is_quiet: false };
        let mut bytes = Vec::new();
        why::write_text(&mut bytes, &why, &options)?;
        let pieces: usize = why.intervals.iter().map(|it| it.path.pieces.len()).sum();
        if pieces <= PIECES_MAX {
            writeln!(bytes, "\n# The same in order of time")?;
            (options.is_path, options.is_quiet) = (true, true);
            why::write_text(&mut bytes, &why, &options)?;
        } else {
            writeln!(bytes, "\n# In order of time, it has {pieces} pieces: whit why --path")?;
        }
        Ok(lines(&bytes))
    }
}

fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(|line| line.replace('\t', " ")).collect()
}

impl Source for RecordingSource<'_> {
    fn samples_of(&self, span: Span, progress: Progress<'_>) -> Result<Profile, String> {
        self.load_samples(span, progress).map_err(|error| output::describe(&error))
    }

    fn waits(&self, span: Option<Span>, progress: Progress<'_>) -> Result<Waits, String> {
        self.load_waits(span, progress).map_err(|error| output::describe(&error))
    }

    fn times(&self, progress: Progress<'_>) -> Result<Profile, String> {
        self.load_times(progress).map_err(|error| output::describe(&error))
    }

    fn code(
        &self,
        function: &Function,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<CodeText, String> {
        self.load_code(function, span, progress).map_err(|error| output::describe(&error))
    }

    fn requests(&self, progress: Progress<'_>) -> Result<RequestsText, String> {
        self.load_requests(progress).map_err(|error| output::describe(&error))
    }

    fn why(
        &self,
        what: &Explain,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, String> {
        self.load_why(what, span, progress).map_err(|error| output::describe(&error))
    }

    fn save(&self, path: &Path, profile: &Profile, options: &StdioOptions) -> Result<(), String> {
        let options =
            StdioOptions { colour: Colour::Never, counts_left_out: true, ..options.clone() };
        let save = || -> Result<()> {
            let mut out = BufWriter::new(File::create_new(path)?);
            write_report(&mut out, profile, &options)?;
            Ok(out.flush()?)
        };
        let shown = path.display();
        save()
            .with_context(|| format!("cannot write {shown}, which must be a new file"))
            .map_err(|error| output::describe(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hottest_line_is_the_one_with_the_largest_share() {
        let lines = [
            "Percent | code",
            "    1.50 0.1 :  10: nop",
            "   60.25 9.0 :  11: add",
            "    0.00 : 12",
        ];
        assert_eq!(hottest(&lines.map(str::to_owned)), 2);
        assert_eq!(hottest(&[]), 0);
    }
}
