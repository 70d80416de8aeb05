//! Requests as slices of tracks below those of their threads: one for each name.

use super::{FIRST_REQUEST_TRACK, Writer, states};
use crate::proto::perfetto::DebugAnnotation;
use crate::request::Requests;
use std::collections::BTreeSet;
use std::io;

/// Numbers of threads in a track's number.
const THREADS: u64 = 1 << 24;

/// Writes a track for each thread and name, and as many for goroutines as serve requests at a time.
pub(super) fn write(writer: &mut Writer<'_, '_, '_>, requests: &Requests) -> io::Result<()> {
    let mut described: BTreeSet<_> =
        states::described(writer.content, writer.has_cpus).into_iter().collect();
    described.extend(writer.content.threads_with_cgroups());
    for (lane, of_lane) in requests.by_lane() {
        let Some(first) = of_lane.first() else { continue };
        if described.insert(first.thread) {
            writer.thread_track(first.thread)?;
        }
        let name = requests.name(first);
        let number = u64::from(first.name) + requests.names.len() as u64 * u64::from(lane);
        let base = FIRST_REQUEST_TRACK + THREADS * number;
        let track = writer.child_track(base, first.thread, name)?;
        for request in of_lane {
            let named = |name: &str| DebugAnnotation {
                name: Some(name.to_owned()),
                ..DebugAnnotation::default()
            };
            let key = request
                .key
                .as_deref()
                .map(|key| DebugAnnotation { string_value: Some(key.to_owned()), ..named("key") });
            let goroutine = request
                .goroutine
                .map(|number| DebugAnnotation { uint_value: Some(number), ..named("goroutine") });
            let annotations: Vec<_> = key.into_iter().chain(goroutine).collect();
            let times = (request.from, request.to);
            match &request.key {
                Some(text) => {
                    writer.annotated_slice(track, &[name, " ", text], times, &annotations)?;
                }
                None => writer.annotated_slice(track, &[name], times, &annotations)?,
            }
        }
    }
    Ok(())
}
