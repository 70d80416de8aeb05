//! Rows that say nothing of their own: nearly all of their share is that of one callee.
//!
//! `_start`, `__libc_start_main` and `main` of a program have one share, and so has the function below which the calls
//! part. A face that shows this one alone, with the way to it in its name, has room for others.

use super::{ChainOrder, HistRow, Hists, HistsOptions, percent};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use whit_profile::model::FunctionId;

/// Which rows repeat which.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// By place of a row: the place of the callee that has its share.
    callee: Vec<Option<usize>>,
    /// The same in the other direction.
    caller: FxHashMap<usize, usize>,
}

/// A callee that has this part of its caller's share has nearly all of it.
const NEARLY_ALL: f64 = 0.98;
/// A row with this share of its own, in percent, says something of its own.
const OWN_PERCENT: f64 = 0.05;

impl Repeats {
    /// Those among the rows. Rows without children weights repeat none, and neither do rows whose chains begin at the
    /// callee.
    pub fn new(hists: &Hists, options: &HistsOptions) -> Repeats {
        let mut repeats = Repeats { callee: vec![None; hists.rows.len()], ..Repeats::default() };
        if !hists.children || hists.places.is_some() || options.chain_order() == ChainOrder::Callee
        {
            return repeats;
        }
        let mut places: FxHashMap<(FunctionId, bool), Vec<usize>> = FxHashMap::default();
        for (place, row) in hists.rows.iter().enumerate() {
            if let Some(function) = row.place.function {
                places.entry((function, row.place.inlined)).or_default().push(place);
            }
        }
        // Callers come before their callees.
        let mut heaviest_first: Vec<usize> = (0..hists.rows.len()).collect();
        heaviest_first.sort_by_key(|place| {
            let row = &hists.rows[*place];
            (Reverse(hists.weight(row)), Reverse(row.max_depth), *place)
        });
        for place in heaviest_first {
            let row = &hists.rows[place];
            let Some((callee, weight)) = main_callee(row) else { continue };
            let same = places.get(&callee).into_iter().flatten().copied();
            let mut same = same.filter(|at| hists.rows[*at].context == row.context);
            // Several rows of one function are told apart by more than its name: none of them is the callee alone.
            let (Some(at), None) = (same.next(), same.next()) else { continue };
            let outermost = repeats.above(place).first().copied().unwrap_or(place);
            let whole = hists.weight(&hists.rows[outermost]) as f64;
            let of_callee = hists.weight(&hists.rows[at]) as f64;
            let is_all = weight as f64 >= NEARLY_ALL * whole && of_callee * NEARLY_ALL <= whole;
            let own = percent(row.self_weight(hists.shares), hists.total_weight());
            if is_all && own < OWN_PERCENT {
                repeats.link(place, at);
            }
        }
        repeats
    }

    /// Recursion would make circles, in which no row would be left.
    fn link(&mut self, caller: usize, callee: usize) {
        let innermost = std::iter::successors(Some(callee), |at| self.callee[*at]).last();
        if innermost != Some(caller) && !self.caller.contains_key(&callee) {
            self.callee[caller] = Some(callee);
            self.caller.insert(callee, caller);
        }
    }

    /// True for a row that another one shows.
    pub fn is_repeated(&self, row: usize) -> bool {
        self.callee.get(row).is_some_and(Option::is_some)
    }

    /// The rows that a row shows besides itself, the outermost first.
    pub fn above(&self, row: usize) -> Vec<usize> {
        let callers = std::iter::successors(self.caller.get(&row), |at| self.caller.get(at));
        let mut above: Vec<usize> = callers.copied().collect();
        above.reverse();
        above
    }
}

