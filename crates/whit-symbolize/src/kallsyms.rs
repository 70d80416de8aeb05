//! The kernel's own list of symbols, `/proc/kallsyms`, and copies of it.

use std::fs::File;
use std::io::Seek;
use std::path::Path;

use rustc_hash::FxHashMap;
use whit_unwind::Bytes;

use crate::read_file::{read_limited, read_open};
use crate::reason::Reason;
use crate::symbol_table::{Binding, Names, Symbol, SymbolSource, SymbolTable};

/// Largest list that is read; a kernel with every driver loaded has about 20 MiB.
const MAX_LIST_BYTES: u64 = 256 << 20;

impl SymbolTable {
    /// Reads a list of kernel symbols. Addresses in it are actual ones: a look-up in the table takes
    /// the sampled address as it is.
    pub fn from_kallsyms(path: &Path) -> Result<SymbolTable, Reason> {
        SymbolTable::list_at(path, read_limited(path, MAX_LIST_BYTES)?)
    }

    /// The same of a list that is open already, from its beginning. `path` is its name.
    pub fn from_open_kallsyms(path: &Path, file: &File) -> Result<SymbolTable, Reason> {
        let failed = |error| Reason::from_io(path, &error);
        // A clone shares the position with the file that it was made of.
        let mut file = file.try_clone().map_err(failed)?;
        file.rewind().map_err(failed)?;
        SymbolTable::list_at(path, read_open(path, file, MAX_LIST_BYTES)?)
    }

    fn list_at(path: &Path, text: Vec<u8>) -> Result<SymbolTable, Reason> {
        SymbolTable::parse_kallsyms(text.into())
            .ok_or_else(|| Reason::KallsymsHidden { path: path.into() })
    }

    /// From the text of such a list. `None` where all addresses are hidden, or none is there. Lines
    /// that cannot be understood are passed over.
    pub fn parse_kallsyms(text: Bytes) -> Option<SymbolTable> {
        let mut modules = Modules::default();
        let mut symbols = Vec::new();
        let mut any_address = false;
        let mut line_start = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if let Some(entry) = parse_line(line) {
                any_address |= entry.address != 0;
                let name = (line_start + entry.name_offset) as u64;
                let symbol = Symbol::new(entry.address, 0, name, SymbolSource::Kallsyms);
                let module = entry.module.map_or(0, |module| modules.number(module));
                symbols.push(Symbol { binding: entry.binding, module, ..symbol });
            }
            line_start += line.len();
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

struct Entry<'a> {
    address: u64,
    binding: Binding,
    name_offset: usize,
    module: Option<&'a [u8]>,
}

/// `ffffffff81000000 T _text`, or with a module: `ffffffffc0000000 t init\t[nvme]`.
fn parse_line(line: &[u8]) -> Option<Entry<'_>> {
    let (address, digits) = parse_hex(line)?;
    let [b' ', kind, b' ', rest @ ..] = &line[digits..] else { return None };
    // Text, weak, data, and zeroed data, which bound the functions before them.
    if !matches!(kind.to_ascii_uppercase(), b'T' | b'W' | b'D' | b'B') {
        return None;
    }
    let name_size =
        rest.iter().position(|byte| matches!(byte, b'\t' | b'\n' | b' ')).unwrap_or(rest.len());
    if name_size == 0 || rest[0] == b'$' {
        return None;
    }
    let binding = match kind {
        b'w' | b'W' => Binding::Weak,
        kind if kind.is_ascii_uppercase() => Binding::Global,
        _ => Binding::Local,
    };
    let module = rest[name_size..].trim_ascii();
    let module = module.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    Some(Entry { address, binding, name_offset: digits + 3, module })
}

/// A hexadecimal number of at most 16 digits at the start of `text`, and how many digits it has.
pub(crate) fn parse_hex(text: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (digits, byte) in text.iter().enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => return (digits > 0).then_some((value, digits)),
        };
        if digits == 16 {
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
}

impl Modules {
    fn number(&mut self, name: &[u8]) -> u16 {
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
        // Of the three names of the first address only the last has a size.
        assert_eq!(at(&table, 0xffff_ffff_8100_0010), Some(("_text".into(), None)));
        assert_eq!(at(&table, 0xffff_ffff_8100_0210), Some(("__weak_one".into(), None)));
        assert_eq!(at(&table, 0xffff_ffff_8100_0310), Some(("last_of_kernel".into(), None)));
        // The kernel's last function does not reach to the first module.
        assert_eq!(at(&table, 0xffff_ffff_8200_0000), None);
        assert_eq!(at(&table, 0xffff_ffff_c000_0020), Some(("mod_a".into(), Some("nvme"))));
        assert_eq!(at(&table, 0xffff_ffff_c000_1001), Some(("prog".into(), Some("bpf"))));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        let text = b"0000000000000000 T _text\n0000000000000000 t x\t[nvme]\n".to_vec();
        assert!(SymbolTable::parse_kallsyms(text.into()).is_none());
        assert!(SymbolTable::parse_kallsyms(Vec::new().into()).is_none());
    }

    proptest! {
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
