//! The local APIC's performance monitoring entry, and the CPU's one pending NMI.

use super::MaskedPmi;
use crate::bits::lvtpc;

/// LVTPC and NMI state of a CPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Apic {
    pub(super) entry: u64,
    /// Intel: delivery masks the entry.
    masks_on_delivery: bool,
    masked: MaskedPmi,
    latched: bool,
    pub(super) nmi_pending: bool,
    pub(super) in_nmi: bool,
    /// Interrupts that came while the entry was masked, and are gone.
    pub(super) dropped: u64,
    /// Interrupts that came while an NMI was pending, and became one with it.
    pub(super) collapsed: u64,
}

impl Apic {
    pub(super) fn new(masks_on_delivery: bool, masked: MaskedPmi) -> Apic {
        Apic {
            entry: lvtpc::MASKED,
            masks_on_delivery,
            masked,
            latched: false,
            nmi_pending: false,
            in_nmi: false,
            dropped: 0,
            collapsed: 0,
        }
    }

    /// The PMU asks for an interrupt.
    pub(super) fn raise(&mut self) {
        if self.entry & lvtpc::MASKED == 0 {
            self.deliver();
        } else if self.masked == MaskedPmi::Latch {
            self.latched = true;
        } else {
            self.dropped += 1;
        }
    }

    pub(super) fn write(&mut self, value: u64) {
        self.entry = value;
        if value & lvtpc::MASKED == 0 && core::mem::take(&mut self.latched) {
            self.deliver();
        }
    }

    /// True where an interrupt will come though none is pending yet.
    pub(super) fn is_latched(&self) -> bool {
        self.latched
    }

    fn deliver(&mut self) {
        if self.masks_on_delivery {
            self.entry |= lvtpc::MASKED;
        }
        if self.nmi_pending {
            self.collapsed += 1;
        }
        self.nmi_pending = true;
    }
}
