//! The order of rows.
//!
//! perf compares the children weight, then, for rows of one thread, the length of the chains
//! (callers above callees), then self weight, command, binary and symbol. Between rows of
//! different threads the chain length does not count, which is no total order, and perf's result
//! hangs on the order of insertion. Here equally heavy rows stand by command and thread first, so
//! that within a thread the order is perf's and the whole is the same on every run.

use std::cmp::Ordering;

use whit_profile::model::{DsoKind, Profile};

use super::code_location::SourceKey;
use super::options::ChainOrder;
use super::sort_key::SortKey;
use super::{HistRow, WeightColumns};

pub(super) struct RowOrder<'a> {
    pub(super) keys: &'a [SortKey],
    pub(super) columns: WeightColumns,
    pub(super) children: bool,
    /// True where chains are drawn, so that their length breaks ties.
    pub(super) by_depth: bool,
    pub(super) order: ChainOrder,
}

/// Sorts rows, heaviest first. Rows are large: their places are sorted, and each row moves once.
pub(super) fn sort(profile: &Profile, order: &RowOrder<'_>, rows: &mut Vec<HistRow>) {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by(|a, b| order.compare(profile, &rows[*a], &rows[*b]));
    let mut unsorted: Vec<_> = std::mem::take(rows).into_iter().map(Some).collect();
    rows.extend(places.into_iter().filter_map(|place| unsorted[place].take()));
}

impl RowOrder<'_> {
    fn compare(&self, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
        let mut ordering = Ordering::Equal;
        if self.children {
            let weight = |row: &HistRow| row.children_weight(self.columns);
            ordering = weight(b).cmp(&weight(a));
        }
        if self.by_depth {
            ordering = ordering
                .then_with(|| comm(profile, a).cmp(comm(profile, b)))
                .then(a.first_thread.cmp(&b.first_thread))
                .then_with(|| match self.order {
                    ChainOrder::Caller => b.max_depth.cmp(&a.max_depth),
                    ChainOrder::Callee => a.max_depth.cmp(&b.max_depth),
                });
        }
        ordering
            .then_with(|| b.self_weight(self.columns).cmp(&a.self_weight(self.columns)))
            .then_with(|| self.by_keys(profile, a, b))
            .then_with(|| same_name(a, b))
    }

    fn by_keys(&self, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
        let mut orders = self.keys.iter().map(|key| by_key(*key, profile, a, b));
        orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }
}

fn comm<'p>(profile: &'p Profile, row: &HistRow) -> &'p str {
    row.context.comm.map_or("", |c| profile.comms[c.index()].exact())
}

fn by_key(key: SortKey, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
    match key {
        SortKey::Pid | SortKey::Tid => a.context.tid.cmp(&b.context.tid),
        SortKey::Tgid => a.context.pid.cmp(&b.context.pid),
        SortKey::Comm => comm(profile, a).cmp(comm(profile, b)),
        SortKey::Cpu => a.context.cpu.cmp(&b.context.cpu),
        SortKey::Dso => dso(profile, a).cmp(&dso(profile, b)),
        SortKey::Symbol => symbol(profile, a).cmp(&symbol(profile, b)),
        SortKey::SrcLine | SortKey::SrcFile => source(profile, a).cmp(&source(profile, b)),
        SortKey::Socket => a.context.socket.cmp(&b.context.socket),
        SortKey::LocalWeight | SortKey::Weight => a.context.weight.cmp(&b.context.weight),
        SortKey::Time => a.context.time.cmp(&b.context.time),
        SortKey::Parallelism => a.context.parallelism.cmp(&b.context.parallelism),
        SortKey::Cgroup | SortKey::Container | SortKey::Pod | SortKey::Unit => {
            let name = |row: &HistRow| row.context.cgroup_name(profile, key);
            name(a).cmp(&name(b))
        }
    }
}

/// Unknown binaries stand last.
fn dso<'p>(profile: &'p Profile, row: &HistRow) -> (bool, &'p str) {
    row.place.dso.map_or((true, ""), |d| {
        let dso = &profile.dsos[d.index()];
        (dso.kind == DsoKind::Unknown, dso.short_name.exact())
    })
}

/// Addresses without a symbol stand last, by address.
fn symbol<'p>(profile: &'p Profile, row: &HistRow) -> (bool, usize, &'p str) {
    row.place.function.map_or((true, 0, ""), |f| {
        let function = &profile.functions[f.index()];
        // Hexadecimal numbers of one length order as their text does.
        let length = if function.known { 0 } else { function.name.exact().len() };
        (!function.known, length, function.name.exact())
    })
}

fn source<'p>(profile: &'p Profile, row: &HistRow) -> (&'p str, u64) {
    match row.place.source {
        SourceKey::Line(file, line) => (profile.files[file.index()].exact(), u64::from(line)),
        SourceKey::File(file) => (profile.files[file.index()].exact(), 0),
        SourceKey::Function(f) => (profile.functions[f.index()].name.exact(), 0),
        SourceKey::Address(_, address) => ("", address.0),
        SourceKey::Unused | SourceKey::NoFile => ("", 0),
    }
}

/// Rows that look alike: functions of one name in one binary.
fn same_name(a: &HistRow, b: &HistRow) -> Ordering {
    let key = |r: &HistRow| (r.place.inlined, r.place.function, r.place.dso);
    key(a).cmp(&key(b))
}
