//! Profiles of windows of time, for receivers that keep those of many hosts.
//!
//! A file is read beside its recording; a delivery is added up with those of other windows and hosts. So it says how
//! long it covers, how densely it was sampled, and on how many CPUs. Its identity does not change from window to
//! window: receivers make a series of each one.

use crate::content::{Content, EventUnit};
use std::fmt;
use whit_profile::model::{CgroupId, EventId};
use whit_types::CgroupPath;

/// A window of time, and who sends it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// The window's beginning, in nanoseconds since the epoch.
    pub start_unix_ns: u64,
    /// The window's length, with the time in which nothing ran.
    pub duration_ns: u64,
    /// The sender's name, where the recording may have none.
    pub host: Option<String>,
    /// Attributes of the sender beside those of its host.
    pub identity: Vec<(String, String)>,
    /// The labels of samples in pprof.
    pub labels: SampleLabels,
}

/// Labels by which pprof tells samples apart. Receivers make a series of each set of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleLabels {
    /// The thread's name, as `comm`.
    pub comm: bool,
    /// The path of the cgroup, as `cgroup`.
    pub cgroup: bool,
    /// The container, pod and systemd unit that this path names.
    pub workload: bool,
}

impl Default for SampleLabels {
    fn default() -> SampleLabels {
        SampleLabels { comm: true, cgroup: true, workload: true }
    }
}

/// The names of a workload in its cgroup's path.
pub(crate) struct Workload<'a> {
    pub(crate) container: Option<&'a str>,
    /// As Kubernetes writes it.
    pub(crate) pod: Option<String>,
    pub(crate) unit: Option<&'a str>,
}

/// How densely an event was sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Density {
    /// Samples in a second of each busy CPU, where the event tells it.
    pub(crate) per_second: Option<u64>,
    /// CPUs of the host that were online.
    pub(crate) cpus: Option<u32>,
}

impl Delivery {
    /// The name of the host that sends.
    pub fn host<'a>(&'a self, content: &Content<'a>) -> &'a str {
        self.host.as_deref().unwrap_or(content.profile.recording.hostname.exact())
    }
}

impl<'a> Workload<'a> {
    fn of(path: &'a str) -> Workload<'a> {
        let path = CgroupPath(path);
        let pod = path.pod().map(|uid| uid.replace('_', "-"));
        Workload { container: path.container(), pod, unit: path.unit() }
    }
}

impl fmt::Display for Density {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unknown = |number: Option<u64>| number.map_or("?".to_owned(), |it| it.to_string());
        let (rate, cpus) = (or_unknown(self.per_second), or_unknown(self.cpus.map(u64::from)));
        write!(f, "Sampled: {rate} a second on each of {cpus} CPUs")
    }
}

impl<'a> Content<'a> {
    pub(crate) fn workload(&self, cgroup: CgroupId) -> Workload<'a> {
        Workload::of(self.cgroup_path(cgroup))
    }

    pub(crate) fn density(&self, event: EventId) -> Density {
        let interval_ns = self.interval_ns(event);
        Density {
            per_second: interval_ns.map(|ns| (1_000_000_000 + ns / 2) / ns),
            cpus: self.profile.recording.nr_cpus.map(|(online, _)| online),
        }
    }

    /// A name of an event that is one word in selectors of receivers. Clocks are `cpu`, as other profilers call them.
    pub(crate) fn series_name(&self, event: EventId) -> String {
        if self.unit(event) == EventUnit::Nanoseconds {
            return "cpu".to_owned();
        }
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        self.event_name(event).chars().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::with_content;

    #[test]
    fn containers_pods_and_units_come_from_the_path() {
        let id = "3f1c8a0d9be24756a1c0ffee5eed0badcafe0123456789abcdef0123456789ab";
        let path = format!(
            "/kubepods.slice/kubepods-pod0d2a1b3c_1111_2222_3333_444455556666.slice/cri-containerd-{id}.scope"
        );
        let workload = Workload::of(&path);
        assert_eq!(workload.container, Some(id));
        // As Kubernetes writes it, so that it can be looked up there.
        assert_eq!(workload.pod.as_deref(), Some("0d2a1b3c-1111-2222-3333-444455556666"));
        assert_eq!(workload.unit, path.rsplit('/').next());
    }

    #[test]
    fn clocks_are_sampled_so_often_a_second() {
        with_content("perf-fp", |content| {
            let event = content.main_event().expect("samples");
            let interval_ns = content.interval_ns(event).expect("a clock or a frequency");
            let density = content.density(event);
            let per_second = density.per_second.expect("a rate");
            assert!(per_second * interval_ns <= 1_000_000_000 + interval_ns);
            assert!(per_second * interval_ns + interval_ns >= 1_000_000_000);
            assert_eq!(density.cpus, content.profile.recording.nr_cpus.map(|(online, _)| online));
        });
    }
}
