//! Memory for unwind tables, which grows by chunks as tables come. Tables that are taken out leave room for others.

use libbpf_rs::MapHandle;
use std::collections::HashMap;
use std::time::Instant;

use super::layout::{self, CHUNK_WORDS, CHUNKS_MAX, RULES_MAX, TABLE_MEMORY_MAX_BYTES, TABLES_MAX};
use super::program::Program;
use super::runs::{Run, Runs};
use super::{InterpreterNumber, TableNumber};
use crate::error::BpfError;

/// Chunks that are made at once, if not more are needed: each time costs the kernel a wait.
const CHUNKS_AT_ONCE: usize = 8;
/// The first numbers say that there is no table.
const FIRST_TABLE: u32 = 3;

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
    words: Room,
    rules: Room,
    numbers: Room,
    loaded: HashMap<TableNumber, Places>,
    /// The newest table has this one.
    generation: u32,
    chunks: Vec<MapHandle>,
}

/// Where a table is.
#[derive(Clone, Copy, Debug)]
struct Places {
    words: Run,
    rules: Run,
    number: Run,
}

impl Tables {
    /// With room for so many bytes, up to [`TABLE_MEMORY_MAX_BYTES`].
    pub(super) fn within(bytes: usize) -> Tables {
        let words = bytes.min(TABLE_MEMORY_MAX_BYTES) / 4;
        Tables {
            words: Room::new("words of unwind tables", words),
            rules: Room::new("rules of unwind tables", RULES_MAX),
            numbers: Room::new("unwind tables", TABLES_MAX - FIRST_TABLE as usize),
            loaded: HashMap::new(),
            generation: 0,
            chunks: Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.used * 4
    }

    pub(super) fn are_tight(&self) -> bool {
        [&self.words, &self.rules, &self.numbers].iter().any(|room| room.is_tight())
    }

    pub(super) fn add(
        &mut self,
        program: &Program,
        parts: &TableParts<'_>,
        now: Instant,
    ) -> Result<TableNumber, BpfError> {
        let places = self.take(parts, now)?;
        self.generation = self.generation.wrapping_add(1).max(1);
        let number = TableNumber::new(FIRST_TABLE + places.number.first, self.generation);
        match self.load(program, parts, number, places) {
            Ok(()) => {
                self.loaded.insert(number, places);
                Ok(number)
            }
            Err(error) => {
                self.give_back(places, now);
                Err(error)
            }
        }
    }

    /// Takes a table out. The words stay for a while: programs may read them at this moment.
    pub(super) fn remove(
        &mut self,
        program: &Program,
        number: TableNumber,
        now: Instant,
    ) -> Result<(), BpfError> {
        let Some(places) = self.loaded.get(&number).copied() else { return Ok(()) };
        // No mapping has this generation: those that name the old one have no table.
        program.set_table(number.number(), &layout::table(0, [0; 4], None, 0))?;
        self.loaded.remove(&number);
        self.give_back(places, now);
        Ok(())
    }

    fn take(&mut self, parts: &TableParts<'_>, now: Instant) -> Result<Places, BpfError> {
        let words = self.words.take(parts.index.len() + parts.rows.len(), now)?;
        let rules = self.rules.take(parts.rules.len(), now);
        let number = rules.and_then(|rules| match self.numbers.take(1, now) {
            Ok(number) => Ok((rules, number)),
            Err(error) => {
                self.rules.give_back(rules, now);
                Err(error)
            }
        });
        match number {
            Ok((rules, number)) => Ok(Places { words, rules, number }),
            Err(error) => {
                self.words.give_back(words, now);
                Err(error)
            }
        }
    }

    fn give_back(&mut self, places: Places, now: Instant) {
        self.words.give_back(places.words, now);
        self.rules.give_back(places.rules, now);
        self.numbers.give_back(places.number, now);
    }

    fn load(
        &mut self,
        program: &Program,
        parts: &TableParts<'_>,
        number: TableNumber,
        places: Places,
    ) -> Result<(), BpfError> {
        let Run { first, count } = places.words;
        self.grow(program, (first + count) as usize)?;
        self.write(program, first as usize, parts.index.iter().chain(parts.rows))?;
        program.set_rules(places.rules.first, parts.rules)?;
        let buckets = parts.index.len().saturating_sub(1) as u32;
        let rows = first + parts.index.len() as u32;
        let numbers = [buckets, first, rows, places.rules.first];
        let generation = number.generation();
        let table = layout::table(parts.start, numbers, parts.interpreter, generation);
        program.set_table(number.number(), &table)
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

    /// Writes words from a place on. Chunks are written as a whole, the words of other tables in them as they are.
    fn write<'a>(
        &self,
        program: &Program,
        first: usize,
        mut words: impl Iterator<Item = &'a u32>,
    ) -> Result<(), BpfError> {
        let mut next = words.next();
        let mut at = first;
        while next.is_some() {
            let chunk = &self.chunks[at / CHUNK_WORDS];
            let mut whole = program.read_chunk(chunk)?;
            for place in whole.as_chunks_mut::<4>().0.iter_mut().skip(at % CHUNK_WORDS) {
                let Some(word) = next else { break };
                *place = word.to_ne_bytes();
                (next, at) = (words.next(), at + 1);
            }
            program.fill_chunk(chunk, &whole)?;
        }
        Ok(())
    }
}

/// Room for elements of one kind.
#[derive(Debug)]
struct Room {
    what: &'static str,
    runs: Runs,
    all: usize,
    /// Elements that were given out and not yet given back.
    used: usize,
}

impl Room {
    fn new(what: &'static str, all: usize) -> Room {
        // The limits fit: see the test.
        Room { what, runs: Runs::new(all as u32), all, used: 0 }
    }

    fn take(&mut self, count: usize, now: Instant) -> Result<Run, BpfError> {
        let run = u32::try_from(count).ok().and_then(|count| self.runs.take(count, now));
        let run = run.ok_or(BpfError::Room {
            what: self.what,
            wanted: self.used + count,
            room: self.all,
        })?;
        self.used += count;
        Ok(run)
    }

    fn give_back(&mut self, run: Run, now: Instant) {
        self.used -= run.count as usize;
        self.runs.give_back(run, now);
    }

    fn is_tight(&self) -> bool {
        self.used > self.all / 4 * 3
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
    fn room_is_tight_before_it_ends_and_comes_back_after_a_rest() {
        let (mut room, begin) = (Room::new("things", 8), Instant::now());
        let (a, b) = (room.take(4, begin).unwrap(), room.take(2, begin).unwrap());
        assert!(!room.is_tight());
        let c = room.take(2, begin).unwrap();
        assert!(room.is_tight());
        let Err(BpfError::Room { what, wanted, room: all }) = room.take(1, begin) else {
            panic!("there is no room")
        };
        assert_eq!((what, wanted, all), ("things", 9, 8));
        room.give_back(a, begin);
        assert!(!room.is_tight());
        assert!(room.take(1, begin).is_err(), "programs may read it");
        let later = begin + std::time::Duration::from_secs(2);
        assert_eq!(room.take(4, later).unwrap(), a);
        assert_ne!(b, c);
    }

    #[test]
    fn numbers_of_words_fit_into_words() {
        assert!(u32::try_from(CHUNKS_MAX * CHUNK_WORDS).is_ok());
        assert_eq!(CHUNKS_MAX * CHUNK_WORDS * 4, TABLE_MEMORY_MAX_BYTES);
    }
}
