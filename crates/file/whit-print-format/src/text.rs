//! Strings that a `print fmt` prints with `%s`.

use super::conversion::{Conversion, Radix, append_byte, append_decimal, append_hex};
use super::number::{self, Number};
use super::span::{Span, load};
use super::syntax::{NameTable, Node};
use super::{TraceContext, TraceFormatError as Error};

/// Value and name.
type Names = Box<[(u64, Box<[u8]>)]>;

/// A compiled string.
#[derive(Clone, Debug)]
pub(super) enum Text {
    /// Something that is not a string: prints nothing.
    Nothing,
    Literal(Box<[u8]>),
    CString(Span),
    /// A pointer to one of the kernel's strings.
    KernelString {
        at: usize,
        size: usize,
    },
    Flags {
        value: Number,
        delimiter: Box<[u8]>,
        names: Names,
    },
    Symbolic {
        value: Number,
        names: Names,
    },
    Hex {
        bytes: Span,
        len: Number,
        separated: bool,
    },
    Array {
        bytes: Span,
        count: Number,
        element: Number,
    },
    Bitmask(Span),
    CpuMask(Span),
    Conditional(Box<(Number, Text, Text)>),
}

/// Compiles an argument of `%s`.
pub(super) fn compile(node: &Node<'_>, long_bits: u8) -> Result<Text, Error> {
    let span = |node| Span::of(node).ok_or(Error::NoBytes);
    Ok(match node {
        Node::Text(text) => Text::Literal(text.as_bytes().into()),
        Node::Number(value, _) => Text::Literal(value.to_string().into_bytes().into()),
        Node::Field(field) if !field.is_array && field.size_bytes * 8 == usize::from(long_bits) => {
            Text::KernelString { at: field.offset, size: field.size_bytes }
        }
        Node::Field(field) | Node::DynamicText(field) | Node::DynamicArray(field) => {
            Text::CString(Span::of_field(field))
        }
        Node::Bitmask(field) => Text::Bitmask(Span::of_field(field)),
        Node::CpuMask(field) => Text::CpuMask(Span::of_field(field)),
        Node::Flags(value, delimiter, table) => Text::Flags {
            value: number::compile(value)?,
            delimiter: delimiter.as_bytes().into(),
            names: names(table)?,
        },
        Node::Symbolic(value, table) => {
            Text::Symbolic { value: number::compile(value)?, names: names(table)? }
        }
        Node::Hex(parts, separated) => Text::Hex {
            bytes: span(&parts[0])?,
            len: number::compile(&parts[1])?,
            separated: *separated,
        },
        Node::Array(parts) => Text::Array {
            bytes: span(&parts[0])?,
            count: number::compile(&parts[1])?,
            element: number::compile(&parts[2])?,
        },
        Node::Cast(_, of) => match compile(of, long_bits)? {
            // `(void *)0` and the like.
            Text::Literal(_) if matches!(**of, Node::Number(..)) => Text::Nothing,
            text => text,
        },
        Node::Conditional(parts) => {
            let [condition, yes, no] = &**parts;
            let (yes, no) = (compile(yes, long_bits)?, compile(no, long_bits)?);
            Text::Conditional(Box::new((number::compile(condition)?, yes, no)))
        }
        Node::Name | Node::DynamicLen(_) | Node::Unary(..) | Node::Binary(..) | Node::Index(_) => {
            Text::Nothing
        }
    })
}

/// Values that only the kernel knows match nothing.
fn names(table: &NameTable<'_>) -> Result<Names, Error> {
    let mut names = Vec::new();
    for (value, name) in table {
        match (value, number::compile(value)?) {
            (Node::Name, _) => {}
            (_, Number::Const(value)) => names.push((value, name.as_bytes().into())),
            _ => return Err(Error::NotANumber),
        }
    }
    Ok(names.into())
}

