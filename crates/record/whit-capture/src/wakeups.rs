//! Wake-ups (`--wakeups`): the tracepoint that records them.
//!
//! `sched:sched_waking` is hit by the thread that wakes, before it does. The ring engine records it as any
//! other tracepoint. With the BPF engine a program records the wake-ups of recorded threads, in samples of
//! the same form.

use std::io;

use whit_engine_api::event_plan::WAKING;
use whit_events::{Exclude, ResolvedEvent, Sampling};
use whit_host::roots::Roots;
use whit_perfdata::attr::pmu_type;
use whit_perfdata::tracing_data::TraceEvent;

use crate::error::CaptureError;
use crate::event::EventSpec;
use crate::tracing_data;

/// Reads the `format` file of `sched:sched_waking`.
pub(crate) fn format(roots: &Roots) -> Result<TraceEvent, CaptureError> {
    let (system, event) = WAKING.split_once(':').unwrap_or_default();
    let error = |source| CaptureError::Tracepoint { tracepoint: WAKING.to_owned(), source };
    let path = tracing_data::mounted(roots, WAKING)?.join("events").join(system).join(event);
    let text = std::fs::read_to_string(path.join("format")).map_err(error)?;
    TraceEvent::parse(system, &text, size_of::<usize>() as u8)
        .map_err(|source| error(io::Error::new(io::ErrorKind::InvalidData, source)))
}

/// Every hit of it.
pub(crate) fn event(format: &TraceEvent) -> EventSpec {
    let mut event = ResolvedEvent::new(WAKING, pmu_type::TRACEPOINT, format.id);
    event.exclude = Exclude::default();
    event.terms.sampling = Some(Sampling::Period(1));
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tracepoint_is_found_where_tracefs_is() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let error = format(&roots).unwrap_err().to_string();
        assert!(error.contains(WAKING), "{error}");
        let path = dir.path().join("kernel/tracing/events/sched/sched_waking");
        std::fs::create_dir_all(&path).unwrap();
        let text = "name: sched_waking\nID: 375\nformat:\n\
                    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
        std::fs::write(path.join("format"), text).unwrap();
        let event = event(&format(&roots).unwrap());
        let sampling = event.event.terms.sampling;
        assert_eq!((event.event.config[0], sampling), (375, Some(Sampling::Period(1))));
        assert_eq!(event.event.tracepoint(), Some(WAKING));
        assert!(event.is_tracepoint());
    }
}
