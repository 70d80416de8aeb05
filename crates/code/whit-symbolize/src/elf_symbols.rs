//! The symbol table of an ELF file.

use object::elf;

use crate::plt;
use crate::symbol_table::{Binding, Symbol, SymbolSource, SymbolTable};
use whit_elf::{ElfImage, RawSymbol, SectionHeader, TableKind};

/// `$x` and the byte behind it.
const MAX_MARK_BYTES: usize = 3;

impl SymbolTable {
    /// The symbols of `symbols` (the binary itself, or its debug companion) and the PLT entries of
    /// `runtime` (the binary itself). Which symbols count is as in perf's `util/symbol-elf.c`.
    pub fn from_elf(symbols: &ElfImage, runtime: &ElfImage) -> SymbolTable {
        SymbolTable::from_tables([symbols; 2], runtime)
    }

    /// Those of a file that names what the dynamic symbols of `runtime` do not.
    pub(crate) fn with_dynamic(symbols: &ElfImage, runtime: &ElfImage) -> SymbolTable {
        SymbolTable::from_tables([symbols, runtime], runtime)
    }

    /// `images` have the symbols of the file and the dynamic ones.
    fn from_tables(images: [&ElfImage; 2], runtime: &ElfImage) -> SymbolTable {
        let mut table = SymbolTable::default();
        for (symbols, kind) in images.into_iter().zip([TableKind::Symtab, TableKind::Dynsym]) {
            let Some(strings) = symbols.string_table(kind) else { continue };
            let source = match kind {
                TableKind::Symtab => {
                    table.names.symtab = strings;
                    SymbolSource::Symtab
                }
                TableKind::Dynsym => {
                    table.names.dynsym = strings;
                    SymbolSource::Dynsym
                }
            };
            let mut list = Vec::new();
            symbols.for_each_symbol(kind, |raw| list.extend(accept(symbols, &raw, source)));
            if symbols.arch() == Some(whit_types::Arch::Aarch64) {
                list.retain(|symbol| {
                    !is_mapping_symbol(table.names.get_front(source, symbol.name, MAX_MARK_BYTES))
                });
            }
            table.merge(list);
        }
        let entries = plt::entries(runtime, &table);
        let list = entries
            .into_iter()
            .map(|entry| {
                let name = table.names.make_up(&entry.name);
                Symbol::new(entry.start, entry.size, name, SymbolSource::Plt)
            })
            .collect();
        table.append(list);
        table
    }
}

/// Defined functions, objects (they bound what lies between functions), and labels that are visible
/// outside their file, in sections that are loaded.
fn accept(image: &ElfImage, raw: &RawSymbol, source: SymbolSource) -> Option<Symbol> {
    if raw.name == 0 || raw.section == elf::SHN_UNDEF.0 || raw.section >= elf::SHN_LORESERVE {
        return None;
    }
    let section = image.sections().get(usize::from(raw.section))?;
    if !section.allocated {
        return None;
    }
    let label = raw.kind == elf::STT_NOTYPE;
    let ifunc = raw.kind == elf::STT_GNU_IFUNC;
    let wanted = match raw.kind {
        elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_OBJECT => true,
        elf::STT_NOTYPE => is_visible(raw) && may_hold_labels(section),
        _ => false,
    };
    let binding = match raw.bind {
        elf::STB_LOCAL => Binding::Local,
        elf::STB_GLOBAL => Binding::Global,
        elf::STB_WEAK => Binding::Weak,
        _ => Binding::Other,
    };
    let symbol = Symbol::new(raw.value, raw.size, raw.name.into(), source);
    wanted.then_some(Symbol { binding, label, ifunc, ..symbol })
}

fn is_visible(raw: &RawSymbol) -> bool {
    raw.visibility != elf::STV_HIDDEN && raw.visibility != elf::STV_INTERNAL
}

fn may_hold_labels(section: &SectionHeader) -> bool {
    section.name.contains("text") || section.name.contains("data")
}

/// `$x`, `$d` and the like mark where arm64 code and data begin; they are no functions.
fn is_mapping_symbol(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..])
}
