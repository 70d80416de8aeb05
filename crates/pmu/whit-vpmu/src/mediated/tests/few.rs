//! The number of accesses, and single calls.

use super::hardware::{Hardware, INSTRUCTIONS};
use super::machine::select;
use crate::mediated::{HostCpu, HostShare, Mediated, MediatedError, Passing, ShareError};
use crate::model::{CounterIndex, IntelPmu, PmuModel};
use crate::msr;
use crate::{Gp, StateError};

/// Counts register accesses.
struct Counted {
    hardware: Hardware,
    reads: u32,
    writes: u32,
}

impl Counted {
    fn take(&mut self) -> (u32, u32) {
        (std::mem::take(&mut self.reads), std::mem::take(&mut self.writes))
    }
}

impl HostCpu for Counted {
    fn rdmsr(&mut self, msr: u32) -> u64 {
        self.reads += 1;
        self.hardware.rdmsr(msr)
    }

    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.writes += 1;
        self.hardware.wrmsr(msr, value);
    }

    fn rdpmc(&mut self, counter: CounterIndex) -> u64 {
        self.reads += 1;
        self.hardware.rdpmc(counter)
    }

    fn write_lvtpc(&mut self, entry: u32) {
        self.writes += 1;
        self.hardware.write_lvtpc(entry);
    }

    fn exit_control(&mut self) -> u64 {
        self.hardware.exit_control()
    }

    fn set_entry_control(&mut self, value: u64) {
        self.hardware.set_entry_control(value);
    }

    fn host_leaves(&mut self) -> u64 {
        self.hardware.host_leaves()
    }

    fn host_returns(&mut self) {
        self.hardware.host_returns();
    }
}

fn intel(general: u8, fixed: u8) -> PmuModel {
    let pmu = IntelPmu { general, fixed, ..IntelPmu::default() };
    PmuModel::intel(pmu).unwrap()
}

fn small() -> (Mediated, Counted) {
    let model = intel(3, 1);
    let hardware = Hardware::new(model, model, 0);
    let mediated = Mediated::new(&model, model, None).unwrap();
    (mediated, Counted { hardware, reads: 0, writes: 0 })
}

#[test]
fn a_guest_that_counts_nothing_costs_nothing() {
    let (mut mediated, mut cpu) = small();
    for _ in 0..2 {
        mediated.load(&mut cpu);
        mediated.wrmsr(&mut cpu, msr::IA32_A_PMC, 7).unwrap();
        assert_eq!(mediated.rdmsr(&mut cpu, msr::IA32_PMC), Ok(7));
        assert_eq!(mediated.passes(msr::IA32_A_PMC), Passing { read: false, write: false });
        assert!(!mediated.passes_rdpmc());
        mediated.put(&mut cpu);
    }
    assert_eq!(cpu.take(), (0, 0));
}

#[test]
fn only_counters_in_use_are_switched() {
    let (mut mediated, mut cpu) = small();
    mediated.load(&mut cpu);
    mediated.wrmsr(&mut cpu, msr::IA32_PERFEVTSEL, select(INSTRUCTIONS)).unwrap();
    // LVTPC and the select.
    assert_eq!(cpu.take(), (0, 2));
    assert!(mediated.is_resident() && mediated.passes_rdpmc());
    let whole = Passing { read: true, write: true };
    assert_eq!(mediated.passes(msr::IA32_A_PMC), whole);
    assert_eq!(mediated.passes(msr::IA32_A_PMC + 1), Passing { write: false, ..whole });
    assert_eq!(mediated.passes(msr::IA32_PERFEVTSEL), Passing { read: false, write: false });
    cpu.hardware.enter();
    cpu.hardware.occur(INSTRUCTIONS);
    cpu.hardware.exit();
    mediated.put(&mut cpu);
    // Status and the counter; zeros into the counter and its select.
    assert_eq!(cpu.take(), (2, 2));
    mediated.load(&mut cpu);
    // LVTPC, the counter, its select.
    assert_eq!(cpu.take(), (0, 3));
    mediated.wrmsr(&mut cpu, msr::IA32_PERFEVTSEL, 0).unwrap();
    for _ in 0..2 {
        mediated.put(&mut cpu);
        mediated.load(&mut cpu);
    }
    cpu.take();
    mediated.put(&mut cpu);
    assert_eq!(cpu.take(), (0, 0), "a counter that was left alone is in use no longer");
    assert_eq!(mediated.rdpmc(&mut cpu, CounterIndex::General(0)), Ok(1));
    assert_eq!(mediated.rdpmc(&mut cpu, CounterIndex::General(3)), Err(Gp));
}

