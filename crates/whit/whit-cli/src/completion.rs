//! Completion of the command line in shells, with names from this machine: events, cgroups, and the contents of
//! a recording.

use crate::output;
use crate::perf_cache;
use crate::sibling;
use crate::watch;
use anyhow::{Result, bail};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use whit_doctor::{Machine, Selection, Trial, list};
use whit_events::{PmuTable, SYSFS_PMUS, TracefsIds};
use whit_host::cgroup::Hierarchy;
use whit_host::roots::Roots;
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::{ReadOptions, Reading, Samples};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_view::hists::{Field, SortKey};

/// By which the shell's script asks for candidates.
const VARIABLE: &str = "COMPLETE";
/// A larger recording takes too long to load while somebody waits at a prompt.
const MAX_RECORDING_BYTES: u64 = 128 << 20;
/// Shells show no more than some screens.
const MAX_CANDIDATES: usize = 2000;

/// A shell that can be completed in.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Arguments of `whit completions`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  bash   source <(whit completions bash)          # in ~/.bashrc
  zsh    source <(whit completions zsh)           # in ~/.zshrc, after compinit
  fish   whit completions fish | source           # in ~/.config/fish/config.fish";

/// Prints the script of a shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<u8> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut out = output::stdout();
    shell.write_registration(VARIABLE, "whit", "whit", "whit", &mut out)?;
    out.flush()?;
    Ok(0)
}

/// Whether a shell asks for candidates.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The words of the command line stand behind these, as the scripts of shells ask.
const WORDS: &str = "--";

/// The program that knows the options of a command, where it is not this one.
fn other_program(arguments: impl Iterator<Item = OsString>) -> Option<&'static str> {
    let mut words = arguments.skip_while(|word| word != WORDS).skip(1);
    (words.nth(1)? == "watch" && words.next().is_some()).then_some(watch::PROGRAM)
}

/// Answers the shell, and ends the process.
pub(crate) fn complete() {
    if let Some(program) = other_program(std::env::args_os()) {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        // Where it is not there, nothing is to be completed.
        let _ = sibling::run(program, &arguments, "");
    }
    CompleteEnv::with_factory(crate::command).var(VARIABLE).complete();
}

/// Completes the last one of several names with commas between them.
fn last_of_list(
    current: &OsStr,
    names: impl FnOnce(&str) -> Vec<(String, Option<String>)>,
) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let (before, last) = current.rfind(',').map_or(("", current), |at| current.split_at(at + 1));
    names(last)
        .into_iter()
        .filter(|(name, _)| name.starts_with(last))
        .take(MAX_CANDIDATES)
        .map(|(name, help)| {
            let help = help.map(|help| help.lines().next().unwrap_or_default().to_owned().into());
            CompletionCandidate::new(format!("{before}{name}")).help(help)
        })
        .collect()
}

/// For `-e`.
pub(crate) fn events() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        last_of_list(current, |last| {
            let Ok(table) = PmuTable::from_sysfs(SYSFS_PMUS.as_ref()) else { return Vec::new() };
            let selection = match last {
                "" => Selection::new(["hw", "sw", "cache"]),
                _ => Selection::new([format!("{last}*").as_str()]),
            };
            let mut ids = TracefsIds::system();
            let listing = list(&mut Machine::this(), &table, &mut ids, &selection, Trial::Nothing);
            let entry = |listed: whit_doctor::ListedEvent| {
                let help = Some(listed.entry.description).filter(|text| !text.is_empty());
                (listed.entry.name, help)
            };
            listing.events.into_iter().map(entry).collect()
        })
    })
}

/// For `-G` and `--for-each-cgroup`.
pub(crate) fn cgroups() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        last_of_list(current, |_| {
            let Ok(hierarchy) = Hierarchy::find(&Roots::default()) else { return Vec::new() };
            // Where the list is cut there are more candidates than anybody reads.
            let Ok(all) = hierarchy.list().all() else { return Vec::new() };
            let name = |path: String| path.trim_start_matches('/').to_owned();
            let names = all.into_iter().map(|cgroup| name(cgroup.path));
            names.filter(|name| !name.is_empty()).map(|name| (name, None)).collect()
        })
    })
}

