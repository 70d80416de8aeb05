//! `whit diff --dataset`: compares parts of a dataset.

use crate::defect;
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};
use whit_cli::diff::{DiffArgs, Loaded};
use whit_cli::failure::usage;
use whit_cli::{message, page};
use whit_dataset::Dataset;
use whit_profile::model::Profile;
use whit_query::{MIN_MEMORY_BYTES, Options, Selection, Session};
use whit_tables::Cancel;
use whit_view::diff::{DiffOptions, Run};

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
        let options = args.options()?;
        args.html.as_deref().map_or(Ok(()), page::check)?;
        let (before, after) = (selections(&before)?, selections(&after)?);
        let dataset = Dataset::open(root, Cancel::default())?;
        let session = Session::new(dataset, Options { memory_bytes: MEMORY_BYTES })?;
        let load = |side: &[Selection]| -> Result<Vec<Loaded>> {
            let parts =
                side.iter().map(|selection| load(&session, root, selection, args, &options));
            Ok(parts.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        let sides = [load(&before)?, load(&after)?];
        session.defects().iter().for_each(defect::say);
        args.show(sides, &[], &options)
    }
}

fn selections(words: &[PathBuf]) -> Result<Vec<Selection>> {
    let selection = |word: &PathBuf| word.to_string_lossy().parse::<Selection>().map_err(usage);
    words.iter().map(selection).collect()
}

/// Each recording of a selection reduced.
fn load(
    session: &Session,
    root: &Path,
    selection: &Selection,
    args: &DiffArgs,
    options: &DiffOptions,
) -> Result<Vec<Loaded>> {
    let mut loaded = Vec::new();
    let mut reduce = |profile: Profile| -> Result<()> {
        let kept = args.html.is_some().then(|| profile.clone());
        loaded.push((Run::of(profile, options)?, kept));
        Ok(())
    };
    let without_time = session.profiles(selection, &mut reduce)?;
    if without_time > 0 {
        message::warning(format_args!(
            "recordings that do not state the time of day are not in {selection}: {without_time}; record with -k monotonic"
        ));
    }
    if loaded.is_empty() {
        let root = root.display();
        return Err(anyhow!(
            "{root} has no samples of {selection}: `whit query --dataset {root} -c \"SELECT DISTINCT host FROM \
             recording\"` lists its hosts, and \"SELECT DISTINCT name, build_id FROM mapping\" its builds"
        ));
    }
    Ok(loaded)
}
