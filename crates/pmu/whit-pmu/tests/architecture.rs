//! Bits, registers and models by the manuals of Intel and AMD, and the accesses to branch records one by one.

use std::collections::BTreeMap;

use whit_pmu::bits::{
    dbg_extn_cfg, debugctl, evtsel, fixed_ctrl, global_status, lbr_ctl, lbr_select, lvtpc,
    perf_capabilities,
};
use whit_pmu::bus::PmuBus;
use whit_pmu::counter::{CounterIndex, CounterMask};
use whit_pmu::cpuid::{CpuidLeaves, Leaf};
use whit_pmu::known_models as models;
use whit_pmu::lbr::{BranchFilter, BranchRecord, BranchStack, LbrRegisters};
use whit_pmu::model::{ModelError, PmuModel};
use whit_pmu::msr::{self, Msr};

#[test]
fn fields_of_registers_are_where_the_manuals_say() {
    assert_eq!(
        [evtsel::USR, evtsel::OS, evtsel::INT, evtsel::EN],
        [0x1_0000, 0x2_0000, 0x10_0000, 0x40_0000]
    );
    assert_eq!((evtsel::AMD_EVENT_HIGH, evtsel::EVENT_CODE), (0xf_0000_0000, 0xffff));
    assert_eq!((fixed_ctrl::BITS, fixed_ctrl::MASK), (4, 0xf));
    // PerfMetrics, ToPA, LBR_Frz, CTR_Frz, ASCI, uncore, DS buffer, CondChgd.
    let bits = [48, 55, 58, 59, 60, 61, 62, 63];
    let all = bits.iter().fold(0, |all, bit| all | 1_u64 << bit);
    assert_eq!(global_status::NOT_COUNTERS, all);
    assert_eq!(global_status::STATES, 0x1c00_0000_0000_0000);
    assert_eq!(global_status::OVF_DS_BUFFER, 0x4000_0000_0000_0000);
    assert_eq!(
        [debugctl::BTF, debugctl::TR, debugctl::BTS, debugctl::BTINT],
        [0x2, 0x40, 0x80, 0x100]
    );
    assert_eq!((debugctl::BTS_OFF_OS, debugctl::BTS_OFF_USR), (0x200, 0x400));
    assert_eq!((debugctl::FREEZE_LBRS_ON_PMI, debugctl::FREEZE_PERFMON_ON_PMI), (0x800, 0x1000));
    assert_eq!((debugctl::FREEZE_WHILE_SMM, perf_capabilities::FW_WRITE), (0x4000, 0x2000));
    assert_eq!((lvtpc::MASKED, lbr_select::EN_CALLSTACK), (0x1_0000, 0x200));
    assert_eq!((lbr_ctl::CALL_STACK, dbg_extn_cfg::LBR_V2_EN), (8, 0x40));
}

/// Version, general-purpose counters, their width, fixed ones, full-width writes, records of branches.
type Facts = (u8, u32, u8, u32, bool, Option<(u8, bool)>);

#[test]
fn known_models_are_those_cpus() {
    let facts = |model: PmuModel| -> Facts {
        let (general, fixed) = (model.general.len(), model.fixed.len());
        let lbr = model.lbr.map(|lbr| (lbr.depth, lbr.call_stack));
        (model.version, general, model.general_width, fixed, model.full_width_writes, lbr)
    };
    assert_eq!(facts(models::skylake()), (4, 4, 48, 3, true, Some((32, true))));
    assert_eq!(facts(models::sapphire_rapids()), (5, 8, 48, 4, true, Some((32, true))));
    assert_eq!(facts(models::ivy_bridge()), (3, 4, 48, 3, true, Some((16, false))));
    assert_eq!(facts(models::version_2()), (2, 2, 40, 3, false, None));
    assert_eq!(facts(models::zen4()), (2, 6, 48, 0, true, Some((16, false))));
    assert_eq!(facts(models::zen3()), (1, 6, 48, 0, true, None));
    assert_eq!(facts(models::k10()), (1, 4, 48, 0, true, None));
    let pebs = [models::skylake(), models::version_2(), models::zen4()].map(|model| model.pebs);
    assert_eq!(pebs, [true, false, false]);
    let global = [models::zen4(), models::zen3(), models::k10(), models::version_2()]
        .map(|model| model.has_global_control());
    assert_eq!(global, [true, false, false, true]);
}

