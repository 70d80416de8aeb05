//! The kernel's own list of symbols, `/proc/kallsyms`, and copies of it.

use std::fs::File;
use std::path::Path;

use rustc_hash::FxHashMap;
use whit_unwind::Bytes;

use crate::read_file::{read_limited, read_reopened};
use crate::reason::Reason;
use crate::symbol_table::{Binding, Names, Symbol, SymbolSource, SymbolTable};

/// Largest list that is read; a kernel with every driver loaded has about 20 MiB.
pub(crate) const MAX_LIST_BYTES: u64 = 256 << 20;

/// A line of the running kernel's has 44 bytes; room for symbols is made as if all were shorter.
const USUAL_LINE_BYTES: usize = 40;

/// Digits of the largest address.
const DIGITS: usize = 16;

impl SymbolTable {
    /// Reads a list of kernel symbols. Addresses in it are actual ones: a look-up in the table takes
    /// the sampled address as it is.
    pub fn from_kallsyms(path: &Path) -> Result<SymbolTable, Reason> {
        SymbolTable::list_at(path, read_limited(path, MAX_LIST_BYTES)?)
    }

    /// The same of a list that is open already, from its beginning. `path` is its name.
    pub fn from_open_kallsyms(path: &Path, file: &File) -> Result<SymbolTable, Reason> {
        SymbolTable::list_at(path, read_reopened(path, file, MAX_LIST_BYTES)?)
    }

    fn list_at(path: &Path, text: Vec<u8>) -> Result<SymbolTable, Reason> {
        SymbolTable::parse_kallsyms(text.into())
            .ok_or_else(|| Reason::KallsymsHidden { path: path.into() })
    }

    /// From the text of such a list. `None` where all addresses are hidden, or none is there. Lines
    /// that cannot be understood are passed over.
    pub fn parse_kallsyms(text: Bytes) -> Option<SymbolTable> {
        let mut modules = Modules::default();
        let mut symbols = Vec::with_capacity(text.len() / USUAL_LINE_BYTES);
        let mut any_address = false;
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let (entry, line_size) = parse_line(rest);
            if let Some(entry) = entry {
                any_address |= entry.address != 0;
                let name = (at + entry.name_offset) as u64;
                let symbol = Symbol::new(entry.address, 0, name, SymbolSource::Kallsyms);
                let module = entry.module.map_or(0, |module| modules.number(module));
                symbols.push(Symbol { binding: entry.binding, module, ..symbol });
            }
            at += line_size;
        }
        if !any_address {
            return None;
        }
        let mut table = SymbolTable::default();
        table.names = Names { list: text, ..Names::default() };
        table.set_modules(modules.names);
        table.merge(symbols);
        Some(table)
    }
}

/// The address of a symbol in the text of a list. A table of symbols has one name for each address.
pub(crate) fn address_in_list(mut text: &[u8], name: &str) -> Option<u64> {
    while !text.is_empty() {
        let (entry, line_size) = parse_line(text);
        let is_it = |entry: &Entry<'_>| {
            let rest = text[entry.name_offset..].strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
        };
        if let Some(entry) = entry.filter(|entry| entry.module.is_none() && is_it(entry)) {
            return Some(entry.address);
        }
        text = &text[line_size..];
    }
    None
}

struct Entry<'a> {
    address: u64,
    binding: Binding,
    name_offset: usize,
    module: Option<&'a [u8]>,
}

/// The line that `text` begins with, if it names a symbol, and its size with the newline:
/// `ffffffff81000000 T _text`, or with a module: `ffffffffc0000000 t init\t[nvme]`.
#[inline]
fn parse_line(text: &[u8]) -> (Option<Entry<'_>>, usize) {
    let size_from = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        memchr::memchr(b'\n', rest).map_or(text.len(), |newline| at + newline + 1)
    };
    let Some((address, kind, name_offset)) = parse_head(text) else { return (None, size_from(0)) };
    let rest = &text[name_offset..];
    let name_size = memchr::memchr3(b'\n', b'\t', b' ', rest).unwrap_or(rest.len());
    let name_end = name_offset + name_size;
    // Without a module the name ends where the line does.
    let line_size =
        if text.get(name_end) == Some(&b'\n') { name_end + 1 } else { size_from(name_end) };
    let (Some(binding), true) = (binding_of(kind), name_size > 0 && rest[0] != b'$') else {
        return (None, line_size);
    };
    let module = text[name_end..line_size].trim_ascii();
    let module = module.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    (Some(Entry { address, binding, name_offset, module }), line_size)
}

/// Address, letter of the kind, and where the name begins. (A newline in place of the letter leads
/// into a line that begins with a space, which names nothing either.)
#[inline]
fn parse_head(text: &[u8]) -> Option<(u64, u8, usize)> {
    // Every line of a 64-bit kernel has sixteen digits.
    if let Some([digits @ .., b' ', kind, b' ']) = text.first_chunk::<{ DIGITS + 3 }>()
        && let Some(digits) = digits.first_chunk::<DIGITS>()
        && let Some(address) = parse_digits(digits)
    {
        return Some((address, *kind, DIGITS + 3));
    }
    let (address, digits) = parse_hex(text)?;
    let [b' ', kind, b' ', ..] = &text[digits..] else { return None };
    Some((address, *kind, digits + 3))
}

