//! The part of a dataset that its cursors share.

use crate::cache::Cache;
use crate::layout::Part;
use std::collections::VecDeque;
use std::path::PathBuf;
use whit_tables::{Cancel, Wanted};

pub(crate) struct Inner {
    pub(crate) root: PathBuf,
    /// The recordings, by host, date and number.
    pub(crate) parts: Vec<Part>,
    pub(crate) cancel: Cancel,
    pub(crate) cache: Cache,
}

impl Inner {
    /// The recordings that may have wanted rows, by their places.
    pub(crate) fn wanted_parts(&self, wanted: &Wanted) -> VecDeque<usize> {
        let is_wanted = |part: &Part| {
            let (host, date) = (&part.place.host, &part.place.date);
            wanted.has_recording(part.id)
                && wanted.host.as_ref().is_none_or(|wanted| host.as_ref() == Some(wanted))
                && wanted.from_date.as_ref().is_none_or(|from| date >= from)
                && wanted.to_date.as_ref().is_none_or(|to| date <= to)
        };
        let parts = self.parts.iter().enumerate().filter(|(_, part)| is_wanted(part));
        parts.map(|(place, _)| place).collect()
    }
}