/// The function that a row calls most, and the weight of its calls.
fn main_callee(row: &HistRow) -> Option<((FunctionId, bool), u64)> {
    let chains = &row.chains;
    let own = (row.place.function?, row.place.inlined);
    let name = |entry: &super::ChainEntry| (entry.function, entry.inlined);
    let mut roots = chains.roots.iter().map(|root| &chains.nodes[*root as usize]);
    let root = roots.find(|root| root.entries.first().map(name) == Some(own))?;
    match root.entries.get(1) {
        Some(entry) => Some((name(entry), root.cumulative())),
        None => {
            let heaviest = &chains.nodes[*root.children.first()? as usize];
            Some((name(heaviest.entries.first()?), heaviest.cumulative()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use crate::hists::hists;
    use whit_profile::model::{EventId, Profile};

    const APP: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: None };

    fn of(samples: &[(&[&str], u64)]) -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        for (names, weight) in samples {
            let chain: Vec<_> =
                names.iter().map(|name| at(name, "app", u64::from(name.as_bytes()[0]))).collect();
            builder.sample(event, APP, &chain, *weight);
        }
        builder.profile
    }

    /// Each shown row with the rows that it stands for.
    fn shown(profile: &Profile, options: &HistsOptions) -> Vec<String> {
        let hists = hists(profile, EventId(0), options);
        let repeats = Repeats::new(&hists, options);
        let name = |row: usize| {
            let function = hists.rows[row].place.function.expect("each row has a function");
            profile.functions[function.index()].name.to_string()
        };
        let rows = (0..hists.rows.len()).filter(|row| !repeats.is_repeated(*row));
        rows.map(|row| {
            let names = repeats.above(row).into_iter().chain([row]).map(name);
            names.collect::<Vec<_>>().join(">")
        })
        .collect()
    }

    #[test]
    fn a_chain_with_one_share_is_one_row() {
        let options = HistsOptions::default();
        let profile =
            of(&[(&["_", "main", "run", "sort"], 60), (&["_", "main", "run", "find"], 40)]);
        assert_eq!(shown(&profile, &options), ["_>main>run", "sort", "find"]);
    }

    #[test]
    fn time_of_its_own_keeps_a_row_apart() {
        let options = HistsOptions::default();
        let profile = of(&[(&["_", "main", "run"], 60), (&["_", "main"], 40)]);
        assert_eq!(shown(&profile, &options), ["_>main", "run"]);
        let profile = of(&[(&["_", "main", "run"], 9_999), (&["_", "main"], 1)]);
        assert_eq!(shown(&profile, &options), ["_>main>run"]);
        let profile = of(&[(&["_", "main", "run"], 999), (&["_", "main"], 1)]);
        assert_eq!(shown(&profile, &options), ["_>main", "run"], "0.1 % is worth a row");
    }

    #[test]
    fn small_parts_add_up() {
        let options = HistsOptions::default();
        let all: &[&str] = &["a", "b", "c", "d", "e"];
        // Each function has 1 % less than its caller: 2 % less than the outermost is too much.
        let other = |number: usize| [&all[..number], &["x"]].concat();
        let others: Vec<Vec<&str>> = (1..5).map(other).collect();
        let mut samples: Vec<(&[&str], u64)> = others.iter().map(|it| (&it[..], 10)).collect();
        samples.push((all, 960));
        assert_eq!(shown(&of(&samples), &options), ["a>b>c", "d>e", "x"]);
    }

    #[test]
    fn a_callee_of_several_callers_is_a_row_of_its_own() {
        let options = HistsOptions::default();
        let profile = of(&[(&["a", "copy"], 50), (&["b", "copy"], 50)]);
        assert_eq!(shown(&profile, &options).len(), 3);
    }

    #[test]
    fn recursion_leaves_a_row() {
        let options = HistsOptions::default();
        let profile = of(&[(&["a", "b", "a", "b"], 10), (&["a", "b", "a"], 10)]);
        let rows = shown(&profile, &options);
        assert!(!rows.is_empty() && rows.join(">").matches('a').count() == 1, "{rows:?}");
    }

    #[test]
    fn chains_from_the_callee_and_rows_without_callees_repeat_none() {
        let profile = of(&[(&["_", "main", "run"], 60)]);
        let mut options = HistsOptions::default();
        options.chains.order = Some(ChainOrder::Callee);
        assert_eq!(shown(&profile, &options).len(), 3);
        let options = HistsOptions { children: false, ..HistsOptions::default() };
        assert_eq!(shown(&profile, &options), ["run"]);
    }
}
