//! `whit-terminal`, the program that `whit report` and `whit switches` become on a terminal, and `whit top` everywhere.
#![forbid(unsafe_code)]

mod source;
mod top;

use anyhow::Result;
use source::RecordingSource;
use std::process::ExitCode;
use std::sync::Arc;
use whit_cli::interface::FirstView;
use whit_cli::program::{Interactive, exit_code, interactive};
use whit_profile::model::Profile;
use whit_terminal::{Begin, View, Waits};

fn main() -> ExitCode {
    exit_code(run())
}

fn run() -> Result<u8> {
    match interactive()? {
        Interactive::Report(args) => {
            show(args.first_view()?, View::Table, |profile| args.change(profile))
        }
        Interactive::Switches(args) => show(args.first_view()?, View::Waits, |_| ()),
        Interactive::Top(args) => top::run(&args),
    }
}

/// Shows the interface; `change` is what the options of rows change in a profile that is loaded later.
fn show(first: FirstView, view: View, change: impl Fn(&mut Profile) + Sync) -> Result<u8> {
    let FirstView { recordings, options, samples, profile, switches, may_have_waits, text } = first;
    let source = RecordingSource::new(&recordings, options, samples).changing(change);
    let mut begin = Begin { may_have_waits, view, ..Begin::report(profile, text) };
    let profile = Arc::clone(&begin.profile);
    begin.waits = switches.map(|switches| Waits { profile, switches });
    whit_terminal::run(begin, &source)?;
    Ok(0)
}
