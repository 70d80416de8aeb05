//! The debug sections of one file, unpacked where they are compressed.

use std::sync::Arc;

use gimli::{DebugInfo, Dwarf, RunTimeEndian, SectionId};
use whit_elf::ElfImage;

use crate::metered::{Meter, Metered};
use crate::section_map::{self, SectionMap, endian_of, sections_of};
use crate::split_files::SplitFiles;

/// Sections for functions, inlining and lines: those for locations of variables are not loaded.
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

/// The stated contents of the compressed sections of `image`, where they are too many to read; zero otherwise.
pub(crate) fn excess_bytes(image: &ElfImage) -> u64 {
    section_map::excess_bytes(image, &WANTED, |id| Some(id.name()))
}

/// The sections of one file, and of the supplementary file that it shares with others.
pub(crate) struct DebugSections {
    pub(crate) endian: RunTimeEndian,
    main: SectionMap,
    supplement: Option<SectionMap>,
    split: Option<SplitFiles>,
    meter: Arc<Meter>,
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
            meter: Arc::new(Meter::for_file(image.bytes().len() as u64)),
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
        let size: usize = parts.iter().map(|(_, bytes)| bytes.len()).sum();
        let main = parts.into_iter().map(|(id, bytes)| (id.name(), bytes.into())).collect();
        let meter = Arc::new(Meter::for_file(size as u64));
        DebugSections { endian: RunTimeEndian::Little, main, supplement: None, split: None, meter }
    }

    /// The same sections with other bounds.
    #[cfg(test)]
    pub(crate) fn with_meter(self, meter: Meter) -> DebugSections {
        DebugSections { meter: Arc::new(meter), ..self }
    }

    /// True where some entries may be in a supplementary file.
    pub(crate) fn has_supplement(&self) -> bool {
        self.supplement.is_some()
    }

    /// One section; empty where there is none.
    pub(crate) fn section(&self, id: SectionId) -> Metered<'_> {
        self.slice(&self.main, id)
    }

    /// The bounds of reading these sections.
    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    fn slice<'a>(&'a self, map: &'a SectionMap, id: SectionId) -> Metered<'a> {
        let bytes = map.get(id.name()).map_or(&[][..], |bytes| bytes);
        Metered::new(bytes, self.endian, &self.meter)
    }

    /// All DWARF sections, with those of the supplementary file.
    pub(crate) fn dwarf(&self) -> gimli::Result<Dwarf<Metered<'_>>> {
        let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(self.section(id)))?;
        if let Some(map) = &self.supplement {
            dwarf.load_sup(|id| Ok::<_, gimli::Error>(self.slice(map, id)))?;
        }
        Ok(dwarf)
    }

    /// `.debug_info` cut down to `unit`, which lies in it, without an index and without a supplement.
    pub(crate) fn dwarf_of_unit<'a>(
        &'a self,
        unit: Metered<'a>,
    ) -> gimli::Result<Dwarf<Metered<'a>>> {
        let mut dwarf = Dwarf::load(|id| {
            Ok::<_, gimli::Error>(match id {
                SectionId::DebugAranges => Metered::new(&[], self.endian, &self.meter),
                id => self.section(id),
            })
        })?;
        dwarf.debug_info = DebugInfo::from(unit);
        Ok(dwarf)
    }
}

fn section_map(image: &ElfImage) -> SectionMap {
    sections_of(image, &WANTED, |id| Some(id.name()))
}
