//! `whit report --latency`, and the other options on the number of running threads.

use crate::failure::bail_usage;
use crate::heading;
use anyhow::{Error, Result, anyhow, bail};
use whit_perfdata::attr::SampleType;
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::parallelism::ParallelismOf;
use whit_profile::{Counted, Samples, switches};
use whit_view::hists::{Field, HistsOptions, Levels, SortKey, WeightColumn, WeightColumns};

/// How many threads ran, and weights by that.
#[derive(clap::Args, Debug)]
pub(crate) struct LatencyArgs {
    /// Weigh each sample by the time that it stands for, 1/(threads that ran), where context switches
    /// were recorded; order rows by that, with the share of CPU time beside it
    #[arg(long, help_heading = heading::ROWS)]
    latency: bool,
    /// Use only samples at which so many threads ran, as in 1-4,8
    #[arg(long, value_name = "LIST", help_heading = heading::FILTER)]
    parallelism: Option<Levels>,
    /// Count all recorded threads together, those of each process, or those in each cgroup: all, process
    /// or cgroup
    #[arg(long, value_name = "SET", default_value = "all", help_heading = heading::ROWS)]
    parallelism_of: ParallelismOf,
}

impl LatencyArgs {
    /// The levels that pass.
    pub(crate) fn levels(&self) -> Levels {
        self.parallelism.clone().unwrap_or_default()
    }

    /// The columns of shares. Where parallelism is asked for, both, as in perf.
    ///
    /// # Errors
    /// `--latency` beside a list of all columns without one of latency.
    pub(crate) fn shares(
        &self,
        named: &[Field],
        lists_all: bool,
        count: Counted,
    ) -> Result<WeightColumns> {
        let asks = self.parallelism.is_some() || named.contains(&Field::Key(SortKey::Parallelism));
        let shares: Vec<_> = named.iter().filter_map(|field| field.share()).collect();
        if self.latency && lists_all && !shares.contains(&WeightColumn::Latency) {
            bail_usage!("--fields lists all columns: name latency there, or leave out --latency");
        }
        Ok(if self.latency {
            WeightColumns::LatencyAndOverhead
        } else if !shares.is_empty() {
            WeightColumns::of(&shares)
        } else if asks && count == Counted::Samples {
            WeightColumns::of(&[WeightColumn::Overhead, WeightColumn::Latency])
        } else {
            WeightColumns::default()
        })
    }

    /// The set of threads to count, where anything asks how many ran.
    pub(crate) fn set(&self, hists: &HistsOptions) -> Option<ParallelismOf> {
        let asks = hists.shares.has_latency()
            || !hists.filters.parallelism.is_all()
            || hists.sort_keys().contains(&SortKey::Parallelism);
        asks.then_some(self.parallelism_of)
    }
}

/// Refuses recordings that do not tell who ran when.
///
/// # Errors
/// No switches, no times, or no cgroups where these are the sets.
pub(crate) fn needs_parallelism(recording: &Recording, of: ParallelismOf) -> Result<()> {
    if !switches::may_show(recording) {
        return Err(no_switches(recording));
    }
    let has_times = |event: &whit_perfdata::feature::EventDesc| {
        event.attr.sample_type.contains(SampleType::TIME)
    };
    if !recording.events.iter().all(has_times) {
        bail!(
            "the samples of {} have no times, so nobody knows who else ran: record them with -T",
            recording.path.display()
        );
    }
    if of == ParallelismOf::Cgroup {
        crate::symbol_args::needs_cgroups(recording, "--parallelism-of=cgroup")?;
    }
    Ok(())
}

/// Refuses a profile whose samples have no parallelism although it was asked for.
///
/// # Errors
/// The recording has no switches.
pub(crate) fn has_switches(
    recording: &Recording,
    samples: &Samples,
    profile: &Profile,
) -> Result<()> {
    match samples.parallelism.is_some() && profile.parallelism.is_none() {
        true => Err(no_switches(recording)),
        false => Ok(()),
    }
}

/// The recording has no context switches.
fn no_switches(recording: &Recording) -> Error {
    anyhow!(
        "latency and parallelism need the context switches, and {} has none: record again with \
         --switch-events",
        recording.path.display()
    )
}
