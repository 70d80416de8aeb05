//! Pictures as text or JSON, one after the other.

use super::live::LiveRecording;
use anyhow::Result;
use std::io::Write;
use whit_cli::output;
use whit_cli::top::TopArgs;
use whit_profile::model::Profile;
use whit_terminal::Status;
use whit_view::stdio::write_report;

/// Prints pictures until their number is reached, or the recording ends.
pub(super) fn print(args: &TopArgs) -> Result<u8> {
    let mut recording = LiveRecording::start(args, None)?;
    if let Some(code) = recording.wait_for_begin()? {
        return Ok(code);
    }
    let mut left = args.iterations.unwrap_or(u64::MAX);
    while left > 0
        && let Some(picture) = recording.next_picture()
    {
        let (profile, status) = picture?;
        print_one(args, &profile, &status)?;
        left -= 1;
    }
    recording.end()
}

fn print_one(args: &TopArgs, profile: &Profile, status: &Status) -> Result<()> {
    let hists = args.hists()?;
    let mut out = output::stdout();
    if args.json {
        whit_view::json::write_json(&mut out, profile, &hists)?;
        writeln!(out)?;
    } else {
        writeln!(out, "# whit top: last {}, {}", status.covers, status.cost)?;
        write_report(&mut out, profile, &args.text_options(&hists))?;
    }
    Ok(out.flush()?)
}
