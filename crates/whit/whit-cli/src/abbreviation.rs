//! Long options by any beginning of their names that no other option shares, as perf has them.
//!
//! clap can infer names too, but takes the first of several.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, Error, Parser};
use std::ffi::{OsStr, OsString};

/// Parses arguments, and writes abbreviated names in them out.
pub(crate) fn matches(
    command: &mut Command,
    args: &mut [OsString],
) -> Result<ArgMatches, clap::Error> {
    loop {
        let error = match command.try_get_matches_from_mut(&*args) {
            Err(error) if error.kind() == ErrorKind::UnknownArgument => error,
            done => return done,
        };
        let Some(unknown) = unknown_option(&error) else { return Err(error) };
        let Some((at, chosen)) = place_of(command, args, &unknown) else { return Err(error) };
        match whole(chosen, &args[at])? {
            Some(written) => args[at] = written,
            None => return Err(error),
        }
    }
}

/// The same for a program.
pub(crate) fn parse<P: Parser>(mut args: Vec<OsString>) -> Result<P, clap::Error> {
    let mut command = P::command();
    let mut found = matches(&mut command, &mut args)?;
    P::from_arg_matches_mut(&mut found).map_err(|error| error.format(&mut command))
}

/// An argument with the whole name of its option, if one option of `command` begins with its name.
///
/// # Errors
/// Several do.
pub(crate) fn whole(command: &Command, argument: &OsStr) -> Result<Option<OsString>, Error> {
    let Some((name, value)) = argument.to_str().and_then(name_and_value) else { return Ok(None) };
    let found: Vec<&str> =
        command.get_arguments().filter_map(|arg| beginning_with(arg, name)).collect();
    match found[..] {
        [] => Ok(None),
        [only] => Ok(Some(format!("--{only}{value}").into())),
        _ => Err(ambiguous(name, &found)),
    }
}

fn ambiguous(name: &str, found: &[&str]) -> Error {
    let mut list: Vec<_> = found.iter().map(|name| format!("--{name}")).collect();
    list.sort_unstable();
    let text = format!("--{name} may mean any of {}: write more of the name\n", list.join(", "));
    Error::raw(ErrorKind::UnknownArgument, text)
}

/// The name behind the dashes, and the rest from the equals sign on.
fn name_and_value(argument: &str) -> Option<(&str, &str)> {
    let text = argument.strip_prefix("--").filter(|text| !text.is_empty())?;
    Some(text.split_at(text.find('=').unwrap_or(text.len())))
}

/// The longer name of an option that begins with `name`.
fn beginning_with<'a>(arg: &'a Arg, name: &str) -> Option<&'a str> {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    let mut names = arg.get_long().into_iter().chain(aliases);
    names.find(|long| long.starts_with(name) && *long != name)
}

fn unknown_option(error: &Error) -> Option<String> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(text) if text.starts_with("--") => Some(text.clone()),
        _ => None,
    }
}

/// Where an unknown option is, and the subcommand that does not know it. The words before it name the subcommand.
fn place_of<'c>(
    command: &'c Command,
    args: &[OsString],
    unknown: &str,
) -> Option<(usize, &'c Command)> {
    let mut chosen = command;
    for (at, argument) in args.iter().enumerate().skip(1) {
        let text = argument.to_str().unwrap_or_default();
        let name = text.split('=').next().unwrap_or(text);
        if name == unknown {
            return Some((at, chosen));
        }
        chosen = chosen.find_subcommand(text).unwrap_or(chosen);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of a whit subcommand as written out, or the refusal.
    fn written(words: &str) -> Result<String, String> {
        let mut args: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let found = matches(&mut crate::command(), &mut args);
        let text = args.join(OsStr::new(" ")).into_string().unwrap();
        found.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_beginning_that_one_option_has_is_its_name() {
        let comms = Ok("whit report --comms ls".to_owned());
        assert_eq!(written("whit report --comm ls"), comms);
        assert_eq!(written("whit report --com=ls"), Ok("whit report --comms=ls".into()));
        let twice = written("whit script --comm ls --reltim");
        assert_eq!(twice, Ok("whit script --comms ls --reltime".into()));
        // A whole name is itself, also where longer names begin with it.
        assert_eq!(written("whit report --header"), Ok("whit report --header".into()));
    }

    #[test]
    fn a_beginning_that_several_have_is_refused_with_all_of_them() {
        let refusal = written("whit report --head").unwrap_err();
        assert!(refusal.contains("--head may mean any of --header, --header-only"), "{refusal}");
    }

    #[test]
    fn what_no_option_begins_with_is_refused_as_before() {
        let refusal = written("whit report --comx ls").unwrap_err();
        assert!(refusal.contains("unexpected argument '--comx'"), "{refusal}");
    }
}
