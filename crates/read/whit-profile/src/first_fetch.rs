//! Debug companions where names are wanted before all samples are read.

use crate::companions::Companions;
use crate::error::LoadError;
use crate::first_pass::prepare::Prepared;
use crate::load::second_pass;
use crate::options::LoadOptions;
use crate::progress::Progress;
use crate::second_pass::companion_fetch::fetch;
use crate::warning::Warning;
use whit_perfdata::reader::Recording;

/// Fetches the companions that the user wants: a reading of its own adds the samples up.
pub(crate) fn fetch_first(
    recording: &Recording,
    options: &LoadOptions,
    prepared: &Prepared,
    progress: &Progress<'_>,
) -> Result<Vec<Warning>, LoadError> {
    let Companions::Fetch { .. } = options.companions else { return Ok(Vec::new()) };
    let sums = second_pass(recording, options, prepared, progress)?.sums;
    Ok(fetch(prepared, options, &sums, &[]))
}
