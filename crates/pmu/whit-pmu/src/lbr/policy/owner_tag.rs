//! Our rule: whose records there are.

use super::{Action, LbrEvent, LbrPolicy, Running, View};
use crate::lbr::{BranchFilter, MmId};

/// Remembers whose records the registers hold, and resets where somebody else's would be shown.
///
/// | event | owner before | action | owner after |
/// |---|---|---|---|
/// | in: a task of *m*, or a kernel thread that works in *m* | nobody, *m* | – | *m* |
/// | the same | another, mixed | reset | *m* |
/// | in: a kernel thread, the idle task | any | – | unchanged |
/// | exit or exec | any | – | mixed |
/// | others used the registers; an event is installed | any | reset | what runs: *m*, or nobody |
/// | registers restored for *m* | any | – | *m* |
///
/// Threads of a process, and a process around idle time, keep their records and cost nothing.
///
/// Where records are mixed, or a kernel thread runs over a task's records, what could be somebody
/// else's is left out of samples ([`LbrPolicy::view`]); that costs no register access. A task that has
/// called exec gets its records back at its next switch, or with [`LbrEvent::Installed`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct OwnerTag {
    owner: Owner,
}

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
enum Owner {
    /// Records of kernel threads alone, or none.
    #[default]
    Unowned,
    Mm(MmId),
    Mixed,
}

impl From<Running> for Owner {
    fn from(running: Running) -> Owner {
        running.mm().map_or(Owner::Unowned, Owner::Mm)
    }
}

impl LbrPolicy for OwnerTag {
    fn on(&mut self, event: LbrEvent) -> Action {
        match event {
            LbrEvent::SchedIn(running) | LbrEvent::Adopted(running) => match running.mm() {
                Some(mm) => self.enter(mm),
                None => Action::Keep,
            },
            LbrEvent::MmDropped => {
                self.owner = Owner::Mixed;
                Action::Keep
            }
            // To call the registers nobody's while a task runs would be to forget the records that
            // it makes next.
            LbrEvent::Foreign(running) | LbrEvent::Installed(running) => {
                self.owner = running.into();
                Action::Reset
            }
            LbrEvent::Restored(mm) => {
                self.owner = Owner::Mm(mm);
                Action::Keep
            }
            LbrEvent::SchedOut(_) => Action::Keep,
        }
    }

    fn view(&self, running: Running, reader: BranchFilter) -> View {
        match running.mm() {
            Some(mm) if self.owner == Owner::Mm(mm) => View::all(reader),
            Some(_) => View::NONE,
            None => View { user: false, kernel: reader.kernel },
        }
    }
}

impl OwnerTag {
    fn enter(&mut self, mm: MmId) -> Action {
        let owner = core::mem::replace(&mut self.owner, Owner::Mm(mm));
        if owner == Owner::Unowned || owner == Owner::Mm(mm) { Action::Keep } else { Action::Reset }
    }
}
