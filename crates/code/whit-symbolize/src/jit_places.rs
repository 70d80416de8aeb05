//! Where code of a JIT compiler was at which time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustc_hash::FxHashMap;
use whit_types::{Avma, FileOffset, TimestampNs};

use crate::reason::Reason;

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

/// Why a jitdump file does not say which code was at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitMiss {
    /// It never has code there.
    NoCode,
    /// It has code there from a later time on.
    Later,
    /// It has different code there at different times, and the time is not known.
    TimeUnknown,
    /// The same; and its times are those of a counter of the CPU.
    CpuCounter,
}

/// The reasons of a file's misses.
#[derive(Debug, Default)]
pub struct JitMisses([AtomicBool; 3]);

impl JitMisses {
    /// Notes one.
    pub fn note(&self, miss: JitMiss) {
        let [later, unknown, counter] = &self.0;
        let noted = match miss {
            JitMiss::NoCode => return,
            JitMiss::Later => later,
            JitMiss::TimeUnknown => unknown,
            JitMiss::CpuCounter => counter,
        };
        noted.store(true, Ordering::Relaxed);
    }

    /// Why code has no name, where its time is the cause.
    pub fn reason(&self, path: &Arc<Path>) -> Option<Reason> {
        let path = path.clone();
        let [later, unknown, counter] = self.0.each_ref().map(|it| it.load(Ordering::Relaxed));
        match (counter, unknown, later) {
            (true, ..) => Some(Reason::JitClockIsCpus { path }),
            (_, true, _) => Some(Reason::JitClockUnknown { path }),
            (_, _, true) => Some(Reason::JitCodeLater { path }),
            _ => None,
        }
    }
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
    /// before. Code that was written without a time counts from the start. Where the time is not known, the code that
    /// was there at all times.
    pub(crate) fn locate(
        &self,
        avma: Avma,
        time: Option<TimestampNs>,
    ) -> Result<FileOffset, JitMiss> {
        let places = self.blocks.get(&(avma.0 >> BLOCK_SHIFT)).map_or(&[][..], Vec::as_slice);
        let mut covering = places.iter().rev().filter_map(|number| {
            let place = self.all[*number as usize];
            let at = avma.0.checked_sub(place.start).filter(|at| *at < place.size)?;
            Some((place.from, FileOffset(place.offset.wrapping_add(at))))
        });
        let Some(time) = time else {
            let (_, first) = covering.next().ok_or(JitMiss::NoCode)?;
            let is_alone = covering.all(|(_, other)| other == first);
            return if is_alone { Ok(first) } else { Err(JitMiss::TimeUnknown) };
        };
        let mut miss = JitMiss::NoCode;
        for (from, offset) in covering {
            if from <= time {
                return Ok(offset);
            }
            miss = JitMiss::Later;
        }
        Err(miss)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &JitPlace> {
        self.all.iter()
    }
}