/// Text, weak, data, and zeroed data, which bound the functions before them; nothing else counts.
fn binding_of(kind: u8) -> Option<Binding> {
    match kind {
        b'w' | b'W' => Some(Binding::Weak),
        b'T' | b'D' | b'B' => Some(Binding::Global),
        b't' | b'd' | b'b' => Some(Binding::Local),
        _ => None,
    }
}

/// Value of each hexadecimal digit; others have [`NO_DIGIT`].
const DIGIT_VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

const NO_DIGIT: u8 = 0xff;

#[inline]
fn parse_digits(digits: &[u8; DIGITS]) -> Option<u64> {
    let (mut value, mut seen) = (0, 0);
    for digit in digits {
        let digit = DIGIT_VALUES[usize::from(*digit)];
        value = value << 4 | u64::from(digit & 0xf);
        seen |= digit;
    }
    (seen < 16).then_some(value)
}

/// A hexadecimal number of at most 16 digits at the start of `text`, and how many digits it has.
pub(crate) fn parse_hex(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (digits, byte) in text.iter().enumerate() {
        let digit = DIGIT_VALUES[usize::from(*byte)];
        if digit == NO_DIGIT {
            return (digits > 0).then_some((value, digits));
        }
        if digits == DIGITS {
            return None;
        }
        value = value << 4 | u64::from(digit);
    }
    (!text.is_empty()).then_some((value, text.len()))
}

/// Numbers the modules, from one; those beyond what fits share the last number.
#[derive(Default)]
struct Modules {
    names: Vec<Box<str>>,
    numbers: FxHashMap<Vec<u8>, u16>,
    /// The symbols of one module mostly come in a row.
    last: Option<(Vec<u8>, u16)>,
}

impl Modules {
    fn number(&mut self, name: &[u8]) -> u16 {
        if let Some((last, number)) = &self.last
            && last == name
        {
            return *number;
        }
        let number = self.look_up(name);
        self.last = Some((name.to_vec(), number));
        number
    }

