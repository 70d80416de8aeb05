//! Files that are read again and again, and the growth of their counters.

use crate::cgroup::file_of;
use crate::pressure::{self, PressureMeter};
use crate::rule::Rule;
use crate::throttle::ThrottleMeter;
use crate::trigger::Kind;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whit_host::roots::Roots;
use whit_sys::clock::ClockId;

/// A rule whose file is read now and then.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    path: PathBuf,
    of: MeterOf,
    /// No event before: one window has one event at most.
    quiet_until_ns: u64,
}

#[derive(Clone, Debug)]
enum MeterOf {
    Pressure(PressureMeter),
    Throttle(ThrottleMeter),
}

/// The clock of readings.
pub(crate) fn now_ns() -> u64 {
    ClockId::MONOTONIC.now_ns().unwrap_or_default()
}

/// The file of a rule, where the rule is one of files.
pub(crate) fn file(rule: &Rule, roots: &Roots) -> Option<Result<PathBuf, String>> {
    Some(match rule {
        Rule::Pressure(rule) => match &rule.cgroup {
            Some(cgroup) => {
                let share = if rule.is_full { "full" } else { "some" };
                file_of(roots, cgroup, (&format!("{}.pressure", rule.resource), share))
            }
            None => Ok(roots.proc.join("pressure").join(&rule.resource)),
        },
        Rule::Throttle(rule) => file_of(roots, &rule.cgroup, ("cpu.stat", "nr_throttled")),
        _ => return None,
    })
}

impl Meter {
    pub(crate) fn new(rule: &Rule, path: &Path) -> Option<Meter> {
        let of = match rule {
            Rule::Pressure(rule) => MeterOf::Pressure(PressureMeter::new(rule)),
            Rule::Throttle(rule) => MeterOf::Throttle(ThrottleMeter::new(rule)),
            _ => return None,
        };
        Some(Meter { path: path.to_owned(), of, quiet_until_ns: 0 })
    }

    /// The window of its rule.
    pub(crate) fn window(&self) -> Duration {
        match &self.of {
            MeterOf::Pressure(meter) => meter.window(),
            MeterOf::Throttle(meter) => meter.window(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.of {
            MeterOf::Pressure(_) => Kind::Pressure,
            MeterOf::Throttle(_) => Kind::Throttling,
        }
    }

    /// Reads the file. Gives the measured value where it is an event.
    ///
    /// # Errors
    /// The file is gone or not of this kind.
    pub(crate) fn read(&mut self, now_ns: u64) -> io::Result<Option<String>> {
        let text = fs::read_to_string(&self.path)?;
        let seen = match &mut self.of {
            MeterOf::Pressure(meter) => meter.see(&text, now_ns),
            MeterOf::Throttle(meter) => meter.see(&text, now_ns),
        };
        let seen = seen.map_err(|missing| {
            let path = self.path.display();
            io::Error::new(io::ErrorKind::InvalidData, format!("{path} has no {missing}"))
        })?;
        if seen.is_none() || now_ns < self.quiet_until_ns {
            return Ok(None);
        }
        let window_ns = u64::try_from(self.window().as_nanos()).unwrap_or(u64::MAX);
        self.quiet_until_ns = now_ns.saturating_add(window_ns);
        match &mut self.of {
            MeterOf::Pressure(meter) => meter.restart(),
            MeterOf::Throttle(meter) => meter.restart(),
        }
        Ok(seen)
    }
}

/// The average that a file of stalls states, for the message of an event that the kernel noticed.
pub(crate) fn average(path: &Path, is_full: bool) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    pressure::average(&text, is_full).map(|percent| format!("{percent}% in 10 s"))
}
