//! When branch records are reset, and which of them a sample may show.
//!
//! The registers do not say under which address space a branch was recorded. So either they are reset
//! at every switch ([`FlushAlways`]), or somebody remembers. [`LastOwnerRule`] remembers who ran last and is
//! here to be compared: it leaks. [`OwnerTag`] remembers whose records there are.

mod flush_always;
mod last_owner_rule;
mod owner_tag;

use super::{BranchFilter, BranchRecord, BranchStack, MmId};

pub use flush_always::FlushAlways;
pub use last_owner_rule::LastOwnerRule;
pub use owner_tag::OwnerTag;

/// The running task of a CPU.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Running {
    /// A task in its own address space.
    User(MmId),
    /// A kernel thread, the idle task, or a task that has given up its address space.
    Kernel,
    /// A kernel thread that works in a task's address space.
    Borrowed(MmId),
}

impl Running {
    /// The address space whose addresses mean something.
    #[must_use]
    pub const fn mm(self) -> Option<MmId> {
        match self {
            Running::User(mm) | Running::Borrowed(mm) => Some(mm),
            Running::Kernel => None,
        }
    }
}

/// Something that a policy has to know of. Events come while branch records are in use on the CPU;
/// [`LbrEvent::Installed`] is the first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum LbrEvent {
    /// A task leaves the CPU, with the address space that it still has.
    SchedOut(Option<MmId>),
    /// Another takes it.
    SchedIn(Running),
    /// The running task gave up its address space (exit) or has another now (exec).
    MmDropped,
    /// The running task took an address space or gave it back without a switch (a kernel thread
    /// that borrows).
    Adopted(Running),
    /// A guest, another driver, the firmware or a reader with more rights has used the registers, and
    /// this runs now.
    Foreign(Running),
    /// A first event that samples branches was installed without a switch, and this runs now.
    Installed(Running),
    /// The registers were written with records of this address space alone.
    Restored(MmId),
}

/// Action on the registers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Action {
    /// The registers stay as they are.
    Keep,
    /// Reset them.
    Reset,
}

/// Which records a sample may show.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct View {
    /// Branches within user mode.
    pub user: bool,
    /// Branches to, from and within kernel mode.
    pub kernel: bool,
}

impl View {
    /// No record at all.
    pub const NONE: View = View { user: false, kernel: false };

    /// All that a reader may see.
    #[must_use]
    pub const fn all(reader: BranchFilter) -> View {
        View { user: reader.user, kernel: reader.kernel }
    }

    /// Removes what may not be shown. Between user and kernel mode a record counts as the kernel's:
    /// one of its addresses is.
    pub fn apply(self, stack: &mut BranchStack) {
        stack.retain(|record| if touches_kernel(record) { self.kernel } else { self.user });
    }
}

/// Bit 60 belongs to the sign extension of an address in every format of records; the bits above may be
/// flags.
const SIGN: u64 = 1 << 60;

const fn touches_kernel(record: &BranchRecord) -> bool {
    (record.from | record.to) & SIGN != 0
}

/// Decides over the records of one CPU.
pub trait LbrPolicy {
    /// Something happened; the registers are to be treated so.
    fn on(&mut self, event: LbrEvent) -> Action;

    /// The records that a sample of the running task may show to a reader with these rights.
    fn view(&self, running: Running, reader: BranchFilter) -> View;
}

#[cfg(test)]
mod tests;
