//! Filters by fields of a sample: its CPU and its cgroup.

use crate::machine_model::cgroups::Cgroups;
use crate::selection::Selection;
use whit_perfdata::attr::SampleType;
use whit_perfdata::reader::Recording;
use whit_perfdata::sample::Sample;
use whit_types::{CgroupPath, CpuId, TimestampNs};

/// True where samples of any event were recorded with their cgroups.
pub fn has_cgroups(recording: &Recording) -> bool {
    recording.events.iter().any(|event| event.attr.sample_type.contains(SampleType::CGROUP))
}

/// Which samples are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleFilter {
    cpus: Vec<CpuId>,
    /// By cgroup of the recording; `None` lets all samples pass.
    cgroups: Option<Vec<bool>>,
}

impl SampleFilter {
    pub(crate) fn new(selection: &Selection, cgroups: &Cgroups) -> SampleFilter {
        let is_wanted =
            |path: &str| selection.cgroups.iter().any(|name| CgroupPath(path).is_within(name));
        let wanted = || cgroups.paths().iter().map(|path| is_wanted(path)).collect();
        SampleFilter {
            cpus: selection.cpus.clone(),
            cgroups: (!selection.cgroups.is_empty()).then(wanted),
        }
    }

    /// A sample without a CPU or cgroup passes no filter that asks for one.
    #[inline]
    pub(crate) fn wants(&self, sample: &Sample<'_>, time: TimestampNs, cgroups: &Cgroups) -> bool {
        let cpu_passes =
            self.cpus.is_empty() || sample.cpu.is_some_and(|cpu| self.cpus.contains(&cpu));
        cpu_passes
            && self.cgroups.as_ref().is_none_or(|wanted| {
                let index = sample.cgroup.and_then(|number| cgroups.at(number, time));
                index.is_some_and(|index| wanted.get(index.0 as usize) == Some(&true))
            })
    }
}
