//! Reading, resetting, saving and restoring branch records.

use super::{DEPTH_MAX, LbrKind, LbrModel};
use crate::bits::{dbg_extn_cfg, lbr_ctl, lbr_select};
use crate::bus::PmuBus;
use crate::msr::{self, Msr};

/// One branch record, as the registers have it: flags in the top bits of the addresses and the
/// meaning of `info` differ between models.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct BranchRecord {
    /// FROM_IP.
    pub from: u64,
    /// TO_IP.
    pub to: u64,
    /// INFO, 0 where there is none.
    pub info: u64,
}

/// Branch records, the newest first.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BranchStack {
    records: [BranchRecord; DEPTH_MAX],
    len: usize,
}

impl BranchStack {
    /// No record.
    #[must_use]
    pub const fn new() -> BranchStack {
        let none = BranchRecord { from: 0, to: 0, info: 0 };
        BranchStack { records: [none; DEPTH_MAX], len: 0 }
    }

    /// The records.
    #[must_use]
    pub fn as_slice(&self) -> &[BranchRecord] {
        &self.records[..self.len]
    }

    /// Removes all records.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds an older record; more than [`DEPTH_MAX`] are dropped.
    pub const fn push(&mut self, record: BranchRecord) {
        if self.len < DEPTH_MAX {
            self.records[self.len] = record;
            self.len += 1;
        }
    }

    /// Keeps the records that `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&BranchRecord) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            if keep(&self.records[index]) {
                self.records[kept] = self.records[index];
                kept += 1;
            }
        }
        self.len = kept;
    }
}

impl Default for BranchStack {
    fn default() -> BranchStack {
        BranchStack::new()
    }
}

/// The recorded branches.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct BranchFilter {
    /// Branches in user mode.
    pub user: bool,
    /// Branches in kernel mode.
    pub kernel: bool,
    /// A call stack instead of a history of branches.
    pub call_stack: bool,
}

impl BranchFilter {
    /// User mode alone.
    pub const USER: BranchFilter = BranchFilter { user: true, kernel: false, call_stack: false };
    /// Both modes.
    pub const ALL: BranchFilter = BranchFilter { user: true, kernel: true, call_stack: false };
    /// The call stack of user mode.
    pub const USER_CALL_STACK: BranchFilter =
        BranchFilter { user: true, kernel: false, call_stack: true };
}

/// The registers of a model.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct LbrRegisters {
    model: LbrModel,
}

/// Records with where they stood.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SavedRecords {
    stack: BranchStack,
    top: u64,
}

impl SavedRecords {
    /// The records, the newest first.
    #[must_use]
    pub fn records(&self) -> &[BranchRecord] {
        self.stack.as_slice()
    }
}

impl LbrRegisters {
    /// The registers of `model`.
    #[must_use]
    pub const fn new(model: LbrModel) -> LbrRegisters {
        LbrRegisters { model }
    }

    /// The kind and number of branch records.
    #[must_use]
    pub const fn model(&self) -> &LbrModel {
        &self.model
    }

    /// Sets the recorded branches. Records made under another filter stay: [`LbrRegisters::reset`]
    /// them. Where DEBUGCTL switches recording on (see [`LbrRegisters::debugctl`]), that is the
    /// caller's.
    pub fn enable(&self, bus: &mut (impl PmuBus + ?Sized), filter: BranchFilter) {
        let suppress = |kernel, user| {
            (if filter.kernel { 0 } else { kernel }) | (if filter.user { 0 } else { user })
        };
        let select = suppress(lbr_select::CPL_EQ_0, lbr_select::CPL_NEQ_0);
        match self.model.kind {
            LbrKind::Pairs | LbrKind::PairsWithInfo => {
                let call_stack = if filter.call_stack { lbr_select::EN_CALLSTACK } else { 0 };
                bus.wrmsr(msr::LBR_SELECT, select | call_stack);
            }
            LbrKind::AmdV2 => {
                bus.wrmsr(msr::AMD_LBR_SELECT, select);
                bus.wrmsr(msr::DBG_EXTN_CFG, dbg_extn_cfg::LBR_V2_EN);
            }
            LbrKind::Architectural => {
                let mut control = lbr_ctl::LBREN;
                control |= if filter.kernel { lbr_ctl::OS } else { 0 };
                control |= if filter.user { lbr_ctl::USR } else { 0 };
                control |= if filter.call_stack { lbr_ctl::CALL_STACK } else { 0 };
                // Which branches (bits 22:16): all. A call stack takes the calls and returns itself.
                bus.wrmsr(msr::IA32_LBR_CTL, control | 0x7f_0000);
            }
        }
    }

    /// Stops recording where it is not DEBUGCTL that does.
    pub fn disable(&self, bus: &mut (impl PmuBus + ?Sized)) {
        match self.model.kind {
            LbrKind::Pairs | LbrKind::PairsWithInfo => {}
            LbrKind::AmdV2 => bus.wrmsr(msr::DBG_EXTN_CFG, 0),
            LbrKind::Architectural => bus.wrmsr(msr::IA32_LBR_CTL, 0),
        }
    }

    /// The bit of DEBUGCTL that switches recording on, 0 where there is none.
    #[must_use]
    pub const fn debugctl(&self) -> u64 {
        match self.model.kind {
            LbrKind::Pairs | LbrKind::PairsWithInfo => crate::bits::debugctl::LBR,
            LbrKind::Architectural | LbrKind::AmdV2 => 0,
        }
    }

