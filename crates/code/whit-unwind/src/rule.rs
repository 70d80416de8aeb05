//! One row of call frame information in the compact form that the rule cache keeps.

use gimli::{CfaRule, FrameDescriptionEntry, Register, RegisterRule, UnwindTableRow};

use crate::abi::Abi;
use crate::cfi::Reader;
use crate::go;
use crate::module::StackSwitch;

/// Where a register's value in the caller is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Saved(i16);

impl Saved {
    /// Still in the register.
    pub(crate) const SAME: Saved = Saved(i16::MIN);

    /// In memory, at this distance from the CFA; `None` where it does not fit.
    fn at_cfa_offset(offset: i64) -> Option<Saved> {
        let offset = i16::try_from(offset).ok()?;
        (offset != i16::MIN).then_some(Saved(offset))
    }

    /// The address to read, or `None` where the register still holds the value.
    #[inline]
    pub(crate) fn address(self, cfa: u64) -> Option<u64> {
        (self != Saved::SAME).then(|| cfa.wrapping_add_signed(i64::from(self.0)))
    }
}

/// How to get from a frame to its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// The CFA is the stack pointer, or the frame pointer, plus an offset; return address and
    /// frame pointer lie at fixed distances from it. Nearly all code.
    Frame { from_fp: bool, cfa_offset: i32, ra: Saved, fp: Saved },
    /// The return address is undefined: the outermost frame.
    Root,
    /// The frame pointer leads to a frame record on another stack.
    Switched,
    /// The registers that a signal interrupted lie above the stack pointer.
    Signal,
    /// Anything else (expressions, other registers, signal frames): evaluate the row each time.
    General,
    /// The module's unwind information does not cover the address.
    Uncovered,
}

impl Rule {
    /// The compact form of `row`, or [`Rule::General`].
    pub(crate) fn from_row<'a, A: Abi>(
        row: &UnwindTableRow<usize>,
        fde: &FrameDescriptionEntry<Reader<'a>>,
    ) -> Rule {
        let rule = Self::translate::<A>(row, fde.cie().return_address_register());
        match rule.unwrap_or(Rule::General) {
            Rule::Frame { from_fp: false, cfa_offset, ra, fp: Saved::SAME }
                if go::saves_frame_pointer::<A>(fde, cfa_offset.into()) =>
            {
                Rule::Frame { from_fp: false, cfa_offset, ra, fp: Saved(go::FRAME_POINTER_AT_CFA) }
            }
            rule => rule,
        }
    }

    /// The rule for code that changes stacks.
    pub(crate) fn of_switch(switch: StackSwitch) -> Rule {
        match switch {
            StackSwitch::KeptFrame => Rule::Switched,
            StackSwitch::Outermost => Rule::Root,
            StackSwitch::Signal => Rule::Signal,
        }
    }

    fn translate<A: Abi>(row: &UnwindTableRow<usize>, ra: Register) -> Option<Rule> {
        let ra = match row.register(ra) {
            Some(RegisterRule::Undefined) => return Some(Rule::Root),
            Some(RegisterRule::Offset(offset)) => Saved::at_cfa_offset(offset)?,
            // A leaf function that has not stored its link register.
            None | Some(RegisterRule::SameValue) if A::LR.is_some() => Saved::SAME,
            _ => return None,
        };
        let fp = match row.register(Register(A::FP as u16)) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => Saved::SAME,
            Some(RegisterRule::Offset(offset)) => Saved::at_cfa_offset(offset)?,
            Some(_) => return None,
        };
        let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
            return None;
        };
        let from_fp = usize::from(register.0) == A::FP;
        if !from_fp && usize::from(register.0) != A::SP {
            return None;
        }
        Some(Rule::Frame { from_fp, cfa_offset: i32::try_from(*offset).ok()?, ra, fp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stay_small() {
        assert!(size_of::<Rule>() <= 12);
    }

    #[test]
    fn saved_offsets() {
        assert_eq!(Saved::at_cfa_offset(-16).unwrap().address(0x100), Some(0xf0));
        assert_eq!(Saved::at_cfa_offset(i64::from(i16::MIN)), None);
        assert_eq!(Saved::at_cfa_offset(1 << 20), None);
        assert_eq!(Saved::SAME.address(0x100), None);
    }
}
