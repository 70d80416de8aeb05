//! Triggers: a rule sends one when its event comes.

use serde::Serialize;
use std::fmt;
use std::time::{Instant, SystemTime};
use whit_types::OutsideText;

/// Kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Tasks stalled for want of a resource.
    Pressure,
    /// A cgroup used up its quota of CPU time.
    Throttling,
    /// An application reported a slow request.
    Latency,
    /// A request that the recorder follows was slow.
    SlowRequest,
    /// A program asked for a dump over the socket.
    Request,
    /// SIGUSR2.
    Signal,
    /// A process ended.
    Exit,
}

impl Kind {
    /// Its name in files and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pressure => "pressure",
            Kind::Throttling => "throttling",
            Kind::Latency => "latency",
            Kind::SlowRequest => "slow-request",
            Kind::Request => "request",
            Kind::Signal => "signal",
            Kind::Exit => "exit",
        }
    }
}

/// An event that a rule waits for.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// The source that noticed it.
    pub kind: Kind,
    /// The rule and the measured value. Programs and cgroups chose parts of it.
    pub detail: OutsideText,
    /// When the event was noticed.
    pub at: Instant,
    /// The same by the wall clock.
    pub wall: SystemTime,
}

impl Trigger {
    /// One that is noticed now.
    pub fn now(kind: Kind, detail: impl Into<String>) -> Trigger {
        let detail = OutsideText::from(detail.into());
        Trigger { kind, detail, at: Instant::now(), wall: SystemTime::now() }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.detail)
    }
}
