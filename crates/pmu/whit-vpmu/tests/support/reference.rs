//! A PMU that is nothing but arithmetic: no host events, so nothing to reuse, to release or to arm.
//! Written from the manuals' text, apart from the device.

use whit_vpmu::{PmuKind, PmuModel};

use super::Line;
use whit_vpmu::{Delivery, Interrupt};

const EN: u64 = 1 << 22;
const INT: u64 = 1 << 20;
const USR: u64 = 1 << 16;
const OS: u64 = 1 << 17;
/// Bits of a select that are neither privilege, interrupt, enable, pin control nor AnyThread.
const EVENT: u64 = 0xf_ff84_ffff;
const CTR_FRZ: u64 = 1 << 59;

pub struct Reference {
    model: PmuModel,
    general: Vec<(u64, u64)>,
    fixed: Vec<u64>,
    fixed_control: u64,
    global_control: u64,
    status: u64,
    due: bool,
    pub line: Line,
    budget: u32,
    per_tick: u32,
    tick_ns: u64,
    ticked_ns: Option<u64>,
}

impl Reference {
    pub fn new(model: PmuModel, line: Line, per_tick: u32, tick_ns: u64) -> Reference {
        let global = matches!(model.kind(), PmuKind::Intel { .. } | PmuKind::AmdV2);
        Reference {
            general: vec![(0, 0); model.general().into()],
            fixed: vec![0; model.fixed().into()],
            fixed_control: 0,
            global_control: if global { (1 << model.general()) - 1 } else { 0 },
            status: 0,
            due: false,
            line,
            budget: per_tick,
            per_tick,
            tick_ns,
            ticked_ns: None,
            model,
        }
    }

    fn mask(&self) -> u64 {
        (1 << self.model.width_bits()) - 1
    }

    fn version(&self) -> u8 {
        if let PmuKind::Intel { version } = self.model.kind() { version } else { 0 }
    }

    fn counter_bits(&self) -> u64 {
        ((1 << self.general.len()) - 1) | (((1 << self.fixed.len()) - 1) << 32)
    }

    fn has_global(&self) -> bool {
        self.version() > 0 || self.model.kind() == PmuKind::AmdV2
    }

    /// The value and select of a counter that counts.
    fn running(&self) -> Vec<(usize, bool, u64)> {
        let open = |bit: u64| {
            !self.has_global() || (self.global_control & bit != 0 && self.status & CTR_FRZ == 0)
        };
        let general = self.general.iter().enumerate().filter_map(|(n, (_, select))| {
            (open(1 << n) && select & EN != 0).then_some((n, false, *select))
        });
        let codes = [0xc0_u64, 0x3c, 0x300, 0x400];
        let fixed = (0..self.fixed.len()).filter_map(|n| {
            let bits = self.fixed_control >> (4 * n);
            let modes = ((bits & 1) * OS) | ((bits >> 1 & 1) * USR) | ((bits >> 3 & 1) * INT);
            (open(1 << (32 + n)) && bits & 3 != 0).then_some((n, true, codes[n] | modes))
        });
        general.chain(fixed).collect()
    }

    /// Events occur until a counter overflows; the result is how many are left.
    pub fn occur(&mut self, code: u64, kernel: bool, count: u64) -> u64 {
        let mask = self.mask();
        let mut matching = self.running();
        matching.retain(|(.., select)| {
            select & EVENT & !(USR | OS | INT | EN) == code
                && select & if kernel { OS } else { USR } != 0
        });
        let distance = |reference: &Reference, n: usize, fixed: bool| {
            mask + 1 - if fixed { reference.fixed[n] } else { reference.general[n].0 }
        };
        let nearest = matching.iter().map(|(n, fixed, _)| distance(self, *n, *fixed)).min();
        let step = nearest.unwrap_or(count).min(count);
        for (n, fixed, select) in matching {
            let place = if fixed { &mut self.fixed[n] } else { &mut self.general[n].0 };
            *place += step;
            if *place > mask {
                *place = 0;
                self.due |= select & INT != 0;
                if self.has_global() {
                    self.status |= if fixed { 1 << (32 + n) } else { 1 << n };
                }
            }
        }
        count - step
    }

    pub fn enter(&mut self) {
        if self.due && self.budget > 0 {
            self.budget -= 1;
            self.due = false;
            let _: Delivery = self.line.pmi(self.version() > 0);
        }
    }

    pub fn tick(&mut self, now_ns: u64) {
        let last = *self.ticked_ns.get_or_insert(now_ns);
        if now_ns - last >= self.tick_ns {
            (self.ticked_ns, self.budget) = (Some(now_ns), self.per_tick);
        }
    }

    /// On another host: registers alone come along.
    pub fn begin_anew(&mut self) {
        (self.ticked_ns, self.budget) = (None, self.per_tick);
    }

