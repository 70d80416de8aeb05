//! Callers and callees of functions, one step away, with the handles to go on from there.
//!
//! Each sample counts once for each distinct neighbour, however often recursion brings the pair up. So shares of
//! callers may add up to more than the function's.

use crate::brief::Function;
use crate::hists::{names_function, percent};
use crate::units::counted;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;
use std::io::{self, Write};
use whit_profile::model::{EventId, FunctionId, NodeId, Profile};
use whit_types::OutsideText;

/// Version of the JSON form.
pub const VERSION: u32 = 1;

/// The side of a function that is listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Functions that call it.
    Callers,
    /// Functions that it calls.
    Callees,
}

impl Side {
    /// As it is in output.
    pub fn name(self) -> &'static str {
        match self {
            Side::Callers => "callers",
            Side::Callees => "callees",
        }
    }
}

/// `whit report --callers FUNCTION --json`, and `--callees`: one object. Members may be added; `version` grows when one
/// changes its meaning or goes away.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Relatives {
    /// `whit-relatives`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// `callers` or `callees`.
    side: &'static str,
    events: Vec<OfEvent>,
}

/// The functions with samples of one event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfEvent {
    name: String,
    samples: u64,
    functions: Vec<OfFunction>,
}

/// A function with its callers or callees.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfFunction {
    #[serde(flatten)]
    function: Function,
    /// Share of the event with the function anywhere in the call chain.
    total_percent: f64,
    total_samples: u64,
    /// Share of samples in the function itself.
    self_percent: f64,
    /// The heaviest first.
    relatives: Vec<Relative>,
}

/// A caller or callee.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Relative {
    /// `null` where the function is the outermost one of the chain, or itself was executing.
    #[serde(flatten)]
    function: Option<Function>,
    /// Share of the event.
    percent: f64,
    samples: u64,
}

/// Period and samples.
type Sum = (u64, u64);

#[derive(Default)]
struct Sums {
    total: Sum,
    own: Sum,
    relatives: FxHashMap<Option<FunctionId>, Sum>,
}

impl Relatives {
    /// The neighbours of all functions that `wanted` names, by name or handle.
    pub fn new(profile: &Profile, side: Side, wanted: &str, inline: bool) -> Relatives {
        let list = [wanted.to_owned()];
        let ids = (0..profile.functions.len() as u32).map(FunctionId);
        let is_wanted =
            |id: &FunctionId| names_function(&list, profile, &profile.functions[id.index()]);
        let chosen: FxHashSet<_> = ids.filter(is_wanted).collect();
        let events = (0..profile.events.len() as u32).map(EventId);
        let events = events.filter(|event| profile.events[event.index()].samples > 0);
        Relatives {
            format: "whit-relatives",
            version: VERSION,
            side: side.name(),
            events: events.map(|event| of_event(profile, event, side, &chosen, inline)).collect(),
        }
    }

    /// True where no function of the name has samples.
    pub fn is_empty(&self) -> bool {
        self.events.iter().all(|event| event.functions.is_empty())
    }
}

fn of_event(
    profile: &Profile,
    event: EventId,
    side: Side,
    chosen: &FxHashSet<FunctionId>,
    inline: bool,
) -> OfEvent {
    let mut sums: FxHashMap<FunctionId, Sums> = FxHashMap::default();
    let mut chain = Vec::new();
    for row in profile.rows.iter().filter(|row| row.event == event) {
        functions_of(profile, row.node, inline, &mut chain);
        let add = |sum: &mut Sum| *sum = (sum.0.saturating_add(row.period), sum.1 + row.samples);
        let mut seen = FxHashSet::default();
        for (at, function) in chain.iter().enumerate().filter(|(_, it)| chosen.contains(it)) {
            let sums = sums.entry(*function).or_default();
            // Innermost first.
            let relative = match side {
                Side::Callers => chain.get(at + 1).copied(),
                Side::Callees => at.checked_sub(1).map(|inner| chain[inner]),
            };
            if seen.insert((*function, None)) {
                add(&mut sums.total);
            }
            if at == 0 {
                add(&mut sums.own);
            }
            if seen.insert((*function, Some(relative))) {
                add(sums.relatives.entry(relative).or_default());
            }
        }
    }
    let info = &profile.events[event.index()];
    let mut functions: Vec<_> = sums.into_iter().collect();
    let name = |id: &FunctionId| profile.functions[id.index()].name.exact();
    sort(&mut functions, |it| it.1.total, |it| name(&it.0));
    let share = |sum: Sum| percent(sum.0, info.period);
    let functions = functions.into_iter().map(|(id, sums)| {
        let mut relatives: Vec<_> = sums.relatives.into_iter().collect();
        sort(&mut relatives, |it| it.1, |it| it.0.as_ref().map(name));
        OfFunction {
            function: Function::of(profile, id),
            total_percent: share(sums.total),
            total_samples: sums.total.1,
            self_percent: share(sums.own),
            relatives: relatives
                .into_iter()
                .map(|(id, sum)| Relative {
                    function: id.map(|id| Function::of(profile, id)),
                    percent: share(sum),
                    samples: sum.1,
                })
                .collect(),
        }
    });
    OfEvent {
        name: info.name.exact().to_owned(),
        samples: info.samples,
        functions: functions.collect(),
    }
}

