//! `whit diff --dataset`: compares parts of a dataset.

use crate::defect;
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};
use whit_cli::diff::{DiffArgs, measures};
use whit_cli::failure::usage;
use whit_cli::{message, page};
use whit_dataset::Dataset;
use whit_perfdata::feature::RecordedSpan;
use whit_profile::model::Profile;
use whit_profile::switches::Switches;
use whit_query::{MIN_MEMORY_BYTES, Options, RecordedRequests, Selection, Session};
use whit_tables::Cancel;
use whit_view::diff::Run;
use whit_view::differences::{self, CallsOfName, Kind, Recorded};

/// Memory of a query over one table.
const MEMORY_BYTES: u64 = 64 * MIN_MEMORY_BYTES;

/// `whit-query diff`.
#[derive(clap::Parser)]
#[command(name = "whit-query", bin_name = "whit diff", version, max_term_width = 80)]
pub(crate) struct Program {
    #[command(flatten)]
    args: DiffArgs,
}

impl Program {
    pub(crate) fn run(&self) -> Result<u8> {
        let args = &self.args;
        let Some(root) = &args.dataset else {
            return Err(usage(anyhow!(
                "this program compares parts of datasets: recordings are compared by `whit diff`"
            )));
        };
        if args.before.is_empty() {
            return Err(usage(anyhow!(
                "name the part before and the part after: whit diff --dataset FOLDER host=web1 host=web2"
            )));
        }
        let (before, after) = args.sides()?;
        let (before, after) = (selections(&before)?, selections(&after)?);
        let Some(kind) = args.kind() else { return samples(args, root, [before, after]) };
        measured(args, kind, root, [before, after])
    }
}

fn open(root: &Path) -> Result<Session> {
    let dataset = Dataset::open(root, Cancel::default())?;
    Ok(Session::new(dataset, Options { memory_bytes: MEMORY_BYTES })?)
}

fn samples(args: &DiffArgs, root: &Path, sides: [Vec<Selection>; 2]) -> Result<u8> {
    let options = args.options()?;
    args.html.as_deref().map_or(Ok(()), page::check)?;
    let session = open(root)?;
    let [before, after] = sides.map(|side| {
        let reduce = |profile: Profile| {
            let kept = args.html.is_some().then(|| profile.clone());
            Ok((Run::of(profile, &options)?, kept))
        };
        load(root, &side, "samples", &reduce, |selection, take| session.profiles(selection, take))
    });
    let sides = [before?, after?];
    session.defects().iter().for_each(defect::say);
    args.show(sides, &[], &options)
}

/// Compares anything but samples.
fn measured(args: &DiffArgs, kind: Kind, root: &Path, sides: [Vec<Selection>; 2]) -> Result<u8> {
    if kind == Kind::Stat {
        return Err(usage(anyhow!("a dataset has no counts of `whit stat`: leave out --dataset")));
    }
    let options = args.wait_options(kind)?;
    let session = open(root)?;
    let [before, after] = sides.map(|side| match kind {
        Kind::Requests => load(root, &side, "requests", &of_requests, |selection, take| {
            session.requests(selection, take)
        }),
        _ => {
            let reduce = |(profile, switches): (Profile, Switches)| {
                measures::check(kind, &profile, &switches)?;
                if options.sort.has_cgroups() && switches.cgroups.iter().all(Option::is_none) {
                    return Err(anyhow!(
                        "--sort needs the cgroups of samples, and {} has none: record again with --all-cgroups",
                        profile.recording.path
                    ));
                }
                Ok(differences::of_waits(profile, &switches, &options))
            };
            load(root, &side, "waits", &reduce, |selection, take| session.waits(selection, take))
        }
    });
    let (before, after) = (before?, after?);
    session.defects().iter().for_each(defect::say);
    args.show_measured(&before, &after)
}

fn of_requests(requests: RecordedRequests) -> Result<Recorded> {
    let calls = requests.names.iter().map(|(name, of)| CallsOfName {
        name,
        calls: &of.calls,
        uncertain: of.uncertain,
        columns: None,
    });
    let span = RecordedSpan { from: requests.span.from, to: requests.span.to };
    let of_calls = differences::of_calls(&calls.collect::<Vec<_>>(), Some(vec![span]), false);
    let machine = differences::machine(&requests.info);
    Ok(Recorded { path: requests.info.path, machine, ..of_calls })
}

fn selections(words: &[PathBuf]) -> Result<Vec<Selection>> {
    let selection = |word: &PathBuf| word.to_string_lossy().parse::<Selection>().map_err(usage);
    words.iter().map(selection).collect()
}

/// Reads the recordings of a selection, and gives each to the function.
type Read<'r, T> = dyn Fn(&Selection, &mut dyn FnMut(T) -> Result<()>) -> Result<usize> + 'r;

/// Each recording of some selections, reduced.
fn load<T, R>(
    root: &Path,
    side: &[Selection],
    what: &str,
    reduce: &dyn Fn(T) -> Result<R>,
    read: impl Fn(&Selection, &mut dyn FnMut(T) -> Result<()>) -> Result<usize>,
) -> Result<Vec<R>> {
    let parts = side.iter().map(|selection| load_one(root, selection, what, reduce, &read));
    Ok(parts.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn load_one<T, R>(
    root: &Path,
    selection: &Selection,
    what: &str,
    reduce: &dyn Fn(T) -> Result<R>,
    read: &Read<'_, T>,
) -> Result<Vec<R>> {
    let mut loaded = Vec::new();
    let without_time = read(selection, &mut |recording| {
        loaded.push(reduce(recording)?);
        Ok(())
    })?;
    if without_time > 0 {
        message::warning(format_args!(
            "recordings that do not state the time of day are not in {selection}: {without_time}; record with -k monotonic"
        ));
    }
    if loaded.is_empty() {
        let root = root.display();
        return Err(anyhow!(
            "{root} has no {what} of {selection}: `whit query --dataset {root} -c \"SELECT DISTINCT host FROM \
             recording\"` lists its hosts, and \"SELECT DISTINCT name, build_id FROM mapping\" its builds"
        ));
    }
    Ok(loaded)
}
