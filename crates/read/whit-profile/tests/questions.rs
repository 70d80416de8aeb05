//! A question reads a recording no more often than it needs.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use whit_perfdata::reader::Recording;
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
