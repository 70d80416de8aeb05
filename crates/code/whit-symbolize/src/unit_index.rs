//! Which compilation units own an address, as `.debug_aranges` says.
//!
//! DWARF 5, section 6.1.2 ("Lookup by Address").

use gimli::{DebugAbbrevOffset, DebugAranges, EndianSlice, Reader, RunTimeEndian};

/// Most address ranges that are kept, 32 bytes each; a section with more is not used.
const MAX_RANGES: usize = 1 << 21;

/// Most units that are named for one address. Functions that several units define overlap where
/// linkers merge identical code; more than a few means that the section is wrong.
const MAX_UNITS_OF_ADDRESS: usize = 16;

/// Most bytes of one unit's abbreviations that are looked through.
const MAX_ABBREVIATION_BYTES: usize = 1 << 20;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

#[derive(Clone, Copy, Debug)]
struct UnitRange {
    begin: u64,
    end: u64,
    /// The lowest `begin` from this range on: where it lies behind an address, no later range holds
    /// the address.
    lowest_begin: u64,
    /// Offset of the unit in `.debug_info`.
    unit: u64,
}

/// The ranges of `.debug_aranges`, sorted by their ends, then by unit.
#[derive(Debug)]
pub(crate) struct UnitIndex {
    ranges: Vec<UnitRange>,
}

impl UnitIndex {
    /// `None` where the section is empty, corrupt or too large.
    pub(crate) fn parse(aranges: &DebugAranges<Slice<'_>>) -> Option<UnitIndex> {
        let mut ranges = Vec::new();
        let mut sets = aranges.headers();
        while let Some(set) = sets.next().ok()? {
            let unit = set.debug_info_offset().0 as u64;
            let mut entries = set.entries();
            while let Some(entry) = entries.next().transpose() {
                // A range that does not fit into the address space says nothing of others.
                let Ok(entry) = entry else { continue };
                let (begin, end) = (entry.range().begin, entry.range().end);
                if begin >= end {
                    continue;
                }
                if ranges.len() == MAX_RANGES {
                    return None;
                }
                ranges.push(UnitRange { begin, end, lowest_begin: begin, unit });
            }
        }
        ranges.sort_unstable_by_key(|range| (range.end, range.unit));
        let mut lowest_begin = u64::MAX;
        for range in ranges.iter_mut().rev() {
            lowest_begin = lowest_begin.min(range.begin);
            range.lowest_begin = lowest_begin;
        }
        (!ranges.is_empty()).then_some(UnitIndex { ranges })
    }

    /// Offsets in `.debug_info` of the units that claim `svma`, in the order in which they are to be
    /// asked: the one whose range ends first is the most specific. One that claims it twice may come
    /// twice.
    pub(crate) fn units_at(&self, svma: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self.ranges.partition_point(|range| range.end <= svma);
        self.ranges[first..]
            .iter()
            .take_while(move |range| range.lowest_begin <= svma)
            .filter(move |range| range.begin <= svma)
            .map(|range| range.unit)
            .take(MAX_UNITS_OF_ADDRESS)
    }
}

/// True where an entry of a unit with these abbreviations may point into another unit of the file,
/// and where they cannot be understood.
pub(crate) fn may_refer_to_other_units(
    mut debug_abbrev: impl Reader<Offset = usize>,
    offset: DebugAbbrevOffset<usize>,
) -> bool {
    let size = debug_abbrev.len().saturating_sub(offset.0).min(MAX_ABBREVIATION_BYTES);
    let list = debug_abbrev.skip(offset.0).and_then(|()| debug_abbrev.truncate(size));
    list.and_then(|()| has_file_wide_form(debug_abbrev)).unwrap_or(true)
}

