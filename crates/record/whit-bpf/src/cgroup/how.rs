//! How an event is read.

/// How an event is read. Calls into the kernel are the main cost of a change of cgroup. So one event
/// is asked for the times of all that run at the same times, and software events need no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// The source of its count.
    pub of: Of,
    /// Whether it is read with how long it was enabled and ran. One that is not runs when the nearest
    /// timed event before it does: as a member of its group, or because neither ever waits for a
    /// counter.
    pub is_timed: bool,
    /// Whether the kernel counts it, not a PMU: its count is a word of the kernel's memory, which is
    /// read where it is if the kernel allows that. Where it is timed, it and all that it times never
    /// wait for a counter; so it times no event of a PMU.
    pub is_software: bool,
}

/// The source of an event's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Something that the event is read for.
    Events,
    /// The nanoseconds that it runs, by its times or by those of the nearest timed event before it; its
    /// count is not read.
    Time,
    /// Switches of tasks (`context-switches`, `cgroup-switches`): the kernel adds the one that ends an
    /// account just after the account was closed.
    Switches,
}

impl How {
    /// An event of a PMU that is read with its times.
    pub const TIMED: How = How { of: Of::Events, is_timed: true, is_software: false };
    /// An event that is read without its times.
    pub const UNTIMED: How = How { is_timed: false, ..How::TIMED };
    /// An event whose count is the time that it runs.
    pub const CLOCK: How = How { of: Of::Time, ..How::UNTIMED };

    /// The same of an event that counts switches.
    #[must_use]
    pub const fn of_switches(self) -> How {
        How { of: Of::Switches, ..self }
    }

    /// The same of an event that the kernel counts.
    #[must_use]
    pub const fn in_software(self) -> How {
        How { is_software: true, ..self }
    }

    /// As the program has it (`enum how`).
    pub(super) fn bits(self) -> u8 {
        let of = match self.of {
            Of::Events => 0,
            Of::Time => 2,
            Of::Switches => 4,
        };
        u8::from(self.is_timed) | of | u8::from(self.is_software) << 3
    }
}
