//! The part of a recording that a reading chooses.

use crate::call_times::CallTimes;
use crate::time_filter::TimeFilter;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// Filters that samples and switches have to pass; the default lets all pass.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Part of the time.
    pub time: Option<TimeFilter>,
    /// Only the time of these calls, in their threads.
    pub calls: Option<CallTimes>,
    /// Only these processes; all where empty.
    pub pids: Vec<Pid>,
    /// None of these processes.
    pub without_pids: Vec<Pid>,
    /// Only these threads; all where empty.
    pub tids: Vec<Tid>,
    /// Only samples on these CPUs; all where empty.
    pub cpus: Vec<CpuId>,
    /// Only samples in these cgroups and in those below, each named as
    /// [`CgroupPath::is_within`](whit_types::CgroupPath::is_within) takes it; all where empty.
    pub cgroups: Vec<String>,
}

impl Selection {
    /// True where not the whole recording is wanted.
    pub fn is_part(&self) -> bool {
        self.chooses_tasks()
            || self.time.is_some()
            || self.calls.is_some()
            || !self.cpus.is_empty()
            || !self.cgroups.is_empty()
    }

    /// True where not all processes and threads are wanted.
    pub(crate) fn chooses_tasks(&self) -> bool {
        !self.pids.is_empty() || !self.without_pids.is_empty() || !self.tids.is_empty()
    }

    /// True where a process and thread may be wanted.
    pub(crate) fn wants(&self, pid: Pid, tid: Tid) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && !self.without_pids.contains(&pid)
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }

    /// True where the chosen calls have this moment of a thread, or none are chosen.
    #[inline]
    pub(crate) fn wants_moment(&self, tid: Tid, time: TimestampNs) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.contain(tid, time))
    }
}
