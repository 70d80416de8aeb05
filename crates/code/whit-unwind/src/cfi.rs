//! Finds the row of call frame information for an address.

use std::ops::Range;
use std::sync::OnceLock;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EhFrameHdr, EhHdrTable, EndianSlice,
    FrameDescriptionEntry, LittleEndian, UnwindContext, UnwindOffset, UnwindSection,
    UnwindTableRow, Vendor,
};
use whit_types::Arch;

use crate::bytes::Bytes;

/// How gimli reads the sections: both architectures are little-endian.
pub(crate) type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Both architectures have 64-bit addresses.
const ADDRESS_SIZE_BYTES: u8 = 8;

/// Most function entries that an index built here takes in; the largest binaries known (browsers,
/// databases with everything linked in) have about two million.
const MAX_INDEX_ENTRIES: usize = 1 << 24;

/// Two addresses of the smallest form, the shortest row that a search table can have.
const MIN_ROW_BYTES: usize = 4;

/// Which of the two sections, which encode the same thing slightly differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SectionKind {
    EhFrame,
    DebugFrame,
}

/// Receives the row that was found.
pub(crate) trait RowVisitor {
    type Output;

    /// Called at most once per look-up.
    fn visit<'a, S: UnwindSection<Reader<'a>>>(
        &mut self,
        section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
    ) -> Self::Output;
}

/// Receives every row of a section.
pub(crate) trait RowSink {
    /// An entry is about to be read, which takes so many bytes of instructions, those of the common entry
    /// among them. False where that is enough.
    fn entry(&mut self, bytes: usize) -> bool;

    /// `row` holds for the addresses of `range`.
    fn row<'a, S: UnwindSection<Reader<'a>>>(
        &mut self,
        section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
        range: Range<u64>,
    );
}

/// One section of call frame information.
#[derive(Debug)]
pub(crate) struct CfiTable {
    kind: SectionKind,
    arch: Arch,
    bytes: Bytes,
    hdr: Option<Bytes>,
    bases: BaseAddresses,
    index: OnceLock<FdeIndex>,
}

impl CfiTable {
    pub(crate) fn new(
        kind: SectionKind,
        arch: Arch,
        bytes: Bytes,
        hdr: Option<Bytes>,
        bases: BaseAddresses,
    ) -> CfiTable {
        CfiTable { kind, arch, bytes, hdr, bases, index: OnceLock::new() }
    }

