//! The rule of a patch that was never merged.

use super::{Action, LbrEvent, LbrPolicy, Running, View};
use crate::lbr::{BranchFilter, MmId};

/// Remembers the address space that was last switched *out*, and resets where another comes in.
///
/// **It leaks.** A task that exits has given up its address space before it is switched out, so it
/// leaves no trace: the task that ran before it comes back to records that look like its own. Here
/// to be measured and to be found by the explorer; not to be used.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct LastOwnerRule {
    last: Option<MmId>,
}

impl LbrPolicy for LastOwnerRule {
    fn on(&mut self, event: LbrEvent) -> Action {
        match event {
            LbrEvent::SchedOut(mm) => {
                self.last = mm.or(self.last);
                Action::Keep
            }
            LbrEvent::SchedIn(running) => match running.mm() {
                Some(mm) if self.last != Some(mm) => Action::Reset,
                _ => Action::Keep,
            },
            LbrEvent::Foreign(_) | LbrEvent::Installed(_) => Action::Reset,
            LbrEvent::MmDropped | LbrEvent::Adopted(_) | LbrEvent::Restored(_) => Action::Keep,
        }
    }

    fn view(&self, _: Running, reader: BranchFilter) -> View {
        View::all(reader)
    }
}
