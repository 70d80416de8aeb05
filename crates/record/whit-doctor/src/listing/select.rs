//! Which events are listed.

use std::collections::BTreeSet;

use whit_events::{
    CatalogueEntry, EventClass, Pmu, PmuTable, glob_matches, is_glob, known_event_names, nearest,
};

/// The kinds and patterns that the user selected. An event has to meet one of them. An empty
/// selection takes all events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    classes: Vec<EventClass>,
    patterns: Vec<String>,
    /// Only events of PMUs that match this pattern.
    pub pmu: Option<String>,
    /// With events that their vendors have renamed.
    pub deprecated: bool,
}

/// A pattern without an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unmatched {
    /// With `*` and `?` as in a shell, or part of a name.
    pub pattern: String,
    /// The name that comes nearest.
    pub nearest: Option<String>,
}

impl Selection {
    /// From words as perf takes them: kinds (`hw`, `cache`, `pmu`, …), patterns of shells, and parts
    /// of names.
    pub fn new<'w>(words: impl IntoIterator<Item = &'w str>) -> Selection {
        let mut selection = Selection::default();
        for word in words {
            match EventClass::from_word(word) {
                Some(classes) => selection.classes.extend(classes),
                None => selection.patterns.push(word.to_owned()),
            }
        }
        selection
    }

    /// Whether everything is wanted.
    pub fn is_everything(&self) -> bool {
        self.classes.is_empty() && self.patterns.is_empty() && self.pmu.is_none()
    }

    /// Whether the selection can include tracepoints.
    pub fn wants_tracepoints(&self) -> bool {
        let any = self.classes.is_empty() || !self.patterns.is_empty();
        self.pmu.is_none() && (any || self.classes.contains(&EventClass::Tracepoint))
    }

    /// Whether the PMU is described: where it has one of the listed events, or is asked for.
    pub(super) fn wants_pmu(&self, pmu: &Pmu, listed: &[CatalogueEntry]) -> bool {
        let all_pmus = self.pmu.is_none() && self.classes.contains(&EventClass::Pmu);
        let asked = self.patterns.iter().chain(&self.pmu).any(|word| matches(word, &pmu.name));
        let has_event = || listed.iter().any(|entry| entry.pmus.contains(&pmu.name));
        self.is_everything() || all_pmus || asked || has_event()
    }

    /// The entries that are wanted, and the patterns that found nothing.
    pub(super) fn apply(
        &self,
        entries: Vec<CatalogueEntry>,
        table: &PmuTable,
    ) -> (Vec<CatalogueEntry>, Vec<Unmatched>) {
        let mut found = vec![false; self.patterns.len()];
        let mut listed = Vec::new();
        let names = Names::of(&entries, table);
        for entry in entries {
            let of_class = self.classes.contains(&entry.class);
            let mut wanted = of_class || (self.classes.is_empty() && self.patterns.is_empty());
            for (pattern, found) in self.patterns.iter().zip(&mut found) {
                let is_match = entry_matches(pattern, &entry);
                *found |= is_match;
                wanted |= is_match;
            }
            let of_pmu = |wanted: &String| entry.pmus.iter().any(|pmu| matches(wanted, pmu));
            wanted &= self.pmu.as_ref().is_none_or(of_pmu);
            if wanted && (self.deprecated || !entry.deprecated) {
                listed.push(entry);
            }
        }
        // A PMU without named events has its terms to show.
        let unmatched =
            self.patterns.iter().zip(found).filter(|(pattern, found)| {
                !found && !table.names().any(|name| matches(pattern, name))
            });
        let unmatched = unmatched.map(|(pattern, _)| names.unmatched(pattern)).collect();
        (listed, unmatched)
    }
}

fn entry_matches(pattern: &str, entry: &CatalogueEntry) -> bool {
    let names = entry.aliases.iter().chain(&entry.pmus).chain([&entry.name]);
    names.into_iter().any(|name| matches(pattern, name))
}

/// A pattern is for the whole of a name; any other word for a part, whatever its case. Slashes at
/// the end are no part of a PMU event's name.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    if is_glob(&pattern) {
        let short = name.strip_suffix('/').unwrap_or(&name);
        return glob_matches(&pattern, &name) || glob_matches(&pattern, short);
    }
    name.contains(&pattern)
}

/// Everything that a pattern could have meant.
struct Names {
    /// Patterns that are probably misspelt, each with a suggestion.
    whole: Vec<(String, String)>,
    /// Systems of tracepoints.
    systems: BTreeSet<String>,
}

impl Names {
    fn of(entries: &[CatalogueEntry], table: &PmuTable) -> Names {
        let same = |name: &str| (name.to_owned(), name.to_owned());
        let mut whole: Vec<(String, String)> =
            known_event_names().into_iter().chain(table.names()).map(same).collect();
        let mut systems = BTreeSet::new();
        for entry in entries {
            whole.extend(entry.aliases.iter().chain([&entry.name]).map(|name| same(name)));
            if let Some((system, name)) = tracepoint_parts(entry) {
                whole.push((name.to_owned(), entry.name.clone()));
                systems.insert(system.to_owned());
            }
        }
        Names { whole, systems }
    }

    fn unmatched(&self, pattern: &str) -> Unmatched {
        let nearest = match pattern.split_once(':') {
            Some((system, name)) if !self.systems.contains(system) => {
                let near = nearest(system, self.systems.iter().map(String::as_str));
                near.map(|system| format!("{system}:{name}"))
            }
            _ => self.nearest(pattern),
        };
        Unmatched { pattern: pattern.to_owned(), nearest }
    }

    /// Nearest to the pattern's letters.
    fn nearest(&self, pattern: &str) -> Option<String> {
        let bare: String = pattern.chars().filter(|c| !"*?".contains(*c)).collect();
        let near = nearest(&bare, self.whole.iter().map(|(written, _)| written.as_str()))?;
        self.whole.iter().find(|(written, _)| written == near).map(|(_, shown)| shown.clone())
    }
}

fn tracepoint_parts(entry: &CatalogueEntry) -> Option<(&str, &str)> {
    let is_tracepoint = entry.class == EventClass::Tracepoint;
    is_tracepoint.then(|| entry.name.split_once(':')).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_for_whole_names_and_words_for_parts() {
        for (pattern, name, expected) in [
            ("cycles", "stalled-cycles-frontend", true),
            ("cycles*", "stalled-cycles-frontend", false),
            ("*cycles*", "stalled-cycles-frontend", true),
            ("l1-dcache", "L1-dcache-loads", true),
            ("msr/*", "msr/tsc/", true),
            ("msr/t?c", "msr/tsc/", true),
            ("sched:*", "sched:sched_switch", true),
            ("sched:*", "irq:sched:x", false),
            ("tsc", "msr/tsc/", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn words_of_perf_are_kinds() {
        let hardware = Selection::new(["hw"]);
        assert!(!hardware.wants_tracepoints() && !hardware.is_everything());
        assert!(Selection::new(["hw", "sched:*"]).wants_tracepoints());
        assert!(Selection::new([]).wants_tracepoints() && Selection::new([]).is_everything());
    }
}
