//! Events at probes in programs, which are there while the recorder is.

use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use whit_capture::event::EventSpec;
use whit_events::Sampling;
use whit_host::roots::Roots;
use whit_host::user_probe::{ProbeAt, ProbePlace, UserProbes};
use whit_perfdata::attr::pmu_type;

/// The probes of a recording.
#[derive(Default)]
pub(super) struct Probes(Option<UserProbes>);

impl Probes {
    /// Makes a probe at some places of a file, for an option. Gives its event, which samples each hit.
    pub(super) fn add(
        &mut self,
        (option, roots): (&str, &Roots),
        name: &str,
        (path, file): (&Path, &File),
        (at, places): (ProbeAt, &[ProbePlace]),
    ) -> Result<EventSpec> {
        let made = match self.0.take() {
            Some(made) => made,
            None => {
                let tracefs = roots.tracefs().with_context(|| {
                    format!(
                        "{option}: the probes of the kernel are in tracefs, which is not mounted: \
                         mount -t tracefs nodev /sys/kernel/tracing"
                    )
                })?;
                UserProbes::new(tracefs)
            }
        };
        let probes = self.0.insert(made);
        let id = probes.add(at, file, places).map_err(|error| {
            if error.kind() == ErrorKind::PermissionDenied {
                return anyhow!("only root may make probes in programs: run whit record with sudo");
            }
            let fields: Vec<_> = places.iter().map(|place| &*place.fields).collect();
            let (path, fields) = (path.display(), fields.join("; "));
            anyhow!("the kernel refuses a probe at {path} for {name} ({fields}): {error}")
        })?;
        let mut event = EventSpec::new(name, pmu_type::TRACEPOINT, id);
        event.event.name_given = true;
        event.event.terms.sampling = Some(Sampling::Period(1));
        Ok(event)
    }
}
