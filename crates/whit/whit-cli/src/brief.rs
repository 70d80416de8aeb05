//! `whit report --brief`, `--callers` and `--callees`: answers for programs, and the handles in them.

use crate::completion;
use crate::failure::usage;
use crate::heading;
use crate::input::RecordingArgs;
use crate::page::SwitchesWhereRecorded;
use crate::progress::answer;
use crate::symbol_args::LoadArgs;
use crate::terminal::{TerminalArgs, show};
use anyhow::Result;
use std::io::Write;
use whit_perfdata::reader::Recording;
use whit_perfdata::request::request_of;
use whit_profile::handle;
use whit_profile::model::Profile;
use whit_profile::switches::{SwitchOptions, Switches};
use whit_profile::{Reading, Samples};
use whit_view::brief::{self, Brief, ChosenByCpu, DEFAULT_BUDGET, MAX_WAITS};
use whit_view::relatives::{self, Relatives, Side};
use whit_why::{ChosenRequests, Interval, WhichRequests, Why, WhyError};

/// The answers.
#[derive(clap::Args, Debug)]
pub(crate) struct BriefArgs {
    /// Print the most telling facts in at most so many bytes: functions, the hottest path, waits, losses, and the
    /// lacks of the recording [default: 4096]
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT,
          help_heading = heading::OUTPUT)]
    brief: Option<usize>,
    /// Print the functions that call this one: a name, or a handle of --brief
    #[arg(long, value_name = "FUNCTION", help_heading = heading::OUTPUT, add = completion::functions())]
    callers: Option<String>,
    /// Print the functions that this one calls
    #[arg(long, value_name = "FUNCTION", conflicts_with = "callers", help_heading = heading::OUTPUT, add = completion::functions())]
    callees: Option<String>,
}

/// [`DEFAULT_BUDGET`] on the command line.
const DEFAULT: &str = "4096";
const _: () = assert!(DEFAULT_BUDGET == 4096);

/// The other options that count.
pub(crate) struct Given<'a> {
    pub(crate) input: &'a RecordingArgs,
    pub(crate) load: &'a LoadArgs,
    pub(crate) terminal: &'a TerminalArgs,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// Refuses handles of functions that the recording does not have, or that several functions share.
pub(crate) fn check_handles<S: AsRef<str>>(names: &[S], profile: &Profile) -> Result<()> {
    handle::check(names, profile).map_err(usage)
}

impl BriefArgs {
    /// Prints the answer; `None` where none is asked for.
    pub(crate) fn answer(&self, given: &Given<'_>) -> Result<Option<u8>> {
        let relatives = match (&self.callers, &self.callees) {
            (Some(function), _) => Some((Side::Callers, function)),
            (None, Some(function)) => Some((Side::Callees, function)),
            (None, None) => None,
        };
        match (self.brief, relatives) {
            (Some(budget), _) => print_brief(given, budget)?,
            (None, Some((side, function))) => print_relatives(given, side, function)?,
            (None, None) => return Ok(None),
        }
        Ok(Some(0))
    }
}

fn print_brief(given: &Given<'_>, budget: usize) -> Result<()> {
    let recording = given.input.open()?;
    let (profile, switches) = load(given, &recording)?;
    let switches = match given.load.chooses_cpus() {
        true => Err(ChosenByCpu),
        false => Ok(switches.as_ref()),
    };
    let mut brief = Brief::new(&profile, switches);
    if let Some((why, request)) = critical_path(given, &recording)? {
        brief = brief.with_path(&why, request.as_deref());
    }
    let mut out = given.terminal.output();
    let written = match given.json {
        true => brief::write_json(&mut out, &brief, budget)?,
        false => brief::write_text(&mut out, &brief, budget)?,
    };
    written.map_err(usage)?;
    Ok(out.flush()?)
}

fn load(given: &Given<'_>, recording: &Recording) -> Result<(Profile, Option<Switches>)> {
    let options = given.load.options(recording)?;
    let mut samples = Samples { blocks: true, ..Samples::default() };
    samples.facets.cgroup = whit_profile::has_cgroups(recording);
    let switches = SwitchOptions { max_worst: MAX_WAITS, locks: true, ..SwitchOptions::default() };
    let switches = (!given.load.chooses_cpus()).then_some(switches);
    let question = SwitchesWhereRecorded { samples, switches };
    Ok(answer(Reading::open(recording, &options), question, given.quiet)?)
}

/// Recordings up to this size have a critical path, for which switches are read once more.
const MAX_PATH_BYTES: u64 = 16 << 20;

/// The critical path of the slowest request, or of the command, with the name of the request. There is none where the
/// recording does not tell it.
fn critical_path(
    given: &Given<'_>,
    recording: &Recording,
) -> Result<Option<(Why, Option<String>)>> {
    let options = given.load.options(recording)?;
    if options.selection.is_part() || recording.size_bytes > MAX_PATH_BYTES {
        return Ok(None);
    }
    let mut names = recording.events.iter().filter_map(|event| request_of(&event.name));
    let request = names.next().map(|(name, _)| name.to_owned());
    let requests = request.clone().map(|name| {
        let which = WhichRequests::Rank(1);
        ChosenRequests { name, key: None, which }
    });
    let interval = Interval { requests, ..Interval::default() };
    match answer(Reading::open(recording, &options), interval, given.quiet) {
        Ok(why) => Ok(Some((why, request))),
        Err(WhyError::Load(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

fn print_relatives(given: &Given<'_>, side: Side, function: &str) -> Result<()> {
    let recording = given.input.open()?;
    let options = given.load.options(&recording)?;
    let reading = Reading::open(&recording, &options);
    let profile = answer(reading, Samples::default(), given.quiet)?;
    check_handles(&[function], &profile)?;
    let relatives = Relatives::new(&profile, side, function, given.load.inline());
    if relatives.is_empty() {
        return Err(usage(no_samples(function, &profile)));
    }
    Ok(show(
        given.terminal.output(),
        given.json,
        |out| relatives::write_json(out, &relatives),
        |out| relatives::write_text(out, &relatives),
    )?)
}

fn no_samples(function: &str, profile: &Profile) -> anyhow::Error {
    let names = profile.functions.iter().map(|it| it.name.exact());
    let nearest = match whit_events::nearest(function, names) {
        Some(name) if name != function => format!("did you mean '{name}'? "),
        _ => String::new(),
    };
    anyhow::anyhow!(
        "no sample passes through a function named {function}: {nearest}`whit report --brief` lists functions with \
         their handles"
    )
}
