//! The `%` conversions of `printf` for numbers and strings.

use super::number::Number;

/// Longest width or precision that is honoured.
const MAX_WIDTH: usize = 1024;

/// A width or a precision.
#[derive(Clone, Debug)]
pub(super) enum Count {
    /// From the format string.
    Fixed(usize),
    /// `*`: the next argument gives it.
    Argument(Number),
}

impl Count {
    /// The value for a record; negative ones are possible for arguments.
    fn eval(&self, raw: &[u8]) -> i64 {
        let limit = MAX_WIDTH as i64;
        match self {
            Count::Fixed(count) => (*count).min(MAX_WIDTH) as i64,
            Count::Argument(number) => i64::from(number.eval(raw) as i32).clamp(-limit, limit),
        }
    }
}

/// Flags, width and precision.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversion {
    pub(super) left: bool,
    pub(super) plus: bool,
    pub(super) space: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: Option<Count>,
    pub(super) precision: Option<Count>,
}

/// Radix and sign of a number's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Radix {
    SignedDecimal,
    Decimal,
    Octal,
    Hex,
    UpperHex,
}

impl Conversion {
    /// Width, whether to align to the left, and precision, for a record.
    fn resolve(&self, raw: &[u8]) -> (usize, bool, Option<usize>) {
        let width = self.width.as_ref().map_or(0, |width| width.eval(raw));
        let precision = self.precision.as_ref().map(|precision| precision.eval(raw));
        let precision = precision.and_then(|precision| usize::try_from(precision).ok());
        (width.unsigned_abs() as usize, self.left || width < 0, precision)
    }

    /// Appends a string.
    pub(super) fn append_text(&self, text: &[u8], raw: &[u8], out: &mut Vec<u8>) {
        if self.width.is_none() && self.precision.is_none() {
            out.extend_from_slice(text);
            return;
        }
        let (width, left, precision) = self.resolve(raw);
        let text = &text[..text.len().min(precision.unwrap_or(usize::MAX))];
        let blanks = width.saturating_sub(text.len());
        if !left {
            pad(out, blanks, b' ');
        }
        out.extend_from_slice(text);
        if left {
            pad(out, blanks, b' ');
        }
    }

    /// Appends a number of `bits` bits.
    pub(super) fn append_number(
        &self,
        value: u64,
        bits: u8,
        radix: Radix,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) {
        let unused = 64 - u32::from(bits);
        let signed = (value << unused) as i64 >> unused;
        let (magnitude, negative) = match radix {
            Radix::SignedDecimal => (signed.unsigned_abs(), signed < 0),
            _ => (value << unused >> unused, false),
        };
        let sign: &[u8] = match (negative, radix) {
            (true, _) => b"-",
            (_, Radix::SignedDecimal) if self.plus => b"+",
            (_, Radix::SignedDecimal) if self.space => b" ",
            (_, Radix::Hex) if self.alternate && magnitude != 0 => b"0x",
            (_, Radix::UpperHex) if self.alternate && magnitude != 0 => b"0X",
            _ => b"",
        };
        let mut room = [0; 22];
        let digits = digits(magnitude, radix, &mut room);
        let octal_mark = radix == Radix::Octal && self.alternate && magnitude != 0;
        if self.width.is_none() && self.precision.is_none() {
            out.extend_from_slice(sign);
            pad(out, usize::from(octal_mark), b'0');
            out.extend_from_slice(digits);
            return;
        }
        let (width, left, precision) = self.resolve(raw);
        let shown = if magnitude == 0 && precision == Some(0) { &[][..] } else { digits };
        let mut zeros = precision.unwrap_or(0).saturating_sub(shown.len());
        zeros = zeros.max(usize::from(octal_mark));
        if self.zero && !left && precision.is_none() {
            zeros = zeros.max(width.saturating_sub(sign.len() + shown.len()));
        }
        let blanks = width.saturating_sub(sign.len() + zeros + shown.len());
        if !left {
            pad(out, blanks, b' ');
        }
        out.extend_from_slice(sign);
        pad(out, zeros, b'0');
        out.extend_from_slice(shown);
        if left {
            pad(out, blanks, b' ');
        }
    }
}

fn pad(out: &mut Vec<u8>, count: usize, with: u8) {
    out.resize(out.len() + count, with);
}

