//! Code that a JIT compiler wrote in pieces, each with call frame information of its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use gimli::{BaseAddresses, UnwindContext};
use whit_types::{Arch, Avma};

use crate::bytes::Bytes;
use crate::cfi::{CfiTable, RowVisitor, SectionKind};

/// Most pieces that are kept of a process; the largest programs of JIT compilers have some hundred thousand.
const PIECES_MAX: usize = 1 << 20;
/// Call frame information stands behind the code, at the next multiple of so many bytes.
const EH_FRAME_ALIGN_BYTES: u64 = 8;

/// One piece of code.
#[derive(Clone, Debug)]
pub struct JitPiece {
    /// Where it lies.
    pub start: Avma,
    /// Its length.
    pub size_bytes: u64,
    /// Its `.eh_frame`. Relative pointers in it count as if it stood right behind the code, at a multiple of eight
    /// bytes from the code's start: jitdump files have it so.
    pub eh_frame: Bytes,
}

/// Where call frame information would stand, from the start of its code.
pub(crate) fn eh_frame_offset(code_bytes: u64) -> u64 {
    code_bytes.next_multiple_of(EH_FRAME_ALIGN_BYTES)
}

#[derive(Debug)]
struct Piece {
    range: Range<u64>,
    eh_frame: Bytes,
    /// Made when the first frame in it is unwound.
    table: OnceLock<Box<CfiTable>>,
}

/// Pieces by address, without overlap.
#[derive(Debug)]
pub(crate) struct JitPieces {
    arch: Arch,
    pieces: Vec<Piece>,
}

impl JitPieces {
    /// The later of two pieces that overlap counts: it took the place of the earlier one.
    pub(crate) fn new(arch: Arch, pieces: impl IntoIterator<Item = JitPiece>) -> JitPieces {
        let mut kept: BTreeMap<u64, (u64, Bytes)> = BTreeMap::new();
        for JitPiece { start, size_bytes, eh_frame } in pieces.into_iter().take(PIECES_MAX) {
            // A piece at the end of the address space would have to wrap around.
            let Some(end) = start.0.checked_add(size_bytes).filter(|end| *end <= u64::MAX - 7)
            else {
                continue;
            };
            if size_bytes == 0 {
                continue;
            }
            while let Some((&from, (until, _))) = kept.range(..end).next_back()
                && *until > start.0
            {
                kept.remove(&from);
            }
            kept.insert(start.0, (end, eh_frame));
        }
        let piece = |(start, (end, eh_frame))| Piece {
            range: start..end,
            eh_frame,
            table: OnceLock::new(),
        };
        JitPieces { arch, pieces: kept.into_iter().map(piece).collect() }
    }

    /// Shows `visitor` the row for `avma`; `None` where no piece covers it.
    pub(crate) fn visit_row<V: RowVisitor>(
        &self,
        avma: u64,
        context: &mut UnwindContext<usize>,
        visitor: &mut V,
    ) -> Option<V::Output> {
        let after = self.pieces.partition_point(|piece| piece.range.start <= avma);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        if avma >= piece.range.end {
            return None;
        }
        piece.table(self.arch).visit_row(avma, context, visitor)
    }
}

impl Piece {
    fn table(&self, arch: Arch) -> &CfiTable {
        self.table.get_or_init(|| {
            let size_bytes = self.range.end - self.range.start;
            let section = self.range.start.wrapping_add(eh_frame_offset(size_bytes));
            let bases = BaseAddresses::default().set_eh_frame(section).set_text(self.range.start);
            let bytes = self.eh_frame.clone();
            Box::new(CfiTable::new(SectionKind::EhFrame, arch, bytes, None, bases))
        })
    }
}
