//! One rule of a table, in eight bytes.

use gimli::{
    CfaRule, Encoding, FrameDescriptionEntry, Operation, Register, RegisterRule, UnwindExpression,
    UnwindSection, UnwindTableRow,
};

use whit_types::Arch;

use crate::abi::{Abi, X86_64};
use crate::cfi::Reader;
use crate::go;
use crate::module::StackSwitch;

mod linked;

/// Operations of an expression that are looked at; the longest that is known, a PLT's, has nine.
const OPERATIONS_MAX: usize = 9;
/// Offsets of saved registers in the frame of a signal, from its stack pointer (`struct ucontext`
/// in `arch/x86/include/uapi/asm/ucontext.h`, after the three words in front of the registers).
const SIGNAL_FP: i64 = 120;
const SIGNAL_RBX: i64 = 128;
const SIGNAL_SP: i64 = 160;
const SIGNAL_IP: i64 = 168;

/// Base of the canonical frame address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// The return address is undefined: this is the outermost frame.
    Outermost,
    /// The stack pointer plus `cfa`.
    Sp,
    /// The frame pointer plus `cfa`.
    Fp,
    /// rbx plus `cfa`: the dynamic linker's entries, which align the stack and keep its address there.
    Rbx,
    /// The word at the frame pointer plus `cfa`, plus `addend`.
    FpDeref,
    /// The word at the stack pointer plus `cfa`, plus `addend`.
    SpDeref,
    /// In a procedure linkage table: the stack pointer plus 8, and 8 more from the `fp`-th byte of
    /// each 16-byte entry on, where the push has been done.
    Plt,
    /// The frame of a signal: registers lie at fixed distances from the stack pointer.
    Signal,
    /// No entry covers the address.
    Uncovered,
    /// The frame pointer leads to a frame record on another stack.
    Switched,
    /// The stack pointer plus `cfa`, where calls leave the return address in the link register (arm64).
    LinkedSp,
    /// The frame pointer plus `cfa`, in the same way.
    LinkedFp,
    /// Cannot be said in a rule.
    Unsupported(Unsupported),
}

impl Base {
    /// Whether the frame address is made from a word in memory.
    const fn is_word(self) -> bool {
        matches!(self, Base::FpDeref | Base::SpDeref)
    }

    /// Whether it is one of a machine with a link register.
    const fn is_linked(self) -> bool {
        matches!(self, Base::LinkedSp | Base::LinkedFp)
    }
}

/// The part that a rule cannot express.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unsupported {
    /// The frame address is an expression of another kind.
    CfaExpression,
    /// The frame address is made from another register.
    CfaRegister,
    /// The return address is not in the word below the frame address.
    ReturnAddress,
    /// The frame pointer is neither kept nor saved in memory at a fixed distance.
    FramePointer,
    /// The frame of a signal has another form.
    Signal,
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FramePointer {
    /// Still in the register.
    Same,
    /// In memory, at this distance from the frame address.
    AtCfa(i16),
    /// In memory, at this distance from the current frame pointer.
    AtFp(i16),
}

/// Where the caller's rbx is. Frame addresses may be made from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rbx {
    /// Still in the register.
    Same,
    /// In memory, so many words below the frame address: 1 to [`Rbx::SLOT_MAX`].
    Below(u8),
    /// Elsewhere. So after each base that is a word in memory, whose addend has the bits.
    Lost,
}

impl Rbx {
    /// The farthest that a rule can say.
    pub const SLOT_MAX: u8 = 62;
    const SLOT_LOST: u8 = 63;

    fn bits(self) -> u8 {
        match self {
            Rbx::Same => 0,
            Rbx::Below(slot) => slot,
            Rbx::Lost => Rbx::SLOT_LOST,
        }
    }

    fn of_bits(bits: u8) -> Rbx {
        match bits {
            0 => Rbx::Same,
            Rbx::SLOT_LOST => Rbx::Lost,
            slot => Rbx::Below(slot),
        }
    }
}

/// Where the return address is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReturnAddress {
    /// In the word below the frame address, where calls push it (x86-64).
    Pushed,
    /// Still in the link register (arm64).
    InLink,
    /// In memory, at this distance from the frame address (arm64).
    AtCfa(i16),
}

