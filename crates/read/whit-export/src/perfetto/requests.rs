//! Requests as slices of tracks below those of their threads: one for each name.

use super::{FIRST_REQUEST_TRACK, Writer, states};
use crate::proto::perfetto::DebugAnnotation;
use crate::request::Requests;
use std::collections::BTreeSet;
use std::io;

/// Numbers of threads in a track's number.
const THREADS: u64 = 1 << 24;

/// Writes a track for each thread and name.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>, requests: &Requests) -> io::Result<()> {
    let mut described: BTreeSet<_> =
        states::described(writer.content, writer.has_cpus).into_iter().collect();
    described.extend(writer.content.threads_with_cgroups());
    for of_name in requests.by_thread_and_name() {
        let Some(first) = of_name.first() else { continue };
        if described.insert(first.thread) {
            writer.thread_track(first.thread)?;
        }
        let name = requests.name(first);
        let base = FIRST_REQUEST_TRACK + THREADS * u64::from(first.name);
        let track = writer.child_track(base, first.thread, name)?;
        for request in of_name {
            let key = request.key.as_deref().map(|key| DebugAnnotation {
                name: Some("key".to_owned()),
                string_value: Some(key.to_owned()),
                ..DebugAnnotation::default()
            });
            let times = (request.from, request.to);
            match &request.key {
                Some(text) => {
                    writer.annotated_slice(track, &[name, " ", text], times, key.as_slice())?;
                }
                None => writer.slice(track, &[name], times)?,
            }
        }
    }
    Ok(())
}
