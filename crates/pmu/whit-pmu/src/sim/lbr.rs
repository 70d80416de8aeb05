//! Simulated branch records.

use super::Privilege;
use crate::bits::{lbr_ctl, lbr_select};
use crate::lbr::{DEPTH_MAX, LbrKind, LbrModel};
use crate::msr::{self, Msr};

/// A branch that the program takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Branch {
    /// Address of the branch instruction.
    pub from: u64,
    /// Address of the target.
    pub to: u64,
    /// Its INFO register.
    pub info: u64,
}

/// The registers, newest record first where there is no top of stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Records {
    model: LbrModel,
    from: [u64; DEPTH_MAX],
    to: [u64; DEPTH_MAX],
    info: [u64; DEPTH_MAX],
    top: usize,
    select: u64,
    pub(super) control: u64,
}

impl Records {
    pub(super) fn new(model: LbrModel) -> Records {
        let zeros = [0; DEPTH_MAX];
        Records { model, from: zeros, to: zeros, info: zeros, top: 0, select: 0, control: 0 }
    }

    fn depth(&self) -> usize {
        usize::from(self.model.depth)
    }

    /// Whether the filter lets branches at a privilege pass.
    pub(super) fn wants(&self, privilege: Privilege) -> bool {
        let (control, select) = (self.control, self.select);
        match (self.model.kind, privilege) {
            (LbrKind::Architectural, Privilege::Kernel) => control & lbr_ctl::OS != 0,
            (LbrKind::Architectural, Privilege::User) => control & lbr_ctl::USR != 0,
            (_, Privilege::Kernel) => select & lbr_select::CPL_EQ_0 == 0,
            (_, Privilege::User) => select & lbr_select::CPL_NEQ_0 == 0,
        }
    }

    pub(super) fn record(&mut self, branch: Branch) {
        let depth = self.depth();
        let at = match self.model.kind {
            LbrKind::Pairs | LbrKind::PairsWithInfo => {
                self.top = (self.top + 1) % depth;
                self.top
            }
            LbrKind::Architectural | LbrKind::AmdV2 => {
                for registers in [&mut self.from, &mut self.to, &mut self.info] {
                    registers.copy_within(..depth - 1, 1);
                }
                0
            }
        };
        (self.from[at], self.to[at]) = (branch.from, branch.to);
        self.info[at] = branch.info;
    }

    pub(super) fn zero(&mut self) {
        self.from = [0; DEPTH_MAX];
        self.to = [0; DEPTH_MAX];
        self.info = [0; DEPTH_MAX];
    }

    /// The register that holds what an MSR names; `None` for those that are none of ours.
    fn register(&mut self, register: Msr) -> Option<&mut u64> {
        let depth = self.model.depth.into();
        let within = |base: Msr, step: u32| {
            let distance = register.0.checked_sub(base.0)?;
            let index = distance / step;
            (distance % step == 0 && index < depth).then_some(index as usize)
        };
        let (from, to, info, step) = match self.model.kind {
            LbrKind::Pairs => (msr::LASTBRANCH_FROM, msr::LASTBRANCH_TO, None, 1),
            LbrKind::PairsWithInfo => {
                (msr::LASTBRANCH_FROM, msr::LASTBRANCH_TO, Some(msr::LBR_INFO), 1)
            }
            LbrKind::Architectural => {
                (msr::IA32_LBR_FROM, msr::IA32_LBR_TO, Some(msr::IA32_LBR_INFO), 1)
            }
            LbrKind::AmdV2 => (msr::AMD_LBR_FROM, msr::AMD_LBR_TO, None, 2),
        };
        if let Some(index) = within(from, step) {
            return self.from.get_mut(index);
        }
        if let Some(index) = within(to, step) {
            return self.to.get_mut(index);
        }
        if let Some(index) = info.and_then(|info| within(info, step)) {
            return self.info.get_mut(index);
        }
        let is_stack = matches!(self.model.kind, LbrKind::Pairs | LbrKind::PairsWithInfo);
        match register {
            msr::LBR_SELECT if is_stack => Some(&mut self.select),
            msr::AMD_LBR_SELECT if self.model.kind == LbrKind::AmdV2 => Some(&mut self.select),
            msr::IA32_LBR_CTL if self.model.kind == LbrKind::Architectural => {
                Some(&mut self.control)
            }
            _ => None,
        }
    }

    /// Reads; `None` where the register is none of ours.
    pub(super) fn read(&mut self, register: Msr) -> Option<u64> {
        match (register, self.model.kind) {
            (msr::LASTBRANCH_TOS, LbrKind::Pairs | LbrKind::PairsWithInfo) => Some(self.top as u64),
            (msr::IA32_LBR_DEPTH, LbrKind::Architectural) => Some(self.model.depth.into()),
            _ => self.register(register).copied(),
        }
    }

    /// Writes; false where the register is none of ours.
    pub(super) fn write(&mut self, register: Msr, value: u64) -> bool {
        match (register, self.model.kind) {
            (msr::LASTBRANCH_TOS, LbrKind::Pairs | LbrKind::PairsWithInfo) => {
                self.top = value as usize % self.depth();
            }
            (msr::IA32_LBR_DEPTH, LbrKind::Architectural) => self.zero(),
            _ => match self.register(register) {
                Some(target) => *target = value,
                None => return false,
            },
        }
        true
    }
}
