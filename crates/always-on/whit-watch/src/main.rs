//! `whit-watch`, the program that `whit watch` becomes.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    whit_watch::main(std::env::args_os())
}
