//! The states of threads as slices of tracks of their own. Where the tracks of CPUs have the runs, waits alone.

use super::{FIRST_WAIT_TRACK, Writer};
use std::io;
use whit_profile::switches::{Activity, TimelineSpan};
use whit_types::TimestampNs;

/// Writes a track for each thread that has switches.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>, has_cpus: bool) -> io::Result<()> {
    let Some(switches) = writer.content.switches else { return Ok(()) };
    for of_thread in switches.timeline.spans.chunk_by(|a, b| a.thread == b.thread) {
        let mut track = None;
        let is_shown = |span: &&TimelineSpan| !has_cpus || span.activity == Activity::Waiting;
        for span in of_thread.iter().filter(is_shown) {
            let track = match track {
                Some(track) => track,
                None if has_cpus => {
                    *track.insert(writer.child_track(FIRST_WAIT_TRACK, span.thread, "waits")?)
                }
                None => *track.insert(writer.thread_track(span.thread)?),
            };
            let end = TimestampNs(span.start.0.saturating_add(span.duration_ns));
            let state = writer.state(span);
            writer.slice(track, &state, (span.start, end))?;
        }
    }
    Ok(())
}

impl Writer<'_, '_, '_> {
    /// The parts of its name.
    fn state(&self, span: &TimelineSpan) -> [&'static str; 2] {
        match (span.activity, self.content.wait_class(span)) {
            (_, Some(class)) => ["Waiting: ", class.name()],
            (Activity::Running, _) => ["Running", ""],
            (Activity::Preempted, _) => ["Preempted", ""],
            (Activity::Waiting, _) => ["Waiting", ""],
            (Activity::Mixed, _) => ["Short runs and waits", ""],
        }
    }
}
