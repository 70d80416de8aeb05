//! Damaged files: wrong names or none, never a panic, always an end.

use std::path::Path;

use proptest::prelude::*;
use whit_elf::{ElfImage, own_vdso};
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, SymbolTable, Symbolizer, SymbolizerConfig};
use whit_types::{Arch, Avma, FileOffset, Svma};
use whit_unwind::{AddressSpace, Bias, ModuleUnwindInfo, StackDump, Unwinder, UserRegs};

/// Everything that is ever asked of an image.
fn exercise(bytes: Vec<u8>) {
    let Ok(image) = ElfImage::from_bytes(Path::new("damaged"), bytes.into()) else { return };
    image.build_id();
    image.debug_link();
    image.base_svma();
    image.code_bias();
    for offset in [0, 64, 0x1000, u64::MAX] {
        image.svma_of(FileOffset(offset));
        image.file_offset_of(Svma(offset));
        image.svma_of_mapping(FileOffset(offset), offset);
    }
    let table = SymbolTable::from_elf(&image, &image);
    let starts: Vec<Svma> = table.iter().map(|symbol| symbol.start).collect();
    starts.iter().for_each(|start| {
        table.find(*start);
    });
    let Some(sections) = image.unwind_sections() else { return };
    let mut space = AddressSpace::new();
    space.map(Avma(0)..Avma(u64::MAX), Bias(0), ModuleUnwindInfo::new(sections));
    let stack = [0x41; 256];
    for start in starts.iter().take(20) {
        let regs = UserRegs::new(image.arch().unwrap_or(Arch::X86_64));
        let regs = regs.with_ip(start.0).with_sp(0x1000).with_fp(0x1010);
        let stack = StackDump { sp: Avma(0x1000), bytes: &stack, rest: None };
        Unwinder::new().unwind(&space, &regs, stack, 50, &mut Vec::new());
    }
}

fn damage(bytes: &mut [u8], damage: &[(prop::sample::Index, u8)]) {
    for (at, byte) in damage {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_vdso(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        in_header in prop::collection::vec((0usize..64, any::<u8>()), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let Ok(vdso) = own_vdso() else { return Ok(()) };
        let mut bytes = vdso.to_vec();
        damage(&mut bytes, &changes);
        in_header.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        exercise(bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_an_elf_header(
        class in 1u8..=2,
        order in 1u8..=2,
        rest in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, order, 1, 0];
        bytes.extend(rest);
        exercise(bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// This test program itself, with its debug information, damaged at a hundred places.
    #[test]
    fn damaged_debug_information(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 100),
        addresses in prop::collection::vec(any::<prop::sample::Index>(), 20),
    ) {
        let path = std::env::current_exe().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let image = ElfImage::open(&path).unwrap();
        let symbols: Vec<Svma> =
            SymbolTable::from_elf(&image, &image).iter().map(|symbol| symbol.start).collect();
        // Most of the file is debug information, so most of the damage lies there.
        damage(&mut bytes[64..], &changes);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
        let path = file.path().to_path_buf();
        let spec = DsoSpec::new(DsoKind::Elf, path);
        let dso = symbolizer.open(&spec);
        for address in addresses {
            dso.resolve(symbols[address.index(symbols.len())]);
        }
    }
}
