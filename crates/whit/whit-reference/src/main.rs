//! Writes the manual pages or the reference of whit.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: whit-reference man DIRECTORY | whit-reference markdown";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let result = match words.iter().map(AsRef::as_ref).collect::<Vec<&str>>()[..] {
        ["man", _] => whit_reference::write_manual(Path::new(&arguments[1])).map(drop),
        ["markdown"] => io::stdout().write_all(whit_reference::markdown().as_bytes()),
        _ => {
            let _ = writeln!(io::stderr(), "{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "whit-reference: {error}");
            ExitCode::FAILURE
        }
    }
}
