//! Writing the page, for the subcommands that do.

use crate::heading;
use crate::message;
use crate::output;
use crate::sources::{Place, Sources};
use anyhow::{Context, Result, bail};
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use whit_page::{
    Comparison, Content, HotCode, HtmlOptions, MAX_PATHS, MAX_SPANS, Ranges, RequestTables,
    write_content, write_served,
};
use whit_perfdata::existing::{Existing, existing};
use whit_perfdata::reader::Recording;
use whit_perfdata::request::request_of;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SamplesAndSwitches, SwitchOptions, Switches};
use whit_profile::{CodeFinder, LoadError, Question, Reading, Samples, SinglesWanted, WithCode};
use whit_types::OutsideText;
use whit_view::diff::Diff;
use whit_view::differences::Differences;
use whit_view::hists::Filters;
use whit_why::{AllRequests, SlowestOfEach, WhyError};

/// A page is readable like any new file, as far as the user's mask allows.
const PAGE_MODE: u32 = 0o666;

/// Arguments of the subcommands that write a page.
#[derive(clap::Args, Debug)]
pub(crate) struct PageArgs {
    /// With --html, leave the source and the instructions of the hottest functions out of the page
    #[arg(long, help_heading = heading::OUTPUT)]
    no_source: bool,
}

impl PageArgs {
    /// True where a page gets the code of the hottest functions.
    pub(crate) fn wants_code(&self) -> bool {
        !self.no_source
    }
}

/// A recording as it was loaded for a page or for text.
#[derive(Default)]
pub struct Loaded {
    /// The samples.
    pub profile: Profile,
    /// The waits, where they were loaded and the recording has any.
    pub switches: Option<Switches>,
    /// Where the page gets code.
    pub code: Option<CodeFinder>,
    /// The requests of the whole recording, where it has any.
    pub requests: Option<RequestTables>,
}

/// Says where a page is, in a form that a browser takes from another folder as well.
pub(crate) fn say_place(path: &Path) -> Result<()> {
    let shown = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(output::line(format_args!("the page is {}: open it in a browser", shown.display()))?)
}

/// Refuses what would be refused after the recording was read.
pub fn check(path: &Path) -> Result<()> {
    if let Some(folder) = path.parent()
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        bail!("there is no folder {}: make it first, or name another file", folder.display());
    }
    output::check_no_recording(path)
}

/// Adds the parts that a page shows beside a report: the time of samples, and, where no text tells rows apart by their
/// parts, their cgroups.
pub fn samples(recording: &Recording, mut samples: Samples, is_alone: bool) -> Samples {
    // Rows by stretches of time have their times already, in a length that the user chose.
    if samples.facets.time_quantum_ns.is_none() {
        samples.singles = Some(SinglesWanted::Few);
    }
    samples.facets.cgroup |= is_alone && whit_profile::has_cgroups(recording);
    samples
}

/// Samples, with context switches where they are wanted and the recording may have any.
pub(crate) struct SwitchesWhereRecorded {
    pub(crate) samples: Samples,
    pub(crate) switches: Option<SwitchOptions>,
}

impl Question for SwitchesWhereRecorded {
    type Answer = (Profile, Option<Switches>);
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<(Profile, Option<Switches>), LoadError> {
        let SwitchesWhereRecorded { samples, switches } = self;
        match switches.filter(|_| switches::may_show(reading.recording())) {
            Some(switches) => reading
                .answer(SamplesAndSwitches { samples, switches })
                .map(|(profile, switches)| (profile, Some(switches))),
            None => reading.answer(samples).map(|profile| (profile, None)),
        }
    }
}

/// Samples with their code, and with context switches where they are wanted and the recording has any.
#[derive(Clone, Copy, Debug)]
pub struct PageParts {
    /// How samples are summed up.
    pub samples: Samples,
    /// Whether the page shows waits.
    pub switches: bool,
}

impl Question for PageParts {
    type Answer = Loaded;
    type Error = LoadError;

    fn read(self, reading: Reading<'_>) -> Result<Loaded, LoadError> {
        let PageParts { samples, switches } = self;
        let requests = requests(reading)?;
        if switches && switches::may_show(reading.recording()) {
            let switches =
                SwitchOptions { max_worst: 0, max_spans: MAX_SPANS, ..SwitchOptions::default() };
            let question = WithCode(SamplesAndSwitches { samples, switches });
            let (profile, switches, code) = reading.answer(question)?;
            let switches = Some(switches).filter(|switches| switches.sources.has_switches());
            return Ok(Loaded { profile, switches, code: Some(code), requests });
        }
        let (profile, code) = reading.answer(WithCode(samples))?;
        Ok(Loaded { profile, code: Some(code), switches: None, requests })
    }
}

