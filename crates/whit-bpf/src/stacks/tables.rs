//! Memory for unwind tables, which grows by chunks as tables come. Tables stay until the end.

use libbpf_rs::MapHandle;

use super::layout::{self, CHUNK_WORDS, CHUNKS_MAX, RULES_MAX, TABLE_MEMORY_MAX_BYTES, TABLES_MAX};
use super::program::Program;
use super::{InterpreterNumber, TableNumber};
use crate::error::BpfError;

/// Chunks that are made at once, if not more are needed: each time costs the kernel a wait.
const CHUNKS_AT_ONCE: usize = 8;
/// The first numbers say that there is no table.
const FIRST_TABLE: usize = 3;

/// A table as its words: see `whit_unwind::table`.
#[derive(Clone, Copy, Debug)]
pub struct TableParts<'a> {
    /// Stated address of the first bucket.
    pub start: u64,
    /// First row of each bucket, and the number of rows.
    pub index: &'a [u32],
    /// One word for each row: its address in the bucket and its rule.
    pub rows: &'a [u32],
    /// Rules, encoded.
    pub rules: &'a [[u8; 8]],
    /// The interpreter that the binary has.
    pub interpreter: Option<InterpreterNumber>,
}

/// The tables in the kernel.
#[derive(Debug)]
pub(super) struct Tables {
    /// Words that all tables may have.
    words_max: usize,
    tables: usize,
    rules: usize,
    words: usize,
    /// The chunk that is not full yet, as it is in the kernel.
    last: Vec<u8>,
    chunks: Vec<MapHandle>,
}

impl Tables {
    /// With room for so many bytes, up to [`TABLE_MEMORY_MAX_BYTES`].
    pub(super) fn within(bytes: usize) -> Tables {
        let words_max = bytes.min(TABLE_MEMORY_MAX_BYTES) / 4;
        let (last, chunks) = (Vec::new(), Vec::new());
        Tables { words_max, tables: 0, rules: 0, words: 0, last, chunks }
    }

    pub(super) fn bytes(&self) -> usize {
        self.words * 4
    }

    pub(super) fn add(
        &mut self,
        program: &Program,
        parts: &TableParts<'_>,
    ) -> Result<TableNumber, BpfError> {
        let words = parts.index.len() + parts.rows.len();
        let check = |what, wanted: usize, room: usize| match wanted <= room {
            true => Ok(()),
            false => Err(BpfError::Room { what, wanted, room }),
        };
        check("words of unwind tables", self.words + words, self.words_max)?;
        check("unwind tables", FIRST_TABLE + self.tables + 1, TABLES_MAX)?;
        check("rules of unwind tables", self.rules + parts.rules.len(), RULES_MAX)?;
        self.grow(program, self.words + words)?;
        let index = self.words;
        let rows = index + parts.index.len();
        self.write(program, parts.index.iter().chain(parts.rows))?;
        program.set_rules(self.rules as u32, parts.rules)?;
        let number = FIRST_TABLE + self.tables;
        let buckets = parts.index.len().saturating_sub(1);
        let numbers = [buckets, index, rows, self.rules].map(|number| number as u32);
        let table = layout::table(parts.start, numbers, parts.interpreter);
        program.set_table(number as u32, &table)?;
        self.tables += 1;
        self.rules += parts.rules.len();
        Ok(TableNumber(number as u32))
    }

    /// Makes room for so many words in all.
    fn grow(&mut self, program: &Program, words: usize) -> Result<(), BpfError> {
        let have = self.chunks.len();
        let wanted = chunks_wanted(have, words);
        if wanted > have {
            self.chunks.extend(program.new_chunks(have as u32, wanted - have)?);
        }
        Ok(())
    }

    /// Appends words; the last chunk is written again as a whole.
    fn write<'a>(
        &mut self,
        program: &Program,
        words: impl Iterator<Item = &'a u32>,
    ) -> Result<(), BpfError> {
        for word in words {
            if self.last.len() == CHUNK_WORDS * 4 {
                self.put_last(program)?;
                self.last.clear();
            }
            self.last.extend(word.to_ne_bytes());
            self.words += 1;
        }
        self.put_last(program)
    }

    fn put_last(&mut self, program: &Program) -> Result<(), BpfError> {
        if self.last.is_empty() {
            return Ok(());
        }
        let number = (self.words - 1) / CHUNK_WORDS;
        let mut whole = self.last.clone();
        whole.resize(CHUNK_WORDS * 4, 0);
        program.fill_chunk(&self.chunks[number], &whole)
    }
}

/// How many chunks there are to be, where there are `have`, so that all words have room.
fn chunks_wanted(have: usize, words: usize) -> usize {
    match words.div_ceil(CHUNK_WORDS) {
        needed if needed <= have => have,
        needed => needed.max(have + CHUNKS_AT_ONCE).min(CHUNKS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_made_together_and_are_enough() {
        assert_eq!(chunks_wanted(0, 0), 0);
        assert_eq!(chunks_wanted(0, 1), CHUNKS_AT_ONCE);
        assert_eq!(chunks_wanted(8, 8 * CHUNK_WORDS), 8);
        assert_eq!(chunks_wanted(8, 8 * CHUNK_WORDS + 1), 16);
        // One step for a large table.
        assert_eq!(chunks_wanted(8, 40 * CHUNK_WORDS), 40);
        assert_eq!(chunks_wanted(CHUNKS_MAX - 1, CHUNKS_MAX * CHUNK_WORDS), CHUNKS_MAX);
        assert_eq!(chunks_wanted(CHUNKS_MAX, CHUNKS_MAX * CHUNK_WORDS), CHUNKS_MAX);
    }

    #[test]
    fn numbers_of_words_fit_into_words() {
        assert!(u32::try_from(CHUNKS_MAX * CHUNK_WORDS).is_ok());
        assert_eq!(CHUNKS_MAX * CHUNK_WORDS * 4, TABLE_MEMORY_MAX_BYTES);
    }
}
