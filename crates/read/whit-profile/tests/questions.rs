//! A question reads a recording no more often than it needs.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use whit_perfdata::reader::Recording;
use whit_profile::switches::{SamplesAndSwitches, SwitchOptions, SwitchSums, Switches};
use whit_profile::tables::Tables;
use whit_profile::tasks::Tasks;
use whit_profile::{Question, ReadOptions, Reading, Samples};
use whit_testing::golden::Golden;

/// How often the answer reads all streams.
fn passes<Q: Question<Error: Debug>>(recording: &Recording, question: Q) -> u64 {
    let most = AtomicU64::new(0);
    let update = |done, _| _ = most.fetch_max(done, Ordering::Relaxed);
    let options = ReadOptions::without_names(1);
    let answer = Reading::open(recording, &options).with_progress(&update).answer(question);
    assert!(answer.is_ok(), "{:?}", answer.err());
    let bytes: u64 = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let read = most.into_inner();
    assert_eq!(read % bytes, 0, "{read} of {bytes} bytes");
    read / bytes
}

#[test]
fn tasks_and_tables_take_one_pass_and_samples_two() {
    let recording = Recording::open(&Golden::folder().join("perf-fp/recording.data")).unwrap();
    assert_eq!(passes(&recording, Tasks), 1);
    assert_eq!(passes(&recording, Tables), 1);
    assert_eq!(passes(&recording, Samples::default()), 2);
}

/// Rows by block add up to the rows without: a block loses a nanosecond of a wait at its end, for which no time filter has a place.
#[test]
fn blocks_of_switches_add_up_to_the_whole() {
    let path = Golden::folder().join("../waits/waits.data");
    let recording = Recording::open(&path).unwrap();
    let options = ReadOptions::without_names(2);
    let switches = |blocks: bool| {
        let switches = SwitchOptions { blocks, objects: true, ..SwitchOptions::default() };
        let question = SamplesAndSwitches { samples: Samples::default(), switches };
        Reading::open(&recording, &options).answer(question).unwrap().1
    };
    let (whole, blocks) = (switches(false), switches(true));
    assert!(whole.block_ns.is_empty() && whole.rows.iter().all(|row| row.block == 0));
    let count = blocks.block_ns.len();
    assert!((40..=50).contains(&count), "{count} blocks");
    let of_blocks: u64 = blocks.block_ns.iter().sum();
    assert!(whole.recorded_ns - of_blocks <= count as u64, "{of_blocks} of {}", whole.recorded_ns);
    assert!(blocks.rows.iter().any(|row| usize::from(row.block) + 1 == count));
    type Sum = fn(&SwitchSums) -> u64;
    let exact: [Sum; 3] = [|it| it.sync_count, |it| it.preempt_count, |it| it.new_count];
    let sum = |of: &Switches, value: Sum| of.rows.iter().map(|row| value(&row.sums)).sum::<u64>();
    for value in exact {
        assert_eq!(sum(&whole, value), sum(&blocks, value));
    }
    let times: [Sum; 3] = [
        |it| it.sync_wait_ns + it.open_blocked_ns + it.open_runnable_ns,
        |it| it.preempt_wait_ns + it.open_preempt_ns,
        |it| it.cpu_ns,
    ];
    for value in times {
        let (one, other) = (sum(&whole, value), sum(&blocks, value));
        let most = (whole.lives.len() * count) as u64;
        assert!(one > 0 && one.abs_diff(other) <= most, "{one} and {other} in blocks");
    }
}
