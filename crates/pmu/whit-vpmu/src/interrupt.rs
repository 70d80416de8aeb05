//! The line from the PMU to the guest's interrupt controller.

/// Outcome of an interrupt.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub enum Delivery {
    /// The guest will have it.
    Delivered,
    /// LVTPC is masked: it is gone, as in KVM's local APIC.
    Masked,
}

/// Delivers performance monitoring interrupts by the local APIC's LVTPC entry.
pub trait Interrupt {
    /// Delivers one. Where `mask` is true (Intel) a delivery sets the entry's mask bit, and the guest has to
    /// clear it before the next.
    fn pmi(&mut self, mask: bool) -> Delivery;
}

impl<I: Interrupt + ?Sized> Interrupt for &mut I {
    fn pmi(&mut self, mask: bool) -> Delivery {
        (**self).pmi(mask)
    }
}

/// Mode of delivery in LVTPC.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum DeliveryMode {
    /// The interrupt with this vector.
    Fixed(u8),
    /// An NMI, as operating systems have it.
    Nmi,
    /// Another mode (SMI, INIT, ExtINT), by its number.
    Other(u8),
}

/// LVTPC of a local APIC that the VMM keeps itself. One that is in the kernel has its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lvtpc(u32);

impl Lvtpc {
    /// The register's number in x2APIC mode; in xAPIC mode it is at offset 0x340.
    pub const X2APIC_MSR: u32 = 0x834;
    /// The mask bit.
    pub const MASKED: u32 = 1 << 16;
    /// Bits that can be written: vector, mode, mask.
    const WRITABLE: u32 = 0x1_07ff;

    /// At power-on: masked.
    #[must_use]
    pub const fn new() -> Lvtpc {
        Lvtpc(Lvtpc::MASKED)
    }

    /// The register.
    #[must_use]
    pub const fn read(&self) -> u32 {
        self.0
    }

    /// The guest writes the register; reserved bits are dropped.
    pub const fn write(&mut self, value: u32) {
        self.0 = value & Lvtpc::WRITABLE;
    }

    /// Takes an interrupt of the PMU; how it is delivered, `None` where it is masked.
    pub const fn take(&mut self, mask: bool) -> Option<DeliveryMode> {
        if self.0 & Lvtpc::MASKED != 0 {
            return None;
        }
        let entry = self.0;
        if mask {
            self.0 |= Lvtpc::MASKED;
        }
        Some(match (entry >> 8) & 7 {
            0 => DeliveryMode::Fixed(entry as u8),
            4 => DeliveryMode::Nmi,
            other => DeliveryMode::Other(other as u8),
        })
    }
}

impl Default for Lvtpc {
    fn default() -> Lvtpc {
        Lvtpc::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lvtpc_delivers_by_its_mode_until_it_is_masked() {
        let mut lvtpc = Lvtpc::default();
        assert_eq!((lvtpc.read(), lvtpc.take(false)), (0x1_0000, None));
        for (entry, mode) in [
            (0x0f0, DeliveryMode::Fixed(0xf0)),
            (0x400, DeliveryMode::Nmi),
            (0x4f0, DeliveryMode::Nmi),
            (0x200, DeliveryMode::Other(2)),
            (0x7ff, DeliveryMode::Other(7)),
        ] {
            lvtpc.write(entry);
            assert_eq!([lvtpc.take(false), lvtpc.take(true)], [Some(mode); 2]);
            assert_eq!((lvtpc.read(), lvtpc.take(true)), (entry | 0x1_0000, None));
        }
        lvtpc.write(u32::MAX);
        assert_eq!(lvtpc.read(), 0x1_07ff, "delivery status and reserved bits stay zero");
    }
}
