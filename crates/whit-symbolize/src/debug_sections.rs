//! The debug sections of one file, unpacked where they are compressed.

use gimli::{DebugInfo, Dwarf, EndianSlice, RunTimeEndian, SectionId};
use rustc_hash::FxHashMap;
use whit_unwind::Bytes;

use whit_elf::ElfImage;

use crate::split_files::SplitFiles;

/// Compressed sections above this size are decompressed in a thread of their own.
const OWN_THREAD_BYTES: u64 = 256 << 10;

pub(crate) type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

pub(crate) type SectionMap = FxHashMap<&'static str, Bytes>;

/// The sections of one file, and of the supplementary file that it shares with others.
pub(crate) struct DebugSections {
    pub(crate) endian: RunTimeEndian,
    main: SectionMap,
    supplement: Option<SectionMap>,
    split: Option<SplitFiles>,
}

impl DebugSections {
    /// Sections stay in `image`'s mapping unless they are compressed. `supplement` is the file that
    /// `.gnu_debugaltlink` names.
    pub(crate) fn load(image: &ElfImage, supplement: Option<&ElfImage>) -> DebugSections {
        DebugSections {
            endian: endian_of(image),
            main: section_map(image),
            supplement: supplement.map(section_map),
            split: None,
        }
    }

    /// Units may lie in split files.
    pub(crate) fn with_split_files(self, split: SplitFiles) -> DebugSections {
        DebugSections { split: Some(split), ..self }
    }

    /// Where units outside of the file are.
    pub(crate) fn split_files(&self) -> Option<&SplitFiles> {
        self.split.as_ref()
    }

    /// Sections from bytes that a test made.
    #[cfg(test)]
    pub(crate) fn from_parts(parts: Vec<(SectionId, Vec<u8>)>) -> DebugSections {
        let main = parts.into_iter().map(|(id, bytes)| (id.name(), bytes.into())).collect();
        DebugSections { endian: RunTimeEndian::Little, main, supplement: None, split: None }
    }

    /// True where some entries may be in a supplementary file.
    pub(crate) fn has_supplement(&self) -> bool {
        self.supplement.is_some()
    }

    /// One section; empty where there is none.
    pub(crate) fn section(&self, id: SectionId) -> Slice<'_> {
        slice(&self.main, id, self.endian)
    }

    /// All DWARF sections, with those of the supplementary file.
    pub(crate) fn dwarf(&self) -> gimli::Result<Dwarf<Slice<'_>>> {
        let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(self.section(id)))?;
        if let Some(map) = &self.supplement {
            dwarf.load_sup(|id| Ok::<_, gimli::Error>(slice(map, id, self.endian)))?;
        }
        Ok(dwarf)
    }

    /// `.debug_info` cut down to `unit`, which lies in it, without an index and without a supplement.
    pub(crate) fn dwarf_of_unit<'a>(&'a self, unit: Slice<'a>) -> gimli::Result<Dwarf<Slice<'a>>> {
        let mut dwarf = Dwarf::load(|id| {
            Ok::<_, gimli::Error>(match id {
                SectionId::DebugAranges => EndianSlice::new(&[], self.endian),
                id => self.section(id),
            })
        })?;
        dwarf.debug_info = DebugInfo::from(unit);
        Ok(dwarf)
    }
}

fn slice(map: &SectionMap, id: SectionId, endian: RunTimeEndian) -> Slice<'_> {
    EndianSlice::new(map.get(id.name()).map_or(&[], |bytes| bytes), endian)
}

pub(crate) fn endian_of(image: &ElfImage) -> RunTimeEndian {
    match image.endian() {
        object::Endianness::Little => RunTimeEndian::Little,
        object::Endianness::Big => RunTimeEndian::Big,
    }
}

fn section_map(image: &ElfImage) -> SectionMap {
    // Sections for functions, inlining and lines: those for locations of variables are not loaded.
    const WANTED: [SectionId; 10] = [
        SectionId::DebugAbbrev,
        SectionId::DebugAddr,
        SectionId::DebugAranges,
        SectionId::DebugInfo,
        SectionId::DebugLine,
        SectionId::DebugLineStr,
        SectionId::DebugRanges,
        SectionId::DebugRngLists,
        SectionId::DebugStr,
        SectionId::DebugStrOffsets,
    ];
    sections_of(image, &WANTED, |id| Some(id.name()))
}

/// Distributions compress debug sections, and taking them apart is most of the cost of the first look-up in a
/// binary: each larger one but the largest has a thread of its own.
pub(crate) fn sections_of(
    image: &ElfImage,
    wanted: &[SectionId],
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> SectionMap {
    let size = |name: &str| {
        image.section(name).filter(|section| section.compressed).map_or(0, |section| section.size)
    };
    let mut names: Vec<_> = wanted.iter().filter_map(|id| name(*id)).collect();
    names.sort_by_key(|name| std::cmp::Reverse(size(name)));
    let own_thread = |at: usize| at > 0 && size(names[at]) > OWN_THREAD_BYTES;
    let (costly, cheap): (Vec<_>, Vec<_>) = (0..names.len()).partition(|at| own_thread(*at));
    std::thread::scope(|scope| {
        let threads: Vec<_> = costly
            .into_iter()
            .map(|at| names[at])
            .map(|name| (name, scope.spawn(move || image.section_contents(name))))
            .collect();
        let mut map: SectionMap = cheap
            .into_iter()
            .filter_map(|at| Some((names[at], image.section_contents(names[at])?)))
            .collect();
        let joined = threads.into_iter();
        map.extend(joined.filter_map(|(name, thread)| Some((name, thread.join().ok()??))));
        map
    })
}
