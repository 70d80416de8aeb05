//! The order of rows.
//!
//! perf compares the children weight, then, for rows of one thread, the length of the chains
//! (callers above callees), then self weight, command, binary and symbol. Between rows of
//! different threads the chain length does not count, which is no total order, and perf's result
//! hangs on the order of insertion. Here equally heavy rows stand by command and thread first, so
//! that within a thread the order is perf's and the whole is the same on every run.

use std::cmp::Ordering;

use whit_perfdata::sample::BranchEntry;
use whit_profile::Facets;
use whit_profile::model::{DsoKind, Profile};

use super::code_location::SourceKey;
use super::context::without_digits;
use super::data_source::bits;
use super::facet_key::CACHE_LINE_BYTES;
use super::field::Field;
use super::options::ChainOrder;
use super::sort_key::SortKey;
use super::{HistRow, WeightColumns};

pub(super) struct RowOrder<'a> {
    pub(super) keys: &'a [SortKey],
    pub(super) shares: WeightColumns,
    /// Criteria in front of perf's default order; may be empty.
    pub(super) fields: &'a [Field],
    pub(super) children: bool,
    /// True where chains are drawn, so that their length breaks ties.
    pub(super) by_depth: bool,
    pub(super) order: ChainOrder,
    /// [`HistsOptions::group_sort`](super::HistsOptions::group_sort).
    pub(super) group_sort: usize,
}

/// Sorts rows, heaviest first. Rows are large: their places are sorted, and each row moves once.
pub(super) fn sort(profile: &Profile, order: &RowOrder<'_>, rows: &mut Vec<HistRow>) {
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by(|a, b| order.compare(profile, &rows[*a], &rows[*b]));
    let mut unsorted: Vec<_> = std::mem::take(rows).into_iter().map(Some).collect();
    rows.reserve_exact(places.len());
    rows.extend(places.into_iter().filter_map(|place| unsorted[place].take()));
}