/// The rules of one row: frame address, return address and saved registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompactRule {
    /// Base of the frame address.
    pub base: Base,
    /// Distance, as `base` says.
    pub cfa: i32,
    /// Offset that is added to a word that was read; a multiple of eight below 512.
    pub addend: u16,
    /// Where the caller's frame pointer is.
    pub fp: FramePointer,
    /// Where the caller's rbx is.
    pub rbx: Rbx,
    /// Where the return address is.
    pub ra: ReturnAddress,
}

impl CompactRule {
    /// Size of [`CompactRule::encode`].
    pub const SIZE_BYTES: usize = 8;

    /// The rule for code that changes stacks.
    pub(crate) fn of_switch(switch: StackSwitch) -> CompactRule {
        CompactRule::of(match switch {
            StackSwitch::KeptFrame => Base::Switched,
            StackSwitch::Outermost => Base::Outermost,
            StackSwitch::Signal => Base::Signal,
        })
    }

    /// No entry covers the address.
    pub const UNCOVERED: CompactRule = CompactRule::of(Base::Uncovered);

    const fn of(base: Base) -> CompactRule {
        let rbx = if base.is_word() { Rbx::Lost } else { Rbx::Same };
        let ra = if base.is_linked() { ReturnAddress::InLink } else { ReturnAddress::Pushed };
        CompactRule { base, cfa: 0, addend: 0, fp: FramePointer::Same, rbx, ra }
    }

    const fn unsupported(what: Unsupported) -> CompactRule {
        CompactRule::of(Base::Unsupported(what))
    }

    /// Kind of frame address, one byte of bits, distance of the frame pointer, distance of the frame address;
    /// little-endian. The bits are the kind of frame pointer, and an eighth of the addend. Where there is no addend they
    /// have the place of rbx, and with a link register that of the return address.
    pub fn encode(&self) -> [u8; CompactRule::SIZE_BYTES] {
        let base = match self.base {
            Base::Outermost => 0,
            Base::Sp => 1,
            Base::Fp => 2,
            Base::FpDeref => 3,
            Base::SpDeref => 4,
            Base::Plt => 5,
            Base::Signal => 6,
            Base::Uncovered => 7,
            Base::Unsupported(what) => 8 + what as u8,
            Base::Switched => 13,
            Base::Rbx => 14,
            Base::LinkedSp => 15,
            Base::LinkedFp => 16,
        };
        let bits = if self.base.is_word() { (self.addend / 8) as u8 } else { self.rbx.bits() };
        let bits = if self.base.is_linked() { self.linked_bits() } else { bits };
        let (kind, fp) = match self.fp {
            FramePointer::Same => (0, self.linked_distance()),
            FramePointer::AtCfa(offset) => (1, offset),
            FramePointer::AtFp(offset) => (2, offset),
        };
        let [fp_low, fp_high] = fp.to_le_bytes();
        let [a, b, c, d] = self.cfa.to_le_bytes();
        [base, kind | bits << 2, fp_low, fp_high, a, b, c, d]
    }

    /// The reverse of [`CompactRule::encode`]; `None` for words that it does not make.
    pub fn decode(bytes: [u8; CompactRule::SIZE_BYTES]) -> Option<CompactRule> {
        let [base, flags, fp_low, fp_high, a, b, c, d] = bytes;
        let offset = i16::from_le_bytes([fp_low, fp_high]);
        let unsupported = [
            Unsupported::CfaExpression,
            Unsupported::CfaRegister,
            Unsupported::ReturnAddress,
            Unsupported::FramePointer,
            Unsupported::Signal,
        ];
        let base = match base {
            0 => Base::Outermost,
            1 => Base::Sp,
            2 => Base::Fp,
            3 => Base::FpDeref,
            4 => Base::SpDeref,
            5 => Base::Plt,
            6 => Base::Signal,
            7 => Base::Uncovered,
            13 => Base::Switched,
            14 => Base::Rbx,
            15 => Base::LinkedSp,
            16 => Base::LinkedFp,
            other => Base::Unsupported(*unsupported.get(usize::from(other) - 8)?),
        };
        let (bits, is_word, is_linked) = (flags >> 2, base.is_word(), base.is_linked());
        let rule = CompactRule {
            base,
            cfa: i32::from_le_bytes([a, b, c, d]),
            addend: if is_word { u16::from(bits) * 8 } else { 0 },
            rbx: match base {
                _ if is_linked => Rbx::Same,
                _ if is_word => Rbx::Lost,
                _ => Rbx::of_bits(bits),
            },
            ra: if is_linked { linked::of_bits(bits, offset) } else { ReturnAddress::Pushed },
            fp: match flags & 3 {
                0 => FramePointer::Same,
                1 => FramePointer::AtCfa(offset),
                2 => FramePointer::AtFp(offset),
                _ => return None,
            },
        };
        (rule.encode() == bytes).then_some(rule)
    }

