//! The edges: nothing, one sample, hostile names, more than a page holds.

use whit_profile::Facets;
use whit_profile::model::*;
use whit_profile::warning::Warning;

use crate::builder::{Builder, Random};

/// No event, no sample, no ledger.
pub(crate) fn empty() -> Profile {
    let mut builder = Builder::default();
    builder.event("cycles");
    builder.profile.recording.path = "perf.data".into();
    builder.profile
}

/// One sample with two frames, of an event without periods.
pub(crate) fn one() -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("page-faults");
    let thread = builder.thread(1, 1, "true");
    let node = builder.stack(["c|_start", "u|main"]);
    builder.add(event, thread, node, 1, 0);
    builder.profile.recording.path = "one.data".into();
    builder.profile
}

/// Names that try to leave their place: end the data block, open a comment, run a handler, look
/// like another name.
pub(crate) const HOSTILE: &[&str] = &[
    "</script><img src=x onerror=\"window.pwned = 1\">",
    "</ScRiPt ><script>window.pwned = 2</script>",
    "<!-- <script> --> ]]>",
    "\"};window.pwned = 3;//\u{2028}window.pwned = 4",
    "javascript:window.pwned=5",
    "\u{202e}gnp.exe\u{0}\u{7}",
    "{{script}} ${window.pwned = 6} &lt;b&gt;",
    "std::vector<int>::operator<<(std::vector<int> const&)",
    "__proto__",
    "constructor",
];

/// A name with markup and marks of direction in front of 10 kB of template arguments.
pub(crate) fn long_hostile_name() -> String {
    let arguments = "std::pair<int, long>, ".repeat(480);
    format!("{}\u{202e}evil\u{1b}[2J<{arguments}>", HOSTILE[0])
}

/// Every text of the profile is hostile.
pub(crate) fn hostile() -> Profile {
    let mut builder = Builder::default();
    let event = builder.event(HOSTILE[0]);
    let thread = builder.thread(7, 7, HOSTILE[1]);
    let frames: Vec<FrameId> = HOSTILE
        .iter()
        .map(|name| {
            let frame = builder.frame(&format!("u|{name}|x|1"));
            builder.profile.files[0] = HOSTILE[0].into();
            frame
        })
        .collect();
    let mut parent = NodeId::NONE;
    for (i, frame) in frames.into_iter().enumerate() {
        parent = builder.node(parent, frame);
        builder.add(event, thread, parent, 10 + i as u64, 1000);
    }
    builder.spread(1_000_000, 2, |_| (0, 1_000));
    let mut profile = builder.profile;
    profile.cgroups = vec![CgroupInfo { path: HOSTILE[0].into(), known: true }];
    profile.facets = vec![Facets { cgroup: Some(CgroupId(0)), ..Facets::default() }];
    profile.dsos[0].path = HOSTILE[0].into();
    profile.dsos[0].short_name = HOSTILE[1].into();
    profile.recording.path = (HOSTILE[0].to_owned() + HOSTILE[5]).into();
    profile.recording.hostname = HOSTILE[5].into();
    profile.recording.cmdline = HOSTILE.iter().map(|&text| text.into()).collect();
    let about = |&name: &&str| Warning::UnknownFields { tracepoint: name.into() };
    profile.warnings = HOSTILE.iter().map(about).collect();
    profile.stats.by_type = vec![(HOSTILE[0].into(), 1)];
    profile
}

/// Stacks of the large page.
const LARGE_STACKS: u64 = 16_000;
const LARGE_FUNCTIONS: u64 = 3_000;
const LARGE_THREADS: u64 = 64;

/// Some 300 000 nodes: deep random stacks that share their outer frames.
pub(crate) fn large() -> Profile {
    let mut builder = Builder::default();
    let mut random = Random(11);
    let event = builder.event("cycles");
    let threads: Vec<ThreadId> = (0..LARGE_THREADS as i32)
        .map(|i| builder.thread(100 + i / 16, 100 + i, &format!("pool-{i}")))
        .collect();
    let frames: Vec<FrameId> = (0..LARGE_FUNCTIONS)
        .map(|i| {
            let tag = ["u", "u", "i", "k", "c"][(i % 5) as usize];
            builder.frame(&format!(
                "{tag}|app::module{}::function_{i}(int, char const*)|m{}.cc|{i}",
                i % 40,
                i % 40
            ))
        })
        .collect();
    for _ in 0..LARGE_STACKS {
        let mut node = NodeId::NONE;
        for depth in 0..10 + random.below(30) {
            // Few choices near the root, more further in.
            let choices = 2 + depth.pow(2);
            let skewed = random.below(choices).min(random.below(choices));
            let frame = frames[((depth * 97 + skewed * 31) % LARGE_FUNCTIONS) as usize];
            node = builder.node(node, frame);
        }
        let samples = 1 + random.below(60);
        let thread = threads[random.below(LARGE_THREADS) as usize];
        builder.add(event, thread, node, samples, samples * 1_000_000);
    }
    builder.spread(10_000_000_000, 8, |_| (0, 1_000));
    builder.profile.recording.path = "large.data".into();
    builder.profile
}