#[test]
fn a_guest_with_fewer_counters_than_the_cpu_reads_them_by_exits() {
    let (cpu_model, guest) = (intel(3, 1), intel(2, 1));
    let mut mediated = Mediated::new(&cpu_model, guest, None).unwrap();
    let hardware = Hardware::new(cpu_model, guest, 2);
    let mut cpu = Counted { hardware, reads: 0, writes: 0 };
    mediated.load(&mut cpu);
    mediated.wrmsr(&mut cpu, msr::IA32_PERFEVTSEL, select(INSTRUCTIONS)).unwrap();
    assert!(mediated.is_resident() && !mediated.passes_rdpmc());
    assert!(!mediated.passes(msr::IA32_PERF_GLOBAL_CTRL).write);
    assert!(mediated.passes(msr::IA32_A_PMC).write);
    assert_eq!(mediated.wrmsr(&mut cpu, msr::IA32_PERF_GLOBAL_CTRL, 1 << 2), Err(Gp));
}

#[test]
fn a_cpu_that_cannot_be_lent_says_why() {
    let refused = |cpu: PmuModel, guest| Mediated::new(&cpu, guest, None).map(|_| ()).unwrap_err();
    let old = PmuModel::intel(IntelPmu { version: 3, ..IntelPmu::default() }).unwrap();
    assert_eq!(refused(old, intel(4, 3)), MediatedError::NoStatusSet);
    assert_eq!(refused(PmuModel::amd_core(), PmuModel::amd_core()), MediatedError::NoStatusSet);
    let narrow = IntelPmu { full_width_writes: false, ..IntelPmu::default() };
    let narrow = PmuModel::intel(narrow).unwrap();
    assert_eq!(refused(narrow, intel(4, 3)), MediatedError::NoFullWidthWrites);
    let v2 = PmuModel::amd_v2(6).unwrap();
    assert_eq!(refused(v2, intel(4, 3)), MediatedError::OtherKind);
    assert_eq!(refused(v2, PmuModel::amd_core()), MediatedError::OtherKind);
    assert_eq!(refused(intel(4, 3), intel(5, 3)), MediatedError::Counters);
    assert!(Mediated::new(&v2, PmuModel::amd_v2(4).unwrap(), None).is_ok());
}

#[test]
fn either_vms_or_events_count_guests() {
    let mut share = HostShare::new();
    assert_eq!(share.open_including(), Ok(()));
    assert_eq!(share.start_vm(), Err(ShareError::Busy));
    share.close_including();
    assert_eq!((share.start_vm(), share.start_vm()), (Ok(()), Ok(())));
    share.end_vm();
    assert_eq!(share.open_including(), Err(ShareError::NotSupported));
    share.end_vm();
    assert_eq!(share.open_including(), Ok(()));
}

#[test]
fn a_state_moves_between_hosts_of_both_ways() {
    let (mut mediated, mut cpu) = small();
    mediated.load(&mut cpu);
    mediated.wrmsr(&mut cpu, msr::IA32_A_PMC, (1 << 48) - 1).unwrap();
    mediated.wrmsr(&mut cpu, msr::IA32_PERFEVTSEL, select(INSTRUCTIONS)).unwrap();
    cpu.hardware.enter();
    cpu.hardware.occur(INSTRUCTIONS);
    cpu.hardware.exit();
    mediated.on_pmi(&mut cpu);
    assert_eq!(mediated.state(), None, "its registers are the CPU's");
    mediated.put(&mut cpu);
    let state = mediated.state().unwrap();
    assert_eq!((state.global_status, state.pmi_due, state.counters[0]), (1, true, 0));

    let (mut restored, _) = small();
    restored.restore(&state).unwrap();
    assert_eq!(restored.state().as_ref(), Some(&state));
    let mut other = Mediated::new(&intel(4, 3), intel(4, 3), None).unwrap();
    assert_eq!(other.restore(&state), Err(StateError::OtherModel));
}
