//! Which requests.

use crate::failure::{bail_usage, usage};
use crate::heading;
use anyhow::Result;
use whit_profile::Reading;
use whit_profile::call_times::CallTimes;
use whit_profile::time_filter::TimeQuantum;
use whit_why::{ChosenRequests, TimesOfRequests, WhichRequests, WhyError};

/// A name of requests, and the place of one among them.
#[derive(Clone, Debug)]
pub(crate) struct NamedRequests {
    pub(crate) name: String,
    pub(crate) rank: Option<usize>,
}

/// `NAME`, or `NAME:RANK`.
pub(crate) fn request(text: &str) -> Result<NamedRequests, String> {
    let (name, rank) = match text.rsplit_once(':') {
        Some((name, rank)) => {
            (name, Some(rank.parse().map_err(|_| format!("'{rank}' is no rank"))?))
        }
        None => (text, None),
    };
    match rank {
        Some(0) => Err("1 is the slowest request".to_owned()),
        rank => Ok(NamedRequests { name: name.to_owned(), rank }),
    }
}

/// A question about requests that the recording cannot answer as it was asked is one of usage.
pub(crate) fn failure(error: WhyError) -> anyhow::Error {
    match error {
        WhyError::SeveralTimes
        | WhyError::NoRequestName { .. }
        | WhyError::NoRequestKey { .. }
        | WhyError::NoneSoLong { .. }
        | WhyError::NoRequestRank { .. } => usage(error),
        error => error.into(),
    }
}

/// Options that choose the time of requests.
#[derive(clap::Args, Debug)]
pub(crate) struct RequestArgs {
    /// Use only the time of requests of this name, in the threads that served them; NAME:1 is the slowest one, NAME:2
    /// the next
    #[arg(long, value_name = "NAME[:N]", value_parser = request, help_heading = heading::FILTER)]
    request: Option<NamedRequests>,
    /// With --request, only those that took at least this time, as in 10ms
    #[arg(long, value_name = "TIME", requires = "request", help_heading = heading::FILTER)]
    request_longer_than: Option<TimeQuantum>,
    /// With --request, only those with this text in their keys
    #[arg(long, value_name = "TEXT", requires = "request", help_heading = heading::FILTER)]
    request_key: Option<String>,
}

impl RequestArgs {
    /// The times of the requests; `None` without the option.
    ///
    /// # Errors
    /// The recording has no such request.
    pub(crate) fn times(&self, reading: Reading<'_>) -> Result<Option<CallTimes>> {
        let Some(NamedRequests { name, rank }) = self.request.clone() else { return Ok(None) };
        if let (Some(rank), true) = (rank, self.request_longer_than.is_some()) {
            bail_usage!(
                "--request {name}:{rank} is one request: leave :{rank} out, or --request-longer-than"
            );
        }
        let least_ns = self.request_longer_than.map_or(0, |time| time.0.get());
        let which = rank.map_or(WhichRequests::LongerThan(least_ns), WhichRequests::Rank);
        let chosen = ChosenRequests { name, key: self.request_key.clone(), which };
        reading.answer(TimesOfRequests(chosen)).map(Some).map_err(failure)
    }
}
