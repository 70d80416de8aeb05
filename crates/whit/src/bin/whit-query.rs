//! `whit-query`, the program that `whit query` starts.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    whit_cli::query_main()
}
