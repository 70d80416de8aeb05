//! `whit-bench`, the program that `whit bench` starts: one file per comparison. Each parses
//! arguments, runs the comparison, and prints.

mod commands;

use std::process::ExitCode;

use anyhow::Error;
use clap::Parser;

/// Compare whit with its peers
#[derive(Parser)]
#[command(name = "whit-bench", bin_name = "whit bench", version)]
struct Cli {
    #[command(flatten)]
    bench: commands::BenchArgs,
}

/// Exit code for wrong usage, as whit's.
const WRONG_USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.to_string();
            eprint!("whit: {}", text.strip_prefix("error: ").unwrap_or(&text));
            return ExitCode::from(WRONG_USAGE);
        }
        // Help and version.
        Err(error) => error.exit(),
    };
    match commands::run(&cli.bench) {
        Ok(code) => ExitCode::from((code & 0xff) as u8),
        Err(error) => {
            eprintln!("whit: {}", describe(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes, each said once: many errors already quote their cause.
fn describe(error: &Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text {
        text if text.is_empty() => cause,
        text if text.contains(&cause) => text,
        text => format!("{text}: {cause}"),
    })
}
