//! Guests are counted by VMs with mediated PMUs, or by events of the host that include guests.

use core::fmt;

/// Why a request is refused.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ShareError {
    /// Events that include guests are open; Linux says EBUSY.
    Busy,
    /// A VM with a mediated PMU exists; Linux says EOPNOTSUPP.
    NotSupported,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShareError::Busy => {
                "events of the host count guests: close them before a VM with a mediated PMU starts"
            }
            ShareError::NotSupported => {
                "a VM with a mediated PMU exists: exclude guests from the event, or stop the VM"
            }
        })
    }
}

impl core::error::Error for ShareError {}

/// The account of a host. An event that includes guests would count nothing while a guest is resident, in silence; so
/// the two exclude each other. The caller has a lock around it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct HostShare {
    vms: u32,
    including: u32,
}

impl HostShare {
    /// Neither VMs nor events.
    #[must_use]
    pub const fn new() -> HostShare {
        HostShare { vms: 0, including: 0 }
    }

    /// A VM with a mediated PMU starts.
    ///
    /// # Errors
    /// [`ShareError::Busy`].
    pub const fn start_vm(&mut self) -> Result<(), ShareError> {
        if self.including > 0 {
            return Err(ShareError::Busy);
        }
        self.vms += 1;
        Ok(())
    }

    /// One has ended.
    pub const fn end_vm(&mut self) {
        self.vms = self.vms.saturating_sub(1);
    }

    /// An event of the host is opened that includes guests.
    ///
    /// # Errors
    /// [`ShareError::NotSupported`].
    pub const fn open_including(&mut self) -> Result<(), ShareError> {
        if self.vms > 0 {
            return Err(ShareError::NotSupported);
        }
        self.including += 1;
        Ok(())
    }

    /// One was closed.
    pub const fn close_including(&mut self) {
        self.including = self.including.saturating_sub(1);
    }
}
