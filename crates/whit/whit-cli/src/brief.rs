//! `whit report --brief`, `--callers` and `--callees`: answers for programs, and the handles in them.

use crate::completion;
use crate::failure::usage;
use crate::heading;
use crate::input::RecordingArgs;
use crate::progress::LoadProgress;
use crate::symbol_args::LoadArgs;
use crate::terminal::TerminalArgs;
use anyhow::Result;
use std::io::Write;
use whit_perfdata::reader::Recording;
use whit_profile::handle;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SwitchOptions, Switches};
use whit_view::brief::{self, Brief, ChosenByCpu, DEFAULT_BUDGET, MAX_WAITS};
use whit_view::relatives::{self, Relatives, Side};

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
    let brief = Brief::new(&profile, switches);
    let mut out = given.terminal.output();
    let written = match given.json {
        true => brief::write_json(&mut out, &brief, budget)?,
        false => brief::write_text(&mut out, &brief, budget)?,
    };
    written.map_err(usage)?;
    Ok(out.flush()?)
}

fn load(given: &Given<'_>, recording: &Recording) -> Result<(Profile, Option<Switches>)> {
    let mut options = given.load.options(recording)?;
    options.blocks = true;
    options.facets.cgroup = whit_profile::has_cgroups(recording);
    let progress = LoadProgress::new("reading", given.quiet);
    let update = |done, total| progress.update(done, total);
    let loaded = if switches::may_show(recording) && !given.load.chooses_cpus() {
        let wanted =
            SwitchOptions { max_worst: MAX_WAITS, locks: true, ..SwitchOptions::default() };
        switches::load(recording, &options, wanted, &update)
            .map(|(profile, switches)| (profile, Some(switches)))
    } else {
        whit_profile::load(recording, &options, &update).map(|profile| (profile, None))
    };
    progress.finish();
    Ok(loaded?)
}

fn print_relatives(given: &Given<'_>, side: Side, function: &str) -> Result<()> {
    let recording = given.input.open()?;
    let options = given.load.options(&recording)?;
    let progress = LoadProgress::new("reading", given.quiet);
    let loaded =
        whit_profile::load(&recording, &options, &|done, total| progress.update(done, total));
    progress.finish();
    let profile = loaded?;
    check_handles(&[function], &profile)?;
    let relatives = Relatives::new(&profile, side, function, given.load.inline());
    if relatives.is_empty() {
        return Err(usage(no_samples(function, &profile)));
    }
    let mut out = given.terminal.output();
    if given.json {
        relatives::write_json(&mut out, &relatives)?;
        writeln!(out)?;
    } else {
        relatives::write_text(&mut out, &relatives)?;
    }
    Ok(out.flush()?)
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
