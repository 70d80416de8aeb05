//! Sums of several threads that have met different call chains.

use super::sample_sums::{Worker, in_order};
use super::{SampleSum, SampleWanted, TableSource, Tables, WantedFacts};
use crate::blocks::work::WorkQueue;
use crate::time_filter::TimeRange;
use crate::{ReadOptions, Reading};
use whit_perfdata::reader::Recording;
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::Golden;
use whit_types::TimestampNs;

const FACTS: WantedFacts =
    WantedFacts { thread: true, process: true, cgroup: true, comm: true, cpu: true };

fn source(golden: &Golden) -> TableSource {
    let dirs = DebugDirs { symfs: Some(Golden::folder().join("root")), ..DebugDirs::none() };
    let recording = Recording::open(&golden.path).expect("a golden recording");
    let options = ReadOptions::new(1, SymbolizerConfig::new(dirs));
    Reading::open(&recording, &options).answer(Tables).expect("a first pass")
}

/// The sums of samples before a moment and those of the others, merged as those of two threads.
fn in_parts(source: &TableSource, moment: TimestampNs) -> Vec<SampleSum> {
    let part = |from, to| {
        let time = Some(TimeRange { from, to });
        let wanted = SampleWanted { time, stacks: true, facts: FACTS, ..SampleWanted::default() };
        let queue = WorkQueue::within(&source.prepared.scan.plans, time);
        Worker::new(source, &wanted, &|_| true).run(&queue, &|| true).expect("a part")
    };
    let mut both = part(moment, TimestampNs(u64::MAX));
    both.merge(part(TimestampNs(0), TimestampNs(moment.0 - 1)));
    in_order(both.sums, &source.stacks.adopt_tree(&source.prepared, &both.tree, 1))
}

#[test]
fn parts_of_two_threads_are_added_up() {
    let mut with_both = 0;
    for golden in Golden::all() {
        let source = source(&golden);
        let wanted = SampleWanted { stacks: true, facts: FACTS, ..SampleWanted::default() };
        let whole = source.sample_sums(&wanted, &|_| true, &|| true).expect("sums");
        let mut times = Vec::new();
        let take = &mut |rows: &mut Vec<super::SampleEntry>| {
            times.extend(rows.iter().map(|row| row.time));
            true
        };
        source.samples(&SampleWanted::default(), take).expect("samples");
        let Some(middle) = times.get(times.len() / 2).filter(|time| time.0 > 0) else { continue };
        assert_eq!(in_parts(&source, *middle), whole, "{}", golden.name);
        with_both += usize::from(times[0] < *middle);
    }
    assert!(with_both > 10, "{with_both}");
}

#[test]
fn a_reader_that_is_not_wanted_any_more_stops() {
    let golden = &Golden::all()[0];
    let end = source(golden).sample_sums(&SampleWanted::default(), &|_| true, &|| false);
    assert!(matches!(end, Err(super::StreamEnd::Stopped)), "{end:?}");
}
