//! Where register accesses go.

use core::ops::{Add, AddAssign, Sub};

use crate::counter::CounterIndex;
use crate::msr::{self, Msr};

/// The registers of one CPU.
///
/// All access to hardware goes through this trait, so the same logic drives a real PMU, one that a
/// hypervisor emulates, and the simulated one. An implementation for hardware executes RDMSR and
/// WRMSR on the CPU it is called on; its caller sees to it that the thread cannot move to another CPU
/// meanwhile. Registers that the driver touches exist on the machine that [`crate::model::PmuModel`]
/// describes; an implementation answers for those that do not as its environment wants (#GP, panic).
pub trait PmuBus {
    /// Reads a register.
    fn rdmsr(&mut self, msr: Msr) -> u64;

    /// Writes a register.
    fn wrmsr(&mut self, msr: Msr, value: u64);

    /// Reads a counter, which RDPMC does in fewer cycles than RDMSR. `msr` is the counter's register.
    fn rdpmc(&mut self, counter: CounterIndex, msr: Msr) -> u64 {
        let _ = counter;
        self.rdmsr(msr)
    }
}

impl<B: PmuBus + ?Sized> PmuBus for &mut B {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        (**self).rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        (**self).wrmsr(msr, value);
    }

    fn rdpmc(&mut self, counter: CounterIndex, msr: Msr) -> u64 {
        (**self).rdpmc(counter, msr)
    }
}

/// Purpose of a register.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum RegisterClass {
    /// The PMU's own control: global control and status, acknowledgement, PEBS_ENABLE. This is what
    /// the published per-interrupt counts (5 W + 2 R and 1 W + 1 R) are made of.
    Control,
    /// Counters and their event selects.
    Counter,
    /// Branch records and their control, DEBUGCTL included.
    Branch,
    /// The local APIC's LVTPC.
    Apic,
    /// A register of no other class.
    Other,
}

impl RegisterClass {
    /// Every class, in the order of the variants.
    pub const ALL: [RegisterClass; 5] = [
        RegisterClass::Control,
        RegisterClass::Counter,
        RegisterClass::Branch,
        RegisterClass::Apic,
        RegisterClass::Other,
    ];

    /// The class of a register.
    #[must_use]
    pub const fn of(register: Msr) -> RegisterClass {
        match register.0 {
            0x38e..=0x392 | 0x3f1 | 0x3f2 | 0xc000_0300..=0xc000_0303 => RegisterClass::Control,
            0xc1..=0xe0 | 0x4c1..=0x4e0 | 0x186..=0x1a5 | 0x309..=0x318 | 0x38d => {
                RegisterClass::Counter
            }
            0xc001_0000..=0xc001_0007 | 0xc001_0200..=0xc001_021f => RegisterClass::Counter,
            0x1c8 | 0x1c9 | 0x1d9 | 0x680..=0x6df | 0xdc0..=0xddf => RegisterClass::Branch,
            0x14ce | 0x14cf | 0x1200..=0x123f | 0x1500..=0x153f | 0x1600..=0x163f => {
                RegisterClass::Branch
            }
            0xc000_010e | 0xc000_010f | 0xc001_0300..=0xc001_033f => RegisterClass::Branch,
            _ if register.0 == msr::X2APIC_LVTPC.0 => RegisterClass::Apic,
            _ => RegisterClass::Other,
        }
    }
}

/// Register accesses of one kind of register.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Tally {
    /// Reads of a model-specific register.
    pub rdmsr: u64,
    /// Writes to a model-specific register.
    pub wrmsr: u64,
    /// Reads of a counter by its own instruction.
    pub rdpmc: u64,
}

impl Tally {
    /// All accesses.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.rdmsr + self.wrmsr + self.rdpmc
    }
}

impl Add for Tally {
    type Output = Tally;

    fn add(self, other: Tally) -> Tally {
        Tally {
            rdmsr: self.rdmsr + other.rdmsr,
            wrmsr: self.wrmsr + other.wrmsr,
            rdpmc: self.rdpmc + other.rdpmc,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        *self = *self + other;
    }
}

impl Sub for Tally {
    type Output = Tally;

    /// Accesses since `earlier`.
    fn sub(self, earlier: Tally) -> Tally {
        Tally {
            rdmsr: self.rdmsr - earlier.rdmsr,
            wrmsr: self.wrmsr - earlier.wrmsr,
            rdpmc: self.rdpmc - earlier.rdpmc,
        }
    }
}

/// Register accesses by class.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Accesses {
    by_class: [Tally; RegisterClass::ALL.len()],
}

impl Accesses {
    /// Those of one class.
    #[must_use]
    pub const fn of(&self, class: RegisterClass) -> Tally {
        self.by_class[class as usize]
    }

