//! Look-ups in debug information, in single compilation units where that is possible.
//!
//! addr2line's context of a whole file begins by parsing the head of each unit: thousands in a C
//! library, where a report needs a dozen. Where `.debug_aranges` names the unit of an address, a
//! context is made of that unit alone, as if it were the only one. Questions that such a context
//! cannot answer go to that of the whole file:
//!
//! - addresses that the index does not know,
//! - units whose entries may point into other units (link-time optimization, `dwz`),
//! - addresses for which the named units know neither function nor line.
//!
//! The frames are the same either way, as long as the index leaves out no unit that shares an address
//! with one that it names.

use std::sync::Arc;

use addr2line::{FrameIter, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{DebugAranges, DebugInfoOffset, Dwarf, DwarfPackage, EndianSlice, Error, SectionId};
use rustc_hash::FxHashMap;

use crate::debug_sections::DebugSections;
use crate::metered::{Metered, Refused};
use crate::split_files::SplitFiles;
use crate::unit_index::{UnitIndex, may_refer_to_other_units};

/// Units that stay parsed. Look-ups come in order of address, so nearly all of those of one unit come
/// in a row.
const MAX_KEPT_UNITS: usize = 256;

type Context<'a> = addr2line::Context<Metered<'a>>;

/// The functions at one address, the innermost first.
pub(crate) type Frames<'c, 'a> = FrameIter<'c, Metered<'a>>;

/// Contexts of one file, made when they are first needed.
pub(crate) struct UnitContexts<'a> {
    sections: &'a DebugSections,
    index: Option<UnitIndex>,
    /// By offset in `.debug_info`; `None` for units that cannot be looked into alone.
    units: FxHashMap<u64, Option<Context<'a>>>,
    max_kept_units: usize,
    /// `None` inside where the file is corrupt.
    whole: Option<Option<Context<'a>>>,
    split: SplitUnits<'a>,
}

impl<'a> UnitContexts<'a> {
    pub(crate) fn new(sections: &'a DebugSections) -> UnitContexts<'a> {
        // One pass, with a bound of its own.
        let aranges = sections.section(SectionId::DebugAranges).slice();
        let aranges = DebugAranges::from(EndianSlice::new(aranges, sections.endian));
        // A supplement would have to be parsed again for each unit.
        let index = (!sections.has_supplement()).then(|| UnitIndex::parse(&aranges)).flatten();
        UnitContexts {
            sections,
            index,
            units: FxHashMap::default(),
            max_kept_units: MAX_KEPT_UNITS,
            whole: None,
            split: SplitUnits { files: sections.split_files(), package: None },
        }
    }

    /// Gives the frames at `svma` to `collect`; what that gives back is empty where nothing is known.
    pub(crate) fn look_up<T>(
        &mut self,
        svma: u64,
        mut collect: impl FnMut(Frames<'_, 'a>) -> Vec<T>,
    ) -> Result<Vec<T>, Refused> {
        // addr2line looks into the range up to the next address, which the last one has not.
        if svma == u64::MAX {
            return Ok(Vec::new());
        }
        self.bounded(|contexts| match contexts.look_up_in_units(svma, &mut collect) {
            Some(found) => found,
            None => contexts.look_up_in_whole(svma, &mut collect),
        })
    }

    /// The file and line at `svma`, for an address whose functions were just looked up and nest too deep.
    pub(crate) fn line_at(&mut self, svma: u64) -> Option<(String, u32)> {
        let line_in = |context: &Context<'a>| {
            let location = context.find_location(svma).ok()??;
            Some((location.file?.to_owned(), location.line.unwrap_or(0)))
        };
        let found = self.bounded(|contexts| {
            let claiming = contexts.index.iter().flat_map(|index| index.units_at(svma));
            let parsed = claiming.filter_map(|unit| contexts.units.get(&unit));
            Ok(parsed.chain(&contexts.whole).flatten().find_map(line_in))
        });
        found.ok().flatten()
    }

    /// Looks up within the bounds of the file. Where results of earlier look-ups leave no room for more, they go.
    fn bounded<T>(
        &mut self,
        mut look_up: impl FnMut(&mut Self) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let meter = self.sections.meter();
        meter.begin();
        loop {
            let is_alone = self.units.is_empty() && self.whole.is_none();
            let found = look_up(self);
            if !meter.is_used_up() {
                return found;
            }
            self.units.clear();
            self.whole = None;
            if !meter.renew() || is_alone {
                return Err(Refused::Reading);
            }
        }
    }

