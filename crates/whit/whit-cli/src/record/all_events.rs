//! Options that change all events alike.

use crate::heading;
use whit_capture::event::EventSpec;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct AllEventsArgs {
    /// Count and sample in user mode only, for all events
    #[arg(long, conflicts_with = "all_kernel", help_heading = heading::EVENTS)]
    all_user: bool,
    /// Count and sample in the kernel only, for all events
    #[arg(long, help_heading = heading::EVENTS)]
    all_kernel: bool,
    /// Take no samples of idle CPUs by clocks; hardware cycles do not count there
    #[arg(long, help_heading = heading::EVENTS)]
    exclude_idle: bool,
}

impl AllEventsArgs {
    pub(super) fn apply(&self, event: &mut EventSpec) {
        event.event.exclude.user |= self.all_kernel;
        event.event.exclude.kernel |= self.all_user;
        event.exclude_idle = self.exclude_idle;
    }
}
