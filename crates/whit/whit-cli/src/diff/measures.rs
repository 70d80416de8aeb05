//! `whit diff --waits` and the like: differences of everything but samples.

use super::DiffArgs;
use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::input;
use crate::message;
use crate::progress::answer;
use crate::terminal::show;
use crate::wall::needs_switches;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use whit_perfdata::request::request_of;
use whit_profile::model::Profile;
use whit_profile::switches::{self, SamplesAndSwitches, SwitchOptions, Switches};
use whit_profile::{Reading, Samples};
use whit_types::OutsideText;
use whit_view::differences::{
    self, Differences, Kind, PerUnits, Recorded, TextOptions, WaitOptions,
};
use whit_view::switches::FlatSort;
use whit_why::{AllRequests, WhyError};

/// The subject of the comparison, if not samples.
#[derive(clap::Args, Debug)]
pub(crate) struct MeasureArgs {
    /// Compare waits: time that threads wait, and how often, per second of the recording
    #[arg(long, help_heading = heading::ROWS)]
    waits: bool,
    /// Compare waits for locks, and the time that threads spend in functions that take them
    #[arg(long, help_heading = heading::ROWS)]
    locks: bool,
    /// Compare wall time: waits and CPU time in one sum
    #[arg(long, help_heading = heading::ROWS)]
    wall: bool,
    /// Compare requests (whit record --request): how many, how long, and where their time is
    #[arg(long, help_heading = heading::ROWS)]
    requests: bool,
    /// Compare counts: files of `whit stat -j -o FILE`, with intervals (-I) or of several runs
    #[arg(long, help_heading = heading::ROWS)]
    stat: bool,
    /// Make rows of waits by these keys: symbol, dso, comm, cgroup, container, pod, unit, wait_class, wait_object; of
    /// locks by callsite, lock or comm [default: dso,symbol; of locks callsite]
    #[arg(short, long, value_name = "KEY,..", help_heading = heading::ROWS)]
    sort: Option<String>,
}

impl MeasureArgs {
    /// The subject; `None` for samples.
    pub(crate) fn kind(&self) -> Option<Kind> {
        let kinds = [
            (self.waits, Kind::Waits),
            (self.locks, Kind::Locks),
            (self.wall, Kind::Wall),
            (self.requests, Kind::Requests),
            (self.stat, Kind::Stat),
        ];
        kinds.into_iter().find(|(is_chosen, _)| *is_chosen).map(|(_, kind)| kind)
    }
}

/// Whether a recording has the records of these rows.
///
/// # Errors
/// It has no switches, or for locks no call stacks of switches.
pub fn check(kind: Kind, profile: &Profile, switches: &Switches) -> Result<()> {
    needs_switches(profile, switches)?;
    if kind == Kind::Locks && !switches.sources.stacks {
        bail_usage!(
            "{} has no call stacks of switches, which tell waits for locks from others: record with whit record \
             --engine=bpf --wakeups",
            profile.recording.path
        );
    }
    Ok(())
}

/// The rows of waits by default: functions with their binaries.
const FUNCTIONS: &str = "symbol,dso";

impl DiffArgs {
    /// Compares something else than samples.
    ///
    /// # Errors
    /// The recordings cannot be read, or not be compared.
    pub(crate) fn measured(&self, kind: Kind) -> Result<u8> {
        let (before, after) = self.sides()?;
        let options = self.wait_options(kind)?;
        let load = |paths: &[PathBuf]| -> Result<Vec<Recorded>> {
            paths.iter().map(|path| self.recorded(path, &options)).collect()
        };
        self.show_measured(&load(&before)?, &load(&after)?)
    }

    /// The subject of the comparison; `None` for samples.
    pub fn kind(&self) -> Option<Kind> {
        self.measures.kind()
    }

    /// Compares what recordings were reduced to, and prints the result.
    ///
    /// # Errors
    /// They cannot be compared.
    pub fn show_measured(&self, before: &[Recorded], after: &[Recorded]) -> Result<u8> {
        let differences = differences::compare(before, after, self.units_of_work()?)?;
        let text = TextOptions { percent_limit: self.percent_limit, quiet: self.quiet };
        show(
            self.width.fit(self.terminal.output(), !self.json),
            self.json,
            |out| differences::write_json(out, &differences),
            |out| differences::write_text(out, &differences, &text),
        )?;
        Ok(self.judge_measured(&differences))
    }

