//! `whit export --parquet`: adds recordings to a dataset. `whit-query` does it, since it has the tables and the dataset.

use super::ExportArgs;
use anyhow::Result;
use std::path::Path;
use whit_perfdata::reader::Recording;
use whit_profile::ReadOptions;

/// The first argument that makes `whit-query` export.
pub const EXPORT: &str = "export";

impl ExportArgs {
    /// The dataset that gets recordings.
    pub fn dataset(&self) -> Option<&Path> {
        self.parquet.as_deref()
    }

    /// Opens the recordings.
    pub fn recordings(&self) -> Result<Vec<Recording>> {
        self.input.open_all()
    }

    /// How one of them is read.
    pub fn options(&self, recording: &Recording) -> Result<ReadOptions> {
        self.load.symbols.options(recording)
    }
}
