//! Completion of the command line in shells: options, and keys of the configuration.

use crate::settings::Settings;
use clap::Command;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::ffi::OsStr;

/// By which the shell's script asks for candidates, as of `whit`.
const VARIABLE: &str = "COMPLETE";

/// Answers a shell that asks about this command, and ends the process then.
pub(crate) fn complete(command: fn() -> Command) {
    let root = move || Command::new("whit").subcommand(command());
    CompleteEnv::with_factory(root).var(VARIABLE).complete();
}

/// For `--set`.
pub(crate) fn keys() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let keys = Settings::keys().iter().filter(|key| key.name.starts_with(&*current));
        let candidate = |key: &crate::described::Key| {
            CompletionCandidate::new(format!("{}=", key.name)).help(Some(key.help.clone().into()))
        };
        keys.map(candidate).collect()
    })
}
