//! Contents of sections, decompressed where needed, and those that the unwinder needs.

use std::io::Read;

use libdeflater::Decompressor;
use whit_types::Svma;
use whit_unwind::{Bytes, ModuleSections, Section};

use crate::image::{ElfImage, SectionHeader};

/// Largest section that is decompressed; a larger one counts as absent. Sections that are not
/// compressed stay in the file's mapping and have no limit.
const MAX_DECOMPRESSED_BYTES: u64 = 256 << 20;

/// Limit of the unpacked sections of a file, in sizes of the file: sections in packages of distributions hold three to
/// five sizes.
const UNPACKED_TIMES: u64 = 12;

/// And so much more, for small files.
const UNPACKED_BASE_BYTES: u64 = 16 << 20;

/// Compression header sizes of the 64-bit and 32-bit formats.
const CHDR64_BYTES: usize = 24;
const CHDR32_BYTES: usize = 12;

/// `ch_type` values.
const ELFCOMPRESS_ZLIB: u32 = 1;
const ELFCOMPRESS_ZSTD: u32 = 2;

impl ElfImage {
    /// The contents of the section of that name; `.zdebug_…` stands in for `.debug_…`. `None` where
    /// there is no such section, or it is corrupt or too large.
    pub fn section_contents(&self, name: &str) -> Option<Bytes> {
        match self.section(name) {
            Some(section) if !section.compressed => self.section_bytes(section),
            _ => self.packed(name)?.unpack(self.max_unpacked_bytes()),
        }
    }

    /// The size that a compressed section states of its contents; zero for other sections.
    pub fn unpacked_size(&self, name: &str) -> u64 {
        self.packed(name).map_or(0, |packed| packed.unpacked_size)
    }

    /// Limit of the unpacked contents of all compressed sections of the file.
    pub fn max_unpacked_bytes(&self) -> u64 {
        let of_size = (self.bytes().len() as u64).saturating_mul(UNPACKED_TIMES);
        of_size.saturating_add(UNPACKED_BASE_BYTES)
    }

    fn packed(&self, name: &str) -> Option<Packed> {
        match self.section(name) {
            Some(section) if section.compressed => {
                self.packed_by_header(self.section_bytes(section)?)
            }
            Some(_) => None,
            None => {
                let legacy = format!(".z{}", name.strip_prefix('.')?);
                packed_legacy(self.section_bytes(self.section(&legacy)?)?)
            }
        }
    }

    fn packed_by_header(&self, bytes: Bytes) -> Option<Packed> {
        let is_64 = self.is_64();
        let header = if is_64 { CHDR64_BYTES } else { CHDR32_BYTES };
        let data = bytes.slice(header as u64..bytes.len() as u64)?;
        let word = |at: usize| -> Option<u32> {
            let word = *bytes.get(at..)?.first_chunk::<4>()?;
            Some(match self.endian() {
                object::Endianness::Little => u32::from_le_bytes(word),
                object::Endianness::Big => u32::from_be_bytes(word),
            })
        };
        let format = match word(0)? {
            ELFCOMPRESS_ZLIB => Compression::Zlib,
            ELFCOMPRESS_ZSTD => Compression::Zstd,
            _ => return None,
        };
        let size = match (is_64, self.endian()) {
            (false, _) => u64::from(word(4)?),
            (true, object::Endianness::Little) => u64::from(word(12)?) << 32 | u64::from(word(8)?),
            (true, object::Endianness::Big) => u64::from(word(8)?) << 32 | u64::from(word(12)?),
        };
        Some(Packed { format, data, unpacked_size: size })
    }

