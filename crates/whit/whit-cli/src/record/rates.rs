//! Options that say how often events are sampled.

use super::parse;
use crate::heading;
use anyhow::{Context, Result};
use whit_capture::options::RatePlan;
use whit_events::Sampling;
use whit_host::roots::Roots;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct RateArgs {
    /// Take N samples a second [default: 4000]; 'max' for the highest rate that the kernel allows
    ///
    #[arg(short = 'F', long, visible_alias = "frequency", value_name = "HZ",
          value_parser = parse::frequency, help_heading = heading::EVENTS)]
    freq: Option<parse::Frequency>,
    /// Sample every N events
    #[arg(short, long, value_name = "N", value_parser = parse::count, help_heading = heading::EVENTS)]
    count: Option<u64>,
    /// Fail if the frequency is above the kernel's limit, instead of lowering it
    #[arg(long, help_heading = heading::EVENTS)]
    strict_freq: bool,
    /// Keep the time between samples of cpu-clock and task-clock fixed, instead of drawing it anew all
    /// the time; fixed times may keep step with the recorded program
    #[arg(long, help_heading = heading::EVENTS)]
    fixed_periods: bool,
}

impl RateArgs {
    pub(super) fn plan(&self, roots: &Roots) -> Result<RatePlan> {
        Ok(RatePlan {
            by_user: self.sampling(roots)?,
            is_strict: self.strict_freq,
            keeps_periods: self.fixed_periods,
        })
    }

    fn sampling(&self, roots: &Roots) -> Result<Option<Sampling>> {
        Ok(match (self.count, self.freq) {
            (Some(count), _) => Some(Sampling::Period(count)),
            (None, Some(parse::Frequency::Hz(hz))) => Some(Sampling::FrequencyHz(hz)),
            (None, Some(parse::Frequency::Max)) => {
                let hz = whit_capture::configure::max_frequency_hz(roots)
                    .context("cannot read /proc/sys/kernel/perf_event_max_sample_rate")?;
                Some(Sampling::FrequencyHz(hz))
            }
            (None, None) => None,
        })
    }
}
