//! `whit-serve`, the program that `whit serve` becomes.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    whit_cli::serve_main()
}