    /// Differences of waits and requests for a page, as far as all recordings have them.
    ///
    /// # Errors
    /// A recording cannot be read.
    pub(super) fn of_page(&self, sides: &[Vec<PathBuf>; 2]) -> Result<Vec<Differences>> {
        let mut found = Vec::new();
        for kind in [Kind::Waits, Kind::Locks, Kind::Requests] {
            let has = |path: &PathBuf| -> Result<bool> {
                let recording = input::open(path)?;
                Ok(match kind {
                    Kind::Requests => {
                        recording.events.iter().any(|it| request_of(&it.name).is_some())
                    }
                    _ => switches::may_show(&recording),
                })
            };
            let all = sides.iter().flatten().map(has).collect::<Result<Vec<_>>>()?;
            if all.contains(&false) {
                continue;
            }
            let options = self.wait_options(kind)?;
            let load = |paths: &Vec<PathBuf>| -> Result<Vec<Recorded>> {
                paths.iter().map(|path| self.recorded(path, &options)).collect()
            };
            let units = self.units_of_work()?.filter(|_| kind != Kind::Requests);
            match differences::compare(&load(&sides[0])?, &load(&sides[1])?, units) {
                Ok(differences) => found.push(differences),
                Err(error) => message::warning(format!("the page has no {}: {error}", kind.name())),
            }
        }
        Ok(found)
    }

    fn units_of_work(&self) -> Result<PerUnits> {
        let units = self.per.as_deref().map(super::units).transpose()?;
        Ok(units.and_then(|per| match per {
            whit_view::diff::Per::Units(before, after) => Some([before, after]),
            _ => None,
        }))
    }

    /// The choice of rows of this subject.
    ///
    /// # Errors
    /// A key is none, or means nothing in another recording.
    pub fn wait_options(&self, kind: Kind) -> Result<WaitOptions> {
        let sort = self.measures.sort.as_deref();
        let (of_waits, of_locks) = match kind {
            Kind::Locks => (None, sort),
            _ => (sort, None),
        };
        let options = WaitOptions {
            kind,
            filters: self.options()?.filters,
            sort: FlatSort::parse(of_waits.unwrap_or(FUNCTIONS)).map_err(usage)?,
            lock_key: of_locks.map_or(Ok(Default::default()), str::parse).map_err(usage)?,
        };
        options.check().map_err(usage)?;
        Ok(options)
    }

    fn recorded(&self, path: &Path, options: &WaitOptions) -> Result<Recorded> {
        match options.kind {
            Kind::Stat => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                Ok(differences::of_stat(&path.to_string_lossy(), &text)?)
            }
            Kind::Requests => {
                let recording = input::open(path)?;
                let read = self.load.symbols.options(&recording)?;
                let requests =
                    answer(Reading::open(&recording, &read), AllRequests::default(), self.quiet);
                let requests = requests.map_err(|error: WhyError| anyhow::Error::from(error))?;
                Ok(differences::of_requests(&requests))
            }
            kind => {
                let recording = input::open(path)?;
                let read = self.load.options(&recording)?;
                let objects = options.sort.has_object() || kind == Kind::Locks;
                let switches = SwitchOptions { blocks: true, objects, ..SwitchOptions::default() };
                let question = SamplesAndSwitches { samples: Samples::default(), switches };
                let (profile, switches) =
                    answer(Reading::open(&recording, &read), question, self.quiet)?;
                check(kind, &profile, &switches)?;
                if options.sort.has_cgroups() {
                    crate::symbol_args::needs_cgroups(&recording, "--sort")?;
                }
                Ok(differences::of_waits(profile, &switches, options))
            }
        }
    }

    fn judge_measured(&self, differences: &Differences) -> u8 {
        let Some(limit) = self.fail_above else { return 0 };
        let worse = differences.worse_by(limit);
        if worse.is_empty() {
            return 0;
        }
        let named: Vec<&str> =
            worse.iter().take(super::MAX_NAMES).map(OutsideText::exact).collect();
        let more = match worse.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        message::error(format!("more than {limit}% worse: {}{more}", named.join(", ")));
        super::SLOWER
    }
}
