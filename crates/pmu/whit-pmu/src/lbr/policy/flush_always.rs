//! Linux's rule.

use super::{Action, LbrEvent, LbrPolicy, Running, View};
use crate::lbr::BranchFilter;

/// Resets at every switch, as Linux does. An exec within a slice is no switch: samples after it show the
/// branches of the program before.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct FlushAlways;

impl LbrPolicy for FlushAlways {
    fn on(&mut self, event: LbrEvent) -> Action {
        match event {
            LbrEvent::SchedIn(_) | LbrEvent::Foreign(_) | LbrEvent::Installed(_) => Action::Reset,
            LbrEvent::SchedOut(_)
            | LbrEvent::MmDropped
            | LbrEvent::Adopted(_)
            | LbrEvent::Restored(_) => Action::Keep,
        }
    }

    fn view(&self, _: Running, reader: BranchFilter) -> View {
        View::all(reader)
    }
}
