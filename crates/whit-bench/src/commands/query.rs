//! `whit bench query`.

use anyhow::Result;
use clap::Args;
use whit_bench::peer::{HOTTEST, PeerKind};
use whit_bench::samples::recording;
use whit_types::ByteSize;

use super::heading;
use super::readers::ReaderArgs;

/// The size of the published table.
const SIZES: [ByteSize; 1] = [ByteSize(1 << 30)];

const EXAMPLES: &str = "\
Examples:
  whit bench query --sizes 50M --rounds 3
  whit bench query --samples 10000000            # without stack dumps
  whit bench query --file my.data";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct QueryArgs {
    #[command(flatten)]
    readers: ReaderArgs,

    /// Samples of recordings without stack dumps, separated by commas; they are
    /// written, not recorded
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..), help_heading = heading::COMPARED)]
    samples: Vec<u64>,
}

/// Runs the command; the exit code is 1 where whit itself did not get through.
pub(super) fn run(args: &QueryArgs) -> Result<i32> {
    let mut readers = args.readers.clone();
    for samples in &args.samples {
        let cache = readers.cache()?;
        readers.files.push(recording(&cache, *samples, &mut |text| eprintln!("{text}"))?);
    }
    readers.run(&SIZES, &PeerKind::QUERIES, HOTTEST)
}