impl Text {
    /// Appends the string for a record; text from a table is padded name by name, as perf does it.
    pub(super) fn append(
        &self,
        conversion: &Conversion,
        raw: &[u8],
        context: &TraceContext<'_>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Text::Nothing => {}
            Text::Literal(text) => conversion.append_text(text, raw, out),
            Text::CString(span) => conversion.append_text(span.c_string(raw), raw, out),
            Text::KernelString { at, size } => {
                let address = load(raw, *at, *size);
                match context.strings.string_at(address) {
                    Some(text) => out.extend_from_slice(text.as_bytes()),
                    None => Conversion::default().append_number(address, 64, Radix::Hex, raw, out),
                }
            }
            Text::Flags { value, delimiter, names } => {
                append_flags(value.eval(raw), delimiter, names, conversion, raw, out);
            }
            Text::Symbolic { value, names } => {
                let value = value.eval(raw);
                match names.iter().find(|(known, _)| *known == value) {
                    Some((_, name)) => conversion.append_text(name, raw, out),
                    None => append_hex(value, out),
                }
            }
            Text::Hex { bytes, len, separated } => {
                let bytes = bytes.bytes(raw);
                let len = usize::try_from(len.eval(raw)).unwrap_or(usize::MAX).min(bytes.len());
                append_bytes(&bytes[..len], if *separated { b" " } else { b"" }, out);
            }
            Text::Array { bytes, count, element } => {
                append_array(bytes.bytes(raw), count.eval(raw), element.eval(raw), out);
            }
            Text::Bitmask(span) => append_bitmask(span.bytes(raw), out),
            Text::CpuMask(span) => append_cpu_list(span.bytes(raw), out),
            Text::Conditional(parts) => {
                let (condition, yes, no) = &**parts;
                let chosen = if condition.eval(raw) != 0 { yes } else { no };
                chosen.append(conversion, raw, context, out);
            }
        }
    }
}

fn append_flags(
    mut value: u64,
    delimiter: &[u8],
    names: &Names,
    conversion: &Conversion,
    raw: &[u8],
    out: &mut Vec<u8>,
) {
    let mut delimit: &[u8] = b"";
    for (mask, name) in names {
        if *mask != 0 && value & mask == *mask {
            out.extend_from_slice(delimit);
            conversion.append_text(name, raw, out);
            value &= !mask;
            delimit = delimiter;
        }
    }
    if value != 0 {
        out.extend_from_slice(delimit);
        append_hex(value, out);
    }
}

/// Appends bytes as pairs of hexadecimal digits.
pub(super) fn append_bytes(bytes: &[u8], separator: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        append_byte(*byte, out);
    }
}

/// `{0x1,0x2}`; an element of another size than an integer's is taken as bytes.
fn append_array(bytes: &[u8], count: u64, element_size: u64, out: &mut Vec<u8>) {
    let size = match element_size {
        1 | 2 | 4 | 8 => element_size as usize,
        _ => 1,
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(bytes.len() / size);
    out.push(b'{');
    for index in 0..count {
        if index > 0 {
            out.push(b',');
        }
        append_hex(load(bytes, index * size, size), out);
    }
    out.push(b'}');
}

/// Hexadecimal digits, the highest byte first, a comma after every 32 bits from the low end.
pub(super) fn append_bitmask(bytes: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in bytes.iter().enumerate().rev() {
        append_byte(*byte, out);
        if index > 0 && index % 4 == 0 {
            out.push(b',');
        }
    }
}

/// Numbers of the bits that are set: `0-3,7`.
pub(super) fn append_cpu_list(bytes: &[u8], out: &mut Vec<u8>) {
    let is_set = |bit: usize| bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 != 0);
    let bits = bytes.len() * 8;
    let mut first_range = true;
    let mut bit = 0;
    while bit < bits {
        if !is_set(bit) {
            bit += 1;
            continue;
        }
        let first = bit;
        while is_set(bit) {
            bit += 1;
        }
        if !first_range {
            out.push(b',');
        }
        first_range = false;
        append_decimal(first as u64, out);
        if bit - first > 1 {
            out.push(b'-');
            append_decimal(bit as u64 - 1, out);
        }
    }
}
