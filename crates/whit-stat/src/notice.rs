//! What a user should hear while counting: everything that was asked for and could not be had.

use std::fmt;

use whit_capture::notice::Level;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Notice {
    /// Only user mode may be counted.
    UserModeOnly { event: String, paranoid: i64 },
    /// One event may not be counted, others may.
    NotPermitted { event: String, advice: String },
    /// The PMU cannot leave guests out.
    GuestsIncluded { event: String },
    /// A weak group does not fit onto the PMU.
    GroupBroken { leader: String },
    /// More descriptors were needed.
    OpenFilesRaised { from: Option<u64>, to: Option<u64> },
    /// A thread ended before its events were open.
    ThreadGone { tid: i32 },
    /// A CPU went offline before its events were open.
    CpuGone { cpu: i32 },
    /// A group can no longer be read as a whole.
    GroupUnreadable { event: String },
}

impl Notice {
    /// How loud it is.
    pub fn level(&self) -> Level {
        match self {
            Notice::UserModeOnly { .. }
            | Notice::NotPermitted { .. }
            | Notice::GroupBroken { .. }
            | Notice::GroupUnreadable { .. } => Level::Warning,
            Notice::GuestsIncluded { .. }
            | Notice::OpenFilesRaised { .. }
            | Notice::ThreadGone { .. }
            | Notice::CpuGone { .. } => Level::Verbose,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::UserModeOnly { event, paranoid } => write!(
                f,
                "'{event}': kernel mode left out, kernel.perf_event_paranoid is {paranoid} (allow \
                 it: sysctl kernel.perf_event_paranoid=1, or grant cap_perfmon)"
            ),
            Notice::NotPermitted { event, advice } => {
                write!(f, "'{event}' is not counted: {advice}")
            }
            Notice::GuestsIncluded { event } => {
                write!(f, "'{event}': this PMU cannot leave guests out")
            }
            Notice::GroupBroken { leader } => {
                write!(f, "the group of '{leader}' does not fit onto the PMU and was broken up")
            }
            Notice::OpenFilesRaised { from, to } => {
                let limit = |value: &Option<u64>| {
                    value.map_or_else(|| "unlimited".to_owned(), |value| value.to_string())
                };
                write!(f, "limit of open files raised from {} to {}", limit(from), limit(to))
            }
            Notice::ThreadGone { tid } => write!(f, "thread {tid} ended before it was counted"),
            Notice::CpuGone { cpu } => write!(f, "CPU {cpu} went offline and is not counted"),
            Notice::GroupUnreadable { event } => write!(
                f,
                "the kernel no longer reads '{event}' together with its group: what it counts \
                 from here on is missing"
            ),
        }
    }
}

/// Takes notices as they come.
pub trait Listener {
    /// One notice.
    fn notice(&mut self, notice: Notice);
}

impl<F: FnMut(Notice)> Listener for F {
    fn notice(&mut self, notice: Notice) {
        self(notice);
    }
}
