//! A sorted table of symbols, and the rules by which perf picks one name among aliases.
//!
//! The rules are those of perf's `util/symbol.c` (`symbols__fixup_end`, `symbols__fixup_duplicate`,
//! `choose_best_symbol`), so that both tools name the same function for an address.

use memchr::{memchr, memchr2, memchr3};
use whit_types::Svma;
use whit_unwind::Bytes;

/// Bytes of a name that count when aliases are compared; a file may give all its symbols one name of its own size.
const MAX_COMPARED_BYTES: usize = 4096;

/// Longest name that is read. The longest of compilers have some hundred KiB.
const MAX_NAME_BYTES: usize = 1 << 20;

/// Symbols that may lie inside one another; deeper ones are not found from outside.
const MAX_NESTING: usize = 16;

/// The last symbol of a table, if it states no size, reaches to the end of the page after its own.
/// The size is perf's, whatever the size of a page here.
const LAST_SYMBOL_ALIGN_BYTES: u64 = 4096;

/// Binding of a symbol, as far as it decides between aliases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Binding {
    Local,
    Weak,
    Global,
    Other,
}

/// Where a symbol was found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SymbolSource {
    /// `.symtab` of the binary or of its debug companion.
    Symtab,
    /// `.dynsym`, which remains in stripped binaries.
    Dynsym,
    /// Made up for an entry of a procedure linkage table.
    Plt,
    /// The kernel's own list.
    Kallsyms,
    /// A `perf-PID.map` file.
    PerfMap,
    /// A jitdump file.
    JitDump,
}

/// One symbol; 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset of the name in the table's text for the symbol's source.
    pub(crate) name: u64,
    pub(crate) source: SymbolSource,
    pub(crate) binding: Binding,
    /// A label without a type.
    pub(crate) label: bool,
    /// An indirect function, or an alias of one.
    pub(crate) ifunc: bool,
    /// Index of the kernel module plus one; zero for the kernel itself and for binaries.
    pub(crate) module: u16,
}

impl Symbol {
    pub(crate) fn new(start: u64, size: u64, name: u64, source: SymbolSource) -> Symbol {
        let end = start.saturating_add(size);
        let binding = Binding::Global;
        Symbol { start, end, name, source, binding, label: false, ifunc: false, module: 0 }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

/// The texts that names are offsets into; a name ends at a zero byte, or at a newline or tab in the
/// texts of lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) symtab: Bytes,
    pub(crate) dynsym: Bytes,
    /// Names that stand in no file.
    pub(crate) made_up: Vec<u8>,
    /// The text of a kallsyms or perf-map file.
    pub(crate) list: Bytes,
}

impl Names {
    pub(crate) fn get(&self, source: SymbolSource, offset: u64) -> &[u8] {
        self.get_front(source, offset, MAX_NAME_BYTES)
    }

    /// The name, or its first bytes.
    pub(crate) fn get_front(&self, source: SymbolSource, offset: u64, max_bytes: usize) -> &[u8] {
        let text: &[u8] = match source {
            SymbolSource::Symtab => &self.symtab,
            SymbolSource::Dynsym => &self.dynsym,
            SymbolSource::Plt | SymbolSource::JitDump => &self.made_up,
            SymbolSource::Kallsyms | SymbolSource::PerfMap => &self.list,
        };
        let rest = usize::try_from(offset).ok().and_then(|at| text.get(at..)).unwrap_or_default();
        let rest = &rest[..rest.len().min(max_bytes)];
        let end = match source {
            SymbolSource::Kallsyms => memchr3(b'\t', b'\n', b' ', rest),
            SymbolSource::PerfMap => memchr2(b'\n', b'\r', rest),
            _ => memchr(0, rest),
        };
        &rest[..end.unwrap_or(rest.len())]
    }

    pub(crate) fn make_up(&mut self, name: &str) -> u64 {
        let at = self.made_up.len() as u64;
        self.made_up.extend_from_slice(name.as_bytes());
        self.made_up.push(0);
        at
    }
}

/// A symbol that was looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundSymbol<'a> {
    /// The name as the file has it; symbol names are bytes, and nearly always ASCII.
    pub name: &'a [u8],
    /// First address.
    pub start: Svma,
    /// Size up to the first address behind it, as fixed up.
    pub size_bytes: u64,
    /// Where it comes from.
    pub source: SymbolSource,
    /// The kernel module that it belongs to.
    pub module: Option<&'a str>,
    /// True for an indirect function or an alias of one.
    pub(crate) ifunc: bool,
}

