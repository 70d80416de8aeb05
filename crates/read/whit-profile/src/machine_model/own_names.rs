//! The names that a recording carries itself.

use crate::warning::Warning;
use std::sync::Arc;
use whit_perfdata::feature::Feature;
use whit_perfdata::names::{NamesDefect, unpack};
use whit_perfdata::reader::Recording;
use whit_symbolize::EmbeddedNames;

/// The names that a recording carries.
///
/// # Errors
/// They cannot be read.
pub fn own_names(recording: &Recording) -> Result<Option<Arc<EmbeddedNames>>, NamesDefect> {
    let section = recording.features.get(Feature::WHIT_NAMES).unwrap_or_default();
    if section.is_empty() {
        return Ok(None);
    }
    let names = EmbeddedNames::from_bytes(&unpack(section)?).ok_or(NamesDefect::Damaged)?;
    Ok(Some(Arc::new(names)))
}

/// The same for a load, which goes on without them.
pub(crate) fn read_own(recording: &Recording) -> (Option<Arc<EmbeddedNames>>, Option<Warning>) {
    match own_names(recording) {
        Ok(names) => (names, None),
        Err(defect) => (None, Some(Warning::OwnNames(defect))),
    }
}
