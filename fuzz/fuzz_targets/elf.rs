//! ELF files of any bytes: symbols, sections, unwind information, inlined functions and lines.
#![no_main]

use std::path::Path;

use whit_elf::ElfImage;
use whit_fuzz::{fuzz_target, with_path};
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, SymbolTable, Symbolizer, SymbolizerConfig};
use whit_types::{Arch, Avma, FileOffset, Svma};
use whit_unwind::{AddressSpace, Bias, Bytes, ModuleUnwindInfo, StackDump, Unwinder, UserRegs};

/// Addresses that are looked into: these, and those of the first symbols.
const ADDRESSES: [u64; 6] = [0, 0x200, 0x1000, 0x40_0100, i64::MAX as u64, u64::MAX];
const MAX_SYMBOLS: usize = 8;

fn unwind(image: &ElfImage, addresses: &[u64]) {
    let (Some(sections), Some(arch)) = (image.unwind_sections(), image.arch()) else { return };
    let module = ModuleUnwindInfo::new(sections);
    let mut space = AddressSpace::new();
    space.map(Avma(0)..Avma(1 << 40), Bias(0), module);
    let mut unwinder = Unwinder::new();
    let mut frames = Vec::new();
    let stack: Vec<u8> = (0..64u64).flat_map(|word| (0x200 + 8 * word).to_le_bytes()).collect();
    for address in addresses {
        let regs = UserRegs::new(arch).with_ip(*address).with_sp(0x1000).with_fp(0x1010);
        let regs = if arch == Arch::Aarch64 { regs.with_lr(0x210) } else { regs };
        frames.clear();
        let stack = StackDump { sp: Avma(0x1000), bytes: &stack, rest: None };
        unwinder.unwind(&space, &regs, stack, 64, &mut frames);
        assert!(frames.len() <= 64);
    }
}

fn resolve(path: &Path, addresses: &[u64]) {
    let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
    let spec = DsoSpec::new(DsoKind::Elf, path.into());
    let symbols = symbolizer.open(&spec);
    let _ = symbols.member_offsets("runtime", [["runtime.g", "goid"]]);
    for address in addresses {
        let resolution = symbols.resolve(Svma(*address));
        assert!(resolution.function.is_some() || resolution.inlined.len() < 1 << 16);
        let _ = symbols.svma_of(FileOffset(*address));
        let _ = symbols.bias_of_mapping(Avma(0x7000), FileOffset(*address), 0x1000);
    }
}

fuzz_target!(|data| {
    let Ok(image) = ElfImage::from_bytes(Path::new("fuzz"), Bytes::from(data.to_vec())) else {
        return;
    };
    let table = SymbolTable::from_elf(&image, &image);
    let starts = table.iter().take(MAX_SYMBOLS).map(|symbol| symbol.start.0);
    let addresses: Vec<u64> = ADDRESSES.into_iter().chain(starts).collect();
    for address in &addresses {
        if let Some(found) = table.find(Svma(*address)) {
            assert!(found.start.0 <= *address);
        }
        if let Some(offset) = image.file_offset_of(Svma(*address)) {
            let _ = image.svma_of(offset);
        }
    }
    let _ = (image.build_id(), image.debug_link(), image.base_svma(), image.go_scheduler());
    unwind(&image, &addresses);
    with_path(data, |path| resolve(path, &addresses));
});
