//! Code itself: where functions begin and end, and the bytes of their instructions.

use std::ops::Range;

use whit_types::{Avma, FileOffset, Svma};
use whit_unwind::Bytes;

use crate::dso::{DsoSymbols, Source};

impl DsoSymbols {
    /// The range of the function at an address, as its symbol or else the call frame information has it.
    pub fn function_range(&self, address: Svma) -> Option<Range<Svma>> {
        let range =
            |start: u64, size_bytes: u64| Svma(start)..Svma(start.saturating_add(size_bytes));
        if self.notes().is_some() {
            let _ = self.resolve_plainly(address);
        }
        match &self.source {
            Source::Elf(_) => match self.symbol_table()?.find(address) {
                Some(found) => Some(range(found.start.0, found.size_bytes)),
                None => self.unnamed_function(address),
            },
            Source::Table(table, bias) => {
                let found = table.find(bias.to_svma(Avma(address.0)))?;
                Some(range(bias.to_avma(found.start).0, found.size_bytes))
            }
            Source::JitDump(dump) => {
                let found = dump.resolve(FileOffset(address.0))?;
                Some(range(found.start.0, found.size_bytes))
            }
            Source::Embedded(names, number) => {
                let binary = names.binary(*number)?;
                let named = binary.function_range(address);
                let is_noted = names.resolve(binary, address).is_some();
                let known = named.or_else(|| binary.unnamed_function(address));
                let asked = || (!is_noted).then(|| self.own_file().function_range(address));
                known.or_else(|| asked().flatten())
            }
            Source::Absent(_) => None,
        }
    }

    /// The bytes of code from an address on, where the binary has them: tables of names have none.
    pub fn code_at(&self, start: Svma, size_bytes: u64) -> Option<Bytes> {
        let found = match &self.source {
            Source::Elf(image) => image.code_at(start, size_bytes),
            Source::JitDump(dump) => dump.code_at(FileOffset(start.0), size_bytes),
            Source::Embedded(names, number) => names
                .binary(*number)
                .and_then(|binary| binary.code_at(start, size_bytes))
                .or_else(|| self.own_file().code_at(start, size_bytes)),
            Source::Table(..) | Source::Absent(_) => None,
        };
        if let Some(bytes) = &found {
            self.note_code(start, bytes);
        }
        found
    }

    /// The bytes of a range that the recording carries; `None` where it has not all of them.
    pub fn carried_code(&self, start: Svma, size_bytes: u64) -> Option<Bytes> {
        let Source::Embedded(names, number) = &self.source else { return None };
        let found = names.binary(*number)?.code_at(start, size_bytes)?;
        (found.len() as u64 == size_bytes).then_some(found)
    }

    /// Notes bytes that were found elsewhere: a table of the kernel's names has none.
    pub fn note_code(&self, start: Svma, bytes: &Bytes) {
        if let Some(notes) = self.notes() {
            notes.code(start, bytes);
        }
    }
}
