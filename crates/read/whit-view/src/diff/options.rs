//! How to compare.

use crate::hists::{Filters, listed};
use whit_types::OutsideText;

/// Divisor of the weights.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Per {
    /// All samples of the event: shares.
    #[default]
    Share,
    /// So many units of work in each recording before, and in each after.
    Units(f64, f64),
    /// Another event of the same recording.
    Event(String),
}

impl Per {
    /// As in JSON.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Per::Share => "share",
            Per::Units(..) => "units",
            Per::Event(_) => "event",
        }
    }
}

/// How to compare.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DiffOptions {
    /// Which functions and commands.
    pub filters: Filters,
    /// Divisor of the weights.
    pub per: Per,
}

/// True for a command whose samples the filters let pass.
pub fn is_of_commands(filters: &Filters, comm: &OutsideText) -> bool {
    listed(&filters.comms, comm)
}
