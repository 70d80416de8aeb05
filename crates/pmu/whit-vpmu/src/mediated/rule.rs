//! The rules of the mediated PMU, by name, so that tests can remove one.

/// A rule that the code follows.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub(crate) enum Rule {
    /// The host's events leave before the guest's registers come.
    HostLeaves,
    /// The host's control is 0 before registers change.
    StopFirst,
    /// A guest that counts nothing is entered with control 0.
    IdleControl,
    /// Counters that the host used are written even with 0.
    OverwriteHost,
    /// Counters that are not zero are written.
    LoadCounters,
    /// Status bits of the host are cleared before the guest sees them.
    ClearHostStatus,
    /// The guest's status bits are set.
    LoadStatus,
    /// Overflows interrupt with an own vector.
    OwnVector,
    /// The vector's entry is unmasked after an interrupt.
    UnmaskVector,
    /// AMD: selects count in guests alone.
    GuestOnly,
    /// The guest's control is saved.
    SaveControl,
    /// The guest's status is saved.
    SaveStatus,
    /// Its status bits are cleared for the host.
    ClearStatus,
    /// Counters in use are read.
    SaveCounters,
    /// Counters are zeroed for the host.
    ClearCounters,
    /// Event selects are zeroed for the host.
    ClearSelects,
    /// Events that the filter refuses do not count.
    Filter,
    /// The guest reads the selects that it wrote.
    HideFilter,
    /// Writes to a counter that is not in use exit.
    CatchWrites,
    /// A counter stays in use while it is enabled.
    KeepEnabled,
    /// Instructions that the hypervisor emulates are counted.
    CountEmulated,
    /// No event that includes guests is open beside a VM with a mediated PMU.
    #[cfg(test)]
    Share,
}

impl Rule {
    /// Every rule, in the order of the variants.
    #[cfg(test)]
    pub(crate) const ALL: [Rule; 22] = [
        Rule::HostLeaves,
        Rule::StopFirst,
        Rule::IdleControl,
        Rule::OverwriteHost,
        Rule::LoadCounters,
        Rule::ClearHostStatus,
        Rule::LoadStatus,
        Rule::OwnVector,
        Rule::UnmaskVector,
        Rule::GuestOnly,
        Rule::SaveControl,
        Rule::SaveStatus,
        Rule::ClearStatus,
        Rule::SaveCounters,
        Rule::ClearCounters,
        Rule::ClearSelects,
        Rule::Filter,
        Rule::HideFilter,
        Rule::CatchWrites,
        Rule::KeepEnabled,
        Rule::CountEmulated,
        Rule::Share,
    ];
}