/// The requests of a recording, which is read as a whole, with the paths of the slowest ones.
pub(crate) fn requests(reading: Reading<'_>) -> Result<Option<RequestTables>, LoadError> {
    let has_requests =
        reading.recording().events.iter().any(|event| request_of(&event.name).is_some());
    if !has_requests {
        return Ok(None);
    }
    if reading.is_part() {
        message::note("a page of a part of the recording has no requests");
        return Ok(None);
    }
    let requests = match reading.answer(AllRequests::default()) {
        Ok(requests) => requests,
        Err(WhyError::Load(error)) => return Err(error),
        Err(error) => {
            message::warning(format_args!("the page has no requests: {error}"));
            return Ok(None);
        }
    };
    let paths = match reading.answer(SlowestOfEach(MAX_PATHS)) {
        Ok(paths) => Ok(paths),
        Err(WhyError::Load(error)) => return Err(error),
        Err(error) => Err(error.to_string()),
    };
    Ok(Some(RequestTables::new(&requests, &paths)))
}

/// Writes a recording as one page.
pub(crate) fn write(loaded: &Loaded, options: &HtmlOptions, path: &Path) -> Result<()> {
    let hot = hot_code(loaded);
    write_page(&loaded.profile, &content(loaded, hot.as_ref()), options, path)
}

/// Writes the same for a server, which answers with the ranges.
pub fn write_for_server(loaded: &Loaded, out: &mut dyn Write) -> Result<Ranges> {
    let hot = hot_code(loaded);
    let (content, options) = (content(loaded, hot.as_ref()), HtmlOptions::default());
    Ok(write_served(&loaded.profile, &content, &options, out)?.1)
}

fn hot_code(loaded: &Loaded) -> Option<HotCode> {
    let mut sources = Sources::new(Place::default());
    let code = loaded.code.as_ref()?;
    let mut line_text = |line: &_| code.own_line(line).or_else(|| sources.text(line));
    Some(HotCode::new(&loaded.profile, code, &mut line_text))
}

fn content<'a>(loaded: &'a Loaded, code: Option<&'a HotCode>) -> Content<'a> {
    Content {
        switches: loaded.switches.as_ref(),
        code,
        requests: loaded.requests.as_ref(),
        ..Content::default()
    }
}

/// Writes a comparison of two sides as one page.
pub(crate) fn write_comparison(
    sides: [Vec<Profile>; 2],
    diff: &Diff,
    measures: &[Differences],
    filters: &Filters,
    path: &Path,
) -> Result<()> {
    let paths = diff
        .paths
        .each_ref()
        .map(|paths| paths.iter().map(OutsideText::exact).collect::<Vec<_>>().join(", "));
    let title = format!("{} → {}", paths[0], paths[1]);
    // Each side has a recording at least.
    let (comparison, profile) =
        Comparison::new(sides, diff, filters).context("there is nothing to compare")?;
    let comparison = comparison.with_measures(measures);
    let content = Content { comparison: Some(&comparison), ..Content::default() };
    write_page(&profile, &content, &HtmlOptions { title, ..HtmlOptions::default() }, path)
}

fn write_page(
    profile: &Profile,
    content: &Content<'_>,
    options: &HtmlOptions,
    path: &Path,
) -> Result<()> {
    let write = |file: &mut File| -> Result<()> {
        let mut out = BufWriter::new(file);
        write_content(profile, content, options, &mut out)?;
        Ok(out.flush()?)
    };
    let written = match existing(path) {
        Ok(Existing::Stream) => {
            File::create(path).map_err(Into::into).and_then(|mut f| write(&mut f))
        }
        _ => replace(path, write),
    };
    written.with_context(|| format!("cannot write the page {}", path.display()))
}

/// Writes under a temporary name: a page that does not fit the disk leaves nothing, and an existing file
/// stays.
fn replace(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    // The target of a link is replaced, not the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    let mut new = builder.permissions(Permissions::from_mode(PAGE_MODE)).tempfile_in(directory)?;
    write(new.as_file_mut())?;
    new.persist(&path)?;
    Ok(())
}
