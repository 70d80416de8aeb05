//! `whit export --parquet`: adds recordings to a dataset.

use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use whit_cli::export::ExportArgs;
use whit_cli::failure::usage;
use whit_cli::{message, output};
use whit_dataset::{Export, Exported, Facts, Outcome};
use whit_perfdata::feature::Feature;
use whit_perfdata::reader::Recording;
use whit_tables::{Cancel, Database};
use whit_view::warning::warning_text;

/// Recordings that took this long together are published: a killed export loses no more of finished work.
const TOGETHER: Duration = Duration::from_secs(2);

/// A minute of clocks that differ.
const MINUTE: Duration = Duration::from_secs(60);

/// `whit-query export`.
#[derive(clap::Parser)]
#[command(name = "whit-query", bin_name = "whit export", version, max_term_width = 80)]
pub(crate) struct Program {
    #[command(flatten)]
    args: ExportArgs,
}

impl Program {
    pub(crate) fn run(&self) -> Result<u8> {
        let Some(root) = self.args.dataset() else {
            return Err(usage(anyhow!(
                "this program writes datasets alone: the others are written by `whit export`"
            )));
        };
        let mut dataset = Additions::new(root);
        for recording in self.args.recordings()? {
            if let Err(error) = dataset.add(&self.args, recording) {
                // Those before are whole.
                if let Err(error) = dataset.publish() {
                    message::error(format_args!("{error:#}"));
                }
                return Err(error);
            }
        }
        dataset.publish()?;
        Ok(0)
    }
}

/// Recordings that are published together: the wait for the disk is the longest part of a small export.
struct Additions<'a> {
    root: &'a Path,
    export: Export,
    begun: Option<Instant>,
    /// Those that are not told yet.
    outcomes: Vec<(String, Option<String>, Outcome)>,
}

impl<'a> Additions<'a> {
    fn new(root: &'a Path) -> Additions<'a> {
        Additions { root, export: Export::new(root), begun: None, outcomes: Vec::new() }
    }

    fn add(&mut self, args: &ExportArgs, recording: Recording) -> Result<()> {
        let options = args.options(&recording)?;
        let now = SystemTime::now();
        let modified = recording.path.metadata().and_then(|metadata| metadata.modified());
        let facts = Facts {
            version: env!("CARGO_PKG_VERSION"),
            now,
            // Standard input was written just now.
            modified: modified.unwrap_or(now),
            force: args.force,
        };
        let (path, host) =
            (recording.path.display().to_string(), recording.features.string(Feature::HOSTNAME));
        let database = Database::new(vec![(recording, options)], Cancel::default());
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let outcome = self.export.add(&database, facts);
        database.warnings().iter().map(warning_text).for_each(message::error);
        let root = self.root.display();
        let outcome = outcome.with_context(|| format!("nothing of {path} was added to {root}"))?;
        self.outcomes.push((path, host, outcome));
        if self.export.is_full() || begun.elapsed() >= TOGETHER {
            self.publish()?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<()> {
        self.begun = None;
        let outcomes = std::mem::take(&mut self.outcomes);
        self.export.publish().with_context(|| {
            let paths: Vec<_> = outcomes.iter().map(|(path, ..)| path.as_str()).collect();
            format!("not all of {} was added to {}", paths.join(", "), self.root.display())
        })?;
        let mut listed = outcomes.iter();
        listed.try_for_each(|(path, host, outcome)| {
            print_outcome(self.root, path, host.as_deref(), outcome)
        })
    }
}

fn print_outcome(root: &Path, path: &str, host: Option<&str>, outcome: &Outcome) -> Result<()> {
    let root = root.display();
    match outcome {
        Outcome::Present { id, path: present } => output::line(format_args!(
            "[ whit export: {path} is in {root} already, as recording {id} ({present}); nothing was written ]"
        ))?,
        Outcome::Written(Exported { id, samples, sample_bytes, bytes, clock_ahead, .. }) => {
            if let Some(ahead) = clock_ahead {
                message::warning(format_args!(
                    "{path}: its last record is {} minutes in the future of this machine: the clocks differ. Times of day of \
                     host {} (recording.start_ns, clock_offset_ns) do not fit those of other hosts",
                    ahead.as_secs() / MINUTE.as_secs(),
                    host.unwrap_or("[unknown]")
                ));
            }
            let of_sample = *sample_bytes as f64 / (*samples).max(1) as f64;
            let mib = *bytes as f64 / f64::from(1 << 20);
            output::line(format_args!(
                "[ whit export: {samples} samples, {mib:.1} MiB in {root} as recording {id}, {of_sample:.1} bytes a sample ]"
            ))?;
        }
    }
    Ok(())
}