    /// The sections that [`whit_unwind::ModuleUnwindInfo`] is made from. `None` for architectures
    /// that cannot be unwound. `.gnu_debugdata` is not read: it holds symbols, not unwind
    /// information.
    pub fn unwind_sections(&self) -> Option<ModuleSections> {
        let mut sections = ModuleSections::none(self.arch()?);
        let placed = |name: &str| {
            let header = self.section(name).filter(|header| header.allocated)?;
            let bytes = self.section_contents(name)?;
            Some(Section { start: Svma(header.svma), bytes })
        };
        sections.eh_frame = placed(".eh_frame");
        sections.eh_frame_hdr = placed(".eh_frame_hdr");
        if sections.eh_frame.is_none() && sections.eh_frame_hdr.is_none() {
            self.unwind_from_segment(&mut sections);
        }
        sections.debug_frame = self.section_contents(".debug_frame");
        let start = |name: &str| self.section(name).map(|section| Svma(section.svma));
        sections.text = start(".text");
        sections.got = start(".got");
        sections.stack_switches = self.go_stack_switches();
        sections.stack_switches.signal = self.signal_returns();
        Some(sections)
    }

    /// Without section headers the program headers still lead to `.eh_frame_hdr`, whose first
    /// pointer leads to `.eh_frame`; that ends somewhere before its segment does.
    fn unwind_from_segment(&self, sections: &mut ModuleSections) {
        let Some((start, bytes)) = self.eh_frame_hdr_segment() else { return };
        // Version 1, pointer to .eh_frame as a signed 32-bit distance (DW_EH_PE_pcrel | sdata4): the
        // only form that linkers write.
        let Some([1, 0x1b, _, _, a, b, c, d]) = bytes.first_chunk::<8>().copied() else { return };
        let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
        let eh_frame = Svma(start.0.wrapping_add(4).wrapping_add_signed(distance));
        let Some(offset) = self.file_offset_of(eh_frame) else { return };
        let end = self.segments().iter().find_map(|segment| {
            let end = segment.offset.0.checked_add(segment.file_size_bytes)?;
            (segment.offset <= offset && offset.0 < end).then_some(end)
        });
        let Some(eh_frame_bytes) = end.and_then(|end| self.bytes().slice(offset.0..end)) else {
            return;
        };
        sections.eh_frame = Some(Section { start: eh_frame, bytes: eh_frame_bytes });
        sections.eh_frame_hdr = Some(Section { start, bytes });
    }

    /// Sections that hold procedure linkage tables.
    pub fn plt_sections(&self) -> impl Iterator<Item = &SectionHeader> {
        self.sections()
            .iter()
            .filter(|section| matches!(&*section.name, ".plt" | ".plt.sec" | ".plt.got"))
    }
}

/// The GNU format from before compression headers: "ZLIB" and the size, big-endian.
fn packed_legacy(bytes: Bytes) -> Option<Packed> {
    const MAGIC: &[u8] = b"ZLIB";
    let size = *bytes.strip_prefix(MAGIC)?.first_chunk::<8>()?;
    let data = bytes.slice((MAGIC.len() + size.len()) as u64..bytes.len() as u64)?;
    Some(Packed { format: Compression::Zlib, data, unpacked_size: u64::from_be_bytes(size) })
}

/// A compressed section.
struct Packed {
    format: Compression,
    data: Bytes,
    /// As the section states it.
    unpacked_size: u64,
}

impl Packed {
    fn unpack(&self, max_bytes: u64) -> Option<Bytes> {
        if self.unpacked_size > max_bytes {
            return None;
        }
        decompress(self.format, &self.data, self.unpacked_size)
    }
}

/// How a section is compressed. The formats are decoded by libdeflate and zstd rather than by the
/// decoders of `object`, because debug sections of distributions are compressed, and large: this is
/// where a short report spends its time. libdeflate takes whole buffers, which is all that is
/// needed here, and is two to three times as fast as decoders of streams.
#[derive(Clone, Copy)]
enum Compression {
    Zlib,
    Zstd,
}

