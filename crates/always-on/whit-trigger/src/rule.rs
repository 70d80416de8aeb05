//! The language of rules: one event to wait for, as an option and a configuration file have it.

use crate::parse::{time, time_text};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Windows in which stalls and throttling are added up. The kernel has the same bounds (`psi_trigger_create`).
const WINDOWS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(10);
/// Bytes of a name that an application gives its latency.
pub(crate) const NAME_BYTES_MAX: usize = 64;

/// Stalls of tasks: `psi:cpu:some:30%/1s@CGROUP`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pressure {
    /// `cpu`, `memory` or `io`.
    pub resource: String,
    /// All tasks that are not idle stall, not only some.
    pub is_full: bool,
    /// Time of stalls within the window.
    pub stalled: Duration,
    /// Stalls are added up over this time.
    pub window: Duration,
    /// The cgroup; `None` is the machine.
    pub cgroup: Option<String>,
}

/// A cgroup that uses its quota up: `throttle:20%/1s@CGROUP`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Throttle {
    /// How much of it within the window.
    pub limit: ThrottleLimit,
    /// Periods are added up over this time.
    pub window: Duration,
    /// Its path in a hierarchy, its directory or its name.
    pub cgroup: String,
}

/// How much throttling is too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThrottleLimit {
    /// Percent of the periods of the quota.
    PeriodsPercent(u32),
    /// Time, added up over CPUs.
    Time(Duration),
}

/// One event to wait for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Stalls of the machine or of a cgroup.
    Pressure(Pressure),
    /// A throttled cgroup.
    Throttle(Throttle),
    /// The application reports a latency that is longer: `latency:NAME:250ms`.
    Latency {
        /// The name in its messages.
        name: String,
        /// The longest latency that is no event.
        longest: Duration,
    },
    /// A recorded request takes longer: `request:NAME:250ms`.
    Request {
        /// As `--request` of the recorder gives it.
        name: String,
        /// The longest duration that is no event.
        longest: Duration,
    },
    /// SIGUSR2: `signal`.
    Signal,
    /// The end of a process: `exit:PID`.
    Exit(i32),
}

/// The text is no rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is no trigger: {reason}")]
pub struct RuleError {
    text: String,
    reason: &'static str,
}

const KINDS: &str = "write psi:RESOURCE:some:30%/1s[@CGROUP], throttle:20%/1s@CGROUP, latency:NAME:250ms, request:NAME:250ms, exit:PID or signal";
const WINDOW_HELP: &str = "the window is a time of 500ms to 10s, and the limit before it a percentage of 1 to 100 or a time within it, such as 30%/1s or 150ms/1s";

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        parse(text).map_err(|reason| RuleError { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Rule, &'static str> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "psi" => pressure(rest).map(Rule::Pressure),
        "throttle" => throttle(rest).map(Rule::Throttle),
        "latency" => {
            let help = "latency: takes a name and a time, such as latency:checkout:250ms";
            longest(rest, help).map(|(name, longest)| Rule::Latency { name, longest })
        }
        "request" => {
            let help =
                "request: takes the name of a request and a time, such as request:query:250ms";
            longest(rest, help).map(|(name, longest)| Rule::Request { name, longest })
        }
        "exit" => match rest.parse() {
            Ok(pid @ 1..) => Ok(Rule::Exit(pid)),
            _ => Err("exit: takes the number of a process, such as exit:1234"),
        },
        "signal" if text == "signal" => Ok(Rule::Signal),
        _ => Err(KINDS),
    }
}

fn pressure(rest: &str) -> Result<Pressure, &'static str> {
    let (rest, cgroup) = match rest.split_once('@') {
        Some((rest, cgroup)) => (rest, Some(named(cgroup)?)),
        None => (rest, None),
    };
    let mut parts = rest.splitn(3, ':');
    let (resource, share, limit) =
        (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    if !matches!(resource, "cpu" | "memory" | "io") {
        return Err("psi: takes a resource (cpu, memory or io), such as psi:cpu:some:30%/1s");
    }
    let is_full = match share {
        "some" => false,
        "full" => true,
        _ => return Err("behind the resource stands some or full, such as psi:io:full:10%/2s"),
    };
    let (limit, window) = limit_in_window(limit)?;
    let stalled = match limit {
        ThrottleLimit::PeriodsPercent(percent) => window * percent / 100,
        ThrottleLimit::Time(time) if time <= window => time,
        ThrottleLimit::Time(_) => return Err(WINDOW_HELP),
    };
    Ok(Pressure { resource: resource.to_owned(), is_full, stalled, window, cgroup })
}

