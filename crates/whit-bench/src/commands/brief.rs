//! `whit bench brief`.

use anyhow::Result;
use clap::Args;
use whit_bench::peer::PeerKind;
use whit_types::ByteSize;

use super::readers::ReaderArgs;

/// The size of the recording where none is named.
const SIZES: [ByteSize; 1] = [ByteSize(50 << 20)];

const EXAMPLES: &str = "\
Examples:
  whit bench brief --sizes 50M --rounds 3
  whit bench brief --file my.data";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct BriefArgs {
    #[command(flatten)]
    readers: ReaderArgs,
}

/// Runs the command; the exit code is 1 where whit itself did not get through.
pub(super) fn run(args: &BriefArgs) -> Result<i32> {
    args.readers.run_with_sizes_of_output(&SIZES, &PeerKind::BRIEF)
}
