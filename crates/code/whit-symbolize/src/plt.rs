//! Names for the entries of procedure linkage tables: `foo@plt`.
//!
//! The entries are decoded: each jumps through a slot of the global offset table, and the relocation
//! of that slot names the function. This gives `.plt`, `.plt.sec` (with indirect branch tracking) and
//! `.plt.got` alike, whatever the order of their relocations.

use object::elf;
use rustc_hash::FxHashMap;
use whit_types::Svma;

use crate::symbol_table::SymbolTable;
use whit_elf::{ElfImage, RawRela, TableKind};

/// Largest linkage table that is decoded.
const MAX_PLT_BYTES: usize = 16 << 20;

/// Longest name that is taken over.
const MAX_NAME_BYTES: usize = 64 << 10;

/// One named entry.
pub(crate) struct PltEntry {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) name: String,
}

/// An entry, and the slot that it jumps through.
struct Jump {
    start: u64,
    size: u64,
    slot: u64,
}

/// The named entries of `image`. `symbols` names indirect functions, whose relocations give an
/// address in place of a name.
pub(crate) fn entries(image: &ElfImage, symbols: &SymbolTable) -> Vec<PltEntry> {
    let jumps = jumps(image);
    if jumps.is_empty() {
        return Vec::new();
    }
    let mut slots: FxHashMap<u64, Option<String>> =
        jumps.iter().map(|jump| (jump.slot, None)).collect();
    let strings = image.string_table(TableKind::Dynsym).unwrap_or_default();
    image.for_each_dynamic_rela(|rela| {
        if let Some(name @ None) = slots.get_mut(&rela.offset) {
            *name = target_name(image, &strings, symbols, &rela);
        }
    });
    let named = jumps.into_iter().filter_map(|jump| {
        let name = slots.get(&jump.slot)?.as_deref()?;
        Some(PltEntry { start: jump.start, size: jump.size, name: format!("{name}@plt") })
    });
    named.collect()
}

fn target_name(
    image: &ElfImage,
    strings: &[u8],
    symbols: &SymbolTable,
    rela: &RawRela,
) -> Option<String> {
    if rela.symbol != 0 {
        let symbol = image.dynamic_symbol(rela.symbol)?;
        let rest = strings.get(usize::try_from(symbol.name).ok()?..)?;
        let name = rest.split(|byte| *byte == 0).next()?;
        let usable = !name.is_empty() && name.len() <= MAX_NAME_BYTES;
        return usable.then(|| String::from_utf8_lossy(name).into_owned());
    }
    let indirect = match image.arch()? {
        whit_types::Arch::X86_64 => elf::R_X86_64_IRELATIVE.0,
        whit_types::Arch::Aarch64 => elf::R_AARCH64_IRELATIVE.0,
    };
    if rela.kind != indirect {
        return None;
    }
    let resolver = Svma(rela.addend as u64);
    let found = symbols.find(resolver).filter(|found| found.start == resolver && found.ifunc)?;
    Some(String::from_utf8_lossy(found.name).into_owned())
}

fn jumps(image: &ElfImage) -> Vec<Jump> {
    let mut jumps = Vec::new();
    for section in image.plt_sections() {
        let Some(bytes) = image.section_bytes(section) else { continue };
        let bytes = &bytes[..bytes.len().min(MAX_PLT_BYTES)];
        match image.arch() {
            Some(whit_types::Arch::X86_64) => {
                // Entries have 8 or 16 bytes; some linkers leave the size out.
                let size = if section.entry_size == 8 { 8 } else { 16 };
                x86_64_jumps(bytes, section.svma, size, &mut jumps);
            }
            Some(whit_types::Arch::Aarch64) => aarch64_jumps(bytes, section.svma, &mut jumps),
            None => {}
        }
    }
    jumps
}

/// `jmp *slot(%rip)`, perhaps behind `endbr64` and with a `bnd` prefix. The lazy entries of tables
/// with indirect branch tracking do not jump through a slot; nothing but the loader runs them.
fn x86_64_jumps(bytes: &[u8], svma: u64, size: usize, jumps: &mut Vec<Jump>) {
    for (index, entry) in bytes.chunks_exact(size).enumerate() {
        let code = entry.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(entry);
        let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
        let Some([0xff, 0x25, a, b, c, d]) = code.first_chunk::<6>().copied() else { continue };
        let start = svma.wrapping_add((index * size) as u64);
        let next = start.wrapping_add((size - code.len() + 6) as u64);
        let slot = next.wrapping_add_signed(i64::from(i32::from_le_bytes([a, b, c, d])));
        jumps.push(Jump { start, size: size as u64, slot });
    }
}

/// `adrp x16, page` and `ldr x17, [x16, #offset]`, perhaps behind `bti c`.
fn aarch64_jumps(bytes: &[u8], svma: u64, jumps: &mut Vec<Jump>) {
    const BTI_C: u32 = 0xd503_245f;
    let word = |index: usize| -> Option<u32> {
        Some(u32::from_le_bytes(*bytes.get(index * 4..)?.first_chunk::<4>()?))
    };
    for index in 0..bytes.len() / 4 {
        let (Some(adrp), Some(ldr)) = (word(index), word(index + 1)) else { break };
        if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
            continue;
        }
        // A signed number of 4 KiB pages: 19 high bits and 2 low bits.
        let pages = ((adrp >> 5 & 0x7_ffff) << 2 | (adrp >> 29 & 3)) as i32;
        let pages = i64::from(pages << 11 >> 11);
        let here = svma.wrapping_add(index as u64 * 4);
        let slot = (here & !0xfff)
            .wrapping_add_signed(pages << 12)
            .wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8);
        let landing = index > 0 && word(index - 1) == Some(BTI_C);
        let (start, size) = if landing { (here.wrapping_sub(4), 24) } else { (here, 16) };
        jumps.push(Jump { start, size, slot });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_64_entries_of_both_kinds() {
        let mut bytes = vec![0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 5, 6, 7, 8, 0, 0, 0, 0];
        bytes.extend([0xff, 0x25, 0x10, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0]);
        bytes.extend([0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf0, 0xff, 0xff, 0xff]);
        bytes.extend([0; 5]);
        let mut jumps = Vec::new();
        x86_64_jumps(&bytes, 0x1000, 16, &mut jumps);
        let found: Vec<_> = jumps.iter().map(|jump| (jump.start, jump.slot)).collect();
        assert_eq!(found, [(0x1010, 0x1016 + 0x10), (0x1020, 0x102b - 0x10)]);
    }

    #[test]
    fn aarch64_entries_with_and_without_landing_pad() {
        // adrp x16, +1 page; ldr x17, [x16, #0x18]; add; br x17. Then the same behind bti c, one page
        // back.
        let code: [u32; 9] = [
            0xb000_0010,
            0xf940_0e11,
            0x9100_6210,
            0xd61f_0220,
            0xd503_245f,
            0xf0ff_fff0,
            0xf940_0211,
            0x9100_0210,
            0xd61f_0220,
        ];
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut jumps = Vec::new();
        aarch64_jumps(&bytes, 0x5000, &mut jumps);
        let found: Vec<_> = jumps.iter().map(|jump| (jump.start, jump.size, jump.slot)).collect();
        assert_eq!(found, [(0x5000, 16, 0x6018), (0x5010, 24, 0x4000)]);
    }
}
