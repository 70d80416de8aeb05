//! Symbols of a stripped binary in `.gnu_debugdata`: a small ELF file, compressed by xz, as Fedora's packages have it.
//!
//! GDB's manual, "Debugging Information in a Special Section". The small file names the functions that `.dynsym`
//! does not.

use std::io::Read;

use lzma_rust2::XzReader;
use whit_elf::ElfImage;

use crate::companion::has_symtab;

/// Largest small file; one that is larger counts as absent. Those of browsers have some 10 MB.
const MAX_BYTES: u64 = 64 << 20;

/// Memory for unpacking. The largest of xz's presets takes 65 MiB.
const MAX_DECODER_KIB: u32 = 80 << 10;

pub(crate) fn open(binary: &ElfImage) -> Option<ElfImage> {
    let packed = binary.section_contents(".gnu_debugdata")?;
    let mut bytes = Vec::new();
    let mut unpacked =
        XzReader::new_mem_limit(&packed[..], true, MAX_DECODER_KIB).take(MAX_BYTES + 1);
    unpacked.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_BYTES {
        return None;
    }
    ElfImage::from_bytes(binary.path(), bytes.into()).ok().filter(has_symtab)
}