    /// Shows `visitor` the row for `svma`; `None` where no entry covers it or the entry is corrupt.
    pub(crate) fn visit_row<V: RowVisitor>(
        &self,
        svma: u64,
        context: &mut UnwindContext<usize>,
        visitor: &mut V,
    ) -> Option<V::Output> {
        let vendor = if self.arch == Arch::Aarch64 { Vendor::AArch64 } else { Vendor::Default };
        match self.kind {
            SectionKind::EhFrame => {
                let mut section = EhFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE_BYTES);
                section.set_vendor(vendor);
                let offset = self.fde_offset(svma, &section)?;
                visit_fde(&section, &self.bases, offset, svma, context, visitor)
            }
            SectionKind::DebugFrame => {
                let mut section = DebugFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE_BYTES);
                section.set_vendor(vendor);
                let offset = self.fde_offset(svma, &section)?;
                visit_fde(&section, &self.bases, offset, svma, context, visitor)
            }
        }
    }

    /// The addresses of the entry that covers `svma`.
    pub(crate) fn function_range(&self, svma: u64) -> Option<Range<u64>> {
        match self.kind {
            SectionKind::EhFrame => {
                let mut section = EhFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE_BYTES);
                entry_range(&section, &self.bases, self.fde_offset(svma, &section)?, svma)
            }
            SectionKind::DebugFrame => {
                let mut section = DebugFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE_BYTES);
                entry_range(&section, &self.bases, self.fde_offset(svma, &section)?, svma)
            }
        }
    }

    /// Shows `sink` every row, by ascending address. Where entries overlap, the one that starts last
    /// counts up to its end, as it does in [`CfiTable::visit_row`].
    pub(crate) fn for_each_row(&self, context: &mut UnwindContext<usize>, sink: &mut impl RowSink) {
        let vendor = if self.arch == Arch::Aarch64 { Vendor::AArch64 } else { Vendor::Default };
        match self.kind {
            SectionKind::EhFrame => {
                let mut section = EhFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE_BYTES);
                section.set_vendor(vendor);
                FdeIndex::build(&section, &self.bases).rows(&section, &self.bases, context, sink);
            }
            SectionKind::DebugFrame => {
                let mut section = DebugFrame::new(&self.bytes, LittleEndian);
                section.set_address_size(ADDRESS_SIZE_BYTES);
                section.set_vendor(vendor);
                FdeIndex::build(&section, &self.bases).rows(&section, &self.bases, context, sink);
            }
        }
    }

    /// Offset of the last entry that starts at or below `svma`.
    fn fde_offset<'a, S>(&self, svma: u64, section: &S) -> Option<usize>
    where
        S: UnwindSection<Reader<'a>>,
        S::Offset: UnwindOffset<usize>,
    {
        if let Some(hdr) = &self.hdr {
            let parsed = EhFrameHdr::new(hdr, LittleEndian).parse(&self.bases, ADDRESS_SIZE_BYTES);
            if let Ok(parsed) = parsed
                && let Some(table) = parsed.table().filter(|table| self.may_fit(table, hdr.len()))
            {
                let fde = table.lookup(svma, &self.bases).ok()?.direct().ok()?;
                // Not `pointer_to_offset`, which overflows where the entry lies below the section.
                let section = parsed.eh_frame_ptr().direct().ok()?;
                return usize::try_from(fde.checked_sub(section)?).ok();
            }
        }
        self.index.get_or_init(|| FdeIndex::build(section, &self.bases)).find(svma)
    }

    /// False where the table states more rows than its section has bytes for: the search would
    /// multiply the stated number without a check.
    fn may_fit(&self, table: &EhHdrTable<'_, Reader<'_>>, section_bytes: usize) -> bool {
        let (_, stated_rows) = table.iter(&self.bases).size_hint();
        stated_rows.is_some_and(|rows| rows <= section_bytes / MIN_ROW_BYTES)
    }
}

fn entry_range<'a, S: UnwindSection<Reader<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    offset: usize,
    svma: u64,
) -> Option<Range<u64>> {
    let fde = section.fde_from_offset(bases, S::Offset::from(offset), S::cie_from_offset).ok()?;
    fde.contains(svma).then(|| fde.initial_address()..fde.end_address())
}

fn visit_fde<'a, S: UnwindSection<Reader<'a>>, V: RowVisitor>(
    section: &S,
    bases: &BaseAddresses,
    offset: usize,
    svma: u64,
    context: &mut UnwindContext<usize>,
    visitor: &mut V,
) -> Option<V::Output> {
    let fde = section.fde_from_offset(bases, S::Offset::from(offset), S::cie_from_offset).ok()?;
    if !fde.contains(svma) {
        return None;
    }
    let row = fde.unwind_info_for_address(section, bases, context, svma).ok()?;
    Some(visitor.visit(section, &fde, row))
}

/// A binary search table for a section that brings none.
#[derive(Debug, Default)]
struct FdeIndex {
    /// First address of each entry, ascending.
    starts: Vec<u64>,
    /// Offset of the entry in the section, in the same order.
    offsets: Vec<u32>,
}

