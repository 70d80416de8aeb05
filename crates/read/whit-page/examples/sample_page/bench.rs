//! A system-wide recording for the page's benchmark: 10^6 samples of 64 CPUs.

use whit_profile::model::{FrameId, NodeId, Profile, SingleSample, Singles, ThreadId};
use whit_types::{CpuId, TimestampNs};

use crate::builder::{Builder, Random};

const SAMPLES: u64 = 1_000_000;
const CPUS: u64 = 64;
/// 64 CPUs at 99 Hz take so long for 10^6 samples.
const SPAN_NS: u64 = 158_000_000_000;
const PROCESSES: i32 = 40;
const THREADS_EACH: i32 = 10;
/// Stacks that a process has; light ones are rare.
const STACKS_EACH: u64 = 400;
const FUNCTIONS: u64 = 6_000;
const PERIOD_NS: u64 = 10_101_010;

/// The profile: 400 threads in 40 processes, 16,000 stacks of 10 to 50 frames.
pub(crate) fn profile() -> Profile {
    let mut builder = Builder::default();
    let mut random = Random(23);
    let event = builder.event("cpu-clock");
    let frames: Vec<FrameId> = (0..FUNCTIONS)
        .map(|i| {
            let tag = ["u", "u", "i", "k", "c"][(i % 5) as usize];
            let unit = i % 60;
            builder.frame(&format!(
                "{tag}|app::unit{unit}::Handler<app::Request, {i}>::step_{i}(int, char const*)|unit{unit}.cc|{i}"
            ))
        })
        .collect();
    let mut threads: Vec<ThreadId> = Vec::new();
    let mut stacks: Vec<Vec<NodeId>> = Vec::new();
    for process in 0..PROCESSES {
        for thread in 0..THREADS_EACH {
            let (pid, tid) = (1_000 + process * 100, 1_000 + process * 100 + thread);
            threads.push(builder.thread(pid, tid, &format!("service-{process}")));
        }
        let own = (0..STACKS_EACH).map(|_| stack(&mut builder, &mut random, &frames, process));
        stacks.push(own.collect());
    }
    let mut samples = Vec::new();
    for number in 0..SAMPLES {
        let process = random.below(PROCESSES as u64).min(random.below(PROCESSES as u64)) as usize;
        let thread =
            threads[process * THREADS_EACH as usize + random.below(THREADS_EACH as u64) as usize];
        let skewed =
            random.below(STACKS_EACH).min(random.below(STACKS_EACH)).min(random.below(STACKS_EACH));
        let row = builder.add(event, thread, stacks[process][skewed as usize], 1, PERIOD_NS);
        let time = TimestampNs(5_000_000_000 + SPAN_NS / SAMPLES * number);
        let cpu = Some(CpuId((number % CPUS) as u32));
        samples.push(SingleSample { time, row: row as u32, cpu, period: PERIOD_NS });
    }
    builder.profile.singles = Some(Singles { samples, ..Singles::default() });
    builder.profile.recording.path = "bench.data".into();
    builder.profile.recording.has_callchains = true;
    builder.profile
}

fn stack(builder: &mut Builder, random: &mut Random, frames: &[FrameId], process: i32) -> NodeId {
    let mut node = NodeId::NONE;
    for depth in 0..10 + random.below(40) {
        // Few choices near the root, more further in.
        let choices = 2 + depth;
        let skewed = random.below(choices).min(random.below(choices));
        let place = process as u64 * 131 + depth * 97 + skewed * 31;
        node = builder.node(node, frames[(place % FUNCTIONS) as usize]);
    }
    node
}
