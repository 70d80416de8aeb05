//! The seam to the binaries.

use std::ops::Range;
use std::sync::Arc;
use whit_profile::model::DsoId;
use whit_profile::{CodeBytes, CodeFinder, NoCode, SourceOf};
use whit_types::Svma;

/// Source of code, names and lines.
pub trait Code {
    /// The range of the function at an address.
    fn function_at(&self, dso: DsoId, address: Svma) -> Option<Range<Svma>>;
    /// The name of the function or variable at an address, and the distance from its start.
    fn name_at(&self, dso: DsoId, address: Svma) -> Option<(Arc<str>, u64)>;
    /// The bytes of a range.
    ///
    /// # Errors
    /// They are not at hand.
    fn bytes(&self, dso: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode>;
    /// Line and inlined functions of an instruction.
    fn source_of(&self, dso: DsoId, address: Svma) -> SourceOf;
}

impl Code for CodeFinder {
    fn function_at(&self, dso: DsoId, address: Svma) -> Option<Range<Svma>> {
        CodeFinder::function_at(self, dso, address)
    }

    fn name_at(&self, dso: DsoId, address: Svma) -> Option<(Arc<str>, u64)> {
        CodeFinder::name_at(self, dso, address)
    }

    fn bytes(&self, dso: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        CodeFinder::bytes(self, dso, range)
    }

    fn source_of(&self, dso: DsoId, address: Svma) -> SourceOf {
        CodeFinder::source_of(self, dso, address)
    }
}