#[test]
fn counters_have_their_bits_and_periods_half_of_them() {
    let (general, fixed) = (CounterIndex::general(1), CounterIndex::fixed(2));
    let masks = |model: PmuModel| {
        let of = |counter| (model.counter_mask(counter), model.period_max(counter));
        [of(general), of(fixed)]
    };
    let (bits_48, bits_40) = ((1 << 48) - 1, (1 << 40) - 1);
    assert_eq!(masks(models::skylake()), [(bits_48, bits_48 / 2); 2]);
    assert_eq!(masks(models::version_2()), [(bits_40, 0x7fff_ffff), (bits_40, bits_40 / 2)]);
    let mut both = models::skylake().counters();
    assert_eq!(both.bits(), 0x7_0000_000f);
    assert_eq!((both.fixed().bits(), both.len(), both.is_empty()), (0x7_0000_0000, 7, false));
    both.remove(fixed);
    assert!(both.contains(general) && !both.contains(fixed));
    let single = CounterMask::single(general);
    assert_eq!(both.without(single).bits(), 0x3_0000_000d);
    assert_eq!((both.intersection(single), single.first()), (single, Some(general)));
    assert_eq!((CounterMask::EMPTY.first(), fixed.index(), fixed.is_fixed()), (None, 34, true));
    assert_eq!(format!("{single:?} {fixed:?}"), "{pmc1} fixed2");
    assert_eq!(format!("{:?} {:x}", msr::IA32_PMC, msr::IA32_PMC.offset(3)), "Msr(0xc1) c4");
}

#[test]
fn signatures_are_families_models_and_steppings() {
    let of = |eax: u32| {
        let leaves =
            CpuidLeaves { signature: Leaf { eax, ..Leaf::default() }, ..CpuidLeaves::default() };
        (leaves.family(), leaves.model(), leaves.stepping())
    };
    // Skylake, Zen 3, Pentium (no extension below family 6).
    assert_eq!(of(0x0005_06e3), (6, 0x5e, 3));
    assert_eq!(of(0x00a2_0f12), (0x19, 0x21, 2));
    assert_eq!(of(0x000f_0543), (5, 4, 3));
    let flags = |ecx: u32| {
        let leaves =
            CpuidLeaves { signature: Leaf { ecx, ..Leaf::default() }, ..CpuidLeaves::default() };
        (leaves.has_hypervisor(), leaves.has_perf_capabilities())
    };
    assert_eq!((flags(1 << 31), flags(1 << 15)), ((true, false), (false, true)));
}

#[test]
fn leaves_that_others_announce_are_asked_for() {
    let asked = |edx: u32, eax: u32| {
        let mut asked = Vec::new();
        CpuidLeaves::collect(|leaf, subleaf| {
            asked.push((leaf, subleaf));
            match (leaf, subleaf) {
                (0, _) => Leaf { eax: 0x23, ..Leaf::default() },
                (7, _) => Leaf { edx, ..Leaf::default() },
                (0x23, 0) => Leaf { eax, ..Leaf::default() },
                (0x8000_0000, _) => Leaf { eax: 0x8000_0022, ..Leaf::default() },
                _ => Leaf::default(),
            }
        });
        asked.sort_unstable();
        asked
    };
    let always = [(0, 0), (1, 0), (7, 0), (0xa, 0), (0x23, 0)];
    let amd = [(0x8000_0000, 0), (0x8000_0001, 0), (0x8000_0022, 0)];
    assert_eq!(asked(!(1 << 19), !2), [&always[..], &amd].concat());
    let all = [&always[..4], &[(0x1c, 0), (0x23, 0), (0x23, 1)], &amd].concat();
    assert_eq!(asked(1 << 19, 2), all);
}

#[test]
fn refusals_name_the_number() {
    assert!(ModelError::IntelVersion(1).to_string().starts_with("the PMU has version 1 of"));
    assert_eq!(ModelError::CounterWidth(8).to_string(), "the CPU says its counters have 8 bits");
    assert!(ModelError::NoCounters.to_string().contains("switch its virtual PMU on"));
}

/// Registers that keep the written values, and the order of all accesses.
#[derive(Default)]
struct Registers {
    values: BTreeMap<Msr, u64>,
    written: Vec<(Msr, u64)>,
    read: Vec<Msr>,
}

impl PmuBus for Registers {
    fn rdmsr(&mut self, msr: Msr) -> u64 {
        self.read.push(msr);
        self.values.get(&msr).copied().unwrap_or(0)
    }

    fn wrmsr(&mut self, msr: Msr, value: u64) {
        self.written.push((msr, value));
        self.values.insert(msr, value);
    }
}

fn registers(model: PmuModel) -> LbrRegisters {
    LbrRegisters::new(model.lbr.expect("branch records"))
}