    pub fn rdmsr(&self, msr: u32) -> Option<u64> {
        let n = |first: u32| msr.wrapping_sub(first) as usize;
        let general = |index: usize| self.general.get(index);
        if self.version() > 0 {
            let full = self.model.full_width_writes();
            return match msr {
                0xc1..=0xd0 => general(n(0xc1)).map(|(value, _)| *value),
                0x4c1..=0x4d0 if full => general(n(0x4c1)).map(|(value, _)| *value),
                0x186..=0x195 => general(n(0x186)).map(|(_, select)| *select),
                0x309..=0x310 => self.fixed.get(n(0x309)).copied(),
                0x345 if full => Some(1 << 13),
                0x38d => Some(self.fixed_control),
                0x38e => Some(self.status),
                0x38f => Some(self.global_control),
                0x390 => Some(0),
                0x391 if self.version() >= 4 => Some(0),
                0x392 if self.version() >= 4 => Some(self.in_use()),
                _ => None,
            };
        }
        if self.model.kind() == PmuKind::AmdV2 {
            match msr {
                0xc000_0300 => return Some(self.status),
                0xc000_0301 => return Some(self.global_control),
                0xc000_0302 | 0xc000_0303 => return Some(0),
                _ => {}
            }
        }
        let (index, is_select) = self.amd_place(msr)?;
        general(index).map(|(value, select)| if is_select { *select } else { *value })
    }

    fn in_use(&self) -> u64 {
        let mut bits = 0;
        for (n, (_, select)) in self.general.iter().enumerate() {
            bits |= u64::from(select & 0xff != 0) << n;
            bits |= u64::from(select & INT != 0) << 63;
        }
        for n in 0..self.fixed.len() {
            let control = self.fixed_control >> (4 * n);
            bits |= u64::from(control & 3 != 0) << (32 + n);
            bits |= u64::from(control & 8 != 0) << 63;
        }
        bits
    }

    /// A counter's number, and whether the register is its select.
    fn amd_place(&self, msr: u32) -> Option<(usize, bool)> {
        match msr {
            0xc001_0000..=0xc001_0003 => Some(((msr & 3) as usize, true)),
            0xc001_0004..=0xc001_0007 => Some(((msr & 3) as usize, false)),
            0xc001_0200..=0xc001_021f if self.model.kind() != PmuKind::AmdK7 => {
                Some((((msr - 0xc001_0200) / 2) as usize, msr & 1 == 0))
            }
            _ => None,
        }
    }

    #[must_use]
    pub fn wrmsr(&mut self, msr: u32, value: u64) -> bool {
        if self.version() > 0 {
            self.intel_write(msr, value).is_some()
        } else {
            self.amd_write(msr, value).is_some()
        }
    }

    fn intel_write(&mut self, msr: u32, value: u64) -> Option<()> {
        let mask = self.mask();
        let n = |first: u32| msr.wrapping_sub(first) as usize;
        let only = |value: u64, allowed: u64| (value & !allowed == 0).then_some(value);
        let status_bits = match self.version() {
            2 | 3 => self.counter_bits() | (3 << 62),
            _ => self.counter_bits() | (0x3f << 58),
        };
        match msr {
            0xc1..=0xd0 => {
                let low = value & 0xffff_ffff;
                let extended = if low >> 31 == 1 { low | (u64::MAX << 32) } else { low };
                self.general.get_mut(n(0xc1))?.0 = extended & mask;
            }
            0x4c1..=0x4d0 if self.model.full_width_writes() => {
                self.general.get(n(0x4c1))?;
                self.general[n(0x4c1)].0 = only(value, mask)?;
            }
            0x186..=0x195 => {
                self.general.get(n(0x186))?;
                self.general[n(0x186)].1 = only(value, 0xffdf_ffff)?;
            }
            0x309..=0x310 => *self.fixed.get_mut(n(0x309))? = value & mask,
            0x38d => {
                let allowed = (0..self.fixed.len()).fold(0, |bits, n| bits | (0xb << (4 * n)));
                self.fixed_control = only(value, allowed)?;
            }
            0x38f => self.global_control = only(value, self.counter_bits())?,
            0x390 => self.status &= !only(value, status_bits)?,
            0x391 if self.version() >= 4 => self.status |= only(value, status_bits & !(1 << 63))?,
            _ => return None,
        }
        Some(())
    }

    fn amd_write(&mut self, msr: u32, value: u64) -> Option<()> {
        let counters = self.counter_bits();
        if self.model.kind() == PmuKind::AmdV2 {
            match msr {
                0xc000_0300 => return Some(()),
                0xc000_0301 => self.global_control = value & counters,
                0xc000_0302 => self.status &= !value,
                0xc000_0303 => self.status |= value & counters,
                _ => {}
            }
            if msr & 0xffff_fffc == 0xc000_0300 {
                return Some(());
            }
        }
        let mask = self.mask();
        let (index, is_select) = self.amd_place(msr)?;
        let (count, select) = self.general.get_mut(index)?;
        if is_select {
            *select = value & 0xf_ffd7_ffff;
        } else {
            *count = value & mask;
        }
        Some(())
    }
}
