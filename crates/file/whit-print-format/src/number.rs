//! Numbers that a `print fmt` computes, as C computes them.
//!
//! A value is held in 64 bits, extended by the sign of its type; where C would cut it, the
//! compiled form does so explicitly. (libtraceevent takes every field as unsigned and never
//! extends a sign; the results differ for negative values that are compared, divided, shifted
//! right, widened or looked up by name, and are the kernel's own here.)

use super::TraceFormatError as Error;
use super::ctype::{CastType, INT, IntType, U64};
use super::span::{Span, load};
use super::syntax::{BinaryOp, Node, UnaryOp};

/// A compiled number.
#[derive(Clone, Debug)]
pub(super) enum Number {
    Const(u64),
    Load {
        at: usize,
        size: usize,
        int: IntType,
    },
    /// An element of an array.
    Element {
        array: Span,
        int: IntType,
        index: Box<Number>,
    },
    LenBytes(Span),
    Narrow(IntType, Box<Number>),
    Unary(UnaryOp, Box<Number>),
    /// Division, shift to the right and comparison depend on the sign.
    Binary(BinaryOp, bool, Box<[Number; 2]>),
    Conditional(Box<[Number; 3]>),
}

/// Compiles an expression that has to be a number.
pub(super) fn compile(node: &Node<'_>) -> Result<Number, Error> {
    Ok(typed(node)?.0)
}

fn typed(node: &Node<'_>) -> Result<(Number, IntType), Error> {
    match node {
        Node::Number(value, int) => Ok((Number::Const(*value), *int)),
        // perf takes names that it does not know as zero.
        Node::Name => Ok((Number::Const(0), INT)),
        Node::Field(field) => {
            let bits = (field.size_bytes.min(8) * 8) as u8;
            let int = IntType { bits, signed: field.is_signed };
            Ok((Number::Load { at: field.offset, size: field.size_bytes, int }, int))
        }
        Node::DynamicLen(field) => Ok((Number::LenBytes(Span::of_field(field)), INT)),
        Node::Cast(cast, of) => compile_cast(*cast, of),
        Node::Unary(op, of) => {
            let (of, int) = typed(of)?;
            let int = if *op == UnaryOp::LogicalNot { INT } else { int.promoted() };
            Ok((narrowed(folded(Number::Unary(*op, Box::new(of))), int), int))
        }
        Node::Binary(op, operands) => compile_binary(*op, operands),
        Node::Conditional(parts) => {
            let [condition, yes, no] = &**parts;
            let (condition, (yes, a), (no, b)) = (compile(condition)?, typed(yes)?, typed(no)?);
            let int = a.common(b);
            let parts = [condition, converted(yes, int), converted(no, int)];
            Ok((folded(Number::Conditional(Box::new(parts))), int))
        }
        Node::Index(parts) => compile_index(&parts[0], &parts[1]),
        Node::Text(_)
        | Node::DynamicArray(_)
        | Node::DynamicText(_)
        | Node::Bitmask(_)
        | Node::CpuMask(_)
        | Node::Flags(..)
        | Node::Symbolic(..)
        | Node::Hex(..)
        | Node::Array(_) => Err(Error::NotANumber),
    }
}

fn compile_cast(cast: CastType, of: &Node<'_>) -> Result<(Number, IntType), Error> {
    let (of, int) = typed(of)?;
    Ok(match cast {
        CastType::Int(to) => (narrowed(of, to), to),
        CastType::Pointer(_) => (of, U64),
        CastType::Other => (of, int),
    })
}

