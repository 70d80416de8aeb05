//! `whit doctor`.

use crate::output;
use anyhow::Result;
use std::io::Write;
use whit_doctor::{Machine, render_json, render_text};

/// Arguments of `whit doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `whit doctor`. Fails where nothing at all can be recorded.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8> {
    let report = whit_doctor::run(&mut Machine::this());
    let mut out = output::stdout();
    let text = if args.json { render_json(&report)? } else { render_text(&report) };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(u8::from(!report.can_record()))
}
