//! How an event is read.

/// How an event is read. Calls into the kernel are most of what a change of cgroup costs: events that
/// run at the same times are asked for these once, and events of software not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// What it counts.
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

/// What an event counts.
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
    /// With its times.
    pub const TIMED: How = How { of: Of::Events, is_timed: true, is_software: false };
    /// Without.
    pub const UNTIMED: How = How { is_timed: false, ..How::TIMED };
    /// Not at all.
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
