//! Where the parts of a binary lie in memory, as its file says it or the recording itself.

use std::sync::Arc;

use whit_elf::{Segment, base_of, svma_in, svma_of_mapping_in};
use whit_types::{Avma, FileOffset, InstructionSet, Svma};
use whit_unwind::Bias;

use crate::dso::{DsoSymbols, Source};
use crate::resolution::SymbolRef;

/// A variable in the data of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name as the file has it.
    pub raw: Arc<str>,
    /// Its first address.
    pub start: Svma,
}

impl DsoSymbols {
    /// The loaded segments, for ELF files and the vdso.
    pub fn segments(&self) -> Option<&[Segment]> {
        match &self.source {
            Source::Elf(image) => Some(image.segments()),
            Source::Embedded(names, number) => {
                Some(&names.binary(*number)?.image.as_ref()?.segments)
            }
            _ => None,
        }
    }

    /// The encoding of its instructions, where a file says it.
    pub fn instruction_set(&self) -> Option<InstructionSet> {
        match &self.source {
            Source::Elf(image) => image.instruction_set(),
            Source::Embedded(names, number) => {
                names.binary(*number)?.image.as_ref()?.instruction_set
            }
            _ => None,
        }
    }

    /// The lowest stated address that is loaded.
    pub fn base_svma(&self) -> Option<Svma> {
        self.segments().map(base_of)
    }

    /// The stated address of the byte at `offset` of the file.
    pub fn svma_of(&self, offset: FileOffset) -> Option<Svma> {
        svma_in(self.segments()?, offset)
    }

    /// Distance that the loader added to stated addresses, given one mapping of the file.
    pub fn bias_of_mapping(
        &self,
        start: Avma,
        offset: FileOffset,
        size_bytes: u64,
    ) -> Option<Bias> {
        let svma = svma_of_mapping_in(self.segments()?, offset, size_bytes)?;
        Some(Bias::between(start, svma))
    }

    /// The variable at an address. `None` outside of the data of the binary; `Some(None)` where no variable has a
    /// name.
    pub fn variable_at(&self, address: Svma) -> Option<Option<Variable>> {
        let is_inside = self.segments()?.iter().any(|segment| {
            let at = address.0.checked_sub(segment.svma.0);
            !segment.executable && at.is_some_and(|at| at < segment.memory_size_bytes)
        });
        is_inside.then(|| self.named_variable(address))
    }

    fn named_variable(&self, address: Svma) -> Option<Variable> {
        if let Source::Embedded(names, number) = &self.source {
            let known = names.binary(*number).and_then(|binary| names.function(binary, address));
            let Some(known) = known else { return self.own_file().named_variable(address) };
            return Some(self.noted(known));
        }
        let found = self.symbol_table()?.find(address)?;
        (address.0 - found.start.0 < found.size_bytes).then(|| {
            let raw: Arc<str> = Arc::from(String::from_utf8_lossy(found.name));
            self.noted(SymbolRef {
                name: raw.clone(),
                raw,
                start: found.start,
                size_bytes: found.size_bytes,
                source: found.source,
                module: None,
            })
        })
    }

    fn noted(&self, symbol: SymbolRef) -> Variable {
        let variable = Variable { raw: symbol.raw.clone(), start: symbol.start };
        if let Some(notes) = self.notes() {
            notes.variable(symbol);
        }
        variable
    }
}
