//! Rules that Go's linker leaves out of its call frame information.

use gimli::FrameDescriptionEntry;

use crate::abi::{Abi, X86_64};
use crate::cfi::Reader;

/// Go's linker writes this factor for x86-64 (`dataAlignmentFactor` in `cmd/link/internal/ld/dwarf.go`).
/// Compilers for x86-64 write -8.
const DATA_ALIGNMENT: i64 = -4;
/// Where a Go function that has a frame saves the frame pointer: below the return address.
pub(crate) const FRAME_POINTER_AT_CFA: i16 = -16;
/// The frame address less the stack pointer, of functions without a frame.
const FRAMELESS_CFA: i64 = 8;

/// Whether the entry is one of Go's linker, and a function saved the frame pointer where the frame address is so
/// far from the stack pointer. Go functions save it first of all; their entries do not say so.
pub(crate) fn saves_frame_pointer<A: Abi>(
    fde: &FrameDescriptionEntry<Reader<'_>>,
    cfa_offset: i64,
) -> bool {
    A::FP == X86_64::FP
        && A::LR.is_none()
        && fde.cie().data_alignment_factor() == DATA_ALIGNMENT
        && cfa_offset > FRAMELESS_CFA
}