/// Codes, tags and attributes up to the end of the list, which a zero code marks; section 7.5.3.
fn has_file_wide_form(mut list: impl Reader) -> gimli::Result<bool> {
    while list.read_uleb128()? != 0 {
        let _tag = list.read_uleb128()?;
        let _has_children = list.read_u8()?;
        loop {
            let (name, form) = (list.read_uleb128()?, list.read_uleb128()?);
            if (name, form) == (0, 0) {
                break;
            }
            match u16::try_from(form).map(gimli::DwForm) {
                // An indirect form stands in the entry itself, and may be any.
                Ok(gimli::DW_FORM_ref_addr | gimli::DW_FORM_indirect) | Err(_) => return Ok(true),
                Ok(gimli::DW_FORM_implicit_const) => _ = list.read_sleb128()?,
                Ok(_) => {}
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `.debug_aranges` with a set for each unit: offset in `.debug_info`, begin and length of each
    /// range.
    pub(crate) fn aranges(sets: &[(u32, &[(u64, u64)])]) -> Vec<u8> {
        let mut section = Vec::new();
        for (unit, ranges) in sets {
            let mut set = Vec::new();
            set.extend(2u16.to_le_bytes());
            set.extend(unit.to_le_bytes());
            // Size of an address and of a segment, then padding to twice the size of an address.
            set.extend([8, 0, 0, 0, 0, 0]);
            for (begin, length) in ranges.iter().chain([&(0, 0)]) {
                set.extend(begin.to_le_bytes());
                set.extend(length.to_le_bytes());
            }
            section.extend((set.len() as u32).to_le_bytes());
            section.extend(set);
        }
        section
    }

    fn index(section: &[u8]) -> Option<UnitIndex> {
        UnitIndex::parse(&DebugAranges::new(section, RunTimeEndian::Little))
    }

    fn units_at(index: &UnitIndex, svma: u64) -> Vec<u64> {
        index.units_at(svma).collect()
    }

    #[test]
    fn ranges_may_overlap() {
        let section = aranges(&[
            (0x30, &[(0x1000, 0x100), (0x3000, 0x10)]),
            (0x10, &[(0x1080, 0x40)]),
            (0x20, &[(0x1000, 0x100)]),
        ]);
        let index = index(&section).unwrap();
        assert_eq!(units_at(&index, 0xfff), [0; 0]);
        assert_eq!(units_at(&index, 0x1000), [0x20, 0x30]);
        assert_eq!(units_at(&index, 0x10bf), [0x10, 0x20, 0x30]);
        assert_eq!(units_at(&index, 0x10ff), [0x20, 0x30]);
        assert_eq!(units_at(&index, 0x1100), [0; 0]);
        assert_eq!(units_at(&index, 0x300f), [0x30]);
        assert_eq!(units_at(&index, u64::MAX), [0; 0]);
    }

    #[test]
    fn a_section_without_sense_is_no_index() {
        assert!(index(&[]).is_none());
        assert!(index(&[0xff; 40]).is_none());
        assert!(index(&aranges(&[(0, &[])])).is_none());
        let mut section = aranges(&[(0, &[(0x1000, 8)]), (8, &[(0x2000, 8)])]);
        assert!(index(&section).is_some());
        section.truncate(section.len() - 1);
        assert!(index(&section).is_none());
        // A range that wraps around is passed over.
        let section = aranges(&[(0, &[(u64::MAX - 2, 8), (0x1000, 8)])]);
        assert_eq!(units_at(&index(&section).unwrap(), 0x1007), [0]);
    }

    fn refers(list: &[u8]) -> bool {
        let section = EndianSlice::new(list, RunTimeEndian::Little);
        may_refer_to_other_units(section, DebugAbbrevOffset(0))
    }

    #[test]
    fn references_to_other_units_show_in_the_abbreviations() {
        const ORIGIN: u8 = gimli::DW_AT_abstract_origin.0 as u8;
        const CONST: u8 = gimli::DW_FORM_implicit_const.0 as u8;
        let form = |form: gimli::DwForm| [1, 0x1d, 0, ORIGIN, form.0 as u8, 0, 0, 0];
        assert!(!refers(&form(gimli::DW_FORM_ref4)));
        assert!(refers(&form(gimli::DW_FORM_ref_addr)));
        assert!(refers(&form(gimli::DW_FORM_indirect)));
        // The value of an implicit constant is not taken for a form.
        assert!(!refers(&[1, 0x1d, 0, ORIGIN, CONST, 0x10, 0, 0, 0]));
        // The last of several, and one behind the end of the list.
        assert!(refers(&[1, 0x11, 1, 0, 0, 2, 0x1d, 0, ORIGIN, 0x10, 0, 0, 0]));
        assert!(!refers(&[1, 0x11, 1, 0, 0, 0, 2, 0x1d, 0, ORIGIN, 0x10, 0, 0, 0]));
        // Values that are cut off or out of range may be anything.
        assert!(refers(&[1, 0x11, 1, ORIGIN]));
        assert!(refers(&[]));
        assert!(refers(&[1, 0x11, 1, ORIGIN, 0xff, 0xff, 0xff, 0x01, 0, 0, 0]));
        let section = EndianSlice::new(&[0], RunTimeEndian::Little);
        assert!(may_refer_to_other_units(section, DebugAbbrevOffset(2)));
    }

    proptest! {
        #[test]
        fn all_units_that_claim_an_address_are_found(
            ranges in prop::collection::vec((0..8u32, 1..40u64, 1..20u64), 1..15),
            svma in 0..70u64,
        ) {
            let single: Vec<_> = ranges.iter().map(|(_, begin, len)| [(*begin, *len)]).collect();
            let sets: Vec<_> =
                ranges.iter().zip(&single).map(|((unit, ..), set)| (*unit, &set[..])).collect();
            let mut expected: Vec<_> = ranges
                .iter()
                .filter(|(_, begin, len)| (*begin..begin + len).contains(&svma))
                .map(|(unit, begin, len)| (begin + len, u64::from(*unit)))
                .collect();
            expected.sort_unstable();
            let expected: Vec<u64> = expected.into_iter().map(|(_, unit)| unit).collect();
            prop_assert_eq!(units_at(&index(&aranges(&sets)).unwrap(), svma), expected);
        }

        #[test]
        fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Some(index) = index(&bytes) {
                index.units_at(0).chain(index.units_at(u64::MAX)).count();
            }
            refers(&bytes);
        }
    }
}