/// The heaviest first; of equals the first by name.
fn sort<T, N: Ord>(list: &mut [T], weight: impl Fn(&T) -> Sum, name: impl Fn(&T) -> N) {
    list.sort_by(|a, b| {
        Reverse(weight(a)).cmp(&Reverse(weight(b))).then_with(|| name(a).cmp(&name(b)))
    });
}

/// The functions of a call chain, innermost first.
fn functions_of(profile: &Profile, node: NodeId, inline: bool, chain: &mut Vec<FunctionId>) {
    chain.clear();
    let mut at = node;
    while let Some(call) = profile.nodes.get(at.index()) {
        let frame = &profile.frames[call.frame.index()];
        if inline || !frame.inlined {
            chain.push(frame.function);
        }
        at = call.parent;
    }
}

/// Writes JSON, without a line end after it.
///
/// # Errors
/// The error of `out`.
pub fn write_json(out: &mut impl Write, relatives: &Relatives) -> io::Result<()> {
    crate::json_strings::write(out, relatives)
}

/// Writes text: a block for each event and function.
///
/// # Errors
/// The error of `out`.
pub fn write_text(out: &mut impl Write, relatives: &Relatives) -> io::Result<()> {
    for event in &relatives.events {
        for function in &event.functions {
            writeln!(
                out,
                "# {} of {}: {} of {}",
                relatives.side,
                described(&function.function),
                counted(function.total_samples, "sample"),
                OutsideText::new(&event.name)
            )?;
            writeln!(
                out,
                "# total {:.2}%, self {:.2}%",
                function.total_percent, function.self_percent
            )?;
            for relative in &function.relatives {
                let name = match (&relative.function, relatives.side) {
                    (Some(function), _) => described(function),
                    (None, "callers") => "[none: outermost of its call chain]".to_owned(),
                    (None, _) => "[none: the function itself]".to_owned(),
                };
                writeln!(out, "{:>7.2}%  {:>8}  {name}", relative.percent, relative.samples)?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// `f-… name (binary)`.
fn described(function: &Function) -> String {
    let (name, binary) = (OutsideText::new(&function.name), OutsideText::new(&function.binary));
    format!("{} {name} ({binary})", function.handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};

    fn profile() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let who = Who { comm: "app", pid: 1, tid: 1, cpu: None };
        let (main, a, b, work) =
            (at("main", "app", 1), at("a", "app", 2), at("b", "app", 3), at("work", "app", 4));
        builder.sample(event, who, &[main.clone(), a.clone(), work.clone()], 60);
        builder.sample(event, who, &[main.clone(), b.clone(), work.clone()], 30);
        // Recursion counts once.
        builder.sample(event, who, &[main, b.clone(), work.clone(), b, work], 10);
        builder.profile
    }

    fn text(side: Side, wanted: &str) -> String {
        let mut out = Vec::new();
        write_text(&mut out, &Relatives::new(&profile(), side, wanted, true)).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn list(text: &str) -> Vec<(String, String)> {
        let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        rows.map(|row| {
            let words: Vec<_> = row.split_whitespace().collect();
            (words[0].to_owned(), words[3].to_owned())
        })
        .collect()
    }

    #[test]
    fn callers_have_the_samples_that_pass_from_them() {
        let by_name = text(Side::Callers, "work");
        assert!(by_name.contains("total 100.00%, self 100.00%"), "{by_name}");
        let expected = [("60.00%", "a"), ("40.00%", "b")];
        assert_eq!(list(&by_name), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(text(Side::Callers, &whit_profile::handle::of_name("work", "app")), by_name);
        let outermost = text(Side::Callers, "main");
        assert!(outermost.contains("100.00%         3  [none: outermost"), "{outermost}");
    }

    #[test]
    fn callees_have_the_samples_that_pass_to_them() {
        let main = text(Side::Callees, "main");
        let expected = [("60.00%", "a"), ("40.00%", "b")];
        assert_eq!(list(&main), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let work = text(Side::Callees, "work");
        assert!(work.contains("100.00%         3  [none: the function itself]"), "{work}");
        assert!(work.contains("10.00%         1  f-"), "{work}");
        assert!(Relatives::new(&profile(), Side::Callees, "nobody", true).is_empty());
    }

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Relatives>("docs/schemas/relatives.json");
    }
}
