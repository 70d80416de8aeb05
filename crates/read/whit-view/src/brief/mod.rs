//! `whit report --brief`: the most telling facts of a recording, within a number of bytes.
//!
//! All facts are collected once, each list up to [`MAX_LIST`]. Levels of detail then shorten the lists; the highest
//! level that fits the budget is written. Names of more than 100 characters have `…` in their middle: a
//! handle stands for the whole name.

mod advice;
mod budget;
mod critical_path;
mod facts;
mod headline;
mod parts;
mod path;
mod shares;
mod text;
mod waits;

pub use advice::ChosenByCpu;
pub use budget::{BudgetTooSmall, DEFAULT_BUDGET, MIN_BUDGET, write_json, write_text};
pub use facts::Brief;
pub use headline::{CostlyWait, Headline, HotFunction};
pub(crate) use parts::Function;

#[cfg(test)]
mod tests;

use whit_types::OutsideText;

/// Entries of a list of facts.
pub const MAX_LIST: usize = 20;
/// Waits among which the longest with a certain end are looked for.
pub const MAX_WAITS: usize = 500;
/// Characters of a name.
const MAX_NAME: usize = 100;
/// Characters of a warning, or of a command.
const MAX_SENTENCE: usize = 320;
/// Version of the JSON form.
const VERSION: u32 = 1;

/// The text without its middle, where it has too many characters.
fn shortened(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let (head, tail) = (max - 1 - max / 4, max / 4);
    let start = text.chars().take(head);
    start.chain(['…']).chain(text.chars().skip(count - tail)).collect()
}

fn name_of(text: &OutsideText) -> String {
    shortened(text.exact(), MAX_NAME)
}
