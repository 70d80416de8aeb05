//! The format string of a `print fmt`, compiled with its arguments.

use super::address::AddressForm;
use super::conversion::{Conversion, Count, Radix};
use super::number::{self, Number};
use super::span::Span;
use super::syntax::Node;
use super::text::{self, Text};
use super::{TraceContext, TraceFormatError as Error};

/// A step of the compiled format.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Literal(Box<[u8]>),
    Number {
        conversion: Conversion,
        radix: Radix,
        bits: u8,
        value: Number,
    },
    Char {
        conversion: Conversion,
        value: Number,
    },
    Text {
        conversion: Conversion,
        text: Text,
    },
    Pointer(Number),
    /// A function of the kernel.
    Function {
        value: Number,
        with_offset: bool,
    },
    Address {
        form: AddressForm,
        bytes: Span,
    },
    /// `%*ph`.
    Bytes {
        bytes: Span,
        max_len: Number,
        separator: Option<u8>,
    },
    /// `%*pb`: hexadecimal, or a list of numbers.
    Bits {
        bytes: Span,
        count: Number,
        as_list: bool,
    },
}

/// Compiles a format string.
pub(super) fn compile(
    format: &str,
    arguments: &[Node<'_>],
    long_bits: u8,
) -> Result<Vec<Step>, Error> {
    let mut compiler = Compiler {
        rest: format.as_bytes(),
        arguments: arguments.iter(),
        long_bits,
        steps: Vec::new(),
    };
    while let Some((&first, rest)) = compiler.rest.split_first() {
        compiler.rest = rest;
        match first {
            b'%' => compiler.directive()?,
            byte => compiler.literal(&[byte]),
        }
    }
    Ok(compiler.steps)
}

struct Compiler<'f, 'n, 'e> {
    rest: &'f [u8],
    arguments: std::slice::Iter<'n, Node<'e>>,
    long_bits: u8,
    steps: Vec<Step>,
}

