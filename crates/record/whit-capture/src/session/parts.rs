//! The parts that every stage of a session needs.

use whit_sys::Workload;

use super::budget::BudgetKeeper;
use super::context::SessionContext;
use super::event_control::EventControl;
use super::ledger::Meters;
use super::outputs::Outputs;
use super::wait::SessionWaiter;
use crate::error::CaptureError;
use crate::notice::Listener;

/// Handed on by value from stage to stage.
pub(super) struct SessionParts<'a> {
    pub(super) context: SessionContext<'a>,
    pub(super) listener: &'a mut dyn Listener,
    pub(super) control: EventControl,
    pub(super) outputs: Outputs,
    pub(super) meters: Meters,
    pub(super) waiter: SessionWaiter,
    /// The limit of the recording's cost.
    pub(super) budget: Option<BudgetKeeper>,
    /// The command.
    pub(super) workload: Option<Workload>,
}

impl SessionParts<'_> {
    /// Lets the command begin, where there is one.
    pub(super) fn start_workload(&mut self) -> Result<(), CaptureError> {
        self.workload.as_mut().map_or(Ok(()), |workload| Ok(workload.start()?))
    }
}