    /// Those of all classes.
    #[must_use]
    pub fn total(&self) -> Tally {
        self.by_class.iter().fold(Tally::default(), |sum, tally| sum + *tally)
    }

    /// Adds those of another count.
    pub fn add(&mut self, other: &Accesses) {
        for (sum, other) in self.by_class.iter_mut().zip(&other.by_class) {
            *sum += *other;
        }
    }

    /// Accesses since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Accesses) -> Accesses {
        let mut difference = *self;
        for (later, earlier) in difference.by_class.iter_mut().zip(&earlier.by_class) {
            *later = *later - *earlier;
        }
        difference
    }

    fn of_mut(&mut self, register: Msr) -> &mut Tally {
        &mut self.by_class[RegisterClass::of(register) as usize]
    }
}

/// A bus that counts the accesses through it.
#[derive(Clone, Debug)]
pub struct Counting<B> {
    bus: B,
    accesses: Accesses,
}

impl<B> Counting<B> {
    /// Counts accesses to `bus` from now on.
    pub const fn new(bus: B) -> Counting<B> {
        Counting {
            bus,
            accesses: Accesses { by_class: [Tally { rdmsr: 0, wrmsr: 0, rdpmc: 0 }; 5] },
        }
    }

    /// Counts so far.
    pub const fn accesses(&self) -> &Accesses {
        &self.accesses
    }

    /// The bus itself.
    pub const fn get_ref(&self) -> &B {
        &self.bus
    }

    /// The bus itself; accesses to it are not counted.
    pub const fn get_mut(&mut self) -> &mut B {
        &mut self.bus
    }

    /// The bus itself.
    pub fn into_inner(self) -> B {
        self.bus
    }
}

impl<B: PmuBus> PmuBus for Counting<B> {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        self.accesses.of_mut(msr).rdmsr += 1;
        self.bus.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.accesses.of_mut(msr).wrmsr += 1;
        self.bus.wrmsr(msr, value);
    }

    fn rdpmc(&mut self, counter: CounterIndex, msr: Msr) -> u64 {
        self.accesses.of_mut(msr).rdpmc += 1;
        self.bus.rdpmc(counter, msr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Zeros;

    impl PmuBus for Zeros {
        fn rdmsr(&mut self, _: Msr) -> u64 {
            0
        }

        fn wrmsr(&mut self, _: Msr, _: u64) {}
    }

    #[test]
    fn accesses_are_counted_by_class_and_kind() {
        let mut bus = Counting::new(Zeros);
        bus.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 0);
        let before = *bus.accesses();
        bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS);
        bus.rdpmc(CounterIndex::general(1), msr::IA32_PMC.offset(1));
        bus.wrmsr(msr::X2APIC_LVTPC, 0);
        let since = bus.accesses().since(&before);
        assert_eq!(since.of(RegisterClass::Control), Tally { rdmsr: 1, wrmsr: 0, rdpmc: 0 });
        assert_eq!(since.of(RegisterClass::Counter), Tally { rdmsr: 0, wrmsr: 0, rdpmc: 1 });
        assert_eq!(since.of(RegisterClass::Apic), Tally { rdmsr: 0, wrmsr: 1, rdpmc: 0 });
        assert_eq!((since.total().total(), bus.accesses().total().total()), (3, 4));
    }

    #[test]
    fn every_register_of_the_driver_has_its_class() {
        let control = [
            msr::IA32_PERF_GLOBAL_STATUS,
            msr::IA32_PERF_GLOBAL_CTRL,
            msr::IA32_PERF_GLOBAL_STATUS_RESET,
            msr::IA32_PEBS_ENABLE,
            msr::PERF_CNTR_GLOBAL_STATUS_CLR,
        ];
        assert!(control.iter().all(|msr| RegisterClass::of(*msr) == RegisterClass::Control));
        let counters = [
            msr::IA32_PMC.offset(7),
            msr::IA32_A_PMC,
            msr::IA32_PERFEVTSEL.offset(7),
            msr::IA32_FIXED_CTR.offset(3),
            msr::IA32_FIXED_CTR_CTRL,
            msr::K7_PERF_CTR.offset(3),
            msr::CORE_PERF_CTL.offset(10),
        ];
        assert!(counters.iter().all(|msr| RegisterClass::of(*msr) == RegisterClass::Counter));
        let branches = [
            msr::IA32_DEBUGCTL,
            msr::LBR_SELECT,
            msr::LASTBRANCH_TO.offset(31),
            msr::LBR_INFO.offset(31),
            msr::IA32_LBR_DEPTH,
            msr::IA32_LBR_FROM.offset(31),
            msr::AMD_LBR_TO.offset(30),
        ];
        assert!(branches.iter().all(|msr| RegisterClass::of(*msr) == RegisterClass::Branch));
        assert_eq!(RegisterClass::of(msr::IA32_APERF), RegisterClass::Other);
    }
}
