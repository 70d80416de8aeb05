//! The interrupt line: LVTPC of the VMM's own local APIC.

use whit_vpmu::{Delivery, DeliveryMode, Interrupt, Lvtpc};

/// LVTPC, and the NMI that is to be injected. A VM with KVM's in-kernel local APIC copies the register from and to
/// it ([`KvmVpmu::enter`](crate::KvmVpmu::enter) does).
#[derive(Debug, Default)]
pub struct Line {
    /// The register.
    pub lvtpc: Lvtpc,
    nmi: bool,
    other: u64,
}

impl Line {
    /// Takes the NMI that is due.
    pub(crate) fn take_nmi(&mut self) -> bool {
        std::mem::take(&mut self.nmi)
    }

    /// Interrupts that the guest wanted in another way than as NMIs, which are not injected.
    #[must_use]
    pub const fn not_injected(&self) -> u64 {
        self.other
    }
}

impl Interrupt for Line {
    fn pmi(&mut self, mask: bool) -> Delivery {
        match self.lvtpc.take(mask) {
            Some(DeliveryMode::Nmi) => self.nmi = true,
            Some(_) => self.other += 1,
            None => return Delivery::Masked,
        }
        Delivery::Delivered
    }
}
