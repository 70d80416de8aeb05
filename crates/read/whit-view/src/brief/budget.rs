//! The facts that fit a number of bytes.

use super::facts::Brief;
use super::{MAX_LIST, text};
use crate::json_strings;
use std::io::{self, Write};

/// Bytes that are written at most, where nobody says another number.
pub const DEFAULT_BUDGET: usize = 4096;
/// The least budget: one fact, and the number of those that are left out.
pub const MIN_BUDGET: usize = 160;

/// Not even the least form fits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{budget} bytes are too few: the least form takes {needed} (--brief={needed})")]
pub struct BudgetTooSmall {
    /// The wanted bytes.
    pub budget: usize,
    /// The bytes of the least form.
    pub needed: usize,
}

/// Below this level, text has no room for where and how a recording was made: the heaviest facts come first.
const WHOLE_LEVEL_MIN: usize = 3;
/// Entries of lists in text without those facts, at most.
const TERSE_LEVEL_MAX: usize = 6;

/// Levels of detail, the one with the most first.
fn levels(brief: &Brief) -> impl Iterator<Item = Brief> + '_ {
    (0..=MAX_LIST).rev().map(|level| brief.at_level(level))
}

/// Writes text of at most so many bytes, in whole lines.
///
/// # Errors
/// The budget is below [`MIN_BUDGET`], or the error of `out`.
pub fn write_text(
    out: &mut impl Write,
    brief: &Brief,
    budget: usize,
) -> io::Result<Result<(), BudgetTooSmall>> {
    if budget < MIN_BUDGET {
        return Ok(Err(BudgetTooSmall { budget, needed: MIN_BUDGET }));
    }
    let whole = levels(brief).take(MAX_LIST + 1 - WHOLE_LEVEL_MIN).map(|level| text::of(&level));
    let terse = (1..=TERSE_LEVEL_MAX).rev().map(|level| text::terse(&brief.terse(level)));
    let fits = whole.chain(terse).find(|text| text.len() <= budget);
    let text = fits.unwrap_or_else(|| text::least(brief, budget));
    out.write_all(text.as_bytes())?;
    Ok(Ok(()))
}

/// Writes a JSON document of at most so many bytes, the line end after it included.
///
/// # Errors
/// The least document has more bytes, or the error of `out`.
pub fn write_json(
    out: &mut impl Write,
    brief: &Brief,
    budget: usize,
) -> io::Result<Result<(), BudgetTooSmall>> {
    let mut document = Vec::new();
    for level in levels(brief) {
        document.clear();
        json_strings::write(&mut document, &level)?;
        document.push(b'\n');
        if document.len() <= budget {
            out.write_all(&document)?;
            return Ok(Ok(()));
        }
    }
    Ok(Err(BudgetTooSmall { budget, needed: document.len() }))
}

impl Brief {
    /// The heaviest facts alone: functions by self, waits and locks.
    pub(super) fn terse(&self, level: usize) -> Brief {
        let mut brief = self.at_level(level);
        brief.left_off += brief.totals.shorten(0)
            + brief.processes.shorten(0)
            + brief.threads.shorten(0)
            + brief.cgroups.shorten(0)
            + brief.other_events.shorten(0)
            + brief.missing.shorten(0)
            + brief.next.shorten(0);
        let path = brief.critical_path.take();
        brief.left_off += path.map_or(0, |path| path.pieces.first.len() as u64);
        let path = brief.hottest_path.take();
        brief.left_off += path.map_or(0, |path| path.innermost.len() as u64);
        brief
    }

    /// The facts with lists of at most so many entries; the less telling ones have fewer.
    pub(super) fn at_level(&self, level: usize) -> Brief {
        let mut brief = self.clone();
        let half = level.div_ceil(2);
        let mut left_off = brief.warnings.shorten(half);
        left_off += brief.functions.shorten(level);
        left_off += brief.totals.shorten(half);
        left_off += brief.processes.shorten(half);
        left_off += brief.threads.shorten(half);
        left_off += brief.cgroups.shorten(half);
        left_off += brief.other_events.shorten(half);
        left_off += brief.missing.shorten(level);
        left_off += brief.next.shorten(half);
        if let Some(path) = &mut brief.hottest_path {
            let gone = path.innermost.len().saturating_sub(level);
            path.innermost.drain(..gone);
            left_off += gone as u64;
        }
        if let Some(path) = &mut brief.critical_path {
            left_off += path.pieces.shorten(level);
        }
        left_off += brief.waits.as_mut().map_or(0, |waits| waits.shorten(level));
        brief.left_off = left_off;
        brief
    }
}