    fn look_up(&mut self, name: &[u8]) -> u16 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let Ok(number) = u16::try_from(self.names.len() + 1) else { return u16::MAX };
        self.names.push(String::from_utf8_lossy(name).into());
        self.numbers.insert(name.to_vec(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whit_types::Svma;

    use super::*;

    #[test]
    fn each_name_has_its_address_whichever_others_lie_there() {
        let at = |name| address_in_list(LIST.as_bytes(), name);
        let start = Some(0xffff_ffff_8100_0000);
        assert_eq!((at("_text"), at("_stext"), at("srso_alias")), (start, start, start));
        assert_eq!((at("_tex"), at("_textt"), at("absent")), (None, None, None));
        assert_eq!(address_in_list(b"0000000000000000 T _text", "_text"), Some(0));
    }

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T srso_alias
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t local
ffffffff81000100 W __weak_one
ffffffff81000200 r not_code
ffffffff81000300 T last_of_kernel
ffffffffc0000000 t mod_a\t[nvme]
garbage
ffffffffc0000040 T mod_b\t[nvme]
ffffffffc0001000 t prog\t[bpf]
";

    fn at(table: &SymbolTable, address: u64) -> Option<(String, Option<&str>)> {
        let found = table.find(Svma(address))?;
        Some((String::from_utf8(found.name.to_vec()).unwrap(), found.module))
    }

    #[test]
    fn lines_become_symbols() {
        let table = SymbolTable::parse_kallsyms(LIST.as_bytes().to_vec().into()).unwrap();
        // Only the last of the three names of the first address has a size.
        assert_eq!(at(&table, 0xffff_ffff_8100_0010), Some(("_text".into(), None)));
        assert_eq!(at(&table, 0xffff_ffff_8100_0210), Some(("__weak_one".into(), None)));
        assert_eq!(at(&table, 0xffff_ffff_8100_0310), Some(("last_of_kernel".into(), None)));
        // The kernel's last function does not reach to the first module.
        assert_eq!(at(&table, 0xffff_ffff_8200_0000), None);
        assert_eq!(at(&table, 0xffff_ffff_c000_0020), Some(("mod_a".into(), Some("nvme"))));
        assert_eq!(at(&table, 0xffff_ffff_c000_1001), Some(("prog".into(), Some("bpf"))));
        let table = table.without_bpf_programs();
        assert_eq!(at(&table, 0xffff_ffff_c000_1001), None, "no symbol reaches over the program");
        assert_eq!(at(&table, 0xffff_ffff_c000_0050), Some(("mod_b".into(), Some("nvme"))));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let text = b"0000000000000000 T _text\n0000000000000000 t x\t[nvme]\n".to_vec();
        assert!(SymbolTable::parse_kallsyms(text.into()).is_none());
        assert!(SymbolTable::parse_kallsyms(Vec::new().into()).is_none());
    }

    /// The parts of a line, step by step: address, binding, name and module.
    fn reference(line: &str) -> Option<(u64, Binding, &str, Option<&str>)> {
        let (address, rest) = line.split_once(' ')?;
        let is_number =
            (1..=16).contains(&address.len()) && address.bytes().all(|b| b.is_ascii_hexdigit());
        let address = u64::from_str_radix(address, 16).ok().filter(|_| is_number)?;
        let (kind, rest) = rest.split_once(' ')?;
        let name_end = rest.find(['\t', ' ']).unwrap_or(rest.len());
        let (name, module) = rest.split_at(name_end);
        if name.is_empty() || name.starts_with('$') {
            return None;
        }
        let binding = match kind {
            "w" | "W" => Binding::Weak,
            "T" | "D" | "B" => Binding::Global,
            "t" | "d" | "b" => Binding::Local,
            _ => return None,
        };
        let module = module.trim_ascii().strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        Some((address, binding, name, module))
    }

    /// The table that the lines one by one give.
    fn reference_table(text: &str) -> Option<SymbolTable> {
        let mut modules = Vec::<&str>::new();
        let mut symbols = Vec::new();
        for line in text.split('\n') {
            let Some((address, binding, name, module)) = reference(line) else { continue };
            let offset = name.as_ptr().addr() - text.as_ptr().addr();
            let symbol = Symbol::new(address, 0, offset as u64, SymbolSource::Kallsyms);
            let number = module.map_or(0, |module| {
                let known = modules.iter().position(|known| *known == module);
                known.unwrap_or_else(|| {
                    modules.push(module);
                    modules.len() - 1
                }) as u16
                    + 1
            });
            symbols.push(Symbol { binding, module: number, ..symbol });
        }
        symbols.iter().any(|symbol| symbol.start != 0).then_some(())?;
        let mut table = SymbolTable::default();
        table.names = Names { list: text.as_bytes().to_vec().into(), ..Names::default() };
        table.set_modules(modules.into_iter().map(Box::from).collect());
        table.merge(symbols);
        Some(table)
    }

    /// Symbols in order; only the number of the first difference, as lists are long.
    fn is_as_reference(text: &str) {
        let table = SymbolTable::parse_kallsyms(text.as_bytes().to_vec().into());
        let expected = reference_table(text);
        assert_eq!(table.as_ref().map(SymbolTable::len), expected.as_ref().map(SymbolTable::len));
        let (Some(table), Some(expected)) = (table, expected) else { return };
        let differs = table.iter().zip(expected.iter()).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{:?}", differs.and_then(|at| table.iter().nth(at)));
    }

    #[test]
    fn the_running_kernels_list_is_read_as_the_reference_reads_it() {
        // Addresses are hidden where the test may not see them; the lines are then still compared.
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        is_as_reference(&text);
        is_as_reference(&text.replace("0000000000000000 ", "ffffffff81000000 "));
        is_as_reference(LIST);
    }

    #[test]
    fn unusual_lines_are_read_too() {
        let text = "1 T short\nFFFFFFFF81000000 t upper\n00000000000000001 T seventeen digits\n\
            ffffffff81000002  no kind\nffffffff81000003 T \nffffffff81000004 T\tx\n\
            ffffffff81000005 TT two\nffffffff8100000g T digit\n T none\n\n \n\
            ffffffff81000006 w weak [mod]\r\nffffffff81000007 D data\t[un closed\n\
            ffffffff81000008 \n T x\nffffffff81000009 T $x\nffffffff8100000a b last";
        is_as_reference(text);
        let table = SymbolTable::parse_kallsyms(text.as_bytes().to_vec().into()).unwrap();
        let names: Vec<_> = table.iter().map(|s| String::from_utf8_lossy(s.name)).collect();
        assert_eq!(names, ["short", "upper", "weak", "data", "last"]);
        assert_eq!(table.iter().nth(2).unwrap().module, Some("mod"));
    }

    proptest! {
        #[test]
        fn lines_are_read_as_the_reference_reads_them(
            text in "(([0-9a-fA-F]{1,3}|[0-9a-fA-F]{16,17}) ?[tTwWdDbBA] ?[a-c$ ]{0,3}(\t\\[[xy]{0,1}\\])?\r?\n?){0,30}",
        ) {
            is_as_reference(&text);
        }

        #[test]
        fn arbitrary_text_is_survived(
            text in "([0-9a-f]{0,17} [tTwWdDbBA] [a-z$\\t\\[\\] ]{0,9}\\n?|.{0,9}\n){0,9}",
            address: u64,
        ) {
            if let Some(table) = SymbolTable::parse_kallsyms(text.into_bytes().into()) {
                table.find(Svma(address));
                table.iter().for_each(|symbol| { table.find(symbol.start); });
            }
        }
    }
}
