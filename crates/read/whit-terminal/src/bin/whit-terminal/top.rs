//! `whit top`: `whit record` writes into a pipe, and the interface shows the last while of it.

mod cost;
mod live;
mod recorder;
mod snapshots;

use anyhow::Result;
use live::LiveRecording;
use whit_cli::top::TopArgs;
use whit_cli::{interface, sibling};
use whit_profile::model::Profile;
use whit_terminal::Begin;

/// Runs within the program of the interface.
pub(crate) fn run(args: &TopArgs) -> Result<u8> {
    args.check()?;
    sibling::find("whit")?;
    if args.stdio || args.json || args.iterations.is_some() || !interface::is_possible() {
        return snapshots::print(args);
    }
    let signals = live::block_signals()?;
    let mut recording = LiveRecording::start(args, Some(signals))?;
    let begin = Begin {
        may_have_waits: args.switches,
        ..Begin::report(Profile::default(), args.stdio_options(&args.hists()?))
    };
    let source = recording.source();
    let shown = whit_terminal::run_live(begin, &source, &mut recording);
    // The terminal is the user's again: messages can be seen.
    let code = recording.end();
    shown?;
    code
}
