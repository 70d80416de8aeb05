//! Options of `perf record` that whit does not have, each with what to do instead.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// Name, letter, and why.
const LEFT_OUT: [(&str, Option<char>, &str); 10] = [
    (
        "snapshot",
        Some('S'),
        "the AUX area (Intel PT, CoreSight) is not recorded; snapshots of samples are taken with --overwrite",
    ),
    ("aux-sample", None, "the AUX area (Intel PT, CoreSight) is not recorded"),
    (
        "switch-output-event",
        None,
        "let the program that sees the event send SIGUSR2, or 'snapshot' through --control",
    ),
    (
        "kcore",
        None,
        "whit looks kernel code up in /proc/kallsyms and in vmlinux files, and needs no copy of /proc/kcore",
    ),
    (
        "off-cpu",
        None,
        "record context switches instead: --switch-events, or -e sched:sched_switch with -g",
    ),
    ("buildid-all", None, "--buildid-mmap records the build id of every binary that is mapped"),
    ("clang-path", None, "BPF sources are no events here"),
    ("clang-opt", None, "BPF sources are no events here"),
    (
        "vmlinux",
        None,
        "BPF sources are no events here; 'whit report' finds debug information of the kernel by its build id",
    ),
    (
        "debuginfod",
        None,
        "nothing is copied while recording; 'whit report' looks for debug information",
    ),
];

/// Takes them and refuses them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOutArgs;

impl clap::Args for LeftOutArgs {
    fn augment_args(command: Command) -> Command {
        LEFT_OUT.into_iter().fold(command, |command, (name, letter, _)| {
            let arg = Arg::new(name).long(name).num_args(0..=1).require_equals(true);
            command.arg(arg.short(letter).action(ArgAction::Append).hide(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for LeftOutArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match LEFT_OUT.iter().find(|(name, ..)| matches.contains_id(name)) {
            Some((name, _, why)) => Err(clap::Error::raw(
                ErrorKind::UnknownArgument,
                format!("whit record has no --{name}: {why}\n"),
            )),
            None => Ok(LeftOutArgs),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    #[test]
    fn each_is_refused_with_its_reason() {
        let parse = |argument: &str| {
            let command = LeftOutArgs::augment_args(Command::new("record"));
            let matches = command.try_get_matches_from(["record", argument]).unwrap();
            LeftOutArgs::from_arg_matches(&matches).map(drop).map_err(|error| error.to_string())
        };
        for (name, _, why) in LEFT_OUT {
            for argument in [format!("--{name}"), format!("--{name}=x")] {
                let error = parse(&argument).unwrap_err();
                assert!(error.contains(why) && error.contains(name), "{error}");
            }
        }
    }
}
