//! The names that perf builds in, all together, and the one that was meant.

use whit_types::{HardwareEvent, SoftwareEvent, ToolEvent};

/// Edits (insertions, deletions, substitutions, swaps) up to which a name counts as a misspelling.
const NEAREST_MAX_EDITS: usize = 3;

/// Every built-in event name with its aliases: hardware, software, tool and hardware-cache
/// events. For completion and for suggestions.
pub fn known_event_names() -> Vec<&'static str> {
    let hardware = HardwareEvent::ALL.iter().flat_map(|event| event.names());
    let software = SoftwareEvent::ALL.iter().flat_map(|event| event.names());
    let tool = ToolEvent::ALL.iter().flat_map(|event| event.names());
    let mut names: Vec<&'static str> = hardware.chain(software).chain(tool).copied().collect();
    names.extend(crate::cache::cache_event_names());
    names
}

/// Whether a word means a built-in event when it stands alone.
pub(crate) fn is_known_event_name(word: &str) -> bool {
    HardwareEvent::from_name(word).is_some()
        || SoftwareEvent::from_name(word).is_some()
        || ToolEvent::from_name(word).is_some()
        || crate::cache::CacheEvent::from_name(word).is_some()
}

/// The name of `known` with the fewest edits from `written`, if a slip of the keyboard explains
/// the difference. Long names may differ more than short ones. The first of equals wins.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lowered = written.to_lowercase();
    let limit = NEAREST_MAX_EDITS.min(written.chars().count().div_ceil(3));
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&lowered, &name.to_lowercase()), name))
        .filter(|(edits, _)| *edits <= limit)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_noise_finds_none() {
        let known = known_event_names();
        assert_eq!(nearest("cycels", known.iter().copied()), Some("cycles"));
        assert_eq!(
            nearest("L1-dcache-lod-misses", known.iter().copied()),
            Some("L1-dcache-load-misses")
        );
        assert_eq!(nearest("zzzzzz", known.iter().copied()), None);
    }
}
