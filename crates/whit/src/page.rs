//! Writing the page, for the subcommands that do.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use whit_profile::model::Profile;
use whit_profile::switches::Switches;
use whit_view::html::{HtmlOptions, write_html_with_switches};

/// Writes a profile, with its context switches where they were loaded, as one page.
pub(crate) fn write(
    profile: &Profile,
    switches: Option<&Switches>,
    options: &HtmlOptions,
    path: &Path,
) -> Result<()> {
    let write = || -> Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        write_html_with_switches(profile, switches, options, &mut out)?;
        Ok(out.flush()?)
    };
    write().with_context(|| format!("cannot write the page {}", path.display()))
}
