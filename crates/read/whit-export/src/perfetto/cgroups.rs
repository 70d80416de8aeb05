//! The cgroup of each thread over time, as slices of a track below the thread's.
//!
//! A slice reaches from the first sample in a cgroup to the first in another, or to the last of the thread. Its
//! arguments are the samples and periods of each event in it: their sums by name are those of the cgroups.

use super::{FIRST_CGROUP_TRACK, Writer, states};
use crate::content::Moment;
use crate::proto::perfetto::DebugAnnotation;
use std::collections::BTreeMap;
use std::io;
use whit_profile::model::{CgroupId, EventId, ThreadId};
use whit_types::TimestampNs;

/// A thread in one cgroup, without a sample in another.
struct Stay {
    cgroup: CgroupId,
    from: TimestampNs,
    last: TimestampNs,
    /// Samples and periods.
    sums: BTreeMap<EventId, (u64, u64)>,
}

/// Writes a track for each thread whose samples tell its cgroup.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>, moments: &[Moment<'_>]) -> io::Result<()> {
    let mut by_thread: BTreeMap<ThreadId, Vec<Stay>> = BTreeMap::new();
    for moment in moments {
        if let Some(cgroup) = writer.content.cgroup(moment.row) {
            add(by_thread.entry(moment.row.thread).or_default(), cgroup, moment);
        }
    }
    if by_thread.is_empty() {
        return Ok(());
    }
    let described = states::described(writer.content, writer.has_cpus);
    for (thread, stays) in by_thread {
        if !described.contains(&thread) {
            writer.thread_track(thread)?;
        }
        let track = writer.child_track(FIRST_CGROUP_TRACK, thread, "cgroup")?;
        for (at, stay) in stays.iter().enumerate() {
            let to = stays.get(at + 1).map_or(stay.last, |next| next.from);
            let path = writer.content.cgroup_path(stay.cgroup);
            let arguments = writer.arguments(stay);
            writer.annotated_slice(track, &[path], (stay.from, to), &arguments)?;
        }
    }
    Ok(())
}

fn add(stays: &mut Vec<Stay>, cgroup: CgroupId, moment: &Moment<'_>) {
    let continues = stays.last().is_some_and(|stay| stay.cgroup == cgroup);
    if !continues {
        let (from, last) = (moment.time, moment.time);
        stays.push(Stay { cgroup, from, last, sums: BTreeMap::new() });
    }
    let Some(stay) = stays.last_mut() else { return };
    stay.last = moment.time;
    let sum = stay.sums.entry(moment.row.event).or_default();
    sum.0 += moment.samples;
    sum.1 = sum.1.saturating_add(moment.period);
}

impl Writer<'_, '_, '_> {
    fn arguments(&self, stay: &Stay) -> Vec<DebugAnnotation> {
        let of_event = |(event, sums): (&EventId, &(u64, u64))| {
            let name = self.content.event_name(*event);
            [("samples", sums.0), ("period", sums.1)].map(|(what, sum)| DebugAnnotation {
                name: Some(format!("{name} {what}")),
                uint_value: Some(sum),
                ..DebugAnnotation::default()
            })
        };
        stay.sums.iter().flat_map(of_event).collect()
    }
}
