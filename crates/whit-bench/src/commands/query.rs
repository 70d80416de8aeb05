//! `whit bench query`.

use anyhow::Result;
use clap::Args;
use whit_bench::peer::{HOTTEST, PeerKind};
use whit_types::ByteSize;

use super::readers::ReaderArgs;

/// The size of the published table.
const SIZES: [ByteSize; 1] = [ByteSize(1 << 30)];

const EXAMPLES: &str = "\
Examples:
  whit bench query --sizes 50M --rounds 3
  whit bench query --file my.data";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct QueryArgs {
    #[command(flatten)]
    readers: ReaderArgs,
}

/// Runs the command; the exit code is 1 where whit itself did not get through.
pub(super) fn run(args: &QueryArgs) -> Result<i32> {
    args.readers.run(&SIZES, &PeerKind::QUERIES, HOTTEST)
}
