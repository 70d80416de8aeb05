//! Rules of arm64, where calls leave the return address in the link register.

use gimli::{CfaRule, FrameDescriptionEntry, Register, RegisterRule, UnwindTableRow};

use super::{Base, CompactRule, FramePointer, ReturnAddress, Unsupported};
use crate::abi::{Aarch64, Abi};
use crate::cfi::Reader;

const SP: Register = Register(Aarch64::SP as u16);
const FP: Register = Register(Aarch64::FP as u16);

/// Bits of a rule: the return address is in the link register,
const IN_LINK: u8 = 0;
/// so many words below the frame address (1 to this),
const SLOT_MAX: u8 = 62;
/// or behind the place of the frame pointer, with which nearly all functions save it.
const BEHIND_FP: u8 = 63;
const WORD_BYTES: i16 = 8;

/// The rule of a row, without the sign of its return address: the walk takes the signature out of every address.
pub(super) fn from_row(
    fde: &FrameDescriptionEntry<Reader<'_>>,
    row: &UnwindTableRow<usize>,
) -> Result<CompactRule, Unsupported> {
    if fde.is_signal_trampoline() {
        return Err(Unsupported::Signal);
    }
    let ra = match row.register(fde.cie().return_address_register()) {
        Some(RegisterRule::Undefined) => return Ok(CompactRule::of(Base::Outermost)),
        None | Some(RegisterRule::SameValue) => ReturnAddress::InLink,
        Some(RegisterRule::Offset(offset)) => {
            let offset = i16::try_from(offset).map_err(|_| Unsupported::ReturnAddress)?;
            ReturnAddress::AtCfa(offset)
        }
        Some(_) => return Err(Unsupported::ReturnAddress),
    };
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
        return Err(Unsupported::CfaExpression);
    };
    let base = match *register {
        SP => Base::LinkedSp,
        FP => Base::LinkedFp,
        _ => return Err(Unsupported::CfaRegister),
    };
    let cfa = i32::try_from(*offset).map_err(|_| Unsupported::CfaRegister)?;
    let fp = match row.register(FP) {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => FramePointer::Same,
        Some(RegisterRule::Offset(offset)) => {
            FramePointer::AtCfa(i16::try_from(offset).map_err(|_| Unsupported::FramePointer)?)
        }
        Some(_) => return Err(Unsupported::FramePointer),
    };
    let rule = CompactRule { cfa, fp, ra, ..CompactRule::of(base) };
    // Both lie far away and apart from each other: no compiler is known to do that.
    match CompactRule::decode(rule.encode()) == Some(rule) {
        true => Ok(rule),
        false => Err(Unsupported::ReturnAddress),
    }
}

/// The place of the return address, `distance` being that of the frame pointer.
pub(super) fn of_bits(bits: u8, distance: i16) -> ReturnAddress {
    match bits {
        IN_LINK => ReturnAddress::InLink,
        BEHIND_FP => ReturnAddress::AtCfa(distance.wrapping_add(WORD_BYTES)),
        slot => ReturnAddress::AtCfa(-i16::from(slot) * WORD_BYTES),
    }
}

impl CompactRule {
    /// The reverse of [`of_bits`].
    pub(super) fn linked_bits(&self) -> u8 {
        let ReturnAddress::AtCfa(offset) = self.ra else { return IN_LINK };
        let behind_fp = match self.fp {
            FramePointer::AtCfa(fp) => fp.wrapping_add(WORD_BYTES) == offset,
            FramePointer::Same | FramePointer::AtFp(_) => true,
        };
        let slot = offset.checked_neg().filter(|below| below % WORD_BYTES == 0);
        let slot = slot.and_then(|below| u8::try_from(below / WORD_BYTES).ok());
        match slot.filter(|slot| !behind_fp && (1..=SLOT_MAX).contains(slot)) {
            Some(slot) => slot,
            None => BEHIND_FP,
        }
    }

    /// The distance that a rule without a saved frame pointer has.
    pub(super) fn linked_distance(&self) -> i16 {
        match self.ra {
            ReturnAddress::AtCfa(offset) => offset.wrapping_sub(WORD_BYTES),
            ReturnAddress::Pushed | ReturnAddress::InLink => 0,
        }
    }
}
