//! The recorder's form of an event.

use crate::event_args::Wanted;
use anyhow::Result;
use whit_capture::event::{EventSpec, from_groups};
use whit_events::ResolvedGroup;

/// The recorded event without `-e`.
pub(super) const DEFAULT: &str = "cycles:P";

impl Wanted for EventSpec {
    fn from_groups(groups: Vec<ResolvedGroup>) -> Result<Vec<Self>> {
        Ok(from_groups(groups)?)
    }

    fn name(&self) -> &str {
        EventSpec::name(self)
    }

    fn is_tracepoint(&self) -> bool {
        EventSpec::is_tracepoint(self)
    }

    fn filter(&mut self) -> &mut Option<String> {
        &mut self.filter
    }

    fn leader(&mut self) -> &mut Option<usize> {
        &mut self.leader
    }

    fn set_cgroup(&mut self, name: Option<&str>) {
        self.cgroup = name.map(str::to_owned);
    }

    fn leave_recorder_out(&mut self) -> Result<()> {
        self.excludes_recorder = true;
        Ok(())
    }
}
