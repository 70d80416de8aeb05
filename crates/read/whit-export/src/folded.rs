//! Folded stacks: a line for each command and call chain, with the sum of its periods.

use crate::content::Content;
use std::io::{self, Write};
use whit_view::folded::{FoldedOptions, write_folded};

/// Writes the stacks of each event that has samples, one event after the other.
pub(crate) fn write(content: &Content<'_>, mut out: &mut dyn Write) -> io::Result<()> {
    for event in content.sampled_events() {
        write_folded(&mut out, content.profile, event, &FoldedOptions::default())?;
    }
    Ok(())
}
