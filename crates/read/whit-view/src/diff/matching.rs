//! Which function after is which function before.

use std::collections::{BTreeMap, BTreeSet};

use super::run::FunctionName;
use super::side::Side;
use whit_types::OutsideText;

/// How two functions were found to be the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Match {
    /// By the names of function and binary; for a function that goes by its address, in the same build.
    Name,
    /// By an address in the same build: one side has no symbols.
    Address,
    /// By a similar name that no other function has: a guess.
    Similar,
    /// No function of the other side.
    Alone,
}

/// A function on each side, or on one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'r> {
    pub(super) before: Option<&'r FunctionName>,
    pub(super) after: Option<&'r FunctionName>,
    pub(super) by: Match,
}

/// Pairs all functions of two sides, each with one at most.
pub(super) fn pairs<'r>(before: &Side<'r>, after: &Side<'r>) -> Vec<Pair<'r>> {
    let mut matching = Matching {
        before: before.functions.keys().copied().collect(),
        after: after.functions.keys().copied().collect(),
        pairs: Vec::new(),
    };
    matching.by_name(before, after);
    matching.by_address(before, after);
    // A similar name in the same binary, then the same name in a binary of another name.
    let named = |name: &FunctionName| {
        let mut of_sides = [before, after].into_iter().filter_map(|side| side.functions.get(name));
        of_sides.all(|function| !function.of_run.is_address)
    };
    let function = |name: &FunctionName| name.function.exact().to_owned();
    let binary = |name: &FunctionName| binary_stem(name.binary.exact());
    matching.by_key(|name| {
        named(name).then(|| [stem(name.function.exact()), name.binary.exact().to_owned()])
    });
    matching.by_key(|name| named(name).then(|| [function(name), binary(name)]));
    // Names that a side has many of, as `main`, mean nothing in a binary of another name, unless they are called alike.
    let common = [before, after].map(common_names);
    let is_common = |name: &FunctionName| common.iter().any(|it| it.contains(&name.function));
    matching
        .by_key(|name| (named(name) && !is_common(name)).then(|| [function(name), String::new()]));
    let caller = |name: &FunctionName| {
        let mut of_sides = [before, after].into_iter().filter_map(|side| side.functions.get(name));
        of_sides.find_map(|function| function.of_run.caller.as_ref())
    };
    matching.by_key(|name| {
        let caller = caller(name).filter(|caller| named(name) && !is_common(caller))?;
        Some([function(name), function(caller)])
    });
    let Matching { before, after, mut pairs } = matching;
    let alone = |before, after| Pair { before, after, by: Match::Alone };
    pairs.extend(before.into_iter().map(|name| alone(Some(name), None)));
    pairs.extend(after.into_iter().map(|name| alone(None, Some(name))));
    pairs
}

/// Functions without a partner, and pairs.
struct Matching<'r> {
    before: BTreeSet<&'r FunctionName>,
    after: BTreeSet<&'r FunctionName>,
    pairs: Vec<Pair<'r>>,
}

impl<'r> Matching<'r> {
    fn pair(&mut self, before: &'r FunctionName, after: &'r FunctionName, by: Match) {
        self.before.remove(before);
        self.after.remove(after);
        self.pairs.push(Pair { before: Some(before), after: Some(after), by });
    }

    fn by_name(&mut self, before: &Side<'r>, after: &Side<'r>) {
        for name in self.before.clone() {
            let (Some(one), Some((other_name, other))) =
                (before.functions.get(name), after.functions.get_key_value(name))
            else {
                continue;
            };
            let is_same_build = one.of_run.build_id == other.of_run.build_id;
            if !one.of_run.is_address || is_same_build {
                self.pair(name, other_name, Match::Name);
            }
        }
    }

    fn by_address(&mut self, before: &Side<'r>, after: &Side<'r>) {
        let mut by_address = BTreeMap::new();
        for name in &self.after {
            let function = after.functions[name].of_run;
            for address in &function.addresses {
                by_address.insert((function.build_id.as_deref(), *address), *name);
            }
        }
        for name in self.before.clone() {
            let function = before.functions[name].of_run;
            let Some(build_id) = function.build_id.as_deref() else { continue };
            let mut found = function.addresses.iter();
            let found = found.find_map(|address| by_address.get(&(Some(build_id), *address)));
            if let Some(other) = found.copied().filter(|other| self.after.contains(other)) {
                self.pair(name, other, Match::Address);
            }
        }
    }

    /// Pairs those with a key that no other function of their side has.
    fn by_key(&mut self, key: impl Fn(&FunctionName) -> Option<[String; 2]>) {
        let unique = |names: &BTreeSet<&'r FunctionName>| {
            let mut by_key: BTreeMap<_, Option<&'r FunctionName>> = BTreeMap::new();
            for name in names {
                if let Some(key) = key(name) {
                    by_key.entry(key).and_modify(|one| *one = None).or_insert(Some(name));
                }
            }
            by_key
        };
        let after = unique(&self.after);
        for (key, before) in unique(&self.before) {
            if let (Some(before), Some(Some(after))) = (before, after.get(&key)) {
                self.pair(before, after, Match::Similar);
            }
        }
    }
}

/// Names that several binaries of a side have a function of.
fn common_names<'r>(side: &Side<'r>) -> BTreeSet<&'r OutsideText> {
    let (mut seen, mut common) = (BTreeSet::new(), BTreeSet::new());
    for name in side.functions.keys().copied() {
        if !seen.insert(&name.function) {
            common.insert(&name.function);
        }
    }
    common
}

/// Digits of the hash that cargo adds to names.
const HASH_DIGITS: usize = 16;

/// The name of a binary without the hash of its build.
fn binary_stem(name: &str) -> String {
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    match name.rsplit_once('-') {
        Some((before, hash))
            if hash.len() == HASH_DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit()) =>
        {
            before.to_owned()
        }
        _ => name.to_owned(),
    }
}

/// Suffixes of functions that a compiler made out of others.
const CLONES: [&str; 6] = [".constprop.", ".isra.", ".part.", ".cold", ".llvm.", ".lto_priv."];

/// The name without anything that changes from build to build: arguments of templates and generics, suffixes of
/// copies, and hashes.
fn stem(name: &str) -> String {
    let end = CLONES.iter().filter_map(|mark| name.find(mark)).min().unwrap_or(name.len());
    let name = &name[..end];
    let name = match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            before
        }
        _ => name,
    };
    let mut depth = 0usize;
    let mut stem = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => stem.push(character),
            _ => {}
        }
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::{binary_stem, stem};

    #[test]
    fn stems_lack_parts_that_change_from_build_to_build() {
        assert_eq!(stem("parse.constprop.0.isra.1"), "parse");
        assert_eq!(stem("core::run::h0123456789abcdef"), "core::run");
        assert_eq!(stem("Pipeline<31>::stage"), "Pipeline::stage");
        assert_eq!(stem("a::hash"), "a::hash");
        assert_eq!(stem("operator>"), "operator>");
    }

    #[test]
    fn stems_of_binaries_lack_hashes() {
        assert_eq!(binary_stem("whole_program-86e1c25ec833caa6"), "whole_program");
        assert_eq!(binary_stem("app (deleted)"), "app");
        assert_eq!(binary_stem("libssl-1.so"), "libssl-1.so");
    }
}
