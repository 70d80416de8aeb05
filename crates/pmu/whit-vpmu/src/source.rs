//! Where counts come from.

use core::fmt;

use crate::event::EventConfig;

/// Names a counter in one of its configurations. Each time a counter stops its generation changes, so a
/// notice that was on its way then is recognized as of the past.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Token(u64);

impl Token {
    pub(crate) const fn new(slot: usize, generation: u32) -> Token {
        Token(((generation as u64) << 8) | slot as u64)
    }

    pub(crate) const fn slot(self) -> usize {
        (self.0 & 0xff) as usize
    }

    pub(crate) const fn generation(self) -> u32 {
        (self.0 >> 8) as u32
    }

    /// As a number, for a source that hands it to a kernel.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// A number that [`Token::bits`] gave. Any other is a token of nothing, which is dropped.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Token {
        Token(bits)
    }
}

/// How an event is (re)started.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Arm {
    /// Events until the counter overflows: never 0, up to 2 to the power of the counter's width.
    pub left: u64,
    /// The counter is not where it was when the event was paused: the guest wrote it, or it overflowed. Where
    /// it is false, a source may let the event go on from where it was.
    pub moved: bool,
    /// Identification for notices.
    pub token: Token,
}

/// Count of an event.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Events since the last reading, or since it was opened.
    pub events: u64,
    /// The period that the event was armed with is over, by the source's own count: it has given notice,
    /// or is about to, and counts to its next by itself.
    pub due: bool,
}

/// Why an event could not be opened.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum OpenError {
    /// There are no more file descriptors (or other slots).
    TooManyOpen,
    /// The host has a VM with a mediated vPMU running, and refuses events that include guests as long as
    /// it does.
    MediatedHost,
    /// The host has no such event, or its PMU no room for it.
    Unsupported,
    /// The VMM lacks the right (`perf_event_paranoid`, CAP_PERFMON).
    NotPermitted,
    /// Any other error of the host, by its errno.
    Host(i32),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::TooManyOpen => f.write_str(
                "no more file descriptors for host events: raise the limit of open files (ulimit -n)",
            ),
            OpenError::MediatedHost => f.write_str(
                "the host runs a VM with a mediated vPMU and refuses events that include guests: stop that \
                 VM, or load kvm_intel or kvm_amd with enable_mediated_pmu=0",
            ),
            OpenError::Unsupported => f.write_str("the host cannot count this event"),
            OpenError::NotPermitted => f.write_str(
                "the host does not let the VMM count guests' kernels: give it CAP_PERFMON, or set \
                 kernel.perf_event_paranoid to 1",
            ),
            OpenError::Host(errno) => write!(f, "the host refused the event with errno {errno}"),
        }
    }
}

impl core::error::Error for OpenError {}

/// Why an open event refused a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum SourceError {
    /// It is pinned and found no counter of the host: it does not count.
    Unschedulable,
    /// The host's error, by its errno.
    Host(i32),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::Unschedulable => f.write_str(
                "the host's counters are taken (by its NMI watchdog, another VM or a profiler): the \
                 guest's counter stands still",
            ),
            SourceError::Host(errno) => write!(f, "a host event failed with errno {errno}"),
        }
    }
}

impl core::error::Error for SourceError {}

/// Counts the guest's events. Everything happens on the thread that runs the vCPU.
///
/// A source counts what the *guest* does, never the host or another guest.
pub trait CounterSource {
    /// An open event. Dropping it closes it.
    type Event;

    /// Opens an event; it counts at once.
    ///
    /// # Errors
    /// See [`OpenError`].
    fn open(&mut self, config: &EventConfig, arm: Arm) -> Result<Self::Event, OpenError>;

    /// Its count since the last reading; it goes on.
    ///
    /// # Errors
    /// Where the event does not count.
    fn read(&mut self, event: &mut Self::Event) -> Result<Reading, SourceError>;

    /// Stops it, and returns its count since the last reading. Its counts until
    /// [`CounterSource::resume`] are dropped, so a source need not stop it at once; it does in
    /// [`CounterSource::settle`].
    ///
    /// # Errors
    /// Where the event does not count.
    fn pause(&mut self, event: &mut Self::Event) -> Result<Reading, SourceError>;

    /// Starts it again, from a count of 0.
    ///
    /// # Errors
    /// Where it is refused: the event is closed then and another opened.
    fn resume(&mut self, event: &mut Self::Event, arm: Arm) -> Result<(), SourceError>;

    /// Gives a running event another distance to its overflow.
    ///
    /// # Errors
    /// As [`CounterSource::resume`].
    fn rearm(&mut self, event: &mut Self::Event, arm: Arm) -> Result<(), SourceError>;

    /// Really stops what a pause has left running. True where it had.
    fn settle(&mut self, event: &mut Self::Event) -> bool {
        let _ = event;
        false
    }

    /// Gives the host's event back.
    fn close(&mut self, event: Self::Event);
}
