//! Options of perf that whit does not have, each with its replacement.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::marker::PhantomData;

mod annotate;
mod report;
mod script;
mod switches;

pub(crate) use annotate::OfAnnotate;
pub(crate) use report::OfReport;
pub(crate) use script::OfScript;
pub(crate) use switches::OfSwitches;

/// The options of perf that a subcommand leaves out.
pub(crate) trait Unsupported {
    /// Its name.
    const SUBCOMMAND: &'static str;
    /// Name, letter, and why.
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)];
}

/// Takes them and refuses them.
#[derive(Clone, Debug)]
pub(crate) struct UnsupportedArgs<T>(PhantomData<T>);

impl<T: Unsupported> clap::Args for UnsupportedArgs<T> {
    fn augment_args(command: Command) -> Command {
        T::OPTIONS.iter().fold(command, |command, (name, letter, _)| {
            // The value may stand behind a space: all that matters is that the option is named.
            let arg = Arg::new(*name).long(*name).num_args(0..=1);
            command.arg(arg.short(*letter).action(ArgAction::Append).hide(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<T: Unsupported> clap::FromArgMatches for UnsupportedArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match T::OPTIONS.iter().find(|(name, ..)| matches.contains_id(name)) {
            Some((name, _, why)) => Err(clap::Error::raw(
                ErrorKind::UnknownArgument,
                format!("{} has no --{name}: {why}\n", T::SUBCOMMAND),
            )),
            None => Ok(UnsupportedArgs(PhantomData)),
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
    use crate::record::OfRecord;
    use crate::stat::OfStat;
    use clap::{Args, FromArgMatches};

    fn each_is_refused<T: Unsupported>() {
        let parse = |argument: &str| {
            let command = UnsupportedArgs::<T>::augment_args(Command::new("whit"));
            let matches = command.try_get_matches_from(["whit", argument]).unwrap();
            let args = UnsupportedArgs::<T>::from_arg_matches(&matches);
            args.map(drop).map_err(|error| error.to_string())
        };
        for (name, _, why) in T::OPTIONS {
            for argument in [format!("--{name}"), format!("--{name}=x")] {
                let error = parse(&argument).unwrap_err();
                assert!(error.contains(why) && error.contains(name), "{error}");
                assert!(error.contains(T::SUBCOMMAND), "{error}");
            }
        }
    }

    #[test]
    fn each_is_refused_with_its_reason() {
        each_is_refused::<OfRecord>();
        each_is_refused::<OfStat>();
        each_is_refused::<OfReport>();
        each_is_refused::<OfAnnotate>();
        each_is_refused::<OfScript>();
        each_is_refused::<OfSwitches>();
    }
}
