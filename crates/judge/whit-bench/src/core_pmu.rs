//! Whether this machine has a PMU of its cores.

use std::path::Path;

use anyhow::ensure;

use crate::error::Error;

/// Where the kernel lists what can be counted.
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";
/// Names of a core's PMU there.
const CORE_PMUS: [&str; 2] = ["cpu", "cpu_core"];

/// Whether it has one.
pub(crate) fn is_here() -> bool {
    is_in(Path::new(EVENT_SOURCES))
}

/// Without one there are no interrupts of it.
pub(crate) fn require() -> Result<(), Error> {
    ensure!(
        is_here(),
        "this machine has no hardware PMU (no `cpu` in /sys/bus/event_source/devices), so there are no \
         interrupts to measure: run this on bare metal or in a guest with a virtual PMU, or leave out \
         --host for the simulated hardware"
    );
    Ok(())
}

/// The event that is sampled where none is named: `cycles` where there is a PMU, else `cpu-clock`.
pub(crate) fn default_event() -> String {
    if is_here() { "cycles" } else { "cpu-clock" }.to_owned()
}

fn is_in(event_sources: &Path) -> bool {
    CORE_PMUS.iter().any(|name| event_sources.join(name).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_of_a_core() {
        let sources = tempfile::tempdir().unwrap();
        std::fs::create_dir(sources.path().join("uncore_imc_0")).unwrap();
        assert!(!is_in(sources.path()));
        std::fs::create_dir(sources.path().join("cpu_core")).unwrap();
        assert!(is_in(sources.path()));
    }

    #[test]
    fn without_one_the_error_says_so() {
        match require() {
            Ok(()) => assert_eq!(default_event(), "cycles"),
            Err(error) => assert!(error.to_string().contains("no hardware PMU"), "{error}"),
        }
    }
}
