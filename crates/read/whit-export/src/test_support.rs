//! Golden recordings as contents.

use crate::content::Content;
use std::path::Path;
use whit_perfdata::reader::Recording;
use whit_profile::model::{NodeId, ThreadId};
use whit_profile::switches::{Activity, SamplesAndSwitches, SwitchOptions, TimelineSpan, Trust};
use whit_profile::{ReadOptions, Reading, Samples, SinglesWanted, has_cgroups};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_types::{CpuId, TimestampNs};

/// Hands the content of a golden recording on.
pub(crate) fn with_content<T>(name: &str, take: impl FnOnce(&Content<'_>) -> T) -> T {
    let (recording, options) = opened(name);
    let profile = Reading::open(&recording, &options).answer(Samples::default()).expect("load");
    take(&Content::new(&recording, &profile, None))
}

/// The same, with samples one by one and time lines, written by so many threads. Where waits are added, a recording
/// without switches gets a run and a wait of one thread with samples.
pub(crate) fn with_time_line<T>(
    name: &str,
    adds_waits: bool,
    threads: usize,
    take: impl FnOnce(&Content<'_>) -> T,
) -> T {
    let (recording, options) = opened(name);
    let mut samples = Samples { singles: Some(SinglesWanted::Each), ..Samples::default() };
    samples.facets.cgroup = has_cgroups(&recording);
    let switches = SwitchOptions { max_spans: 1 << 20, ..SwitchOptions::default() };
    let question = SamplesAndSwitches { samples, switches };
    let loaded = Reading::open(&recording, &options).answer(question);
    let (profile, mut switches) = loaded.expect("load");
    if !switches.sources.has_switches() {
        let threads = profile.rows.first().map(|row| row.thread).filter(|_| adds_waits);
        switches.timeline.spans = threads.into_iter().flat_map(run_and_wait).collect();
    }
    take(&Content::new(&recording, &profile, Some(&switches)).on_threads(threads))
}

fn run_and_wait(thread: ThreadId) -> [TimelineSpan; 2] {
    let from = 1_000 * u64::from(thread.0);
    [(Activity::Running, from, 400), (Activity::Waiting, from + 400, 600)].map(
        |(activity, start, duration_ns)| TimelineSpan {
            thread,
            start: TimestampNs(start),
            duration_ns,
            activity,
            cpu: Some(CpuId(thread.0 % 4)),
            node: NodeId::NONE,
            woken: None,
            parts_ns: [0; 3],
            count: 1,
            trust: Trust::Whole,
            brings: Default::default(),
        },
    )
}

fn opened(name: &str) -> (Recording, ReadOptions) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/recordings/golden");
    let recording = Recording::open(&golden.join(name).join("recording.data")).expect("open");
    let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
    (recording, ReadOptions::new(2, SymbolizerConfig::new(dirs)))
}
