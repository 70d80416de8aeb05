//! `whit diff`.

pub mod dataset;
pub mod measures;

use crate::completion;
use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::input;
use crate::message;
use crate::page;
use crate::progress::answer;
use crate::query;
use crate::symbol_args::LoadArgs;
use crate::terminal::{TerminalArgs, WidthArgs, show};
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};
use whit_profile::model::Profile;
use whit_profile::{Reading, Samples};
use whit_types::OutsideText;
use whit_view::diff::{self, Diff, DiffOptions, DiffTextOptions, Per, Run};
use whit_view::differences::Differences;
use whit_view::hists::Filters;

/// Compared without arguments: `whit record` renames an older recording so.
const DEFAULT_FILES: [&str; 2] = ["perf.data.old", "perf.data"];

/// Exit code where something became slower than `--fail-above` allows.
const SLOWER: u8 = 3;

/// Names that the message of `--fail-above` lists.
const MAX_NAMES: usize = 5;

/// Arguments of `whit diff`.
#[derive(clap::Args, Debug)]
pub struct DiffArgs {
    /// Recording before and recording after; with '--', all recordings before [default: perf.data.old
    /// and perf.data]. With --dataset, selections such as host=web1,build=4f2a
    #[arg(value_name = "BEFORE")]
    pub before: Vec<PathBuf>,
    /// Recordings after
    #[arg(value_name = "AFTER", last = true)]
    after: Vec<PathBuf>,
    /// Divide by the units of work of each of several recordings: one number, or one before and one
    /// after
    #[arg(long, value_name = "N[,M]", conflicts_with = "per_event", help_heading = heading::ROWS)]
    per: Option<String>,
    /// Divide by the count of another recorded event, such as instructions
    #[arg(long, value_name = "EVENT", help_heading = heading::ROWS)]
    per_event: Option<String>,
    /// End with exit code 3 if something became slower by more than this share of all weight before (of its own for
    /// --requests and --stat)
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = heading::OUTPUT)]
    fail_above: Option<f64>,
    /// Print the comparison as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    /// Write a page with a flame graph of both sides and the table of functions to this file
    #[arg(long, value_name = "FILE", help_heading = heading::OUTPUT)]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    measures: measures::MeasureArgs,
    /// Omit rows that do not differ and lie below this share
    #[arg(long, value_name = "PERCENT", default_value = "0.5", value_parser = percent, help_heading = heading::ROWS)]
    percent_limit: f64,
    /// Compare parts of this dataset of `whit export --parquet`: by host, build (first digits of a build
    /// id), from and to (times in UTC), unit, pod and container
    #[arg(long, value_name = "FOLDER", conflicts_with_all = dataset::conflicts(), help_heading = heading::FILTER)]
    pub dataset: Option<PathBuf>,
    /// Use only samples of these commands
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::comms())]
    comms: Vec<String>,
    /// Use only samples in these binaries
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::dsos())]
    dsos: Vec<String>,
    /// Use only samples in these functions
    #[arg(short = 'S', long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::functions())]
    symbols: Vec<String>,
    /// Print only the tables
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
}

/// A recording reduced, and its profile where a page shows it.
pub type Loaded = (Run, Option<Profile>);

fn unzip(loaded: Vec<Loaded>) -> (Vec<Run>, Vec<Profile>) {
    let (runs, profiles): (_, Vec<_>) = loaded.into_iter().unzip();
    (runs, profiles.into_iter().flatten().collect())
}

/// A share, with or without its sign.
fn percent(text: &str) -> Result<f64, &'static str> {
    let number: f64 = text.strip_suffix('%').unwrap_or(text).parse().unwrap_or(f64::NAN);
    if (0.0..=100.0).contains(&number) { Ok(number) } else { Err("give a share, such as 2%") }
}

