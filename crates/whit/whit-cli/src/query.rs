//! `whit query`, which starts `whit-query`: a program of its own, so that the recorder carries no SQL engine.

use crate::heading;
use crate::input::InputArgs;
use crate::sibling;
use crate::symbol_args::SymbolArgs;
use anyhow::Result;
use std::path::PathBuf;
use whit_perfdata::reader::Recording;
use whit_profile::ReadOptions;
use whit_types::ByteSize;

/// The program in the folder of this one.
const PROGRAM: &str = "whit-query";

const EXAMPLES: &str = "\
Examples:
  whit query -c 'SELECT * FROM top_functions ORDER BY self_weight DESC LIMIT 9'
  whit query -i one.data -i two.data -f shares.sql --csv
  whit query --dataset lake -f fleet.sql
  whit query                        # a shell; .tables lists the tables";

/// Arguments of `whit query`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct QueryArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Read this dataset of `whit export --parquet`
    #[arg(long, value_name = "FOLDER", conflicts_with = "input")]
    pub dataset: Option<PathBuf>,
    /// Run these statements; without -c and -f they come from a shell, or from standard input
    #[arg(short = 'c', long, value_name = "SQL", conflicts_with = "file")]
    pub command: Option<String>,
    /// Run the statements of this file
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print rows as CSV
    #[arg(long, conflicts_with = "json", help_heading = heading::OUTPUT)]
    pub csv: bool,
    /// Print rows as JSON
    #[arg(long, help_heading = heading::OUTPUT)]
    pub json: bool,
    /// Limit the memory of queries; sorts write to temporary files
    #[arg(long, value_name = "SIZE", default_value = "256M", help_heading = heading::OUTPUT)]
    pub memory: ByteSize,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// Becomes the program, with the options that were looked at here.
pub(crate) fn start(_: &QueryArgs) -> Result<u8> {
    let arguments: Vec<_> = std::env::args_os().skip(2).collect();
    sibling::run(PROGRAM, &arguments, sibling::INSTALL)
}

/// Becomes the program, which reads the name of the subcommand, too.
pub(crate) fn start_with_subcommand() -> Result<u8> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    sibling::run(PROGRAM, &arguments, sibling::INSTALL)
}

impl QueryArgs {
    /// Opens the recordings, and standard input as one only where it has no statements.
    pub fn recordings(&self, stdin_is_free: bool) -> Result<Vec<(Recording, ReadOptions)>> {
        let recordings = match stdin_is_free {
            true => self.input.open_all()?,
            false => self.input.open_all_files()?,
        };
        let with_options = recordings.into_iter().map(|recording| {
            let options = self.symbols.options(&recording)?;
            Ok((recording, options))
        });
        with_options.collect()
    }
}