impl<'n, 'e> Compiler<'_, 'n, 'e> {
    fn literal(&mut self, bytes: &[u8]) {
        if let Some(Step::Literal(text)) = self.steps.last_mut() {
            *text = [&**text, bytes].concat().into();
        } else {
            self.steps.push(Step::Literal(bytes.into()));
        }
    }

    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        if found {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        found
    }

    fn argument(&mut self) -> Result<&'n Node<'e>, Error> {
        self.arguments.next().ok_or(Error::MissingArgument)
    }

    fn number(&mut self) -> Result<Number, Error> {
        number::compile(self.argument()?)
    }

    fn count(&mut self) -> Result<Option<Count>, Error> {
        if self.eat(b'*') {
            return Ok(Some(Count::Argument(self.number()?)));
        }
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (text, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let add = |sum: usize, digit: &u8| {
            sum.saturating_mul(10).saturating_add(usize::from(digit - b'0'))
        };
        Ok((digits > 0).then(|| Count::Fixed(text.iter().fold(0, add))))
    }

    /// Behind a `%`.
    fn directive(&mut self) -> Result<(), Error> {
        let mut conversion = Conversion::default();
        loop {
            match self.peek() {
                b'-' => conversion.left = true,
                b'+' => conversion.plus = true,
                b' ' => conversion.space = true,
                b'#' => conversion.alternate = true,
                b'0' => conversion.zero = true,
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
        conversion.width = self.count()?;
        if self.eat(b'.') {
            conversion.precision = Some(self.count()?.unwrap_or(Count::Fixed(0)));
        }
        let bits = self.length();
        let kind = self.peek();
        self.rest = self.rest.get(1..).unwrap_or_default();
        let radix = match kind {
            b'd' | b'i' => Radix::SignedDecimal,
            b'u' => Radix::Decimal,
            b'o' => Radix::Octal,
            b'x' => Radix::Hex,
            b'X' => Radix::UpperHex,
            _ => return self.other(kind, conversion),
        };
        let value = self.number()?;
        self.steps.push(Step::Number { conversion, radix, bits, value });
        Ok(())
    }

    /// Bits of the number that the length modifiers name.
    fn length(&mut self) -> u8 {
        let (mut longs, mut shorts) = (0, 0);
        loop {
            match self.peek() {
                b'l' => longs += 1,
                b'h' => shorts += 1,
                b'L' | b'j' | b'q' => longs += 2,
                b'z' | b'Z' | b't' => longs += 1,
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
        match (longs, shorts) {
            (0, 0) => 32,
            (0, 1) => 16,
            (0, _) => 8,
            (1, _) => self.long_bits,
            _ => 64,
        }
    }

    fn other(&mut self, kind: u8, conversion: Conversion) -> Result<(), Error> {
        match kind {
            b'%' => self.literal(b"%"),
            b'c' => {
                let value = self.number()?;
                self.steps.push(Step::Char { conversion, value });
            }
            b's' => {
                let text = text::compile(self.argument()?, self.long_bits)?;
                self.steps.push(Step::Text { conversion, text });
            }
            b'p' => {
                let step = self.pointer(conversion)?;
                self.steps.push(step);
            }
            // perf prints a conversion that does not exist as it stands.
            0 => {}
            kind => self.literal(&[b'>', kind, b'<']),
        }
        Ok(())
    }

    fn pointer(&mut self, conversion: Conversion) -> Result<Step, Error> {
        match self.peek() {
            kind @ (b'S' | b's' | b'F' | b'f' | b'B') => {
                self.rest = &self.rest[1..];
                if matches!(kind, b'S' | b'B') {
                    self.eat(b'R');
                }
                if matches!(kind, b'S' | b's' | b'B') {
                    self.eat(b'b');
                }
                let with_offset = matches!(kind, b'S' | b'F' | b'B');
                Ok(Step::Function { value: self.number()?, with_offset })
            }
            b'M' | b'm' | b'I' | b'i' | b'U' => {
                let form = self.address_form();
                match form {
                    Some(form) => Ok(Step::Address { form, bytes: self.span()? }),
                    None => Ok(Step::Pointer(self.number()?)),
                }
            }
            b'h' => {
                self.rest = &self.rest[1..];
                let separator = match self.peek() {
                    b'C' => Some(b':'),
                    b'D' => Some(b'-'),
                    b'N' => None,
                    _ => Some(b' '),
                };
                if matches!(self.peek(), b'C' | b'D' | b'N') {
                    self.rest = &self.rest[1..];
                }
                let max_len = width_or(conversion, 1);
                Ok(Step::Bytes { bytes: self.span()?, max_len, separator })
            }
            b'b' => {
                self.rest = &self.rest[1..];
                let as_list = self.eat(b'l');
                let count = width_or(conversion, u64::from(self.long_bits));
                Ok(Step::Bits { bytes: self.span()?, count, as_list })
            }
            kind => {
                // `%px` and `%pK` differ in the addresses that the kernel hides; it has decided by
                // now.
                if matches!(kind, b'x' | b'K') {
                    self.rest = &self.rest[1..];
                }
                Ok(Step::Pointer(self.number()?))
            }
        }
    }

    fn span(&mut self) -> Result<Span, Error> {
        Span::of(self.argument()?).ok_or(Error::NoBytes)
    }

    /// Takes the letters behind `%p`; `None` for `%pI` and `%pi` without a known version.
    fn address_form(&mut self) -> Option<AddressForm> {
        let kind = self.peek();
        self.rest = &self.rest[1..];
        match kind {
            b'M' | b'm' => {
                let dashes = self.eat(b'F');
                let reversed = self.eat(b'R');
                let separator = (kind == b'M').then_some(if dashes { b'-' } else { b':' });
                Some(AddressForm::Mac { separator, reversed })
            }
            b'U' => {
                let letter = self.peek();
                if matches!(letter, b'b' | b'B' | b'l' | b'L') {
                    self.rest = &self.rest[1..];
                }
                let upper = matches!(letter, b'B' | b'L');
                Some(AddressForm::Uuid { upper, little_endian: matches!(letter, b'l' | b'L') })
            }
            _ => self.internet_form(kind == b'I'),
        }
    }

    fn internet_form(&mut self, colons: bool) -> Option<AddressForm> {
        if self.eat(b'4') {
            let reversed = matches!(self.peek(), b'h' | b'l');
            if matches!(self.peek(), b'h' | b'l' | b'n' | b'b') {
                self.rest = &self.rest[1..];
            }
            return Some(AddressForm::Ipv4 { padded: !colons, reversed });
        }
        if self.eat(b'6') {
            let compressed = colons && self.eat(b'c');
            return Some(AddressForm::Ipv6 { colons, compressed });
        }
        if !self.eat(b'S') {
            return None;
        }
        let (mut compressed, mut port, mut reversed) = (false, false, false);
        loop {
            match self.peek() {
                b'p' => port = true,
                b'c' => compressed = colons,
                b'h' | b'l' => reversed = true,
                b'f' | b's' | b'n' | b'b' => {}
                _ => break,
            }
            self.rest = &self.rest[1..];
        }
        Some(AddressForm::Socket { colons, compressed, port, reversed })
    }
}

fn width_or(conversion: Conversion, otherwise: u64) -> Number {
    match conversion.width {
        Some(Count::Argument(number)) => number,
        Some(Count::Fixed(width)) => Number::Const(width as u64),
        None => Number::Const(otherwise),
    }
}

impl Step {
    /// Appends the text for a record.
    pub(super) fn append(&self, raw: &[u8], context: &TraceContext<'_>, out: &mut Vec<u8>) {
        let limit =
            |number: &Number| usize::try_from(number.eval(raw) as u32).unwrap_or(usize::MAX);
        match self {
            Step::Literal(text) => out.extend_from_slice(text),
            Step::Number { conversion, radix, bits, value } => {
                conversion.append_number(value.eval(raw), *bits, *radix, raw, out);
            }
            Step::Char { conversion, value } => {
                // A NUL would end the line that perf prints.
                let byte = value.eval(raw) as u8;
                conversion.append_text(
                    if byte == 0 { &[] } else { std::slice::from_ref(&byte) },
                    raw,
                    out,
                );
            }
            Step::Text { conversion, text } => text.append(conversion, raw, context, out),
            Step::Pointer(value) => match value.eval(raw) {
                0 => out.extend_from_slice(b"(nil)"),
                address => super::conversion::append_hex(address, out),
            },
            Step::Function { value, with_offset } => {
                append_function(value.eval(raw), *with_offset, context, out);
            }
            Step::Address { form, bytes } => form.append(bytes.bytes(raw), out),
            Step::Bytes { bytes, max_len, separator } => {
                let bytes = bytes.bytes(raw);
                let len = limit(max_len).min(bytes.len());
                text::append_bytes(&bytes[..len], separator.as_slice(), out);
            }
            Step::Bits { bytes, count, as_list } => {
                let bytes = bytes.bytes(raw);
                let bytes = &bytes[..limit(count).div_ceil(8).min(bytes.len())];
                if *as_list {
                    text::append_cpu_list(bytes, out);
                } else {
                    text::append_bitmask(bytes, out);
                }
            }
        }
    }
}

fn append_function(address: u64, with_offset: bool, context: &TraceContext<'_>, out: &mut Vec<u8>) {
    let Some((name, offset)) = (context.function_at)(address) else {
        return super::conversion::append_hex(address, out);
    };
    out.extend_from_slice(name.as_bytes());
    if with_offset {
        out.push(b'+');
        super::conversion::append_hex(offset, out);
    }
}
