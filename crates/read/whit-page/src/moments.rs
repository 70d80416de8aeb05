//! When samples were taken: columns that let a range of time drive every view of the page.
//!
//! An entry is a bucket of time, a row of the page, a CPU and a weight. Entries stand by time and row, so that
//! differences are small. The columns follow each other as LEB128 numbers in one zlib stream in base64, written as
//! they are made; `web/src/moments.js` reads them.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use whit_profile::model::{NodeId, Profile, SampleRow, Singles};
use whit_profile::switches::Switches;
use whit_types::TimestampNs;

use super::columns::{differences, push_varint};
use super::merge::{NO_NODE, PageRow, cgroup_of};
use super::tables::Tables;

/// Buckets that the recorded time is parted into at first.
const MAX_BUCKETS: u64 = 1 << 20;
/// The same where there are more samples than entries: buckets become longer anyway.
const MAX_BUCKETS_OF_MANY: u64 = 1 << 16;
/// No bucket is shorter: time stamps of CPUs differ by as much.
const MIN_BUCKET_NS: u64 = 1_000;
/// Windows of losses that a page marks at most; beyond, neighbours are joined.
const MAX_LOSS_WINDOWS: usize = 1_000;

/// The page's own facts about its columns of time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MomentFacts {
    /// The first moment.
    #[serde(skip)]
    pub(crate) begin: TimestampNs,
    /// Entries in each column.
    count: usize,
    bucket_ns: u64,
    /// Length of a bucket before the bound on entries made buckets longer.
    wanted_bucket_ns: u64,
    max_entries: usize,
    /// Length of the stretches whose samples the reader of the recording had joined.
    slice_ns: Option<u64>,
    /// From the first to the last moment.
    span_ns: u64,
    has_cpus: bool,
    /// From and to, since the first moment.
    loss_windows: Vec<(u64, u64)>,
    /// Beginning of the time line of waits, since the first moment.
    waits_begin_ns: Option<u64>,
}

/// Samples of one row in one bucket on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) bucket: u32,
    pub(crate) row: u32,
    /// One more than the CPU's number, 0 for none.
    pub(crate) cpu: u32,
    pub(crate) samples: u64,
    pub(crate) period: u64,
}

impl Entry {
    fn key(&self) -> (u32, u32, u32) {
        (self.bucket, self.row, self.cpu)
    }
}

/// Entries in order.
#[derive(Debug)]
pub(crate) struct Entries(Vec<Entry>);

/// A moment of the profile: time, row of the page, CPU, samples, period.
pub(crate) type Moment = (u64, u32, u32, u64, u64);

/// The moments of a checked profile; `None` where it was loaded without times.
pub(crate) fn build(
    profile: &Profile,
    switches: Option<&Switches>,
    tables: &Tables<'_>,
    max_entries: usize,
) -> Option<(Entries, MomentFacts)> {
    let singles = profile.singles.as_ref()?;
    let row_of = page_rows(profile, tables);
    let ends = ends(moments(profile, singles, &row_of), switches)?;
    let span_ns = ends.1 - ends.0;
    let slice_ns = singles.slice_ns;
    let is_many = singles.samples.len() > max_entries;
    let buckets = if is_many { MAX_BUCKETS_OF_MANY } else { MAX_BUCKETS };
    let least_ns = (span_ns / buckets + 1).max(MIN_BUCKET_NS);
    let wanted_bucket_ns = slice_ns.map_or(least_ns, |slice_ns| slice_ns.max(least_ns));
    let entry = |(time, row, cpu, samples, period): Moment| {
        // The quotient is below 2^32: the span has at most 2^20 buckets.
        let bucket = ((time - ends.0) / wanted_bucket_ns) as u32;
        Entry { bucket, row, cpu, samples, period }
    };
    let entries = coalesce(moments(profile, singles, &row_of).map(entry).collect());
    let (entries, bucket_ns) = fit(entries, wanted_bucket_ns, max_entries);
    let facts = MomentFacts {
        begin: TimestampNs(ends.0),
        count: entries.len(),
        bucket_ns,
        wanted_bucket_ns,
        max_entries,
        slice_ns,
        span_ns,
        has_cpus: entries.iter().any(|entry| entry.cpu > 0),
        loss_windows: loss_windows(singles, ends),
        waits_begin_ns: switches
            .and_then(|switches| switches.span)
            .map(|(first, _)| first.0.saturating_sub(ends.0)),
    };
    Some((Entries(entries), facts))
}

/// The row of the page for each row of the profile.
pub(crate) fn page_rows(profile: &Profile, tables: &Tables<'_>) -> Vec<Option<u32>> {
    profile.rows.iter().map(|row| page_row(profile, tables, row)).collect()
}

/// The row of the page that a row of the profile went into; `None` where it had no weight.
fn page_row(profile: &Profile, tables: &Tables<'_>, row: &SampleRow) -> Option<u32> {
    let wanted = PageRow {
        event: row.event.0,
        thread: tables.thread_of[row.thread.index()],
        comm: row.comm.0,
        cgroup: cgroup_of(profile, row),
        node: if row.node == NodeId::NONE { NO_NODE } else { tables.node_of[row.node.index()] },
        samples: 0,
        period: 0,
    };
    let found = tables.rows.binary_search_by_key(&wanted.key(), PageRow::key);
    found.ok().map(|row| row as u32)
}

