use super::*;
use crate::bits::lvtpc;
use crate::bus::PmuBus;
use crate::known_models as models;
use crate::msr;

const INSTRUCTIONS: u16 = 0x00c0;
const SELECT: u64 = 0xc0 | evtsel::USR | evtsel::OS | evtsel::INT | evtsel::EN;
const PMC0: CounterIndex = CounterIndex::general(0);

fn simulated(model: PmuModel, skid: u32, masked: MaskedPmi) -> SimulatedPmu {
    let parameters = SimulationParameters { skid, masked, per_access: (0, 0) };
    let mut pmu = SimulatedPmu::new(model, parameters);
    pmu.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
    pmu
}

/// Counter 0 of an Intel PMU, `left` events before its overflow.
fn armed(left: u64, skid: u32, masked: MaskedPmi) -> SimulatedPmu {
    let mut pmu = simulated(models::skylake(), skid, masked);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 1);
    pmu.wrmsr(msr::IA32_A_PMC, left.wrapping_neg());
    pmu.wrmsr(msr::IA32_PERFEVTSEL, SELECT);
    pmu
}

#[test]
fn a_counter_counts_where_all_that_enables_it_agrees() {
    let mut pmu = armed(1000, 0, MaskedPmi::Drop);
    let value = |pmu: &mut SimulatedPmu| pmu.rdmsr(msr::IA32_PMC);
    let start = value(&mut pmu);
    pmu.occur(INSTRUCTIONS, 3);
    pmu.occur(CYCLES, 100);
    assert_eq!(value(&mut pmu) - start, 3);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 2);
    pmu.occur(INSTRUCTIONS, 3);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 3);
    pmu.wrmsr(msr::IA32_PERFEVTSEL, SELECT & !evtsel::EN);
    pmu.occur(INSTRUCTIONS, 3);
    pmu.wrmsr(msr::IA32_PERFEVTSEL, SELECT & !evtsel::USR);
    pmu.occur(INSTRUCTIONS, 3);
    assert_eq!(value(&mut pmu) - start, 3);
    pmu.set_privilege(Privilege::Kernel);
    pmu.occur(INSTRUCTIONS, 3);
    assert_eq!(value(&mut pmu) - start, 6);
}

#[test]
fn the_interrupt_comes_after_the_skid() {
    let mut pmu = armed(10, 3, MaskedPmi::Drop);
    pmu.occur(INSTRUCTIONS, 9);
    assert_eq!(pmu.status(), 0);
    pmu.occur(INSTRUCTIONS, 1);
    assert_eq!(pmu.status(), 1, "status is set with the overflow");
    assert!(!pmu.take_nmi() && pmu.interrupt_is_due());
    pmu.occur(CYCLES, 2);
    assert!(!pmu.take_nmi());
    pmu.occur(INSTRUCTIONS, 100);
    assert!(pmu.take_nmi() && !pmu.take_nmi());
    assert_eq!(pmu.rdmsr(msr::IA32_PMC), 100, "nothing froze");
    assert_ne!(pmu.rdmsr(msr::X2APIC_LVTPC) & lvtpc::MASKED, 0, "delivery masks");
}

#[test]
fn freezing_starts_with_the_overflow() {
    let mut pmu = armed(10, 5, MaskedPmi::Drop);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 0);
    pmu.wrmsr(msr::IA32_DEBUGCTL, debugctl::FREEZE_PERFMON_ON_PMI);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 1);
    assert_eq!(pmu.violation(), None);
    pmu.occur(INSTRUCTIONS, 50);
    assert_eq!(pmu.status(), 1 | global_status::CTR_FRZ);
    assert_eq!(pmu.rdmsr(msr::IA32_PMC), 0);
    assert_eq!(pmu.truth(PMC0).frozen_in_skid, 40);
    assert!(pmu.take_nmi());
    pmu.occur(INSTRUCTIONS, 2);
    assert_eq!(pmu.truth(PMC0).frozen_in_handler, 2);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_RESET, pmu.status());
    pmu.occur(INSTRUCTIONS, 1);
    assert_eq!((pmu.status(), pmu.rdmsr(msr::IA32_PMC)), (0, 1));
    pmu.wrmsr(msr::IA32_DEBUGCTL, 0);
    assert_eq!(pmu.violation(), Some(Violation::FreezeToggledWhileEnabled));
}

#[test]
fn before_version_4_freezing_clears_global_control_and_lbr() {
    let mut pmu = simulated(models::ivy_bridge(), 0, MaskedPmi::Drop);
    let freezes = debugctl::FREEZE_PERFMON_ON_PMI | debugctl::FREEZE_LBRS_ON_PMI;
    pmu.wrmsr(msr::IA32_DEBUGCTL, freezes | debugctl::LBR);
    pmu.wrmsr(msr::IA32_A_PMC, u64::MAX);
    pmu.wrmsr(msr::IA32_PERFEVTSEL, SELECT);
    pmu.wrmsr(msr::IA32_PERF_GLOBAL_CTRL, 1);
    pmu.occur(INSTRUCTIONS, 1);
    assert_eq!((pmu.status(), pmu.rdmsr(msr::IA32_PERF_GLOBAL_CTRL)), (1, 0));
    assert_eq!(pmu.rdmsr(msr::IA32_DEBUGCTL), freezes);
}

