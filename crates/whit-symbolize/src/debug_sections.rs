//! The debug sections of one file, unpacked where they are compressed.

use gimli::{DebugInfo, Dwarf, EndianSlice, RunTimeEndian, SectionId};
use whit_elf::ElfImage;

use crate::section_map::{SectionMap, Slice, endian_of, sections_of};
use crate::split_files::SplitFiles;

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
