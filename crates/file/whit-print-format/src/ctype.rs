//! C's integer types, as far as casts and literals need them.

/// An integer type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct IntType {
    /// 8, 16, 32 or 64.
    pub(super) bits: u8,
    /// Whether the type has a sign; `char` has one.
    pub(super) signed: bool,
}

/// The type of literals and comparisons: C's `int`.
pub(super) const INT: IntType = IntType { bits: 32, signed: true };
/// `unsigned long long`.
pub(super) const U64: IntType = IntType { bits: 64, signed: false };

impl IntType {
    /// The value as this type holds it: cut, and extended to 64 bits by its sign.
    pub(super) fn narrow(self, value: u64) -> u64 {
        match (self.bits, self.signed) {
            (8, true) => value as i8 as u64,
            (8, false) => u64::from(value as u8),
            (16, true) => value as i16 as u64,
            (16, false) => u64::from(value as u16),
            (32, true) => value as i32 as u64,
            (32, false) => u64::from(value as u32),
            _ => value,
        }
    }

    /// The type of an arithmetic result, by C's integer promotions.
    pub(super) fn promoted(self) -> IntType {
        if self.bits < 32 { INT } else { self }
    }

    /// The type in which values of both types meet.
    pub(super) fn common(self, other: IntType) -> IntType {
        let (a, b) = (self.promoted(), other.promoted());
        match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal => IntType { bits: a.bits, signed: a.signed && b.signed },
        }
    }
}

/// The target of a cast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CastType {
    /// An integer.
    Int(IntType),
    /// A pointer, to integers or to something else.
    Pointer(Option<IntType>),
    /// A type that only the kernel knows: values stay as they are.
    Other,
}

/// Words that only stand in types.
const TYPE_WORDS: [&str; 13] = [
    "unsigned", "signed", "int", "long", "short", "char", "void", "struct", "enum", "union",
    "const", "volatile", "bool",
];

/// True where the word can only belong to a type.
pub(super) fn is_type_word(word: &str) -> bool {
    TYPE_WORDS.contains(&word) || named(word).is_some()
}

fn named(word: &str) -> Option<IntType> {
    let int = |bits, signed| Some(IntType { bits, signed });
    match word {
        "u8" | "__u8" | "uint8_t" | "bool" => int(8, false),
        "s8" | "__s8" | "int8_t" => int(8, true),
        "u16" | "__u16" | "uint16_t" | "umode_t" => int(16, false),
        "s16" | "__s16" | "int16_t" => int(16, true),
        "u32" | "__u32" | "uint32_t" | "gfp_t" | "dev_t" | "uid_t" | "gid_t" => int(32, false),
        "s32" | "__s32" | "int32_t" | "pid_t" => int(32, true),
        "u64" | "__u64" | "uint64_t" | "sector_t" => int(64, false),
        "s64" | "__s64" | "int64_t" | "loff_t" => int(64, true),
        _ => None,
    }
}

/// The type that a row of words and stars names.
pub(super) fn parse_type(words: &[&str], stars: usize, long_bits: u8) -> CastType {
    let int = parse_int(words, long_bits);
    match (stars, int) {
        (0, Some(int)) => CastType::Int(int),
        (0, None) => CastType::Other,
        (1, int) => CastType::Pointer(int),
        _ => CastType::Pointer(None),
    }
}

fn parse_int(words: &[&str], long_bits: u8) -> Option<IntType> {
    let mut signed = true;
    let mut bits = None;
    let mut longs = 0;
    for word in words {
        match *word {
            "const" | "volatile" | "signed" => {}
            "unsigned" => signed = false,
            "char" => bits = Some(8),
            "short" => bits = Some(16),
            "int" => bits = bits.or(Some(32)),
            "long" => longs += 1,
            "size_t" | "uintptr_t" => return Some(IntType { bits: long_bits, signed: false }),
            "ssize_t" => return Some(IntType { bits: long_bits, signed: true }),
            "struct" | "union" | "void" => return None,
            "enum" => return Some(IntType { bits: 32, signed: false }),
            word => return named(word),
        }
    }
    let bits = match longs {
        0 => bits.or((!signed).then_some(32))?,
        1 => long_bits,
        _ => 64,
    };
    Some(IntType { bits, signed })
}

/// Value and type of a literal such as `0x10UL`; `None` where it is not one.
pub(super) fn parse_number(text: &str, long_bits: u8) -> Option<(u64, IntType)> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = text[digits.len()..].to_ascii_lowercase();
    let (radix, digits) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        None => (10, digits),
    };
    let value = u64::from_str_radix(digits, radix).ok()?;
    let unsigned = suffix.contains('u');
    let least = match suffix.matches('l').count() {
        0 => 32,
        1 => long_bits,
        _ => 64,
    };
    let fits = |t: IntType| t.narrow(value) == value && (!t.signed || (value as i64) >= 0);
    let candidates = [
        IntType { bits: 32, signed: true },
        IntType { bits: 32, signed: false },
        IntType { bits: 64, signed: true },
    ];
    let allowed = |t: &IntType| {
        t.bits >= least && !(t.signed && unsigned) && (t.signed || unsigned || radix != 10)
    };
    let found = candidates.into_iter().find(|t| allowed(t) && fits(*t));
    Some((value, found.unwrap_or(U64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_types_that_c_gives_them() {
        let of = |text| {
            let (value, t) = parse_number(text, 64).unwrap();
            (value, t.bits, t.signed)
        };
        assert_eq!(of("0"), (0, 32, true));
        assert_eq!(of("017"), (15, 32, true));
        assert_eq!(of("4294967295"), (0xffff_ffff, 64, true));
        assert_eq!(of("0xffffffff"), (0xffff_ffff, 32, false));
        assert_eq!(of("1U"), (1, 32, false));
        assert_eq!(of("1UL"), (1, 64, false));
        assert_eq!(of("6ULL"), (6, 64, false));
        assert_eq!(of("0xffffffffffffffff"), (u64::MAX, 64, false));
        assert_eq!(parse_number("1UL", 32).unwrap().1.bits, 32);
        assert_eq!(parse_number("1abc", 64), None);
    }

    #[test]
    fn types_are_named_in_many_ways() {
        let int = |bits, signed| CastType::Int(IntType { bits, signed });
        let of = |words: &[&str], stars| parse_type(words, stars, 64);
        assert_eq!(of(&["unsigned", "long"], 0), int(64, false));
        assert_eq!(of(&["long", "unsigned", "int"], 0), int(64, false));
        assert_eq!(of(&["unsigned"], 0), int(32, false));
        assert_eq!(of(&["const", "unsigned", "char"], 0), int(8, false));
        assert_eq!(of(&["s16"], 0), int(16, true));
        assert_eq!(of(&["u32"], 1), CastType::Pointer(Some(IntType { bits: 32, signed: false })));
        assert_eq!(of(&["void"], 1), CastType::Pointer(None));
        assert_eq!(of(&["xfs_ino_t"], 0), CastType::Other);
    }

    #[test]
    fn values_are_cut_and_extended() {
        assert_eq!(INT.narrow(0xffff_ffff), u64::MAX);
        assert_eq!(IntType { bits: 32, signed: false }.narrow(u64::MAX), 0xffff_ffff);
        assert_eq!(IntType { bits: 8, signed: true }.narrow(0x180), u64::MAX << 7);
        assert_eq!(INT.common(U64), U64);
        assert_eq!(IntType { bits: 8, signed: false }.common(INT), INT);
    }
}