/// The digits, in the end of `room`.
fn digits(mut value: u64, radix: Radix, room: &mut [u8; 22]) -> &[u8] {
    let (base, letters): (u64, &[u8; 16]) = match radix {
        Radix::SignedDecimal | Radix::Decimal => (10, b"0123456789abcdef"),
        Radix::Octal => (8, b"0123456789abcdef"),
        Radix::Hex => (16, b"0123456789abcdef"),
        Radix::UpperHex => (16, b"0123456789ABCDEF"),
    };
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = letters[(value % base) as usize];
        value /= base;
        if value == 0 {
            return &room[at..];
        }
    }
}

/// Appends `0x` and hexadecimal digits.
pub(super) fn append_hex(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0x");
    Conversion::default().append_number(value, 64, Radix::Hex, &[], out);
}

/// Appends a decimal number.
pub(super) fn append_decimal(value: u64, out: &mut Vec<u8>) {
    Conversion::default().append_number(value, 64, Radix::Decimal, &[], out);
}

/// Appends two hexadecimal digits.
pub(super) fn append_byte(byte: u8, out: &mut Vec<u8>) {
    const LETTERS: &[u8; 16] = b"0123456789abcdef";
    out.push(LETTERS[usize::from(byte >> 4)]);
    out.push(LETTERS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(conversion: &Conversion, value: u64, bits: u8, radix: Radix) -> String {
        let mut out = Vec::new();
        conversion.append_number(value, bits, radix, &[], &mut out);
        String::from_utf8(out).unwrap()
    }

    fn width(width: usize) -> Conversion {
        Conversion { width: Some(Count::Fixed(width)), ..Conversion::default() }
    }

    #[test]
    fn numbers_are_cut_signed_and_padded() {
        let plain = Conversion::default();
        assert_eq!(number(&plain, u64::MAX, 32, Radix::SignedDecimal), "-1");
        assert_eq!(number(&plain, u64::MAX, 8, Radix::Decimal), "255");
        assert_eq!(number(&plain, u64::MAX, 64, Radix::SignedDecimal), "-1");
        assert_eq!(number(&width(5), 42, 32, Radix::SignedDecimal), "   42");
        let zero = Conversion { zero: true, ..width(8) };
        assert_eq!(number(&zero, 0xbeef, 64, Radix::Hex), "0000beef");
        assert_eq!(number(&zero, u64::MAX, 32, Radix::SignedDecimal), "-0000001");
        let left = Conversion { left: true, ..zero.clone() };
        assert_eq!(number(&left, 0xb, 64, Radix::UpperHex), "B       ");
        let hash = Conversion { alternate: true, ..zero };
        assert_eq!(number(&hash, 0xb, 64, Radix::Hex), "0x00000b");
        assert_eq!(number(&hash, 0, 64, Radix::Hex), "00000000");
        let octal = Conversion { alternate: true, ..Conversion::default() };
        assert_eq!(number(&octal, 8, 32, Radix::Octal), "010");
        let plus = Conversion { plus: true, ..Conversion::default() };
        assert_eq!(number(&plus, 3, 32, Radix::SignedDecimal), "+3");
        let precise = Conversion { precision: Some(Count::Fixed(3)), zero: true, ..width(6) };
        assert_eq!(number(&precise, 7, 32, Radix::Decimal), "   007");
    }

    #[test]
    fn strings_are_cut_and_padded() {
        let text = |conversion: Conversion| {
            let mut out = Vec::new();
            conversion.append_text(b"abc", &[], &mut out);
            String::from_utf8(out).unwrap()
        };
        let given = |value: i64| Some(Count::Argument(Number::Const(value as u64)));
        assert_eq!(text(width(5)), "  abc");
        assert_eq!(text(Conversion { left: true, ..width(5) }), "abc  ");
        assert_eq!(text(Conversion { width: given(-5), ..Conversion::default() }), "abc  ");
        assert_eq!(text(Conversion { precision: given(2), ..Conversion::default() }), "ab");
        assert_eq!(text(Conversion { precision: given(-1), ..Conversion::default() }), "abc");
        assert_eq!(text(width(usize::MAX)).len(), MAX_WIDTH);
    }
}