    /// The rule of a row.
    pub(crate) fn from_row<'a, S: UnwindSection<Reader<'a>>>(
        arch: Arch,
        section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
    ) -> CompactRule {
        if arch == Arch::Aarch64 {
            let rule = linked::from_row(fde, row);
            return rule.unwrap_or_else(CompactRule::unsupported);
        }
        let view = View { section, row, encoding: fde.cie().encoding() };
        let ra = fde.cie().return_address_register();
        let rule = match fde.is_signal_trampoline() {
            true => view.signal(ra),
            false => view.frame(ra),
        };
        let rule = rule.unwrap_or_else(CompactRule::unsupported);
        let is_plain = rule.base == Base::Sp && rule.fp == FramePointer::Same;
        if is_plain && go::saves_frame_pointer::<X86_64>(fde, rule.cfa.into()) {
            return CompactRule { fp: FramePointer::AtCfa(go::FRAME_POINTER_AT_CFA), ..rule };
        }
        rule
    }
}

/// A row with the reader of its expressions.
struct View<'r, S> {
    section: &'r S,
    row: &'r UnwindTableRow<usize>,
    encoding: Encoding,
}

/// An expression that was taken apart.
type Operations<'a> = Vec<Operation<Reader<'a>>>;

const SP: Register = Register(X86_64::SP as u16);
const FP: Register = Register(X86_64::FP as u16);
const RBX: Register = Register(3);
const IP: Register = Register(X86_64::IP as u16);

