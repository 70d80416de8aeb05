//! Debug companions that are not at hand: whether and how they are fetched.

use crate::warning::NotFetched;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use whit_symbolize::Lack;
use whit_types::{BuildId, OutsideText};

/// A binary whose companion is not at hand.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// As warnings name it.
    pub name: OutsideText,
    /// Its share of the samples.
    pub share: f64,
    /// The parts that are not here.
    pub lack: Lack,
}

/// Brings companions to the place that the symbolizer looks into.
pub trait Fetch: fmt::Debug + Send + Sync {
    /// Brings those of these binaries, in this order. A result for each.
    fn fetch(&self, wanted: &[Wanted]) -> Vec<Result<(), NotFetched>>;

    /// Where the parts of a binary lie that were fetched.
    fn folder(&self, id: BuildId) -> PathBuf;
}

/// Whether companions are fetched.
#[derive(Clone, Debug, Default)]
pub enum Companions {
    /// No, and no warning names servers.
    #[default]
    Off,
    /// No, but a warning says where servers could help.
    Offer,
    /// Those of binaries with this share of the samples.
    Fetch {
        /// The way.
        by: Arc<dyn Fetch>,
        /// Between 0 and 1.
        least_share: f64,
        /// Those that tell inlined functions and lines, too.
        debug_info: bool,
    },
}

impl Companions {
    /// Has functions fetched, and neither inlined functions nor lines.
    pub fn leave_out_debug_info(&mut self) {
        if let Companions::Fetch { debug_info, .. } = self {
            *debug_info = false;
        }
    }
}
