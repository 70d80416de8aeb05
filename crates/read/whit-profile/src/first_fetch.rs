//! Debug companions where names are wanted before all samples are read.

use crate::companions::Companions;
use crate::error::LoadError;
use crate::first_pass::prepare::Prepared;
use crate::progress::Progress;
use crate::reading::Reading;
use crate::samples::Samples;
use crate::samples_pass::second_pass;
use crate::second_pass::companion_fetch::fetch;
use crate::warning::Warning;

/// Fetches the companions that the user wants: a reading of its own adds the samples up.
pub(crate) fn fetch_first(
    reading: Reading<'_>,
    question: &Samples,
    prepared: &Prepared,
    progress: &Progress<'_>,
) -> Result<Vec<Warning>, LoadError> {
    let companions = &reading.options.names.companions;
    let Companions::Fetch { .. } = companions else { return Ok(Vec::new()) };
    let sums = second_pass(reading, question, prepared, progress)?.sums;
    Ok(fetch(prepared, companions, &sums, &[]))
}
