//! The states of threads as slices of tracks of their own, where the recording does not say on which CPUs they ran.

use super::{FIRST_THREAD_TRACK, Writer};
use crate::proto::perfetto::{ThreadDescriptor, TrackDescriptor};
use std::io;
use whit_profile::model::ThreadId;
use whit_profile::switches::{Activity, TimelineSpan};
use whit_types::TimestampNs;

/// Writes a track for each thread that has switches.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>) -> io::Result<()> {
    let Some(switches) = writer.content.switches else { return Ok(()) };
    for of_thread in switches.timeline.spans.chunk_by(|a, b| a.thread == b.thread) {
        let track = writer.thread_track(of_thread[0].thread)?;
        for span in of_thread {
            let end = TimestampNs(span.start.0.saturating_add(span.duration_ns));
            writer.slice(track, state(span), (span.start, end))?;
        }
    }
    Ok(())
}

fn state(span: &TimelineSpan) -> &'static str {
    match span.activity {
        Activity::Running => "Running",
        Activity::Preempted => "Preempted",
        Activity::Waiting => "Waiting",
        Activity::Mixed => "Short runs and waits",
    }
}

impl Writer<'_, '_, '_> {
    fn thread_track(&mut self, thread: ThreadId) -> io::Result<u64> {
        let uuid = FIRST_THREAD_TRACK + u64::from(thread.0);
        let info = &self.content.profile.threads[thread.index()];
        let name = self.content.thread_name(info).to_owned();
        self.describe_track(TrackDescriptor {
            uuid: Some(uuid),
            name: None,
            thread: Some(ThreadDescriptor {
                pid: Some(info.pid.0),
                tid: Some(info.tid.0),
                thread_name: Some(name),
            }),
        })?;
        Ok(uuid)
    }
}
