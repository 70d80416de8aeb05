//! `whit bench report`.

use anyhow::Result;
use clap::Args;
use whit_bench::peer::{HOTTEST, PeerKind};
use whit_types::ByteSize;

use super::heading;
use super::readers::ReaderArgs;

/// The sizes of the published table.
const SIZES: [ByteSize; 3] = [ByteSize(50 << 20), ByteSize(500 << 20), ByteSize(2 << 30)];

const EXAMPLES: &str = "\
Examples:
  whit bench report --sizes 50M --rounds 3
  whit bench report --file my.data --peers whit,perf-report";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// Peers to compare, separated by commas; on recordings of context switches also whit-switches and
    /// perf-sched-timehist; for a single function also whit-annotate and perf-annotate
    #[arg(long, value_name = "PEERS", value_delimiter = ',', default_values_t = PeerKind::READERS,
          help_heading = heading::COMPARED)]
    peers: Vec<PeerKind>,

    /// Function that whit-annotate and perf-annotate show
    #[arg(long, value_name = "NAME", default_value = HOTTEST, help_heading = heading::COMPARED)]
    function: String,

    #[command(flatten)]
    readers: ReaderArgs,
}

/// Runs the command; the exit code is 1 where whit itself did not get through.
pub(super) fn run(args: &ReportArgs) -> Result<i32> {
    args.readers.run(&SIZES, &args.peers, &args.function)
}
