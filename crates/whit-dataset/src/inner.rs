//! The part of a dataset that its cursors share.

use crate::cache::Cache;
use crate::layout::Part;
use std::path::PathBuf;
use whit_tables::Cancel;

pub(crate) struct Inner {
    pub(crate) root: PathBuf,
    /// The recordings, by host, date and number.
    pub(crate) parts: Vec<Part>,
    pub(crate) cancel: Cancel,
    pub(crate) cache: Cache,
}
