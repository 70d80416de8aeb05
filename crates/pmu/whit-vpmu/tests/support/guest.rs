//! A guest that does anything, on a device and on the reference at once.

use whit_vpmu::{Backing, PmuModel, Simulated, Vpmu, VpmuConfig};

use super::reference::Reference;
use super::{Device, Line};

/// Actions of a guest, its host and its VMM.
#[derive(Clone, Debug)]
pub enum Step {
    Read(u32),
    Write(u32, u64),
    /// The guest writes LVTPC.
    Apic(u32),
    /// An event occurs in the guest.
    Occur {
        code: usize,
        kernel: bool,
        count: u64,
    },
    /// The VMM answers an exit for an instruction.
    Emulate {
        kernel: bool,
    },
    Tick(u64),
    Release,
    Poll,
    /// A snapshot is taken and restored into another device.
    Migrate,
}

/// Events that occur.
pub const CODES: [u64; 4] = [0xc0, 0x3c, 0x300, 0x41_2e];

/// How a device is set up for a comparison.
#[derive(Copy, Clone, Debug)]
pub struct Setting {
    pub model: PmuModel,
    pub backing: Backing,
    pub lingers: bool,
    pub pmis_per_tick_max: u32,
}

impl Setting {
    fn config(&self) -> VpmuConfig {
        let mut config = VpmuConfig::new(self.model);
        config.backing = self.backing;
        config.pmis_per_tick_max = self.pmis_per_tick_max;
        config
    }

    fn source(&self) -> Simulated {
        if self.lingers { Simulated::lingering() } else { Simulated::new() }
    }
}

/// Turns a number into one of the PMU's registers or a neighbour of them, one in 16 into any.
pub fn register(model: &PmuModel, number: u32) -> u32 {
    let rows = model.msrs();
    let registers: u32 = rows.iter().map(|row| row.count + 2).sum();
    if number % 16 == 15 {
        return number;
    }
    let mut place = (number / 16) % registers;
    for row in rows {
        if place < row.count + 2 {
            return row.first.wrapping_add(place).wrapping_sub(1);
        }
        place -= row.count + 2;
    }
    number
}

/// Turns a number into a value that does something, more often than not.
pub fn value(model: &PmuModel, number: u64) -> u64 {
    let mask = (1_u64 << model.width_bits()) - 1;
    let rest = number >> 4;
    match number & 15 {
        0..=3 => mask & 0_u64.wrapping_sub(rest % 300),
        4..=8 => {
            let modes = [0x43_u64, 0x53, 0x41, 0x52, 0x13, 0x50, 0x5b][(rest >> 8) as usize % 7];
            CODES[rest as usize % CODES.len()] | (modes << 16)
        }
        9 => rest & ((1 << model.general()) - 1),
        10 => (rest & 0xff) | ((rest >> 8 & 7) << 32),
        11 => rest & 0xbbb,
        12 => 0,
        13 => u64::MAX,
        14 => rest << 56,
        _ => number.rotate_left(17),
    }
}

/// Both devices, and the state of their comparison.
pub struct Pair {
    setting: Setting,
    pub device: Device,
    pub reference: Reference,
    now_ns: u64,
}

impl Pair {
    pub fn new(setting: Setting) -> Pair {
        let config = setting.config();
        Pair {
            reference: Reference::new(
                setting.model,
                Line::nmi(),
                config.pmis_per_tick_max,
                config.tick_ns,
            ),
            device: Vpmu::new(config, setting.source(), Line::nmi()),
            setting,
            now_ns: 0,
        }
    }

    /// One step on both.
    ///
    /// # Panics
    /// Where the guest sees a difference.
    pub fn step(&mut self, step: &Step) {
        match *step {
            Step::Read(msr) => {
                let (device, reference) = (self.device.rdmsr(msr).ok(), self.reference.rdmsr(msr));
                assert_eq!(device, reference, "RDMSR {msr:#x}");
            }
            Step::Write(msr, value) => {
                let device = self.device.wrmsr(msr, value).is_ok();
                let reference = self.reference.wrmsr(msr, value);
                assert_eq!(device, reference, "WRMSR {msr:#x}, {value:#x}");
            }
            Step::Apic(value) => {
                self.device.interrupt_mut().lvtpc.write(value);
                self.reference.line.lvtpc.write(value);
            }
            Step::Occur { code, kernel, count } => self.occur(CODES[code], kernel, count),
            Step::Emulate { kernel } => {
                self.device.count_emulated(CODES[0], kernel);
                self.reference.occur(CODES[0], kernel, 1);
            }
            Step::Tick(ns) => {
                self.now_ns += ns;
                self.device.on_tick(self.now_ns);
                self.reference.tick(self.now_ns);
            }
            Step::Release => {
                self.device.release_idle();
            }
            Step::Poll => {
                self.device.poll_overflows();
            }
            Step::Migrate => self.migrate(),
        }
        self.device.on_vcpu_enter();
        self.reference.enter();
        assert_eq!(self.device.interrupt(), &self.reference.line, "interrupts after {step:?}");
        let slots = usize::from(self.setting.model.general() + self.setting.model.fixed());
        assert!(self.device.source().most_open_events() <= slots, "events are bounded");
    }

    /// Events occur on each by itself: notices of the device may come in between.
    fn occur(&mut self, code: u64, kernel: bool, count: u64) {
        let mut log = Vec::new();
        let mut left = count;
        while left > 0 {
            left = self.device.source_mut().occur(code, kernel, left);
            while let Some(token) = self.device.source_mut().take_notice() {
                self.device.on_overflow(token);
            }
            let before = self.device.interrupt().clone();
            self.device.on_vcpu_enter();
            if before != *self.device.interrupt() {
                log.push(left);
            }
        }
        let mut expected = Vec::new();
        let mut left = count;
        while left > 0 {
            left = self.reference.occur(code, kernel, left);
            let before = self.reference.line.clone();
            self.reference.enter();
            if before != self.reference.line {
                expected.push(left);
            }
        }
        assert_eq!(log, expected, "when interrupts came");
    }

    fn migrate(&mut self) {
        let state = self.device.state();
        let (config, line) = (self.setting.config(), self.device.interrupt().clone());
        let restored = Vpmu::from_state(config, self.setting.source(), line, &state);
        let mut restored = restored.expect("its own state");
        assert_eq!(restored.state(), state);
        // The clock and the budget are the host's, which begin anew.
        let line = self.reference.line.clone();
        self.device = restored;
        self.reference.line = line;
        self.reference.begin_anew();
    }

    /// All registers.
    ///
    /// # Panics
    /// Where the guest sees a difference.
    pub fn compare(&mut self) {
        for row in self.setting.model.msrs() {
            for msr in row.first..row.first + row.count {
                self.step(&Step::Read(msr));
            }
        }
    }
}