#[test]
fn interrupts_at_a_masked_entry_are_dropped_or_latched() {
    for (masked, comes) in [(MaskedPmi::Drop, false), (MaskedPmi::Latch, true)] {
        let mut pmu = armed(1, 0, masked);
        pmu.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI | lvtpc::MASKED);
        pmu.occur(INSTRUCTIONS, 1);
        assert!(!pmu.take_nmi());
        pmu.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
        assert_eq!((pmu.take_nmi(), pmu.lost_interrupts().0), (comes, u64::from(!comes)));
    }
}

#[test]
fn one_nmi_is_pending_at_most() {
    let mut pmu = simulated(models::zen4(), 0, MaskedPmi::Drop);
    for counter in [0, 2] {
        pmu.wrmsr(msr::CORE_PERF_CTR.offset(counter), u64::MAX);
        pmu.wrmsr(msr::CORE_PERF_CTL.offset(counter), SELECT);
    }
    pmu.wrmsr(msr::PERF_CNTR_GLOBAL_CTL, 3);
    pmu.occur(INSTRUCTIONS, 1);
    assert_eq!((pmu.status(), pmu.lost_interrupts()), (3, (0, 1)));
    assert_eq!(pmu.rdmsr(msr::X2APIC_LVTPC) & lvtpc::MASKED, 0, "not masked by delivery");
    assert!(pmu.take_nmi());
    pmu.iret();
    assert!(!pmu.take_nmi());
}

#[test]
fn legacy_writes_extend_bit_31() {
    let mut pmu = simulated(models::version_2(), 0, MaskedPmi::Drop);
    pmu.wrmsr(msr::IA32_PMC, 0x1_8000_0000);
    assert_eq!(pmu.rdmsr(msr::IA32_PMC), 0xff_8000_0000);
    pmu.wrmsr(msr::IA32_PMC, 0xff_7fff_ffff);
    assert_eq!(pmu.rdmsr(msr::IA32_PMC), 0x7fff_ffff);
    pmu.wrmsr(msr::IA32_FIXED_CTR, 0xff_7fff_ffff);
    assert_eq!(pmu.rdmsr(msr::IA32_FIXED_CTR), 0xff_7fff_ffff);
    pmu.rdmsr(msr::IA32_A_PMC);
    assert_eq!(pmu.violation(), Some(Violation::NoSuchRegister(0x4c1)));
}

#[test]
fn precise_counters_reload_themselves_and_set_the_buffer_bit() {
    let mut pmu = armed(4, 0, MaskedPmi::Drop);
    pmu.wrmsr(msr::IA32_PEBS_ENABLE, 1);
    pmu.set_pebs_reload(PMC0, 4);
    pmu.occur(INSTRUCTIONS, 9);
    assert_eq!(pmu.status(), global_status::OVF_DS_BUFFER);
    assert_eq!((pmu.take_pebs_records(PMC0), pmu.take_pebs_records(PMC0)), (2, 0));
    assert_eq!(pmu.rdmsr(msr::IA32_PMC), (1 << 48) - 3);
}

#[test]
fn branch_records_of_all_kinds() {
    let branch = |n: u64| Branch { from: n, to: n + 1, info: n + 2 };
    let mut pairs = simulated(models::skylake(), 0, MaskedPmi::Drop);
    pairs.branch(branch(1));
    pairs.wrmsr(msr::IA32_DEBUGCTL, debugctl::LBR);
    pairs.branch(branch(10));
    assert_eq!(pairs.rdmsr(msr::LASTBRANCH_TOS), 1);
    assert_eq!(pairs.rdmsr(msr::LASTBRANCH_FROM.offset(1)), 10);
    assert_eq!(pairs.rdmsr(msr::LBR_INFO.offset(1)), 12);
    pairs.wrmsr(msr::LBR_SELECT, crate::bits::lbr_select::CPL_NEQ_0);
    pairs.branch(branch(20));
    assert_eq!(pairs.rdmsr(msr::LASTBRANCH_TOS), 1, "not in user mode");

    let mut arch = simulated(models::sapphire_rapids(), 0, MaskedPmi::Drop);
    arch.wrmsr(msr::IA32_LBR_CTL, lbr_ctl::LBREN | lbr_ctl::USR);
    arch.branch(branch(10));
    arch.branch(branch(20));
    assert_eq!(arch.rdmsr(msr::IA32_LBR_FROM), 20);
    assert_eq!(arch.rdmsr(msr::IA32_LBR_TO.offset(1)), 11);
    arch.wrmsr(msr::IA32_LBR_DEPTH, 32);
    assert_eq!(arch.rdmsr(msr::IA32_LBR_FROM), 0);

    let mut amd = simulated(models::zen4(), 0, MaskedPmi::Drop);
    amd.wrmsr(msr::DBG_EXTN_CFG, crate::bits::dbg_extn_cfg::LBR_V2_EN);
    amd.branch(branch(10));
    amd.branch(branch(20));
    assert_eq!(amd.rdmsr(msr::AMD_LBR_FROM.offset(2)), 10);
    assert_eq!(amd.rdmsr(msr::AMD_LBR_TO), 21);
    amd.deep_sleep();
    assert_eq!(amd.rdmsr(msr::AMD_LBR_TO), 21);
    arch.branch(branch(10));
    arch.deep_sleep();
    assert_eq!(arch.rdmsr(msr::IA32_LBR_FROM), 0);
    let violations = [pairs.violation(), arch.violation(), amd.violation()];
    assert_eq!(violations, [None; 3]);
}