/// Runs `whit diff`.
pub(crate) fn run(args: &DiffArgs) -> Result<u8> {
    if args.dataset.is_some() {
        return query::start_with_subcommand();
    }
    if let Some(kind) = args.kind() {
        return args.measured(kind);
    }
    let sides = <[_; 2]>::from(args.sides()?);
    let options = args.options()?;
    args.html.as_deref().map_or(Ok(()), page::check)?;
    let load = |paths: &Vec<PathBuf>| -> Result<Vec<Loaded>> {
        paths.iter().map(|path| args.load(path, &options)).collect()
    };
    let loaded = [load(&sides[0])?, load(&sides[1])?];
    let measures = args.html.as_ref().map_or(Ok(Vec::new()), |_| args.of_page(&sides))?;
    args.show(loaded, &measures, &options)
}

impl DiffArgs {
    /// Compares, and prints the result.
    pub fn show(
        &self,
        sides: [Vec<Loaded>; 2],
        measures: &[Differences],
        options: &DiffOptions,
    ) -> Result<u8> {
        let args = self;
        let [before, after] = sides.map(unzip);
        let diff = diff::diff(&before.0, &after.0, &options.per)?;
        if let Some(path) = &args.html {
            let filters = &options.filters;
            page::write_comparison([before.1, after.1], &diff, measures, filters, path)?;
            if !args.json {
                page::say_place(path)?;
                return Ok(args.judge(&diff));
            }
        }
        let options = DiffTextOptions { percent_limit: args.percent_limit, quiet: args.quiet };
        show(
            args.width.fit(args.terminal.output(), !args.json),
            args.json,
            |out| diff::write_json(out, &diff),
            |out| diff::write_text(out, &diff, &options),
        )?;
        Ok(args.judge(&diff))
    }

    /// The recordings, or the parts of a dataset, before and after.
    pub fn sides(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        match (&self.before[..], &self.after[..]) {
            ([], []) => Ok((vec![DEFAULT_FILES[0].into()], vec![DEFAULT_FILES[1].into()])),
            ([before, after], []) => Ok((vec![before.clone()], vec![after.clone()])),
            ([_, ..], [_, ..]) => Ok((self.before.clone(), self.after.clone())),
            _ => bail_usage!(
                "name one recording before and one after, or several on each side of '--': \
                 whit diff BEFORE.. -- AFTER.."
            ),
        }
    }

    /// How they are compared.
    pub fn options(&self) -> Result<DiffOptions> {
        let per = match (&self.per, &self.per_event) {
            (Some(text), _) => units(text)?,
            (None, Some(event)) => Per::Event(event.clone()),
            (None, None) => Per::Share,
        };
        let filters = Filters {
            comms: self.comms.clone(),
            dsos: self.dsos.clone(),
            symbols: self.symbols.clone(),
            ..Filters::default()
        };
        Ok(DiffOptions { filters, per })
    }

    /// Loads a recording and reduces it; only the sums stay in memory, and for a page the profile.
    fn load(&self, path: &Path, options: &DiffOptions) -> Result<Loaded> {
        let recording = input::open(path)?;
        let read = self.load.options(&recording)?;
        let samples = Samples { blocks: true, ..Samples::default() };
        let profile = answer(Reading::open(&recording, &read), samples, self.quiet)?;
        let kept = self.html.is_some().then(|| profile.clone());
        Ok((Run::of(profile, options)?, kept))
    }

    fn judge(&self, diff: &Diff) -> u8 {
        let Some(limit) = self.fail_above else { return 0 };
        let slower = diff.slower_by(limit);
        if slower.is_empty() {
            return 0;
        }
        let named: Vec<&str> = slower.iter().take(MAX_NAMES).map(OutsideText::exact).collect();
        let more = match slower.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        message::error(format!("slower by more than {limit}%: {}{more}", named.join(", ")));
        SLOWER
    }
}

fn units(text: &str) -> Result<Per> {
    let (before, after) = text.split_once(',').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    match (number(before), number(after)) {
        (Some(before), Some(after)) => Ok(Per::Units(before, after)),
        _ => Err(usage(anyhow!(
            "--per takes the units of work of each recording, such as 10000 requests: one number, or one before and \
             one after with a comma"
        ))),
    }
}
