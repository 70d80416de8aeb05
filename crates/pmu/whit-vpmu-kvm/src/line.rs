//! The interrupt line: LVTPC of the VMM's own local APIC, or of KVM's.

use whit_vpmu::{Delivery, DeliveryMode, Interrupt, Lvtpc};

/// Vectors below are exceptions: a local APIC sends none of them.
const VECTOR_MIN: u8 = 16;

/// LVTPC, and the interrupt that is to be injected. Where the local APIC is KVM's, it decides at the entry, by its own
/// register ([`KvmVpmu::enter`](crate::KvmVpmu::enter)).
#[derive(Debug, Default)]
pub struct Line {
    /// The register.
    pub lvtpc: Lvtpc,
    pub(crate) of_kernel: bool,
    asked: bool,
    nmi: bool,
    vector: Option<u8>,
    other: u64,
}

impl Line {
    /// Takes a request that KVM's local APIC has to decide.
    pub(crate) fn take_request(&mut self) -> bool {
        std::mem::take(&mut self.asked)
    }

    /// Takes the NMI that is due.
    pub(crate) fn take_nmi(&mut self) -> bool {
        std::mem::take(&mut self.nmi)
    }

    /// Takes the vector that is due.
    pub(crate) fn take_vector(&mut self) -> Option<u8> {
        self.vector.take()
    }

    /// Interrupts that are not injected: neither NMIs nor vectors, or masked by KVM's local APIC.
    #[must_use]
    pub const fn not_injected(&self) -> u64 {
        self.other
    }

    /// One interrupt, as LVTPC says.
    pub(crate) fn deliver(&mut self, mask: bool) -> Delivery {
        match self.lvtpc.take(mask) {
            Some(DeliveryMode::Nmi) => self.nmi = true,
            Some(DeliveryMode::Fixed(vector)) if vector >= VECTOR_MIN => self.vector = Some(vector),
            Some(_) => self.other += 1,
            None => {
                self.other += u64::from(self.of_kernel);
                return Delivery::Masked;
            }
        }
        Delivery::Delivered
    }
}

impl Interrupt for Line {
    fn pmi(&mut self, mask: bool) -> Delivery {
        if self.of_kernel {
            self.asked = true;
            return Delivery::Delivered;
        }
        self.deliver(mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The NMI, the vector and the number of interrupts that are not injected.
    fn delivered(entry: u32) -> (bool, Option<u8>, u64) {
        let mut line = Line::default();
        line.lvtpc.write(entry);
        line.pmi(true);
        (line.take_nmi(), line.take_vector(), line.not_injected())
    }

    #[test]
    fn an_interrupt_is_an_nmi_or_a_vector() {
        assert_eq!(delivered(0x400), (true, None, 0));
        assert_eq!(
            [delivered(0x10), delivered(0xff)],
            [(false, Some(16), 0), (false, Some(255), 0)]
        );
        assert_eq!(delivered(0x0f), (false, None, 1), "an exception's vector");
        assert_eq!(delivered(0x2f0), (false, None, 1), "a system management interrupt");
        assert_eq!(delivered(0x1_0020), (false, None, 0), "masked");
    }

    #[test]
    fn the_apic_of_kvm_decides_later() {
        let mut line = Line { of_kernel: true, ..Line::default() };
        assert_eq!(line.pmi(true), Delivery::Delivered);
        assert!(line.take_request() && !line.take_request() && line.take_vector().is_none());
        assert_eq!((line.deliver(false), line.not_injected()), (Delivery::Masked, 1));
        line.lvtpc.write(0x20);
        assert_eq!((line.deliver(false), line.take_vector()), (Delivery::Delivered, Some(0x20)));
        assert_eq!(line.lvtpc.read(), 0x20, "KVM's register is not written");
    }
}
