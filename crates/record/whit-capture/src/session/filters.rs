//! `--exclude-perf`: tracepoints leave out the recorder's own work.

use std::ffi::CString;

use whit_engine_api::open_event::OpenEvent;
use whit_host::processes;
use whit_host::roots::Roots;
use whit_types::{Pid, Tid};

use crate::error::CaptureError;

/// The kernel takes filters of up to a page.
const FILTER_BYTES_MAX: usize = 4095;

/// Adds the recorder's threads to the filters of events that are to leave them out. The threads
/// must run already; io_uring's workers are the kernel's and are not among them.
pub(super) fn leave_recorder_out(events: &[OpenEvent], roots: &Roots) -> Result<(), CaptureError> {
    let events = || events.iter().filter(|e| e.event.spec.excludes_recorder);
    if events().next().is_none() {
        return Ok(());
    }
    let own = processes::threads(roots, Pid(whit_sys::system::pid()));
    for event in events() {
        let spec = &event.event.spec;
        let filter = without(spec.filter.as_deref(), &own);
        let error = |source| CaptureError::Filter {
            event: spec.name().to_owned(),
            filter: filter.chars().take(80).collect(),
            advice: String::new(),
            source,
        };
        let text = CString::new(filter.as_str()).ok().filter(|_| filter.len() <= FILTER_BYTES_MAX);
        let text = text.ok_or_else(|| error(whit_sys::Errno::TOOBIG))?;
        event.instances.iter().try_for_each(|i| i.fd.set_filter(&text)).map_err(error)?;
    }
    Ok(())
}

/// A filter that leaves out these threads as well.
fn without(filter: Option<&str>, tids: &[Tid]) -> String {
    let asked = filter.map(|filter| format!("({filter})"));
    let own = tids.iter().map(|tid| format!("common_pid != {}", tid.0));
    asked.into_iter().chain(own).collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::without;
    use whit_types::Tid;

    #[test]
    fn filters_are_combined() {
        assert_eq!(without(None, &[Tid(7)]), "common_pid != 7");
        let both = "(a == 1 || b == 2) && common_pid != 7 && common_pid != 8";
        assert_eq!(without(Some("a == 1 || b == 2"), &[7, 8].map(Tid)), both);
    }
}