pub(crate) fn moments<'a>(
    profile: &'a Profile,
    singles: &'a Singles,
    row_of: &'a [Option<u32>],
) -> impl Iterator<Item = Moment> + 'a {
    let single = singles.samples.iter().filter_map(|sample| {
        let row = row_of.get(sample.row as usize).copied().flatten()?;
        let cpu = sample.cpu.map_or(0, |cpu| cpu.0.saturating_add(1));
        Some((sample.time.0, row, cpu, 1, sample.period))
    });
    let rows = if singles.slice_ns.is_some() { &profile.rows[..] } else { &[] };
    let joined = rows.iter().zip(row_of).filter_map(|(row, place)| {
        let time = profile.facets_of(row).and_then(|facets| facets.time)?;
        Some((time.0, (*place)?, 0, row.samples, row.period))
    });
    single.chain(joined)
}

/// First and last moment of samples and waits.
pub(crate) fn ends(
    moments: impl Iterator<Item = Moment>,
    switches: Option<&Switches>,
) -> Option<(u64, u64)> {
    let samples = moments.map(|moment| (moment.0, moment.0));
    let waits = switches.and_then(|switches| switches.span).map(|(first, last)| (first.0, last.0));
    samples.chain(waits).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Sorts entries, and adds up those of one bucket, row and CPU.
fn coalesce(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_unstable_by_key(Entry::key);
    entries.dedup_by(|entry, kept| {
        let is_same = entry.key() == kept.key();
        if is_same {
            kept.samples = kept.samples.saturating_add(entry.samples);
            kept.period = kept.period.saturating_add(entry.period);
        }
        is_same
    });
    entries
}

/// Doubles the buckets until no more than `max` entries are left. One bucket of all time tells no CPUs apart, and has an
/// entry for each row, whose number is bounded itself.
fn fit(mut entries: Vec<Entry>, mut bucket_ns: u64, max: usize) -> (Vec<Entry>, u64) {
    while entries.len() > max {
        let is_one = entries.last().is_none_or(|entry| entry.bucket == 0);
        if is_one && entries.iter().all(|entry| entry.cpu == 0) {
            break;
        }
        for entry in &mut entries {
            entry.bucket >>= 1;
            entry.cpu = if is_one { 0 } else { entry.cpu };
        }
        bucket_ns = bucket_ns.saturating_mul(2);
        entries = coalesce(entries);
    }
    (entries, bucket_ns)
}

fn loss_windows(singles: &Singles, (begin, end): (u64, u64)) -> Vec<(u64, u64)> {
    let cut = |time: u64| time.clamp(begin, end) - begin;
    let windows = singles.loss_windows.iter().map(|window| (cut(window.from.0), cut(window.to.0)));
    let mut windows: Vec<_> = windows.collect();
    windows.sort_unstable();
    let size = windows.len().div_ceil(MAX_LOSS_WINDOWS).max(1);
    let joined = |part: &[(u64, u64)]| {
        let both = part.iter().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        both.unwrap_or_default()
    };
    windows.chunks(size).map(joined).collect()
}

impl Entries {
    /// Writes the columns one behind the other.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut stream = ZlibEncoder::new(EncoderWriter::new(out, &STANDARD), Compression::new(6));
        let all = &self.0;
        write_column(&mut stream, differences(all.iter().map(|entry| entry.bucket)))?;
        write_column(&mut stream, differences(all.iter().map(|entry| entry.row)))?;
        write_column(&mut stream, all.iter().map(|entry| u64::from(entry.cpu)))?;
        write_column(&mut stream, all.iter().map(|entry| entry.samples))?;
        write_column(&mut stream, all.iter().map(|entry| entry.period))?;
        stream.finish()?.finish()?;
        Ok(())
    }
}

fn write_column(out: &mut impl Write, values: impl Iterator<Item = u64>) -> io::Result<()> {
    const FLUSH_BYTES: usize = 1 << 16;
    let mut bytes = Vec::with_capacity(FLUSH_BYTES + 16);
    for value in values {
        push_varint(&mut bytes, value);
        if bytes.len() >= FLUSH_BYTES {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sums(entries: &[Entry]) -> (u64, u64) {
        let add = |sum: (u64, u64), entry: &Entry| (sum.0 + entry.samples, sum.1 + entry.period);
        entries.iter().fold((0, 0), add)
    }

    proptest! {
        #[test]
        fn longer_buckets_keep_sums_order_and_bound(
            seeds in prop::collection::vec((0u32..1 << 16, 0u32..5, 0u32..3, 1u64..9), 1..200),
            max in 5usize..50,
        ) {
            let entry = |&(bucket, row, cpu, samples)| Entry { bucket, row, cpu, samples, period: 7 };
            let entries = coalesce(seeds.iter().map(entry).collect());
            let before = sums(&entries);
            let (fitted, bucket_ns) = fit(entries, 10, max);
            prop_assert!(fitted.len() <= max);
            prop_assert!(bucket_ns >= 10 && fitted.is_sorted_by_key(Entry::key));
            prop_assert_eq!(sums(&fitted), before);
        }
    }

    #[test]
    fn many_windows_of_losses_are_joined_with_their_neighbours() {
        use whit_profile::switches::LossWindow;
        use whit_types::TimestampNs;
        let window = |i: u64| LossWindow { from: TimestampNs(10 * i), to: TimestampNs(10 * i + 5) };
        let singles =
            Singles { loss_windows: (0..2_500).map(window).collect(), ..Singles::default() };
        let windows = loss_windows(&singles, (100, 20_000));
        assert!(windows.len() <= MAX_LOSS_WINDOWS);
        assert_eq!((windows[0].0, windows.last().map(|last| last.1)), (0, Some(19_900)));
    }
}
