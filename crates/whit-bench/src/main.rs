//! `whit-bench`, the program that `whit bench` starts: one file per comparison. Each parses
//! arguments, runs the comparison, and prints.

mod commands;

use std::process::ExitCode;

use anyhow::Error;
use clap::Parser;

const EXAMPLES: &str = "\
Examples:
  make -C bench/workloads                        # the programs to record
  whit bench report --sizes 50M --rounds 3       # reports, compared with perf
  whit bench record --quick                      # recorders
  whit bench pmi --markdown result.md            # simulated hardware

`whit bench COMPARISON --help` lists the options of a comparison.";

/// Compare whit with its peers, by interleaved runs on this machine or on simulated hardware
#[derive(Parser)]
#[command(
    name = "whit-bench", bin_name = "whit bench", version, after_help = EXAMPLES,
    subcommand_value_name = "COMPARISON", subcommand_help_heading = "Comparisons",
    max_term_width = 80
)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, CommandFactory};
    use whit_testing::prose::assert_prose;

    /// The program's help, and that of each comparison.
    fn helps() -> Vec<(Command, String)> {
        let mut cli = Cli::command();
        cli.build();
        let text = cli.render_help().to_string();
        let comparisons = cli.get_subcommands().filter(|it| it.get_name() != "help").cloned();
        let mut helps: Vec<(Command, String)> = comparisons
            .map(|mut it| {
                let text = it.render_help().to_string();
                (it, text)
            })
            .collect();
        helps.push((cli, text));
        helps
    }

    #[test]
    fn help_fits_80_columns_and_is_plain_language() {
        let helps = helps();
        assert!(helps.len() > 10, "{}", helps.len());
        for (command, text) in helps {
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{}", command.get_name());
            assert_prose(command.get_name(), &text);
        }
    }

    #[test]
    fn options_of_comparisons_stand_under_headings() {
        for (command, text) in helps() {
            let own = command.get_arguments();
            let own = own.filter(|it| !["help", "version"].contains(&it.get_id().as_str()));
            let alone: Vec<_> = own.filter(|it| it.get_help_heading().is_none()).collect();
            assert!(alone.is_empty(), "{}: {alone:?}", command.get_name());
            assert!(text.contains("\nExample"), "{text}");
        }
    }

    #[test]
    fn examples_are_valid_command_lines() {
        let mut seen = 0;
        for (command, text) in helps() {
            let behind = text.split("\nExample").nth(1).unwrap();
            let lines = behind.lines().filter_map(|line| line.split(" # ").next());
            for line in lines.filter_map(|line| line.trim().strip_prefix("whit bench")) {
                let words = std::iter::once("whit-bench").chain(line.split_whitespace());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{}: {line}: {error}", command.get_name());
                }
                seen += 1;
            }
        }
        assert!(seen > 15, "{seen}");
    }
}
