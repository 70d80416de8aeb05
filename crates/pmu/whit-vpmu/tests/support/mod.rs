//! Support that tests and the fuzz target share: guests that do anything, and a reference to
//! compare with.
#![allow(dead_code, unreachable_pub)]

pub mod guest;
pub mod reference;

use whit_vpmu::{
    Backing, Delivery, DeliveryMode, IntelPmu, Interrupt, Lvtpc, PmuModel, Simulated, Vpmu,
    VpmuConfig,
};

/// An interrupt controller that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub lvtpc: Lvtpc,
    pub nmis: u64,
}

impl Line {
    /// One that delivers NMIs.
    pub fn nmi() -> Line {
        let mut line = Line::default();
        line.lvtpc.write(0x400);
        line
    }
}

impl Interrupt for Line {
    fn pmi(&mut self, mask: bool) -> Delivery {
        match self.lvtpc.take(mask) {
            Some(mode) => {
                self.nmis += u64::from(mode == DeliveryMode::Nmi);
                Delivery::Delivered
            }
            None => Delivery::Masked,
        }
    }
}

pub type Device = Vpmu<Simulated, Line>;

/// PMUs of every kind.
pub fn models() -> Vec<PmuModel> {
    let intel = |version, general, fixed, width_bits, full_width_writes| {
        let pmu = IntelPmu { version, general, fixed, width_bits, full_width_writes };
        PmuModel::intel(pmu).expect("a model")
    };
    vec![
        intel(2, 2, 3, 40, false),
        intel(4, 4, 3, 48, true),
        intel(5, 8, 4, 48, true),
        intel(3, 1, 0, 32, true),
        PmuModel::amd_k7(),
        PmuModel::amd_core(),
        PmuModel::amd_v2(6).expect("a model"),
    ]
}

pub fn config(model: PmuModel, backing: Backing) -> VpmuConfig {
    let mut config = VpmuConfig::new(model);
    config.backing = backing;
    config
}

/// A device on a host, with LVTPC unmasked.
pub fn device(model: PmuModel) -> Device {
    Vpmu::new(VpmuConfig::new(model), Simulated::new(), Line::nmi())
}

/// The guest writes, and runs on.
pub fn write(device: &mut Device, msr: u32, value: u64) {
    device.wrmsr(msr, value).unwrap_or_else(|_| panic!("#GP on WRMSR {msr:#x}, {value:#x}"));
    device.on_vcpu_enter();
}

pub fn read(device: &mut Device, msr: u32) -> u64 {
    let value = device.rdmsr(msr).unwrap_or_else(|_| panic!("#GP on RDMSR {msr:#x}"));
    device.on_vcpu_enter();
    value
}

/// Events occur in the guest, and notices are handled as they come.
pub fn run(device: &mut Device, select: u64, kernel: bool, count: u64) {
    let mut left = count;
    while left > 0 {
        left = device.source_mut().occur(select, kernel, left);
        while let Some(token) = device.source_mut().take_notice() {
            device.on_overflow(token);
        }
        device.on_vcpu_enter();
    }
}
