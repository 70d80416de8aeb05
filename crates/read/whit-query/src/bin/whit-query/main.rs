//! `whit-query`, the program that `whit query`, `whit export --parquet` and `whit diff --dataset` become.
#![forbid(unsafe_code)]

mod defect;
mod diff;
mod export;
mod statements;

use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;
use whit_cli::diff::dataset::DIFF;
use whit_cli::export::parquet::EXPORT;
use whit_cli::program::{exit_code, parse};

fn main() -> ExitCode {
    defect::hush_caught_panics();
    exit_code(run())
}

fn run() -> Result<u8> {
    if let Some(arguments) = arguments_behind(EXPORT) {
        return parse::<export::Program>(arguments)?.run();
    }
    if let Some(arguments) = arguments_behind(DIFF) {
        return parse::<diff::Program>(arguments)?.run();
    }
    parse::<statements::Program>(std::env::args_os().collect())?.run()
}

/// The command line without its first word, where that is this one: it chooses what the program does.
fn arguments_behind(word: &str) -> Option<Vec<OsString>> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    (arguments.get(1)? == word).then(|| {
        arguments.remove(1);
        arguments
    })
}
