//! `whit report --wall`, and the options on waits that it shares with `whit switches` and `whit locks`.

use crate::completion;
use crate::failure::{bail_usage, usage};
use crate::heading;
use anyhow::{Result, anyhow, bail};
use whit_profile::model::Profile;
use whit_profile::switches::{Switches, WaitClassSet, WaitFilter};
use whit_profile::time_filter::TimeQuantum;
use whit_view::hists::{ChainOptions, ChainOrder, Filters};

/// Lengths of the waits that count.
#[derive(clap::Args, Debug)]
pub(crate) struct WaitLengthArgs {
    /// Use only waits of at least this time, as in 10ms
    #[arg(long, value_name = "TIME", help_heading = heading::FILTER)]
    min_wait: Option<TimeQuantum>,
    /// Use only waits of at most this time
    #[arg(long, value_name = "TIME", help_heading = heading::FILTER)]
    max_wait: Option<TimeQuantum>,
    /// Leave out waits of threads that took less CPU time than this
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms",
          help_heading = heading::FILTER)]
    no_idle: Option<TimeQuantum>,
}

/// Which waits count.
#[derive(clap::Args, Debug)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    lengths: WaitLengthArgs,
    /// Use only waits of these classes: lock, disk, network, pipe, page-fault, sleep, poll, idle-loop, peer, queue, child,
    /// join, other, unknown, preempted, new; or groups of them: io, idle, cpu
    #[arg(long, value_name = "CLASS,..", value_delimiter = ',', help_heading = heading::FILTER)]
    only_class: Vec<String>,
    /// Leave out waits of these classes
    #[arg(long, value_name = "CLASS,..", value_delimiter = ',', help_heading = heading::FILTER)]
    not_class: Vec<String>,
    /// Use only waits for objects whose name has this part: a path, `tcp 10.0.0.7:5432`, `pipe:`; -s wait_object lists
    /// the names
    #[arg(long, value_name = "PART", help_heading = heading::FILTER)]
    wait_object: Vec<String>,
}

impl WaitLengthArgs {
    /// As the loader takes them.
    ///
    /// # Errors
    /// No wait can have such a length.
    pub(crate) fn filter(&self) -> Result<WaitFilter> {
        let ns = |length: Option<TimeQuantum>| length.map(|length| length.0.get());
        let filter = WaitFilter {
            min_ns: ns(self.min_wait),
            max_ns: ns(self.max_wait),
            idle_below_ns: ns(self.no_idle),
            ..WaitFilter::default()
        };
        if let (Some(min), Some(max)) = (filter.min_ns, filter.max_ns)
            && min > max
        {
            bail_usage!("--min-wait is longer than --max-wait: no wait has such a length");
        }
        Ok(filter)
    }
}

impl WaitArgs {
    /// True where classes are chosen.
    pub(crate) fn choose_classes(&self) -> bool {
        !(self.only_class.is_empty() && self.not_class.is_empty())
    }

    fn classes(&self) -> Result<Option<WaitClassSet>> {
        if !self.choose_classes() {
            return Ok(None);
        }
        let parse = |names: &[String]| {
            names.iter().try_fold(WaitClassSet::default(), |set, name| {
                WaitClassSet::parse(name).map(|more| set.and(more)).map_err(usage)
            })
        };
        let only = match &self.only_class[..] {
            [] => WaitClassSet::ALL,
            names => parse(names)?,
        };
        let classes = only.without(parse(&self.not_class)?);
        if classes == WaitClassSet::default() {
            bail_usage!("--not-class leaves out all classes that --only-class names");
        }
        Ok(Some(classes))
    }

    /// As the loader takes them.
    ///
    /// # Errors
    /// No wait can have such a length, or there is no such class.
    pub(crate) fn filter(&self) -> Result<WaitFilter> {
        let (classes, objects) = (self.classes()?, self.wait_object.clone());
        Ok(WaitFilter { classes, objects, ..self.lengths.filter()? })
    }
}

/// Chooses waits by command and call chain.
#[derive(clap::Args, Debug)]
pub(crate) struct StackFilterArgs {
    /// Use only switches of these commands
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::comms())]
    comms: Vec<String>,
    /// Use only call chains through these binaries
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::dsos())]
    dsos: Vec<String>,
    /// Use only call chains through these functions
    #[arg(short = 'S', long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::functions())]
    symbols: Vec<String>,
}

impl StackFilterArgs {
    /// True where an option is given.
    pub(crate) fn are_given(&self) -> bool {
        !(self.comms.is_empty() && self.dsos.is_empty() && self.symbols.is_empty())
    }

    /// As the views take them.
    pub(crate) fn filters(&self) -> Filters {
        Filters {
            comms: self.comms.clone(),
            dsos: self.dsos.clone(),
            symbols: self.symbols.clone(),
            ..Filters::default()
        }
    }
}

/// Where the call trees of waits begin, by `-g`.
///
/// # Errors
/// The list asks for more than an order.
pub(crate) fn chain_order(list: Option<&str>) -> Result<Option<ChainOrder>> {
    list.map_or(Ok(None), |list| {
        ChainOptions::parse_order(list).map_err(|error| {
            usage(anyhow!(
                "the call tree of waits has one form: give -g caller or -g callee ({error})"
            ))
        })
    })
}

/// Refuses a recording without context switches.
pub fn needs_switches(profile: &Profile, switches: &Switches) -> Result<()> {
    if !switches.sources.has_switches() {
        bail!(
            "{} has no context switches: record with --engine=bpf --wakeups (or, without BPF, with \
             --switch-events -g -e cpu-clock,software/period=1,name=cs,config=0x3/Duk)",
            profile.recording.path
        );
    }
    Ok(())
}
