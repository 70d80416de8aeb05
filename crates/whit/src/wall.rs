//! `whit report --wall`, and the options on waits that it shares with `whit switches`.

use crate::failure::bail_usage;
use crate::heading;
use anyhow::{Result, bail};
use whit_profile::model::Profile;
use whit_profile::switches::{Switches, WaitFilter};
use whit_profile::time_filter::TimeQuantum;

/// Which waits count.
#[derive(clap::Args, Debug)]
pub(crate) struct WaitArgs {
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

impl WaitArgs {
    /// True where an option is given.
    pub(crate) fn are_given(&self) -> bool {
        self.min_wait.is_some() || self.max_wait.is_some() || self.no_idle.is_some()
    }

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
        };
        if let (Some(min), Some(max)) = (filter.min_ns, filter.max_ns)
            && min > max
        {
            bail_usage!("--min-wait is longer than --max-wait: no wait has such a length");
        }
        Ok(filter)
    }
}

/// Refuses a recording without context switches.
pub(crate) fn needs_switches(profile: &Profile, switches: &Switches) -> Result<()> {
    if !switches.sources.tells_switches() {
        bail!(
            "{} tells of no context switches: record with --switch-events (and \
             -e software/period=1,name=cs,config=0x3/Duk -g for the call stacks, or \
             --engine=bpf --wakeups), or with -e sched:sched_switch",
            profile.recording.path
        );
    }
    Ok(())
}
