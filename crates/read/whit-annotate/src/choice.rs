//! Which functions to annotate.

use crate::code::Code;
use crate::weights::{EventWeights, Place, Weights};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use whit_profile::handle;
use whit_profile::model::{DsoId, EventId, FunctionId};
use whit_types::{OutsideText, Svma};

/// Places that are searched for an inlined function of a name that no other function has.
const MAX_SEARCHED_PLACES: usize = 20_000;

/// The wish of the user.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only these binaries, by path or base name; all where empty.
    pub dsos: Vec<String>,
    /// Only this event.
    pub event: Option<EventId>,
}

/// A function with samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// Binary.
    pub dso: DsoId,
    /// Function of the profile. Several of one name in a binary are one there, and apart here.
    pub function: FunctionId,
    /// True for code of the kernel.
    pub kernel: bool,
    /// Its code, or the addresses of its samples where nothing says where it begins.
    pub range: Range<Svma>,
    /// True where the range is that of the function.
    pub is_whole: bool,
    /// Its samples.
    pub weights: EventWeights,
    /// Samples by address, ascending.
    pub addresses: Vec<(Svma, EventWeights)>,
}

impl Weights<'_> {
    /// The functions of this name, or the one at an address such as `0x1234`; the heaviest first.
    pub fn find(&self, name: &str, wanted: &Wanted, code: &impl Code) -> Vec<Chosen> {
        let address = name.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let is_named = |place: &&Place| {
            let function = &self.profile.functions[place.function.index()];
            let text = &function.name;
            text.exact() == name
                || text.escaped() == name
                || handle::lists(&[name], self.profile, function)
        };
        let places = self.candidates(wanted).filter(is_named);
        let found = self.functions(places, wanted, code);
        let Some(address) = address.map(Svma).filter(|_| found.is_empty()) else { return found };
        let is_there = |place: &&Place| {
            code.function_at(place.dso, place.address).is_some_and(|range| range.contains(&address))
        };
        self.functions(self.candidates(wanted).filter(is_there), wanted, code)
    }

    /// The functions with the largest shares of an event, at most so many, each with at least `min_percent` of it.
    pub fn hottest(
        &self,
        limit: usize,
        min_percent: f64,
        wanted: &Wanted,
        code: &impl Code,
    ) -> Vec<Chosen> {
        let mut sums: FxHashMap<FunctionId, EventWeights> = FxHashMap::default();
        for place in self.candidates(wanted) {
            if self.profile.functions[place.function.index()].known {
                sums.entry(place.function).or_default().add_all(&place.weights);
            }
        }
        let mut order: Vec<_> = sums
            .into_iter()
            .map(|(function, weights)| (self.share(&weights, wanted), function))
            .filter(|(share, _)| *share > 0.0 && 100.0 * share >= min_percent)
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // Functions of one name in one binary are told apart only now.
        let heavy: BTreeSet<_> =
            order.into_iter().take(limit).map(|(_, function)| function).collect();
        let places = self.candidates(wanted).filter(|place| heavy.contains(&place.function));
        let mut found = self.functions(places, wanted, code);
        found.retain(|function| 100.0 * self.share(&function.weights, wanted) >= min_percent);
        found.truncate(limit);
        found
    }

    /// Functions that an inlined function of this name is part of, in samples. Debug information may have its name
    /// without those of its namespaces.
    pub fn inlined_into(&self, name: &str, code: &impl Code) -> Vec<OutsideText> {
        let mut places: Vec<&Place> = self.places.iter().collect();
        places.sort_by_key(|place| {
            Reverse(place.weights.iter().map(|(_, weight)| weight.samples).max())
        });
        let is_in = |place: &&&Place| {
            let source = code.source_of(place.dso, place.address);
            source
                .inlined
                .iter()
                .any(|(inlined, _)| ends_with(name, inlined) || ends_with(inlined, name))
        };
        let mut found: Vec<OutsideText> = Vec::new();
        for place in places.iter().take(MAX_SEARCHED_PLACES).filter(is_in) {
            let outer = &self.profile.functions[place.function.index()].name;
            if !found.contains(outer) {
                found.push(outer.clone());
            }
        }
        found
    }

    /// Names of functions with samples, the heaviest first.
    pub fn names(&self, wanted: &Wanted) -> Vec<OutsideText> {
        let mut sums: FxHashMap<FunctionId, EventWeights> = FxHashMap::default();
        for place in self.candidates(wanted) {
            sums.entry(place.function).or_default().add_all(&place.weights);
        }
        let known = |(function, weights): (FunctionId, EventWeights)| {
            let info = &self.profile.functions[function.index()];
            info.known.then(|| (self.share(&weights, wanted), info.name.clone()))
        };
        let mut order: Vec<_> = sums.into_iter().filter_map(known).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.exact().cmp(b.1.exact())));
        order.into_iter().map(|(_, name)| name).collect()
    }

    fn candidates<'a>(&'a self, wanted: &'a Wanted) -> impl Iterator<Item = &'a Place> + 'a {
        self.places.iter().filter(|place| {
            let dso = &self.profile.dsos[place.dso.index()];
            let is_named = |name: &String| {
                [&dso.path, &dso.short_name]
                    .into_iter()
                    .any(|own| own.exact() == name || own.escaped() == name.as_str())
            };
            let has_event = wanted.event.is_none_or(|event| place.weights.of(event).samples > 0);
            has_event && (wanted.dsos.is_empty() || wanted.dsos.iter().any(is_named))
        })
    }

    /// The largest share of an event: they cannot be added.
    fn share(&self, weights: &EventWeights, wanted: &Wanted) -> f64 {
        let shares = weights.iter().filter(|(event, _)| wanted.event.is_none_or(|it| it == *event));
        let of = |(event, weight): (EventId, crate::Weight)| {
            weight.period as f64 / self.profile.events[event.index()].period.max(1) as f64
        };
        shares.map(of).fold(0.0, f64::max)
    }

    /// Joins places into functions, the heaviest first.
    fn functions<'a>(
        &self,
        places: impl Iterator<Item = &'a Place>,
        wanted: &Wanted,
        code: &impl Code,
    ) -> Vec<Chosen> {
        let mut found: FxHashMap<(DsoId, FunctionId, Option<Svma>), Chosen> = FxHashMap::default();
        for place in places {
            let whole = code.function_at(place.dso, place.address);
            let own = place.address..Svma(place.address.0.saturating_add(1));
            let key = (place.dso, place.function, whole.as_ref().map(|range| range.start));
            let function = found.entry(key).or_insert_with(|| Chosen {
                dso: place.dso,
                function: place.function,
                kernel: place.kernel,
                is_whole: whole.is_some(),
                range: whole.unwrap_or(own.clone()),
                weights: EventWeights::default(),
                addresses: Vec::new(),
            });
            function.range.start = function.range.start.min(own.start);
            function.range.end = function.range.end.max(own.end);
            function.weights.add_all(&place.weights);
            function.addresses.push((place.address, place.weights.clone()));
        }
        let mut found: Vec<Chosen> = found.into_values().collect();
        for function in &mut found {
            function.addresses.sort_by_key(|(address, _)| *address);
        }
        found.sort_by(|a, b| {
            let (of_a, of_b) = (self.share(&a.weights, wanted), self.share(&b.weights, wanted));
            of_b.total_cmp(&of_a).then((a.dso, a.range.start).cmp(&(b.dso, b.range.start)))
        });
        found
    }
}

/// True where both are one name, as far as the shorter one goes.
fn ends_with(name: &str, last: &str) -> bool {
    let rest = name.strip_suffix(last).filter(|_| !last.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}
