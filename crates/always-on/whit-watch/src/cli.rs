//! The command line of `whit watch`, made from the keys of the settings.

use crate::completion;
use crate::config::{ConfigError, Source};
use crate::described::{Key, Kind};
use crate::log::Log;
use crate::maker::Standard;
use crate::notify::Notify;
use crate::server;
use crate::service::{self, Service, ServiceError, Start};
use crate::settings::Settings;
use crate::shared::Shared;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use whit_host::memory_limit::MemoryLimit;
use whit_host::roots::Roots;
use whit_types::escape;

/// As of `whit`: the command line is at fault.
const WRONG_USAGE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  whit watch                              # files of 30 s in /var/lib/whit
  whit watch --folder ~/profiles --freq 99 --switches --keep-age 2d
  whit watch --config /etc/whit/watch.toml
  whit watch check --config watch.toml    # whether the file can be used
  whit watch status                       # its cost, its losses, its files
  kill -HUP PID                           # reads the file again";

/// The definition of the command line, for the program, its manual page and the reference.
pub fn command() -> Command {
    let keys = Settings::keys();
    let command = Command::new("watch")
        .bin_name("whit watch")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Record the whole machine all week, in windows that go to files")
        .after_help(EXAMPLES)
        .max_term_width(80)
        .disable_help_subcommand(true)
        .args_override_self(true)
        .arg(config())
        .arg(set())
        .args(keys.iter().map(option));
    let check = Command::new("check")
        .about("Check a configuration file, and print nothing where it can be used")
        .arg(config().required(true));
    let status = Command::new("status")
        .about("Show what the service costs now, what it dropped, and where data goes")
        .args(keys.iter().filter(|key| key.name == "socket").map(option))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print it as JSON"));
    command.subcommand(check).subcommand(status)
}

fn config() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Read settings from this TOML file; SIGHUP reads it again. Options go over it")
}

fn set() -> Arg {
    Arg::new("set")
        .long("set")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help("Set any key, those of tables with dots: push.main.url=http://collector:4318")
        .add(completion::keys())
}

fn option(key: &'static Key) -> Arg {
    let mut help = key.help.clone();
    if let Some(default) = &key.default {
        help.push_str(&format!(" [default: {default}]"));
    }
    let arg = Arg::new(key.name.as_str()).long(key.name.as_str()).value_name(key.value).help(help);
    // As of `whit record`.
    let arg = match key.name.as_str() {
        "freq" => arg.short('F').visible_alias("frequency"),
        "event" => arg.short('e'),
        _ => arg,
    };
    match key.kind {
        Kind::Flag => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name("BOOL"),
        _ => arg.allow_hyphen_values(true),
    }
}

/// The settings' source that the command line names.
fn source(matches: &ArgMatches) -> Result<Source, String> {
    let mut options = Vec::new();
    for key in Settings::keys() {
        if let Ok(Some(text)) = matches.try_get_one::<String>(&key.name) {
            options.push((key.name.clone(), text.clone()));
        }
    }
    for set in matches.get_many::<String>("set").into_iter().flatten() {
        let pair = set.split_once('=').ok_or_else(|| format!("--set {set}: write KEY=VALUE"))?;
        options.push((pair.0.to_owned(), pair.1.to_owned()));
    }
    let file = matches.get_one::<PathBuf>("config").cloned();
    Ok(Source { file, options, memory: None })
}

/// Runs the program with these arguments; gives its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    completion::complete(command);
    let matches = match command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => {
            if error.use_stderr() {
                let text = error.render().to_string();
                say(&wrong_usage(text.replacen("error: ", "", 1)).text);
            } else {
                let _ = error.print();
            }
            return ExitCode::from(error.exit_code().try_into().unwrap_or(WRONG_USAGE));
        }
    };
    let result = match matches.subcommand() {
        Some(("check", matches)) => check(matches),
        Some(("status", matches)) => status(matches),
        _ => {
            whit_sys::process_files::start_helper();
            run(&matches)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure.text);
            ExitCode::from(failure.code)
        }
    }
}

