//! Windows to push, and settings for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whit_export::{Content, Delivery};
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::{ReadOptions, Reading, Samples};
use whit_push::{Kind, Pusher, Settings, Status};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::wait::is_soon;

/// A golden recording, to be pushed as a window.
pub(crate) struct Golden {
    recording: Recording,
    pub(crate) profile: Profile,
}

impl Golden {
    pub(crate) fn load(name: &str) -> Golden {
        let golden = repository().join("tests/recordings/golden");
        let path = golden.join(name).join("recording.data");
        let recording = Recording::open(&path).expect("open a golden recording");
        let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
        let options = ReadOptions::new(2, SymbolizerConfig::new(dirs));
        let mut samples = Samples::default();
        samples.facets.cgroup = true;
        let profile = Reading::open(&recording, &options).answer(samples).expect("load it");
        Golden { recording, profile }
    }

    pub(crate) fn content(&self) -> Content<'_> {
        Content::new(&self.recording, &self.profile, None)
    }

    /// Samples and periods of the event with the most samples, by the name of the innermost function.
    pub(crate) fn sums(&self) -> BTreeMap<String, (u64, u64)> {
        let profile = &self.profile;
        let events = profile.events.iter().enumerate();
        let main = events.max_by_key(|(_, event)| event.samples).expect("an event").0;
        let mut sums = BTreeMap::new();
        for row in profile.rows.iter().filter(|row| row.event.index() == main) {
            let frame = &profile.frames[profile.nodes[row.node.index()].frame.index()];
            let name = profile.functions[frame.function.index()].name.exact().to_owned();
            let sum: &mut (u64, u64) = sums.entry(name).or_default();
            *sum = (sum.0 + row.samples, sum.1 + row.period);
        }
        sums
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The window that begins at this second.
pub(crate) fn window(second: u64) -> Delivery {
    Delivery {
        start_unix_ns: second * 1_000_000_000,
        duration_ns: 10_000_000_000,
        ..Delivery::default()
    }
}

/// A destination that tries again soon.
pub(crate) fn hasty(kind: Kind, url: &str) -> Settings {
    let mut settings = Settings::new(kind, url);
    settings.retry_first.0 = Duration::from_millis(20);
    settings.timeout.0 = Duration::from_secs(5);
    settings
}

/// Destinations with a spool of their own, and a recording to push.
pub(crate) struct Run {
    pub(crate) place: tempfile::TempDir,
    golden: Golden,
    settings: BTreeMap<String, Settings>,
    pusher: Option<Pusher>,
}

impl Run {
    pub(crate) fn start(destinations: &[(&str, Settings)]) -> Run {
        let named = destinations.iter().map(|(name, it)| ((*name).to_owned(), it.clone()));
        let mut run = Run {
            place: tempfile::tempdir().expect("make a directory"),
            golden: Golden::load("perf-containers"),
            settings: named.collect(),
            pusher: None,
        };
        run.resume();
        run
    }

    /// As after a restart, with the same spool.
    pub(crate) fn resume(&mut self) {
        let pusher = Pusher::start(&self.settings, self.place.path());
        self.pusher = Some(pusher.expect("start destinations"));
    }

    pub(crate) fn pusher(&self) -> &Pusher {
        self.pusher.as_ref().expect("it runs")
    }

    pub(crate) fn push(&self, seconds: impl IntoIterator<Item = u64>) {
        for second in seconds {
            self.pusher().accept(&self.golden.content(), &window(second));
        }
    }

    pub(crate) fn sums(&self) -> BTreeMap<String, (u64, u64)> {
        self.golden.sums()
    }

    pub(crate) fn status(&self, name: &str) -> Status {
        let all = self.pusher().status();
        all.into_iter().find(|status| status.name == name).expect("the destination")
    }

    pub(crate) fn wait(&self, name: &str, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
        let is_so = is_soon(|| is_so(&self.status(name)));
        let status = self.status(name);
        assert!(is_so, "waited in vain until {what}: {status:?}");
        status
    }

    pub(crate) fn stop(&mut self, grace: Duration) -> Vec<Status> {
        self.pusher.take().expect("it runs").stop(grace)
    }
}
