//! The values that stay the same from the first stage of a session to its last.

use std::sync::Arc;

use whit_engine_api::open_event::OpenEvent;
use whit_host::roots::Roots;
use whit_host::target::Plan;
use whit_types::Pid;

use super::synthesis::SynthesisContext;
use crate::file_cache::FileCache;
use crate::plan::RecordPlan;

/// The plan, the machine and the targets.
pub(super) struct SessionContext<'a> {
    pub(super) plan: RecordPlan,
    pub(super) roots: &'a Roots,
    /// CPUs and threads.
    pub(super) targets: Plan,
    pub(super) known_files: Arc<FileCache>,
}

impl SessionContext<'_> {
    /// For records of processes and code that exist before the recording, while the command waits.
    pub(super) fn synthesis_before<'s>(
        &'s self,
        events: &'s [OpenEvent],
        waiting_command: Option<Pid>,
    ) -> SynthesisContext<'s> {
        SynthesisContext { waiting_command, has_run: false, ..self.synthesis(events) }
    }

    /// For records of processes and code that exist at any later time.
    pub(super) fn synthesis<'s>(&'s self, events: &'s [OpenEvent]) -> SynthesisContext<'s> {
        SynthesisContext {
            wanted: &self.plan.synthesis,
            roots: self.roots,
            plan: &self.targets,
            events,
            files: &self.known_files,
            waiting_command: None,
            has_run: true,
        }
    }
}
