//! Short options with their value attached, as in `-F99`, `-agF99` and `-z3`, and options that do
//! not exist.
//!
//! Where a subcommand ends in a command of the user's, clap takes an argument with a hyphen for the
//! start of that command unless every letter of it is an option. Such an argument is taken apart
//! here, and the command line parsed again.

use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;

/// Takes the argument apart that stands where the user's command should. `None` where it is no
/// option of `subcommand` with a value attached.
pub(crate) fn take_apart(subcommand: &Command, argument: &str) -> Option<Vec<OsString>> {
    let letters = argument.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    for (at, letter) in letters.char_indices() {
        let option = subcommand.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
        if !takes_value(option) {
            continue;
        }
        let value = &letters[at + letter.len_utf8()..];
        if value.is_empty() {
            return None;
        }
        let flags = (at > 0).then(|| OsString::from(format!("-{}", &letters[..at])));
        let mut parts: Vec<OsString> = flags.into_iter().collect();
        match option.get_long() {
            Some(long) => parts.push(format!("--{long}={}", value.trim_start_matches('=')).into()),
            None => parts.extend([format!("-{letter}").into(), OsString::from(value)]),
        }
        return Some(parts);
    }
    None
}

/// The text behind the name of an option that a subcommand does not have: the likely spelling, or
/// where to look.
pub(crate) fn similar(subcommand: &str, argument: &str) -> String {
    let help = format!(" (see whit {subcommand} --help)");
    let Some(written) = argument.strip_prefix("--") else { return help };
    let written = written.split('=').next().unwrap_or(written);
    let cli = <crate::Cli as clap::CommandFactory>::command();
    let Some(command) = cli.find_subcommand(subcommand) else { return help };
    let known = command.get_arguments().filter_map(Arg::get_long_and_visible_aliases).flatten();
    match whit_events::nearest(written, known) {
        Some(name) => format!(": did you mean '--{name}'?{help}"),
        None => help,
    }
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn apart(argument: &str) -> Option<Vec<String>> {
        #[derive(Parser)]
        struct Options {
            #[arg(short)]
            a: bool,
            #[arg(short, action = ArgAction::Count)]
            verbose: u8,
            #[arg(short = 'F', long)]
            freq: Option<u32>,
            #[arg(short)]
            x: Option<u32>,
            #[arg(short = 'z', long, num_args = 0..=1, require_equals = true)]
            level: Option<u32>,
            #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
            command: Vec<OsString>,
        }
        let command = <Options as clap::CommandFactory>::command();
        let parts = take_apart(&command, argument)?;
        Some(parts.into_iter().map(|part| part.into_string().unwrap()).collect())
    }

    #[test]
    fn values_are_separated_from_their_options() {
        assert_eq!(apart("-F99").unwrap(), ["--freq=99"]);
        assert_eq!(apart("-x99").unwrap(), ["-x", "99"]);
        assert_eq!(apart("-z3").unwrap(), ["--level=3"]);
        assert_eq!(apart("-z=3").unwrap(), ["--level=3"]);
        assert_eq!(apart("-avF99").unwrap(), ["-av", "--freq=99"]);
    }

    #[test]
    fn the_option_that_was_meant_is_named() {
        let text = similar("record", "--aoi=4");
        assert_eq!(text, ": did you mean '--aio'? (see whit record --help)");
        let text = similar("record", "--freqency");
        assert_eq!(text, ": did you mean '--frequency'? (see whit record --help)");
        assert_eq!(similar("record", "--zebrafish"), " (see whit record --help)");
        assert_eq!(similar("record", "-W"), " (see whit record --help)");
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for argument in ["-q", "-aq9", "--freq9", "-", "ls", "-av", "-F", "-é"] {
            assert_eq!(apart(argument), None, "{argument}");
        }
    }
}