fn throttle(rest: &str) -> Result<Throttle, &'static str> {
    let (rest, cgroup) = rest
        .split_once('@')
        .ok_or("throttle: takes a cgroup, such as throttle:20%/1s@nginx.service")?;
    let (limit, window) = limit_in_window(rest)?;
    Ok(Throttle { limit, window, cgroup: named(cgroup)? })
}

fn named(cgroup: &str) -> Result<String, &'static str> {
    let is_inside = cgroup.split('/').all(|part| part != "..");
    match is_inside && !cgroup.is_empty() {
        true => Ok(cgroup.to_owned()),
        false => Err("behind @ stands the path of a cgroup, such as system.slice/nginx.service"),
    }
}

fn limit_in_window(text: &str) -> Result<(ThrottleLimit, Duration), &'static str> {
    let (limit, window) = text.split_once('/').ok_or(WINDOW_HELP)?;
    let window = time(window).filter(|window| WINDOWS.contains(window)).ok_or(WINDOW_HELP)?;
    let limit = match limit.strip_suffix('%') {
        Some(percent) => percent
            .parse()
            .ok()
            .filter(|percent| (1..=100).contains(percent))
            .map(ThrottleLimit::PeriodsPercent),
        None => time(limit).filter(|time| !time.is_zero()).map(ThrottleLimit::Time),
    };
    Ok((limit.ok_or(WINDOW_HELP)?, window))
}

/// A name and the longest time that is no event.
fn longest(rest: &str, help: &'static str) -> Result<(String, Duration), &'static str> {
    let (name, longest) = rest.rsplit_once(':').ok_or(help)?;
    let longest = time(longest).ok_or(help)?;
    if !is_name(name) {
        return Err("the name of a latency or request has 1 to 64 bytes without blanks");
    }
    Ok((name.to_owned(), longest))
}

/// Whether a latency or a request may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_whitespace)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Pressure(Pressure { resource, is_full, stalled, window, cgroup }) => {
                let share = if *is_full { "full" } else { "some" };
                let (stalled, window) = (time_text(*stalled), time_text(*window));
                write!(f, "psi:{resource}:{share}:{stalled}/{window}")?;
                cgroup.as_ref().map_or(Ok(()), |cgroup| write!(f, "@{cgroup}"))
            }
            Rule::Throttle(Throttle { limit, window, cgroup }) => {
                let limit = match limit {
                    ThrottleLimit::PeriodsPercent(percent) => format!("{percent}%"),
                    ThrottleLimit::Time(time) => time_text(*time),
                };
                write!(f, "throttle:{limit}/{}@{cgroup}", time_text(*window))
            }
            Rule::Latency { name, longest } => {
                write!(f, "latency:{name}:{}", time_text(*longest))
            }
            Rule::Request { name, longest } => {
                write!(f, "request:{name}:{}", time_text(*longest))
            }
            Rule::Signal => f.write_str("signal"),
            Rule::Exit(pid) => write!(f, "exit:{pid}"),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rule, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        for text in [
            "psi:cpu:some:300ms/1s",
            "psi:memory:full:1ms/500ms@system.slice/nginx.service",
            "throttle:20%/1s@web",
            "throttle:100ms/10s@a:b@c",
            "latency:check:out:250ms",
            "request:query:1500us",
            "signal",
            "exit:1234",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        let percent: Rule = "psi:io:some:30%/2s".parse().unwrap();
        assert_eq!(percent.to_string(), "psi:io:some:600ms/2s");
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, part) in [
            ("", "write psi:"),
            ("presure:cpu", "write psi:"),
            ("signal:10", "write psi:"),
            ("psi:disk:some:1%/1s", "cpu, memory or io"),
            ("psi:cpu:all:1%/1s", "some or full"),
            ("psi:cpu:some:30%", "500ms to 10s"),
            ("psi:cpu:some:0%/1s", "1 to 100"),
            ("psi:cpu:some:101%/1s", "1 to 100"),
            ("psi:cpu:some:2s/1s", "within it"),
            ("psi:cpu:some:1%/100ms", "500ms to 10s"),
            ("psi:cpu:some:1%/1s@", "path of a cgroup"),
            ("psi:cpu:some:1%/1s@../../etc", "path of a cgroup"),
            ("throttle:20%/1s", "takes a cgroup"),
            ("latency:250ms", "a name and a time"),
            ("latency:a b:250ms", "without blanks"),
            ("request:250ms", "name of a request and a time"),
            ("request:query:slow", "name of a request and a time"),
            ("exit:0", "number of a process"),
            ("exit:me", "number of a process"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(&format!("'{text}'")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_bad(text in "(psi|throttle|latency|request|exit|signal)?[:a-z0-9/@%]{0,30}|.{0,20}") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
        }
    }
}