/// Symbols sorted by address.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable {
    symbols: Vec<Symbol>,
    pub(crate) names: Names,
    modules: Vec<Box<str>>,
    /// The front of a list that is too long.
    pub(crate) left_out_bytes: u64,
}

impl SymbolTable {
    /// A table of symbols that are taken as they are; of several at one address the last counts.
    pub(crate) fn from_list(symbols: Vec<Symbol>, names: Names) -> SymbolTable {
        let mut table = SymbolTable { symbols, names, ..SymbolTable::default() };
        table.symbols.sort_by_key(|symbol| symbol.start);
        table.symbols.dedup_by(|next, kept| {
            let same = next.start == kept.start;
            if same {
                *kept = *next;
            }
            same
        });
        table
    }

    /// Names of the kernel modules that [`Symbol::module`] counts.
    pub(crate) fn set_modules(&mut self, modules: Vec<Box<str>>) {
        self.modules = modules;
    }

    /// The kernel's own symbols: modules move on their own.
    pub(crate) fn without_modules(mut self) -> SymbolTable {
        self.symbols.retain(|symbol| symbol.module == 0);
        self
    }

    /// Without BPF programs. They come and go while the kernel runs, others at the same addresses, and recordings have
    /// records of their own for them (KSYMBOL).
    pub(crate) fn without_bpf_programs(mut self) -> SymbolTable {
        let is_bpf = |module: u16| {
            let module = usize::from(module).checked_sub(1);
            module.and_then(|module| self.modules.get(module)).is_some_and(|name| **name == *"bpf")
        };
        // The symbols in front of them keep their ends.
        self.symbols.retain(|symbol| !is_bpf(symbol.module));
        self
    }

    /// Adds the symbols of one table of a file, fixes their ends and drops all but one of each group
    /// of aliases. perf does this once for `.symtab` and then once more for `.dynsym`.
    pub(crate) fn merge(&mut self, symbols: Vec<Symbol>) {
        if symbols.is_empty() {
            return;
        }
        if self.symbols.is_empty() {
            self.symbols = symbols;
        } else {
            self.symbols.extend(symbols);
        }
        // Stable: of two aliases the one that came first stands first.
        if !self.symbols.is_sorted_by_key(|symbol| symbol.start) {
            self.symbols.sort_by_key(|symbol| symbol.start);
        }
        self.fix_ends();
        self.drop_aliases();
        self.symbols.shrink_to_fit();
    }

    /// Adds symbols without touching those that are there already.
    pub(crate) fn append(&mut self, symbols: Vec<Symbol>) {
        self.symbols.extend(symbols);
        self.symbols.sort_by_key(|symbol| symbol.start);
    }

    /// A symbol without a size (an assembly label, a line of kallsyms) reaches to the next one, but
    /// not from the kernel into a module or the other way round.
    fn fix_ends(&mut self) {
        for at in 1..self.symbols.len() {
            let (next_start, next_module) = (self.symbols[at].start, self.symbols[at].module);
            let symbol = &mut self.symbols[at - 1];
            if symbol.is_empty() {
                symbol.end = if (symbol.module == 0) != (next_module == 0) {
                    page_after(symbol.end)
                } else {
                    next_start
                };
            }
        }
        if let Some(last) = self.symbols.last_mut()
            && last.is_empty()
        {
            last.end = page_after(last.start);
        }
    }

    fn drop_aliases(&mut self) {
        let names = &self.names;
        self.symbols.dedup_by(|next, kept| {
            if next.start != kept.start {
                return false;
            }
            let ifunc = kept.ifunc || next.ifunc;
            if !prefers_first(names, kept, next) {
                *kept = *next;
            }
            kept.ifunc = ifunc;
            true
        });
    }