impl FdeIndex {
    /// Reads all entries; those that cannot be parsed are left out, and a section that breaks off
    /// is indexed up to there.
    fn build<'a, S: UnwindSection<Reader<'a>>>(section: &S, bases: &BaseAddresses) -> FdeIndex {
        let mut entries = Vec::new();
        let mut last_cie = None;
        let mut iter = section.entries(bases);
        while let Ok(Some(entry)) = iter.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(|section, bases, offset| {
                let at = UnwindOffset::into(offset);
                match &last_cie {
                    Some((cached, cie)) if *cached == at => Ok(Clone::clone(cie)),
                    _ => {
                        let cie = section.cie_from_offset(bases, offset)?;
                        last_cie = Some((at, Clone::clone(&cie)));
                        Ok(cie)
                    }
                }
            });
            if let Ok(fde) = fde
                && let Ok(offset) = u32::try_from(fde.offset())
                && entries.len() < MAX_INDEX_ENTRIES
                && !fde.is_empty_range()
            {
                entries.push((fde.initial_address(), offset));
            }
        }
        entries.sort_unstable();
        FdeIndex {
            starts: entries.iter().map(|(start, _)| *start).collect(),
            offsets: entries.iter().map(|(_, offset)| *offset).collect(),
        }
    }

    fn rows<'a, S: UnwindSection<Reader<'a>>>(
        &self,
        section: &S,
        bases: &BaseAddresses,
        context: &mut UnwindContext<usize>,
        sink: &mut impl RowSink,
    ) {
        for (at, offset) in self.offsets.iter().enumerate() {
            let offset = S::Offset::from(*offset as usize);
            let Ok(fde) = section.fde_from_offset(bases, offset, S::cie_from_offset) else {
                continue;
            };
            if !sink.entry(fde.entry_len().saturating_add(fde.cie().entry_len())) {
                return;
            }
            let next = self.starts.get(at + 1).copied().unwrap_or(u64::MAX);
            let end = fde.end_address().min(next);
            let Ok(mut rows) = fde.rows(section, bases, context) else { continue };
            // A row that cannot be read ends the entry, as it ends a look-up there.
            while let Ok(Some(row)) = rows.next_row() {
                let range = row.start_address().max(self.starts[at])..row.end_address().min(end);
                if range.start < range.end {
                    sink.row(section, &fde, row, range);
                }
            }
        }
    }

    fn find(&self, svma: u64) -> Option<usize> {
        let after = self.starts.partition_point(|start| *start <= svma);
        Some(self.offsets[after.checked_sub(1)?] as usize)
    }
}

/// Linkers leave entries of removed functions behind, with a start of zero and no length.
trait EmptyRange {
    fn is_empty_range(&self) -> bool;
}

impl EmptyRange for FrameDescriptionEntry<Reader<'_>> {
    fn is_empty_range(&self) -> bool {
        self.initial_address() >= self.end_address()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A common entry (return address at CFA - 8, CFA at rsp + 8), and one for eight bytes at 0x500.
    fn eh_frame() -> Vec<u8> {
        let mut section = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
        section.resize(24, 0);
        section.extend([20, 0, 0, 0, 28, 0, 0, 0]);
        section.extend(0x500u64.to_le_bytes());
        section.extend(8u64.to_le_bytes());
        section
    }

    /// Everything in absolute words of eight bytes: where `.eh_frame` starts, the number of rows, and
    /// one row.
    fn eh_frame_hdr(rows: u64) -> Vec<u8> {
        let udata8 = gimli::DW_EH_PE_udata8.0;
        let words = [0x1000, rows, 0x500, 0x1000 + 24];
        [1, udata8, udata8, udata8]
            .into_iter()
            .chain(words.map(u64::to_le_bytes).concat())
            .collect()
    }

    #[test]
    fn a_search_table_longer_than_its_section_is_not_searched() {
        for rows in [1, 1 << 20, i64::MAX as u64, u64::MAX / 16, u64::MAX] {
            let bases = BaseAddresses::default().set_eh_frame(0x1000).set_eh_frame_hdr(0x2000);
            let hdr = Some(Bytes::from(eh_frame_hdr(rows)));
            let bytes = Bytes::from(eh_frame());
            let table = CfiTable::new(SectionKind::EhFrame, Arch::X86_64, bytes, hdr, bases);
            let section = EhFrame::new(&table.bytes, LittleEndian);
            // The section itself has the entry, whatever its table states.
            assert_eq!(table.fde_offset(0x501, &section), Some(24), "{rows} rows");
            assert_eq!(table.index.get().is_some(), rows > 1);
        }
    }
}