/// `None` where `data` is corrupt or does not give exactly the stated size.
fn decompress(format: Compression, data: &[u8], uncompressed_size: u64) -> Option<Bytes> {
    if uncompressed_size > MAX_DECOMPRESSED_BYTES {
        return None;
    }
    let size = usize::try_from(uncompressed_size).ok()?;
    let contents = match format {
        Compression::Zlib => {
            // Zeroed memory of this size is not touched before it is written to: a wrong statement
            // costs nothing.
            let mut contents = vec![0; size];
            let written = Decompressor::new().zlib_decompress(data, &mut contents).ok()?;
            contents.truncate(written);
            contents
        }
        Compression::Zstd => {
            let mut contents = Vec::with_capacity(size);
            let decoder = zstd::stream::read::Decoder::with_buffer(data).ok()?;
            // One byte more than stated would show that the statement is wrong.
            decoder.take(uncompressed_size + 1).read_to_end(&mut contents).ok()?;
            contents
        }
    };
    (contents.len() == size).then(|| Bytes::from(contents))
}

#[cfg(test)]
mod tests {
    use libdeflater::{CompressionLvl, Compressor};
    use proptest::prelude::*;

    use super::*;

    fn compress(format: Compression, contents: &[u8]) -> Vec<u8> {
        match format {
            Compression::Zlib => {
                let mut compressor = Compressor::new(CompressionLvl::default());
                let mut data = vec![0; compressor.zlib_compress_bound(contents.len())];
                let size = compressor.zlib_compress(contents, &mut data).unwrap();
                data.truncate(size);
                data
            }
            Compression::Zstd => zstd::bulk::compress(contents, 1).unwrap(),
        }
    }

    fn zdebug(size: u64, data: &[u8]) -> Vec<u8> {
        [b"ZLIB", &size.to_be_bytes()[..], data].concat()
    }

    #[test]
    fn only_the_stated_size_is_taken() {
        let contents = b"debug information, debug information".repeat(1000);
        let size = contents.len() as u64;
        for format in [Compression::Zlib, Compression::Zstd] {
            let data = compress(format, &contents);
            let unpacked = |data: &[u8], size| decompress(format, data, size);
            assert_eq!(unpacked(&data, size).as_deref(), Some(&contents[..]));
            for wrong in [0, 1, size - 1, size + 1, 2 * size, MAX_DECOMPRESSED_BYTES, u64::MAX] {
                assert!(unpacked(&data, wrong).is_none(), "{wrong}");
            }
            assert!(unpacked(&data[..data.len() / 2], size).is_none());
            assert!(unpacked(&data[1..], size).is_none());
            assert!(unpacked(&[], size).is_none());
            assert_eq!(unpacked(&compress(format, &[]), 0).as_deref(), Some(&[][..]));
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let contents: Vec<u8> = (0..4096u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let mut data = compress(Compression::Zlib, &contents);
        let middle = data.len() / 2;
        data[middle] ^= 0x10;
        // Damaged data that can still be decoded fails its checksum.
        assert!(decompress(Compression::Zlib, &data, contents.len() as u64).is_none());
    }

    #[test]
    fn the_old_format_states_its_size_too() {
        let contents = b"abcabcabcabc".repeat(9);
        let data = compress(Compression::Zlib, &contents);
        let size = contents.len() as u64;
        let unpack = |bytes: Vec<u8>| packed_legacy(bytes.into())?.unpack(size + 1);
        assert_eq!(unpack(zdebug(size, &data)).as_deref(), Some(&contents[..]));
        assert!(unpack(zdebug(size + 1, &data)).is_none());
        assert!(unpack(zdebug(size + 2, &data)).is_none());
        assert!(unpack(data).is_none());
        assert!(unpack(b"ZLIB".to_vec()).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_data_is_survived(
            data in prop::collection::vec(any::<u8>(), 0..200),
            size in 0..300u64,
        ) {
            for format in [Compression::Zlib, Compression::Zstd] {
                decompress(format, &data, size);
            }
        }
    }
}
