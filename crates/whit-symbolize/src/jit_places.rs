//! Where code of a JIT compiler was at which time.

use rustc_hash::FxHashMap;
use whit_types::{Avma, FileOffset, TimestampNs};

/// Code is found by the 64 KiB blocks that it lies in.
const BLOCK_SHIFT: u32 = 16;

/// Blocks that one piece of code may cover; interpreters write some, of a few MiB.
const MAX_BLOCKS_PER_CODE: u64 = 1 << 14;

/// Code at an address from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JitPlace {
    pub(crate) from: TimestampNs,
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// Where its bytes stand in the file.
    pub(crate) offset: u64,
}

/// All places, in the order of the file, which is that of time.
#[derive(Debug, Default)]
pub(crate) struct JitPlaces {
    all: Vec<JitPlace>,
    /// Per block, the places in it, in their order.
    blocks: FxHashMap<u64, Vec<u32>>,
    entries: u64,
}

impl JitPlaces {
    /// Adds one behind the others.
    pub(crate) fn push(&mut self, place: JitPlace) {
        let Some(last) = place.size.checked_sub(1) else { return };
        let Some(last) = place.start.checked_add(last) else { return };
        let Ok(number) = u32::try_from(self.all.len()) else { return };
        self.all.push(place);
        let (first, last) = (place.start >> BLOCK_SHIFT, last >> BLOCK_SHIFT);
        for block in first..=last.min(first + MAX_BLOCKS_PER_CODE) {
            self.blocks.entry(block).or_default().push(number);
            self.entries += 1;
        }
    }

    /// Numbers in all blocks, which take the memory: one place may be in many blocks.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Where in the file the instruction stands that was at `avma` at `time`: the code that was written there last
    /// before. Code that was written without a time counts from the start.
    pub(crate) fn locate(&self, avma: Avma, time: TimestampNs) -> Option<FileOffset> {
        let places = self.blocks.get(&(avma.0 >> BLOCK_SHIFT))?;
        places.iter().rev().map(|number| self.all[*number as usize]).find_map(|place| {
            let at = avma.0.checked_sub(place.start)?;
            let is_it = place.from <= time && at < place.size;
            is_it.then(|| FileOffset(place.offset.wrapping_add(at)))
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &JitPlace> {
        self.all.iter()
    }
}