    /// The symbol that covers `svma`; of several, the one that starts last.
    pub fn find(&self, svma: Svma) -> Option<FoundSymbol<'_>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= svma.0);
        let symbol = self.symbols[..after]
            .iter()
            .rev()
            .take(MAX_NESTING)
            .find(|symbol| svma.0 < symbol.end || svma.0 == symbol.start)?;
        Some(self.found(symbol))
    }

    /// All symbols, by address.
    pub fn iter(&self) -> impl Iterator<Item = FoundSymbol<'_>> {
        self.symbols.iter().map(|symbol| self.found(symbol))
    }

    fn found(&self, symbol: &Symbol) -> FoundSymbol<'_> {
        FoundSymbol {
            name: self.names.get(symbol.source, symbol.name),
            start: Svma(symbol.start),
            size_bytes: symbol.end - symbol.start,
            source: symbol.source,
            module: usize::from(symbol.module)
                .checked_sub(1)
                .and_then(|module| self.modules.get(module))
                .map(|name| &**name),
            ifunc: symbol.ifunc,
        }
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }
}

fn page_after(address: u64) -> u64 {
    address
        .checked_next_multiple_of(LAST_SYMBOL_ALIGN_BYTES)
        .and_then(|aligned| aligned.checked_add(LAST_SYMBOL_ALIGN_BYTES))
        .unwrap_or(u64::MAX)
}

/// True where `first` is the better name of the two, which start at the same address and stand in
/// this order.
fn prefers_first(names: &Names, first: &Symbol, second: &Symbol) -> bool {
    if first.is_empty() != second.is_empty() {
        return second.is_empty();
    }
    if first.label != second.label {
        return second.label;
    }
    for binding in [Binding::Weak, Binding::Global] {
        let (a, b) = (first.binding == binding, second.binding == binding);
        if a != b {
            return a == (binding == Binding::Global);
        }
    }
    let name = |symbol: &Symbol| names.get_front(symbol.source, symbol.name, MAX_COMPARED_BYTES);
    let (a, b) = (name(first), name(second));
    let underscores = |name: &[u8]| name.iter().take_while(|byte| **byte == b'_').count();
    if underscores(a) != underscores(b) {
        return underscores(a) < underscores(b);
    }
    if a.len() != b.len() {
        return a.len() > b.len();
    }
    // The kernel's old aliases of system calls.
    !(a.starts_with(b"SyS") || a.starts_with(b"compat_SyS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(symbols: &[(u64, u64, &str, Binding)]) -> SymbolTable {
        let mut table = SymbolTable::default();
        let list = symbols
            .iter()
            .map(|(start, size, name, binding)| {
                let name = table.names.make_up(name);
                let symbol = Symbol::new(*start, *size, name, SymbolSource::Plt);
                Symbol { binding: *binding, ..symbol }
            })
            .collect();
        table.merge(list);
        table
    }

    fn name_at(table: &SymbolTable, address: u64) -> Option<String> {
        let found = table.find(Svma(address))?;
        Some(String::from_utf8(found.name.to_vec()).unwrap())
    }

    #[test]
    fn aliases_are_chosen_as_perf_does() {
        use Binding::{Global, Local, Weak};
        for (a, b, expected) in [
            ((8, "a", Weak), (8, "b", Local), "b"),
            ((8, "a", Local), (8, "b", Global), "b"),
            ((8, "__read", Global), (8, "read", Global), "read"),
            ((8, "read", Global), (8, "read_long", Global), "read_long"),
            ((8, "one", Global), (8, "two", Global), "one"),
            ((0, "one", Global), (8, "x", Weak), "x"),
            ((8, "SyS_x", Global), (8, "sys_x", Global), "sys_x"),
        ] {
            let table = table(&[(16, a.0, a.1, a.2), (16, b.0, b.1, b.2)]);
            assert_eq!(name_at(&table, 17).as_deref(), Some(expected));
            assert_eq!(table.len(), 1);
        }
    }

    #[test]
    fn ends_and_nesting() {
        let table = table(&[
            (0x100, 0, "label", Binding::Local),
            (0x110, 0x40, "outer", Binding::Global),
            (0x120, 0x8, "inner", Binding::Local),
            (0x200, 0, "last", Binding::Local),
        ]);
        assert_eq!(name_at(&table, 0xff), None);
        assert_eq!(name_at(&table, 0x10f).as_deref(), Some("label"));
        assert_eq!(name_at(&table, 0x120).as_deref(), Some("inner"));
        assert_eq!(name_at(&table, 0x128).as_deref(), Some("outer"));
        assert_eq!(name_at(&table, 0x150), None);
        assert_eq!(name_at(&table, 0x1fff).as_deref(), Some("last"));
        assert_eq!(name_at(&table, 0x2000), None);
    }
}