/// For `-c`: names of commands that the recording has.
pub(crate) fn comms() -> ArgValueCompleter {
    of_recording(|profile| profile.comms.iter().map(|comm| comm.exact().to_owned()).collect())
}

/// For `-d`: binaries.
pub(crate) fn dsos() -> ArgValueCompleter {
    of_recording(|profile| {
        profile.dsos.iter().map(|dso| dso.short_name.exact().to_owned()).collect()
    })
}

/// For `-S`: functions.
pub(crate) fn functions() -> ArgValueCompleter {
    of_recording(|profile| {
        let known = profile.functions.iter().filter(|function| function.known);
        known.map(|function| function.name.exact().to_owned()).collect()
    })
}

/// For `-s` and `-F` of `whit report`.
pub(crate) fn sort_keys() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        last_of_list(current, |_| {
            let fields =
                Field::ALL_WEIGHTS.into_iter().chain(SortKey::ALL.iter().copied().map(Field::Key));
            fields.map(|field| (field.name().to_owned(), None)).collect()
        })
    })
}

fn of_recording(names: fn(&Profile) -> BTreeSet<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        last_of_list(current, |_| {
            // Nothing is said at a prompt: an error means that there is nothing to complete.
            let Ok(profile) = load(&input(std::env::args_os())) else { return Vec::new() };
            let listable = |name: &String| !name.is_empty() && !name.contains([',', '\n']);
            names(&profile).into_iter().filter(listable).map(|name| (name, None)).collect()
        })
    })
}

/// The recording that the command line names so far.
fn input(arguments: impl Iterator<Item = OsString>) -> PathBuf {
    let arguments: Vec<_> = arguments.collect();
    let after = |at: usize| arguments.get(at + 1).map(PathBuf::from);
    let named =
        arguments.iter().enumerate().find_map(|(at, argument)| match argument.to_str()? {
            "-i" | "--input" => after(at),
            argument => argument.strip_prefix("--input=").map(PathBuf::from),
        });
    named.unwrap_or_else(|| "perf.data".into())
}

fn load(path: &std::path::Path) -> Result<Profile> {
    let recording = Recording::open(path)?;
    let bytes: u64 = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    if bytes > MAX_RECORDING_BYTES {
        bail!("too large");
    }
    let mut symbols = SymbolizerConfig::new(DebugDirs::with_cache(perf_cache::directory()));
    symbols.inlines = false;
    let options = ReadOptions::new(1, symbols);
    Ok(Reading::open(&recording, &options).answer(Samples::default())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_list_is_completed() {
        let names = |_: &str| vec![("cycles".to_owned(), None), ("cache".to_owned(), None)];
        let candidates = |text: &str| -> Vec<String> {
            let all = last_of_list(OsStr::new(text), names);
            all.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(candidates(""), ["cycles", "cache"]);
        assert_eq!(candidates("cy"), ["cycles"]);
        assert_eq!(candidates("x,ca"), ["x,cache"]);
        assert_eq!(candidates("x,z"), [""; 0]);
    }

    #[test]
    fn words_behind_a_command_of_another_program_are_for_that() {
        let asked = |words: &[&str]| other_program(words.iter().map(OsString::from));
        assert_eq!(asked(&["whit", "--", "whit", "watch", "--fr"]), Some("whit-watch"));
        // The command itself is completed here.
        assert_eq!(asked(&["whit", "--", "whit", "watch"]), None);
        assert_eq!(asked(&["whit", "--", "whit", "top", "watch"]), None);
        assert_eq!(asked(&["whit"]), None);
    }

    #[test]
    fn the_recording_is_the_one_that_the_command_line_names() {
        let of = |words: &[&str]| input(words.iter().map(OsString::from));
        assert_eq!(of(&["whit", "report", "-i", "x", "-S"]), PathBuf::from("x"));
        assert_eq!(of(&["whit", "report", "--input=y"]), PathBuf::from("y"));
        assert_eq!(of(&["whit", "report", "-i"]), PathBuf::from("perf.data"));
    }
}