    /// Zeroes all records. WRMSRs: 1 with architectural LBR, else 2 or (with INFO) 3 for each record;
    /// AMD's and the caller's select register is not among them.
    pub fn reset(&self, bus: &mut (impl PmuBus + ?Sized)) {
        if self.model.kind == LbrKind::Architectural {
            bus.wrmsr(msr::IA32_LBR_DEPTH, self.model.depth.into());
            return;
        }
        for index in 0..self.model.depth {
            self.write(bus, index, &BranchRecord::default());
        }
    }

    /// Reads the records, the newest first, up to the first empty one.
    pub fn read(&self, bus: &mut (impl PmuBus + ?Sized), stack: &mut BranchStack) {
        let top = self.top(bus);
        self.read_from(bus, top, stack);
    }

    /// Saves the records.
    pub fn save(&self, bus: &mut (impl PmuBus + ?Sized)) -> SavedRecords {
        let top = self.top(bus);
        let mut stack = BranchStack::new();
        self.read_from(bus, top, &mut stack);
        SavedRecords { stack, top }
    }

    /// Writes saved records back; registers that held other ones are zeroed.
    pub fn restore(&self, bus: &mut (impl PmuBus + ?Sized), saved: &SavedRecords) {
        let depth = usize::from(self.model.depth);
        let records = saved.stack.as_slice();
        let architectural = self.model.kind == LbrKind::Architectural;
        if architectural && records.len() < depth {
            self.reset(bus);
        }
        for age in 0..depth {
            match records.get(age) {
                Some(record) => self.write(bus, self.index(saved.top, age as u8), record),
                None if architectural => break,
                None => self.write(bus, self.index(saved.top, age as u8), &BranchRecord::default()),
            }
        }
        if self.has_top() {
            bus.wrmsr(msr::LASTBRANCH_TOS, saved.top);
        }
    }

    /// Whether the newest record of `saved` is gone from the registers, as after a deep C-state: one
    /// RDMSR, where deep C-states zero records at all.
    pub fn is_zeroed(&self, bus: &mut (impl PmuBus + ?Sized), saved: &SavedRecords) -> bool {
        if !self.model.deep_c_reset {
            return false;
        }
        let [from, ..] = self.registers(self.index(saved.top, 0));
        bus.rdmsr(from) == 0
    }

    fn has_top(&self) -> bool {
        matches!(self.model.kind, LbrKind::Pairs | LbrKind::PairsWithInfo)
    }

    fn top(&self, bus: &mut (impl PmuBus + ?Sized)) -> u64 {
        if self.has_top() { bus.rdmsr(msr::LASTBRANCH_TOS) } else { 0 }
    }

    fn read_from(&self, bus: &mut (impl PmuBus + ?Sized), top: u64, stack: &mut BranchStack) {
        stack.clear();
        for age in 0..self.model.depth {
            let [from, to, info] = self.registers(self.index(top, age));
            let from = bus.rdmsr(from);
            if from == 0 {
                break;
            }
            let to = bus.rdmsr(to);
            let info = if self.has_info() { bus.rdmsr(info) } else { 0 };
            stack.push(BranchRecord { from, to, info });
        }
    }

    /// Number of the register that holds the record of an age.
    fn index(&self, top: u64, age: u8) -> u8 {
        let depth = u64::from(self.model.depth);
        let index = if self.has_top() { top + depth - u64::from(age) } else { age.into() };
        (index % depth) as u8
    }

    fn has_info(&self) -> bool {
        matches!(self.model.kind, LbrKind::PairsWithInfo | LbrKind::Architectural)
    }

    /// FROM, TO and INFO; the last is none where there is no INFO.
    fn registers(&self, index: u8) -> [Msr; 3] {
        let (bases, step) = match self.model.kind {
            LbrKind::Pairs | LbrKind::PairsWithInfo => {
                ([msr::LASTBRANCH_FROM, msr::LASTBRANCH_TO, msr::LBR_INFO], 1)
            }
            LbrKind::Architectural => {
                ([msr::IA32_LBR_FROM, msr::IA32_LBR_TO, msr::IA32_LBR_INFO], 1)
            }
            LbrKind::AmdV2 => ([msr::AMD_LBR_FROM, msr::AMD_LBR_TO, msr::AMD_LBR_TO], 2),
        };
        bases.map(|base| base.offset(step * u32::from(index)))
    }

    fn write(&self, bus: &mut (impl PmuBus + ?Sized), index: u8, record: &BranchRecord) {
        let [from, to, info] = self.registers(index);
        bus.wrmsr(from, record.from);
        bus.wrmsr(to, record.to);
        if self.has_info() {
            bus.wrmsr(info, record.info);
        }
    }
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::bus::Counting;
    use crate::known_models as models;
    use crate::sim::{SimulatedPmu, SimulationParameters};

    #[test]
    fn a_reset_costs_as_much_as_the_kind_of_registers() {
        let models =
            [models::ivy_bridge(), models::skylake(), models::sapphire_rapids(), models::zen4()];
        let writes = models.map(|model| {
            let mut bus = Counting::new(SimulatedPmu::new(model, SimulationParameters::default()));
            LbrRegisters::new(model.lbr.unwrap()).reset(&mut bus);
            assert_eq!(bus.get_ref().violation(), None);
            assert_eq!(bus.accesses().total().total(), bus.accesses().total().wrmsr);
            bus.accesses().total().wrmsr
        });
        assert_eq!(writes, [32, 96, 1, 32]);
    }
}