struct Failure {
    text: String,
    code: u8,
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure { text: format!("whit watch: {error}"), code: WRONG_USAGE }
    }
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Failure {
        match error {
            // The recorder's messages have their own beginnings.
            ServiceError::Recorder { messages, code } => Failure { text: messages, code },
            ServiceError::Part(text) => wrong_usage(text),
            other => Failure { text: format!("whit watch: {other}"), code: 1 },
        }
    }
}

fn wrong_usage(text: String) -> Failure {
    Failure { text: format!("whit watch: {text}"), code: WRONG_USAGE }
}

/// Names of others in it are escaped.
fn say(text: &str) {
    let mut err = io::stderr().lock();
    for line in text.lines() {
        let _ = writeln!(err, "{}", escape(line));
    }
}

fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let file = matches.get_one::<PathBuf>("config").cloned();
    Source { file, ..Source::default() }.load()?;
    Ok(())
}

fn status(matches: &ArgMatches) -> Result<(), Failure> {
    let socket =
        matches.get_one::<String>("socket").map_or_else(server::default_socket, PathBuf::from);
    let failed = |text: String| Failure { text: format!("whit watch: {text}"), code: 1 };
    let status = server::ask(&socket).map_err(failed)?;
    let text = match matches.get_flag("json") {
        true => format!("{}\n", serde_json::to_string(&status).unwrap_or_default()),
        false => status.text(),
    };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(error.to_string())),
        _ => Ok(()),
    }
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    whit_sys::memory::return_large_buffers();
    let memory = MemoryLimit::of_self(&Roots::default()).map(|limit| limit.bytes);
    let source = Source { memory, ..source(matches).map_err(wrong_usage)? };
    let settings = source.load()?;
    // Before any other thread begins.
    let signals = service::block_signals().map_err(ServiceError::from)?;
    let program = recorder().map_err(wrong_usage)?;
    let log = Log::new(Box::new(io::stderr()));
    let maker = Standard::new(&log);
    let notify = Notify::new(&|name| std::env::var_os(name));
    let shared = Arc::<Shared>::default();
    let metrics = settings.metrics_address().and_then(Result::ok);
    server::serve(&settings.socket(), metrics.as_ref(), &shared, &log).map_err(wrong_usage)?;
    let start = Start { program, source, settings, log, notify, shared, signals };
    Ok(Service::start(start, &maker)?.run()?)
}

/// `whit`, which lies beside this program.
fn recorder() -> Result<PathBuf, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let path: &Path = &own.with_file_name("whit");
    match path.is_file() {
        true => Ok(path.to_owned()),
        false => Err(format!("there is no {}: install both in one folder", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Source, String> {
        let matches =
            command().try_get_matches_from(line.split(' ')).map_err(|it| it.to_string())?;
        source(&matches)
    }

    #[test]
    fn the_definition_holds_together() {
        command().debug_assert();
    }

    #[test]
    fn options_become_keys() {
        let source = parsed(
            "watch --config a.toml --freq 49 --switches --set push.main.url=http://x --folder /f",
        )
        .unwrap();
        assert_eq!(source.file.as_deref(), Some(Path::new("a.toml")));
        let options: Vec<_> =
            source.options.iter().map(|(key, text)| format!("{key}={text}")).collect();
        assert_eq!(options, ["freq=49", "switches=true", "folder=/f", "push.main.url=http://x"]);
        assert_eq!(
            parsed("watch -F 99 -e cpu-clock --switches=false").unwrap().options[2].1,
            "false"
        );
        assert!(parsed("watch --set freq").unwrap_err().contains("KEY=VALUE"));
        assert!(parsed("watch --frq 1").unwrap_err().contains("--freq"));
    }
}