fn compile_binary(op: BinaryOp, operands: &[Node<'_>; 2]) -> Result<(Number, IntType), Error> {
    let ((left, a), (right, b)) = (typed(&operands[0])?, typed(&operands[1])?);
    let binary = |signed, left, right| folded(Number::Binary(op, signed, Box::new([left, right])));
    match op {
        BinaryOp::LogicalAnd | BinaryOp::LogicalOr => Ok((binary(false, left, right), INT)),
        BinaryOp::Shl | BinaryOp::Shr => {
            let int = a.promoted();
            Ok((narrowed(binary(int.signed, left, right), int), int))
        }
        _ => {
            let int = a.common(b);
            let result = binary(int.signed, converted(left, int), converted(right, int));
            if op >= BinaryOp::Less && op <= BinaryOp::NotEqual {
                Ok((result, INT))
            } else {
                Ok((narrowed(result, int), int))
            }
        }
    }
}

/// An element of a field, or of the array behind a pointer to integers.
fn compile_index(base: &Node<'_>, index: &Node<'_>) -> Result<(Number, IntType), Error> {
    let array = Span::of(base).ok_or(Error::NotANumber)?;
    let int = element_type(base, None).ok_or(Error::NotANumber)?;
    let index = Box::new(compile(index)?);
    Ok((Number::Element { array, int, index }, int))
}

/// The outermost cast to a pointer counts, else the array's own type.
fn element_type(node: &Node<'_>, cast: Option<IntType>) -> Option<IntType> {
    match node {
        Node::Cast(CastType::Pointer(Some(int)), of) => element_type(of, cast.or(Some(*int))),
        Node::Cast(_, of) => element_type(of, cast),
        Node::Field(field) | Node::DynamicArray(field) | Node::DynamicText(field) => {
            cast.or_else(|| {
                let bits = u8::try_from(field.element_size_bytes * 8).ok()?;
                let known = field.is_array && matches!(bits, 8 | 16 | 32 | 64);
                known.then_some(IntType { bits, signed: field.is_signed })
            })
        }
        _ => None,
    }
}

/// A value of any type in a type that C's arithmetic converts it to.
fn converted(number: Number, to: IntType) -> Number {
    if to.bits == 64 { number } else { narrowed(number, to) }
}

fn narrowed(number: Number, int: IntType) -> Number {
    match number {
        Number::Const(value) => Number::Const(int.narrow(value)),
        Number::Load { int: from, .. } if from == int => number,
        number if int.bits == 64 => folded(number),
        number => folded(Number::Narrow(int, Box::new(number))),
    }
}

/// The value at once, where it depends on no record.
fn folded(number: Number) -> Number {
    let is_const = |number: &Number| matches!(number, Number::Const(_));
    let known = match &number {
        Number::Narrow(_, of) | Number::Unary(_, of) => is_const(of),
        Number::Binary(_, _, operands) => operands.iter().all(is_const),
        Number::Conditional(parts) => parts.iter().all(is_const),
        _ => false,
    };
    if known { Number::Const(number.eval(&[])) } else { number }
}

impl Number {
    /// The value for a record.
    pub(super) fn eval(&self, raw: &[u8]) -> u64 {
        match self {
            Number::Const(value) => *value,
            Number::Load { at, size, int } => int.narrow(load(raw, *at, *size)),
            Number::Element { array, int, index } => {
                let size = usize::from(int.bits / 8);
                let at = usize::try_from(index.eval(raw)).ok().and_then(|i| i.checked_mul(size));
                int.narrow(at.map_or(0, |at| load(array.bytes(raw), at, size)))
            }
            Number::LenBytes(span) => span.bytes(raw).len() as u64,
            Number::Narrow(int, of) => int.narrow(of.eval(raw)),
            Number::Unary(op, of) => {
                let value = of.eval(raw);
                match op {
                    UnaryOp::Negate => value.wrapping_neg(),
                    UnaryOp::Not => !value,
                    UnaryOp::LogicalNot => u64::from(value == 0),
                }
            }
            Number::Binary(op, signed, operands) => {
                binary(*op, *signed, operands[0].eval(raw), operands[1].eval(raw))
            }
            Number::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                if condition.eval(raw) != 0 { yes.eval(raw) } else { no.eval(raw) }
            }
        }
    }
}

/// Division by zero gives zero.
fn binary(op: BinaryOp, signed: bool, a: u64, b: u64) -> u64 {
    let (sa, sb) = (a as i64, b as i64);
    let order = if signed { sa.cmp(&sb) } else { a.cmp(&b) };
    match op {
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => 0,
        BinaryOp::Div if signed => sa.wrapping_div(sb) as u64,
        BinaryOp::Div => a / b,
        BinaryOp::Rem if signed => sa.wrapping_rem(sb) as u64,
        BinaryOp::Rem => a % b,
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Shl => a.wrapping_shl(b as u32),
        BinaryOp::Shr if signed => sa.wrapping_shr(b as u32) as u64,
        BinaryOp::Shr => a.wrapping_shr(b as u32),
        BinaryOp::Less => u64::from(order.is_lt()),
        BinaryOp::LessEqual => u64::from(order.is_le()),
        BinaryOp::Greater => u64::from(order.is_gt()),
        BinaryOp::GreaterEqual => u64::from(order.is_ge()),
        BinaryOp::Equal => u64::from(a == b),
        BinaryOp::NotEqual => u64::from(a != b),
        BinaryOp::And => a & b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Or => a | b,
        BinaryOp::LogicalAnd => u64::from(a != 0 && b != 0),
        BinaryOp::LogicalOr => u64::from(a != 0 || b != 0),
    }
}