#[test]
fn branch_records_are_switched_on_by_the_bits_of_their_kind() {
    let kernel = BranchFilter { user: false, kernel: true, call_stack: false };
    let written = |model: PmuModel, filter: BranchFilter| {
        let mut bus = Registers::default();
        registers(model).enable(&mut bus, filter);
        bus.written
    };
    let select = msr::LBR_SELECT;
    for (filter, value) in [
        (BranchFilter::ALL, 0),
        (BranchFilter::USER, 1),
        (kernel, 2),
        (BranchFilter::USER_CALL_STACK, 0x201),
    ] {
        assert_eq!(written(models::skylake(), filter), [(select, value)]);
        assert_eq!(written(models::ivy_bridge(), filter), [(select, value)]);
    }
    for (filter, value) in [
        (BranchFilter::ALL, 0x7f_0007),
        (BranchFilter::USER, 0x7f_0005),
        (kernel, 0x7f_0003),
        (BranchFilter::USER_CALL_STACK, 0x7f_000d),
    ] {
        assert_eq!(written(models::sapphire_rapids(), filter), [(msr::IA32_LBR_CTL, value)]);
    }
    let zen4 = [(msr::AMD_LBR_SELECT, 1), (msr::DBG_EXTN_CFG, 0x40)];
    assert_eq!(written(models::zen4(), BranchFilter::USER), zen4);
    let off = |model: PmuModel| {
        let mut bus = Registers::default();
        registers(model).disable(&mut bus);
        (bus.written, registers(model).debugctl())
    };
    assert_eq!(off(models::skylake()), (vec![], 1));
    assert_eq!(off(models::sapphire_rapids()), (vec![(msr::IA32_LBR_CTL, 0)], 0));
    assert_eq!(off(models::zen4()), (vec![(msr::DBG_EXTN_CFG, 0)], 0));
}

/// The newest record first. Where registers turn in a circle, the newest is in the one on top.
#[test]
fn branch_records_are_read_from_the_newest_to_the_first_empty_one() {
    for (model, from, to, info, step) in [
        (models::skylake(), 0x680, 0x6c0, Some(0xdc0), 1),
        (models::ivy_bridge(), 0x680, 0x6c0, None, 1),
        (models::sapphire_rapids(), 0x1500, 0x1600, Some(0x1200), 1),
        (models::zen4(), 0xc001_0300, 0xc001_0301, None, 2),
    ] {
        let lbr = registers(model);
        let depth = u32::from(lbr.model().depth);
        let turns = lbr.debugctl() == 1;
        let top = if turns { 1 } else { 0 };
        let mut bus = Registers::default();
        bus.values.insert(msr::LASTBRANCH_TOS, top);
        let mut expected = Vec::new();
        for age in 0..4 {
            let place = if turns { (top as u32 + depth - age) % depth } else { age };
            let value = u64::from(100 + age);
            bus.values.insert(Msr(from + step * place), value);
            bus.values.insert(Msr(to + step * place), value + 1000);
            if let Some(info) = info {
                bus.values.insert(Msr(info + step * place), value + 2000);
            }
            let info = info.map_or(0, |_| value + 2000);
            expected.push(BranchRecord { from: value, to: value + 1000, info });
        }
        let mut stack = BranchStack::new();
        stack.push(BranchRecord::default());
        lbr.read(&mut bus, &mut stack);
        assert_eq!(stack.as_slice(), expected, "{model:?}");
        let saved = lbr.save(&mut bus);
        assert_eq!(saved.records(), expected);
        assert!(!lbr.is_zeroed(&mut bus, &saved));

        // Restores into registers with other records: those beyond the saved ones are cleared.
        let mut other = Registers::default();
        for place in 0..depth {
            other.values.insert(Msr(from + step * place), 7);
        }
        lbr.restore(&mut other, &saved);
        if other.values.contains_key(&msr::IA32_LBR_DEPTH) {
            // The write of the depth comes first, and resets all.
            assert_eq!(other.written[0], (msr::IA32_LBR_DEPTH, u64::from(depth)));
            for place in 4..depth {
                other.values.insert(Msr(from + place), 0);
            }
        }
        lbr.read(&mut other, &mut stack);
        assert_eq!(stack.as_slice(), expected, "{model:?}");
        assert_eq!(other.values.contains_key(&msr::LASTBRANCH_TOS), turns);
        let zeroed = lbr.is_zeroed(&mut Registers::default(), &saved);
        assert_eq!(zeroed, lbr.model().deep_c_reset, "{model:?}");
    }
}

#[test]
fn a_stack_of_branches_has_the_records_that_were_kept() {
    let record = |from| BranchRecord { from, ..BranchRecord::default() };
    let mut stack = BranchStack::default();
    (0..70).for_each(|from| stack.push(record(from)));
    assert_eq!(stack.as_slice().len(), 64, "the oldest find no room");
    stack.retain(|record| record.from % 20 == 1);
    assert_eq!(stack.as_slice(), [1, 21, 41, 61].map(record));
    stack.clear();
    assert!(stack.as_slice().is_empty());
}