    /// `None` where the whole file has to be asked.
    fn look_up_in_units<T>(
        &mut self,
        svma: u64,
        collect: &mut impl FnMut(Frames<'_, 'a>) -> Vec<T>,
    ) -> Option<Result<Vec<T>, Refused>> {
        for unit in self.index.as_ref()?.units_at(svma) {
            if self.units.len() >= self.max_kept_units && !self.units.contains_key(&unit) {
                self.units.clear();
            }
            let sections = self.sections;
            let context = self.units.entry(unit).or_insert_with(|| context_of(sections, unit));
            match frames_in(context.as_ref()?, &mut self.split, svma, collect) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => return Some(Ok(found)),
                // It nests in the whole file, too.
                Err(Error::StackFull) => return Some(Err(Refused::Nesting)),
                Err(_) => return None,
            }
        }
        None
    }

    fn look_up_in_whole<T>(
        &mut self,
        svma: u64,
        collect: &mut impl FnMut(Frames<'_, 'a>) -> Vec<T>,
    ) -> Result<Vec<T>, Refused> {
        let sections = self.sections;
        let whole =
            self.whole.get_or_insert_with(|| sections.dwarf().and_then(Context::from_dwarf).ok());
        let Some(context) = whole else { return Ok(Vec::new()) };
        match frames_in(context, &mut self.split, svma, collect) {
            Err(Error::StackFull) => Err(Refused::Nesting),
            found => Ok(found.unwrap_or_default()),
        }
    }
}

/// A context of the unit at `offset` of `.debug_info` alone; `None` where it may need others.
fn context_of(sections: &DebugSections, offset: u64) -> Option<Context<'_>> {
    let start = usize::try_from(offset).ok()?;
    let info = sections.section(SectionId::DebugInfo);
    let header = gimli::DebugInfo::from(info).header_from_offset(DebugInfoOffset(start)).ok()?;
    let abbreviations = sections.section(SectionId::DebugAbbrev);
    if may_refer_to_other_units(abbreviations, header.debug_abbrev_offset()) {
        return None;
    }
    let end = start.checked_add(header.length_including_self())?;
    let unit = Metered::new(info.slice().get(start..end)?, sections.endian, sections.meter());
    Context::from_dwarf(sections.dwarf_of_unit(unit).ok()?).ok()
}

fn frames_in<'a, T>(
    context: &Context<'a>,
    split: &mut SplitUnits<'a>,
    svma: u64,
    collect: &mut impl FnMut(Frames<'_, 'a>) -> Vec<T>,
) -> gimli::Result<Vec<T>> {
    complete(context.find_frames(svma), split).map(collect)
}

/// Fetches the split files that a look-up asks for.
fn complete<'c, 'a: 'c, L>(
    mut lookup: LookupResult<L>,
    split: &mut SplitUnits<'a>,
) -> gimli::Result<Frames<'c, 'a>>
where
    L: LookupContinuation<Output = Result<Frames<'c, 'a>, gimli::Error>, Buf = Metered<'a>>,
{
    loop {
        match lookup {
            LookupResult::Output(frames) => return frames,
            LookupResult::Load { load, continuation } => {
                lookup = continuation.resume(split.load(&load).map(Arc::new));
            }
        }
    }
}

/// Units in split files. Where one is missing, its addresses have lines but no inlined functions.
struct SplitUnits<'a> {
    files: Option<&'a SplitFiles>,
    /// `None` inside where there is no package.
    package: Option<Option<DwarfPackage<Metered<'a>>>>,
}

impl<'a> SplitUnits<'a> {
    fn load(&mut self, load: &SplitDwarfLoad<Metered<'a>>) -> Option<Dwarf<Metered<'a>>> {
        let files = self.files?;
        let package = self.package.get_or_insert_with(|| files.package());
        if let Some(unit) =
            package.as_ref().and_then(|package| package.find_cu(load.dwo_id, &load.parent).ok()?)
        {
            return Some(unit);
        }
        let directory = load.comp_dir.as_ref().map(|directory| directory.slice());
        files.unit(load.dwo_id, directory, load.path.as_ref()?.slice(), &load.parent)
    }
}

#[cfg(test)]
mod tests;
