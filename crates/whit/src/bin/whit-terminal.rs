//! `whit-terminal`, the program that `whit report`, `whit switches` and `whit top` become on a terminal.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    whit_cli::terminal_main()
}