impl RowOrder<'_> {
    pub(super) fn compare(&self, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
        let mut ordering = self.by_fields(profile, a, b);
        if ordering.is_ne() {
            return ordering;
        }
        if self.children {
            let weight = |row: &HistRow| row.children_weight(self.shares);
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
            .then_with(|| {
                self.by_group(a, b, |row| row.self_weight(self.shares), |of| of.self_period)
            })
            .then_with(|| self.by_keys(profile, a, b))
            .then_with(|| same_name(a, b))
    }

    fn by_fields(&self, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
        let by_field = |field: &Field| match field {
            Field::Children => b.children_period.cmp(&a.children_period),
            Field::Overhead | Field::Period => {
                self.by_group(a, b, |row| row.self_period, |of| of.self_period)
            }
            Field::ChildrenLatency => b.children_latency.cmp(&a.children_latency),
            Field::Latency => b.self_latency.cmp(&a.self_latency),
            Field::KernelOverhead => {
                self.by_group(a, b, |row| row.kernel_period, |of| of.kernel_period)
            }
            Field::UserOverhead => user_period(b).cmp(&user_period(a)),
            Field::Samples => self.by_group(a, b, |row| row.self_samples, |of| of.self_samples),
            Field::Key(key) => by_key(*key, profile, a, b),
        };
        self.fields.iter().map(by_field).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn by_keys(&self, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
        let mut orders = self.keys.iter().map(|key| by_key(*key, profile, a, b));
        orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// An order in which only rows that the keys do not tell apart are equal.
pub(super) fn under_keys(
    keys: &[SortKey],
    profile: &Profile,
    a: &HistRow,
    b: &HistRow,
) -> Ordering {
    let by_keys = keys.iter().map(|key| by_key(*key, profile, a, b));
    let order = by_keys.fold(Ordering::Equal, Ordering::then);
    if keys.contains(&SortKey::Symbol) { order.then_with(|| same_name(a, b)) } else { order }
}

fn comm<'p>(profile: &'p Profile, row: &HistRow) -> &'p str {
    row.context.comm.map_or("", |c| profile.comms[c.index()].exact())
}

fn by_key(key: SortKey, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
    match key {
        SortKey::Pid | SortKey::Tid => a.context.tid.cmp(&b.context.tid),
        SortKey::Tgid => a.context.pid.cmp(&b.context.pid),
        SortKey::Comm => comm(profile, a).cmp(comm(profile, b)),
        SortKey::CommNoDigit => {
            let name = |row: &HistRow| {
                let comm = row.context.comm_no_digit?;
                Some(without_digits(profile.comms[comm.index()].exact()))
            };
            name(a).cmp(&name(b))
        }
        SortKey::Cpu => a.context.cpu.cmp(&b.context.cpu),
        SortKey::Dso => dso(profile, a).cmp(&dso(profile, b)),
        SortKey::Symbol => symbol(profile, a).cmp(&symbol(profile, b)),
        SortKey::SrcLine | SortKey::SrcFile => source(profile, a).cmp(&source(profile, b)),
        SortKey::Socket => a.context.socket.cmp(&b.context.socket),
        // perf has the heavier ones first.
        SortKey::LocalWeight | SortKey::Weight => b.context.weight.cmp(&a.context.weight),
        SortKey::Parent => {
            let name = |row: &HistRow| {
                row.context.parent.map(|f| profile.functions[f.index()].name.exact())
            };
            name(a).cmp(&name(b))
        }
        SortKey::SymbolSize => a.place.symbol_bytes.cmp(&b.place.symbol_bytes),
        SortKey::DsoSize => a.place.dso_bytes.cmp(&b.place.dso_bytes),
        SortKey::Time => a.context.time.cmp(&b.context.time),
        SortKey::Parallelism => a.context.parallelism.cmp(&b.context.parallelism),
        SortKey::Cgroup | SortKey::Container | SortKey::Pod | SortKey::Unit => {
            let name = |row: &HistRow| row.context.cgroup_name(profile, key);
            name(a).cmp(&name(b))
        }
        _ => by_facet(key, profile, a, b),
    }
}

/// Numbers of latency and cycles stand the greatest first, as in perf.
fn by_facet(key: SortKey, profile: &Profile, a: &HistRow, b: &HistRow) -> Ordering {
    let facets = |row: &HistRow| {
        let facets = row.context.facets.and_then(|id| profile.facets.get(id.index()));
        facets.copied().unwrap_or_default()
    };
    let (a, b) = (facets(a), facets(b));
    let [end_a, end_b] = [a, b].map(|facets| End::of(profile, &facets, key));
    let flags = |facets: &Facets| facets.branch.map_or(0, |branch| branch.flags);
    let data_dso = |facets: &Facets| {
        facets
            .data
            .and_then(|data| data.dso)
            .map(|dso| profile.dsos[dso.index()].short_name.exact())
    };
    let text = |facets: &Facets| facets.trace.map(|text| profile.texts[text.index()].exact());
    match key {
        SortKey::LocalInsLat | SortKey::InsLat => b.instruction_latency.cmp(&a.instruction_latency),
        SortKey::Transaction => b.transaction.cmp(&a.transaction),
        SortKey::Cycles => {
            let cycles = |facets: &Facets| flags(facets) & BranchEntry::CYCLES;
            cycles(&b).cmp(&cycles(&a))
        }
        SortKey::Mispredict => by_bits(flags(&a), flags(&b), BranchEntry::PREDICTION),
        SortKey::InTx => by_bits(flags(&a), flags(&b), BranchEntry::IN_TRANSACTION),
        SortKey::Abort => by_bits(flags(&a), flags(&b), BranchEntry::ABORT),
        SortKey::Trace => text(&a).cmp(&text(&b)),
        SortKey::Addr => a.address.cmp(&b.address),
        SortKey::SymbolDaddr | SortKey::DcacheLine => {
            let unit = if key == SortKey::DcacheLine { CACHE_LINE_BYTES } else { 1 };
            let address = |facets: &Facets| facets.data.map(|data| data.address / unit);
            address(&a).cmp(&address(&b))
        }
        SortKey::DsoDaddr => data_dso(&a).cmp(&data_dso(&b)),
        SortKey::PhysDaddr => a.phys_addr.cmp(&b.phys_addr),
        SortKey::DataPageSize => a.data_page_size_bytes.cmp(&b.data_page_size_bytes),
        SortKey::CodePageSize => a.code_page_size_bytes.cmp(&b.code_page_size_bytes),
        SortKey::Locked | SortKey::Tlb | SortKey::Mem | SortKey::Snoop | SortKey::Blocked => {
            let source = |facets: &Facets| facets.data_src.unwrap_or(0);
            by_bits(source(&a), source(&b), bits_of(key))
        }
        _ => end_a.cmp(&end_b),
    }
}

fn by_bits(a: u64, b: u64, bits: u64) -> Ordering {
    (a & bits).cmp(&(b & bits))
}

/// The bits of the source of data that a key shows.
fn bits_of(key: SortKey) -> u64 {
    match key {
        SortKey::Locked => bits::LOCK,
        SortKey::Tlb => bits::TLB,
        SortKey::Snoop => bits::SNOOPS,
        SortKey::Blocked => bits::BLOCKED,
        _ => bits::LEVELS,
    }
}

/// One end of a branch, as far as a key needs it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum End<'p> {
    Nothing,
    Name(&'p str),
    Line(&'p str, u32),
}

impl<'p> End<'p> {
    fn of(profile: &'p Profile, facets: &Facets, key: SortKey) -> End<'p> {
        let Some(branch) = facets.branch else { return End::Nothing };
        let end = match key {
            SortKey::DsoFrom | SortKey::SymbolFrom | SortKey::SrcLineFrom => branch.from,
            _ => branch.to,
        };
        let Some(frame) = end.and_then(|frame| profile.frames.get(frame.index())) else {
            return End::Nothing;
        };
        let function = &profile.functions[frame.function.index()];
        match (key, frame.source) {
            (SortKey::DsoFrom | SortKey::DsoTo, _) => {
                End::Name(profile.dsos[function.dso.index()].short_name.exact())
            }
            (SortKey::SrcLineFrom | SortKey::SrcLineTo, Some((file, line))) => {
                End::Line(profile.files[file.index()].exact(), line)
            }
            _ => End::Name(function.name.exact()),
        }
    }
}

fn user_period(row: &HistRow) -> u64 {
    row.self_period.saturating_sub(row.kernel_period)
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