impl<'a, S: UnwindSection<Reader<'a>>> View<'_, S> {
    fn frame(&self, ra: Register) -> Result<CompactRule, Unsupported> {
        let saved_at = match self.row.register(ra) {
            Some(RegisterRule::Undefined) => return Ok(CompactRule::of(Base::Outermost)),
            Some(RegisterRule::Offset(offset)) => offset,
            _ => return Err(Unsupported::ReturnAddress),
        };
        if saved_at != -8 {
            return Err(Unsupported::ReturnAddress);
        }
        let rule = self.cfa()?;
        let fp = self.fp()?;
        match rule.base {
            // The field of the frame pointer says where the push is.
            Base::Plt if fp == FramePointer::Same => Ok(rule),
            Base::Plt => Err(Unsupported::FramePointer),
            base if base.is_word() => Ok(CompactRule { fp, ..rule }),
            _ => Ok(CompactRule { fp, rbx: self.rbx(), ..rule }),
        }
    }

    fn cfa(&self) -> Result<CompactRule, Unsupported> {
        let simple = |register, offset: i64| {
            let base = match register {
                SP => Base::Sp,
                FP => Base::Fp,
                RBX => Base::Rbx,
                _ => return Err(Unsupported::CfaRegister),
            };
            let cfa = i32::try_from(offset).map_err(|_| Unsupported::CfaRegister)?;
            Ok(CompactRule { cfa, ..CompactRule::of(base) })
        };
        match self.row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => simple(*register, *offset),
            CfaRule::Expression(expression) => {
                let operations = self.operations(expression).ok_or(Unsupported::CfaExpression)?;
                cfa_of_expression(&operations).ok_or(Unsupported::CfaExpression)
            }
        }
    }

    fn fp(&self) -> Result<FramePointer, Unsupported> {
        let fits = |offset: i64| i16::try_from(offset).map_err(|_| Unsupported::FramePointer);
        match self.row.register(FP) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => {
                Ok(FramePointer::Same)
            }
            Some(RegisterRule::Offset(offset)) => Ok(FramePointer::AtCfa(fits(offset)?)),
            Some(RegisterRule::Expression(expression)) => {
                match self.operations(&expression).as_deref() {
                    Some([Operation::RegisterOffset { register, offset, .. }])
                        if *register == FP =>
                    {
                        Ok(FramePointer::AtFp(fits(*offset)?))
                    }
                    _ => Err(Unsupported::FramePointer),
                }
            }
            Some(_) => Err(Unsupported::FramePointer),
        }
    }

    fn rbx(&self) -> Rbx {
        match self.row.register(RBX) {
            None | Some(RegisterRule::SameValue) => Rbx::Same,
            Some(RegisterRule::Offset(offset)) if offset % 8 == 0 => {
                let slot = offset.checked_neg().and_then(|below| u8::try_from(below / 8).ok());
                let slot = slot.filter(|slot| (1..=Rbx::SLOT_MAX).contains(slot));
                slot.map_or(Rbx::Lost, Rbx::Below)
            }
            Some(_) => Rbx::Lost,
        }
    }

    /// The one form that the kernel's frames of signals have.
    fn signal(&self, ra: Register) -> Result<CompactRule, Unsupported> {
        let cfa = match self.row.cfa() {
            CfaRule::Expression(expression) => self.operations(expression),
            CfaRule::RegisterAndOffset { .. } => None,
        };
        let cfa = cfa.as_deref().and_then(cfa_of_expression);
        let is_cfa = cfa.is_some_and(|rule| {
            rule.base == Base::SpDeref && (i64::from(rule.cfa), rule.addend) == (SIGNAL_SP, 0)
        });
        let lies_at = |register, wanted| {
            let Some(RegisterRule::Expression(expression)) = self.row.register(register) else {
                return false;
            };
            matches!(
                self.operations(&expression).as_deref(),
                Some([Operation::RegisterOffset { register: SP, offset, .. }]) if *offset == wanted
            )
        };
        match is_cfa && lies_at(ra, SIGNAL_IP) && lies_at(FP, SIGNAL_FP) && lies_at(RBX, SIGNAL_RBX)
        {
            true => Ok(CompactRule::of(Base::Signal)),
            false => Err(Unsupported::Signal),
        }
    }

    /// `None` where the expression cannot be read, or is longer than any that is known.
    fn operations(&self, expression: &UnwindExpression<usize>) -> Option<Operations<'a>> {
        let expression = expression.get(self.section).ok()?;
        let mut operations = expression.operations(self.encoding);
        let mut out = Vec::new();
        while let Some(operation) = operations.next().ok()? {
            if out.len() == OPERATIONS_MAX {
                return None;
            }
            out.push(operation);
        }
        Some(out)
    }
}

fn cfa_of_expression(operations: &[Operation<Reader<'_>>]) -> Option<CompactRule> {
    use Operation::{
        And, Deref, Ge, Plus, PlusConstant, RegisterOffset, Shl, UnsignedConstant as Constant,
    };
    match operations {
        [
            RegisterOffset { register, offset, .. },
            Deref { size: 8, space: false, .. },
            rest @ ..,
        ] => {
            let base = match *register {
                SP => Base::SpDeref,
                FP => Base::FpDeref,
                _ => return None,
            };
            let addend = match rest {
                [] => 0,
                [PlusConstant { value }] if value % 8 == 0 && *value < 512 => *value as u16,
                _ => return None,
            };
            let cfa = i32::try_from(*offset).ok()?;
            Some(CompactRule { cfa, addend, ..CompactRule::of(base) })
        }
        [
            RegisterOffset { register: SP, offset: 8, .. },
            RegisterOffset { register: IP, offset: 0, .. },
            Constant { value: 15 },
            And,
            Constant { value: push @ 0..=15 },
            Ge,
            Constant { value: 3 },
            Shl,
            Plus,
        ] => {
            let fp = FramePointer::AtCfa(*push as i16);
            Some(CompactRule { cfa: 8, fp, ..CompactRule::of(Base::Plt) })
        }
        _ => None,
    }
}
