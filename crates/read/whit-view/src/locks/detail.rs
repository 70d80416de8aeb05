//! The lines below a row: the parts of its waits by another property.

use super::keys::WaiterKey;
use super::table::Part;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::io::{self, Write};
use whit_profile::model::{CommId, ThreadId};

/// Names and chains of one kind that are printed below a row.
const MAX_PARTS: usize = 3;
/// All but the first need this share of the row, in percent.
const MIN_PERCENT: f64 = 0.5;

/// The blank in front of lines below a row.
pub(super) const INDENT: &str = "           ";

fn percent(total_ns: u64, part: &Part) -> Option<f64> {
    (total_ns > 0).then(|| 100.0 * part.total_ns as f64 / total_ns as f64)
}

/// The share of a row; a dash where all its waits are uncertain.
pub(super) fn share(total_ns: u64, part: &Part) -> String {
    percent(total_ns, part)
        .map_or_else(|| format!("{:>7}", "-"), |percent| format!("{percent:>6.1}%"))
}

/// How many of the longest parts are printed.
pub(super) fn shown<'a>(total_ns: u64, parts: impl Iterator<Item = &'a Part>) -> usize {
    let is_large =
        |part: &&Part| percent(total_ns, part).is_none_or(|percent| percent >= MIN_PERCENT);
    parts.take(MAX_PARTS).take_while(is_large).count().max(1)
}

/// The longest parts of a row.
pub(super) fn parts<K>(
    out: &mut impl Write,
    total_ns: u64,
    title: &str,
    parts: &[(K, Part)],
    name: impl Fn(&K) -> String,
) -> io::Result<()> {
    let shown = shown(total_ns, parts.iter().map(|(_, part)| part));
    for (key, part) in &parts[..shown] {
        writeln!(out, "{INDENT}{title:<6} {}  {}", share(total_ns, part), name(key))?;
    }
    more(out, parts.len() - shown, title)
}

pub(super) fn more(out: &mut impl Write, count: usize, title: &str) -> io::Result<()> {
    match count {
        0 => Ok(()),
        more => writeln!(out, "{INDENT}{title:<6} {:>7}  and {more} more", ""),
    }
}

/// Waiters with one command name together.
pub(super) fn by_name(waiters: &[(WaiterKey, Part)]) -> Vec<((CommId, Vec<ThreadId>), Part)> {
    let mut names: Vec<((CommId, Vec<ThreadId>), Part)> = Vec::new();
    let mut known: BTreeMap<CommId, usize> = BTreeMap::new();
    for (waiter, part) in waiters {
        let at = *known.entry(waiter.comm).or_insert_with(|| {
            names.push(((waiter.comm, Vec::new()), Part::default()));
            names.len() - 1
        });
        names[at].0.1.push(waiter.thread);
        names[at].1.merge(part);
    }
    names.sort_by_key(|(_, part)| std::cmp::Reverse(part.total_ns));
    for ((_, threads), _) in &mut names {
        let mut seen = FxHashSet::default();
        threads.retain(|thread| seen.insert(*thread));
    }
    names
}
