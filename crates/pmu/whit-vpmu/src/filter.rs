//! Which events the VMM lets a guest count.
//!
//! The semantics are those of KVM_SET_PMU_EVENT_FILTER with masked events (Linux,
//! `Documentation/virt/kvm/api.rst`), so that a list which was made for KVM means the same here.

use alloc::vec::Vec;

use crate::event::EventConfig;
use crate::model::CounterIndex;

/// Most entries of a filter, as in KVM.
pub const ENTRIES_MAX: usize = 300;

/// Treatment of events that the list names.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FilterAction {
    /// They alone are counted.
    Allow,
    /// All others are counted.
    Deny,
}

/// Events with one number: those whose unit mask, as far as `umask_mask` goes, is `umask_match`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FilterEntry {
    /// The event's number; AMD's has 12 bits.
    pub event: u16,
    /// Bits of the unit mask that matter.
    pub umask_mask: u8,
    /// Their required value.
    pub umask_match: u8,
    /// Takes events out that other entries name.
    pub exclude: bool,
}

impl FilterEntry {
    /// One event with one unit mask.
    #[must_use]
    pub const fn exact(event: u16, umask: u8) -> FilterEntry {
        FilterEntry { event, umask_mask: 0xff, umask_match: umask, exclude: false }
    }

    const fn names(&self, event: u16, umask: u8) -> bool {
        self.event == event && umask & self.umask_mask == self.umask_match
    }
}

/// Which events the VMM lets a guest count. A counter whose event is not allowed stands still; the guest
/// sees its registers as it wrote them.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EventFilter {
    action: FilterAction,
    entries: Vec<FilterEntry>,
    fixed: u32,
}

/// A filter with more than [`ENTRIES_MAX`] entries.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TooManyEntries(pub usize);

impl core::fmt::Display for TooManyEntries {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "an event filter of {} entries; {ENTRIES_MAX} are the most", self.0)
    }
}

impl core::error::Error for TooManyEntries {}

impl EventFilter {
    /// A filter. `fixed` has a bit for each fixed counter: with [`FilterAction::Allow`] those that count, with
    /// [`FilterAction::Deny`] those that do not.
    ///
    /// # Errors
    /// Where there are too many entries.
    pub fn new(
        action: FilterAction,
        entries: Vec<FilterEntry>,
        fixed: u32,
    ) -> Result<EventFilter, TooManyEntries> {
        if entries.len() > ENTRIES_MAX {
            return Err(TooManyEntries(entries.len()));
        }
        Ok(EventFilter { action, entries, fixed })
    }

    /// Whether a guest may count this.
    #[must_use]
    pub fn allows(&self, config: &EventConfig) -> bool {
        let named = match config.counter {
            CounterIndex::Fixed(number) => {
                1_u32.checked_shl(number.into()).is_some_and(|bit| self.fixed & bit != 0)
            }
            CounterIndex::General(_) => self.names(config.event(), config.umask()),
        };
        named == (self.action == FilterAction::Allow)
    }

    fn names(&self, event: u16, umask: u8) -> bool {
        let among = |exclude| {
            let mut of_kind = self.entries.iter().filter(|entry| entry.exclude == exclude);
            of_kind.any(|entry| entry.names(event, umask))
        };
        among(false) && !among(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(select: u64) -> EventConfig {
        EventConfig { counter: CounterIndex::General(0), select, user: true, kernel: true }
    }

    #[test]
    fn entries_name_events_by_the_bits_of_the_unit_mask_that_matter() {
        let even = FilterEntry { event: 0xc4, umask_mask: 1, umask_match: 0, exclude: false };
        let but = FilterEntry { exclude: true, ..FilterEntry::exact(0xc4, 4) };
        let entries = vec![FilterEntry::exact(0x3c, 0), even, but];
        let filter = |action| EventFilter::new(action, entries.clone(), 0b101).unwrap();
        let (allow, deny) = (filter(FilterAction::Allow), filter(FilterAction::Deny));
        let cases = [(0x3c, true), (0x13c, false), (0xc4, true), (0x2c4, true), (0x1c4, false)];
        for (select, named) in cases.into_iter().chain([(0x4c4, false), (0xc0, false)]) {
            assert_eq!(allow.allows(&general(select)), named, "{select:#x}");
            assert_eq!(deny.allows(&general(select)), !named, "{select:#x}");
        }
        for (number, named) in [(0, true), (1, false), (2, true), (3, false), (32, false)] {
            let fixed = EventConfig { counter: CounterIndex::Fixed(number), ..general(0xc0) };
            assert_eq!(allow.allows(&fixed), named, "{number}");
            assert_eq!(deny.allows(&fixed), !named, "{number}");
        }
    }

    #[test]
    fn a_filter_has_as_many_entries_as_kvm_takes() {
        let filter = |count| {
            let entries = vec![FilterEntry::exact(1, 1); count];
            EventFilter::new(FilterAction::Allow, entries, 0).map(|_| ())
        };
        assert_eq!((filter(300), filter(301)), (Ok(()), Err(TooManyEntries(301))));
        let text = TooManyEntries(301).to_string();
        assert_eq!(text, "an event filter of 301 entries; 300 are the most");
    }
}
