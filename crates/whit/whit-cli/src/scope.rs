//! Which options act on which answers and outputs of a subcommand that reads. An option that acts on none of the chosen
//! ones is refused.
//!
//! Each subcommand has one table: its answers, and for each option the answers and outputs on which it acts.

mod annotate;
mod diff;
mod locks;
mod report;
mod script;
mod switches;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Sets of answers, one bit each.
type Answers = u16;
/// Sets of outputs, one bit each.
type Outputs = u8;

const ANY: Answers = Answers::MAX;
const TEXT: Outputs = 1;
const JSON: Outputs = 2;
const PAGE: Outputs = 4;
const ALL: Outputs = TEXT | JSON | PAGE;

/// A report that a subcommand prints instead of its usual one.
struct Answer {
    bit: Answers,
    /// The options that choose it; none choose the usual answer.
    options: &'static [&'static str],
    /// Answers that can be printed with it.
    joins: Answers,
}

/// An option, by the name of its argument, and the answers with their outputs on which it acts.
struct Acts(&'static str, &'static [(Answers, Outputs)]);

/// Options that choose the time of requests.
const REQUESTS: [&str; 3] = ["request", "request_longer_than", "request_key"];

/// The table of a subcommand.
struct Scope {
    subcommand: &'static str,
    /// The usual one first.
    answers: &'static [Answer],
    options: &'static [&'static [Acts]],
    /// For options that people expect to act: what to do instead.
    hints: &'static [(&'static str, &'static str)],
}

const SCOPES: [&Scope; 6] = [
    &report::SCOPE,
    &switches::SCOPE,
    &locks::SCOPE,
    &script::SCOPE,
    &annotate::SCOPE,
    &diff::SCOPE,
];

/// Refuses options of a parsed command line that would be dropped.
///
/// # Errors
/// An option acts on none of the chosen answers and outputs, or two answers exclude each other.
pub(crate) fn check(command: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(()) };
    let scope = SCOPES.iter().find(|scope| scope.subcommand == name);
    let Some((scope, command)) = scope.zip(command.find_subcommand(name)) else { return Ok(()) };
    scope
        .check(&CommandLine { command, matches })
        .map_err(|refusal| clap::Error::raw(ErrorKind::ArgumentConflict, format!("{refusal}\n")))
}

/// The options of a subcommand, as the command line has them.
struct CommandLine<'a> {
    command: &'a Command,
    matches: &'a ArgMatches,
}

impl CommandLine<'_> {
    fn has(&self, option: &str) -> bool {
        let is_defined = self.command.get_arguments().any(|arg| arg.get_id() == option);
        is_defined && self.matches.value_source(option) == Some(ValueSource::CommandLine)
    }

    /// The name of an option as people write it.
    fn long(&self, option: &str) -> String {
        let argument = self.command.get_arguments().find(|arg| arg.get_id() == option);
        match argument.filter(|argument| argument.is_positional()) {
            Some(argument) => {
                let name = argument.get_value_names().and_then(<[_]>::first);
                name.map_or_else(|| option.to_owned(), ToString::to_string)
            }
            None => format!("--{}", argument.and_then(|arg| arg.get_long()).unwrap_or(option)),
        }
    }
}

impl Answer {
    /// The option that chose it.
    fn chosen_by(&self, line: &CommandLine<'_>) -> Option<&'static str> {
        self.options.iter().find(|option| line.has(option)).copied()
    }
}

impl Scope {
    fn check(&self, line: &CommandLine<'_>) -> Result<(), String> {
        let chosen: Vec<&Answer> =
            self.answers.iter().filter(|answer| answer.chosen_by(line).is_some()).collect();
        self.check_answers(line, &chosen)?;
        let mut answers = chosen.iter().fold(0, |answers, answer| answers | answer.bit);
        if answers == 0 {
            answers = self.answers[0].bit;
        }
        let outputs = Scope::outputs(line, !chosen.is_empty());
        let options = self.options.iter().copied().flatten();
        for Acts(option, on) in options.filter(|acts| line.has(acts.0)) {
            if !on.iter().any(|(on, of)| on & answers != 0 && of & outputs != 0) {
                return Err(self.refusal(line, option, on, answers));
            }
        }
        Ok(())
    }

    fn check_answers(&self, line: &CommandLine<'_>, chosen: &[&Answer]) -> Result<(), String> {
        for (at, one) in chosen.iter().enumerate() {
            let Some(other) = chosen[at + 1..].iter().find(|other| one.joins & other.bit == 0)
            else {
                continue;
            };
            let name = |answer: &Answer| line.long(answer.chosen_by(line).unwrap_or_default());
            return Err(format!(
                "{} and {} are two answers: ask for one at a time",
                name(one),
                name(other)
            ));
        }
        Ok(())
    }

    /// JSON and a page take the place of text. With a page, an answer that an option chooses is text as well.
    fn outputs(line: &CommandLine<'_>, asks_answer: bool) -> Outputs {
        let (json, page) = (line.has("json"), line.has("html"));
        let asks_text = asks_answer || line.has("stdio") || line.has("header");
        let mut outputs = if page { PAGE } else { 0 };
        if json {
            outputs |= JSON;
        } else if !page || asks_text {
            outputs |= TEXT;
        }
        outputs
    }

    /// Why an option is refused, and the way out.
    fn refusal(
        &self,
        line: &CommandLine<'_>,
        option: &str,
        on: &[(Answers, Outputs)],
        answers: Answers,
    ) -> String {
        let name = line.long(option);
        let outputs = on.iter().filter(|(on, _)| on & answers != 0).fold(0, |all, it| all | it.1);
        let hint = self.hints.iter().find(|(of, _)| *of == option);
        let hint = hint.map_or_else(String::new, |(_, hint)| format!(" ({hint})"));
        let rival = if outputs != 0 {
            // The answer has it in another output.
            ["json", "html"].into_iter().find(|output| line.has(output) && *output != option)
        } else {
            self.answers.iter().find_map(|answer| answer.chosen_by(line)).filter(|it| *it != option)
        };
        match rival {
            _ if on.is_empty() => format!("{name} has no effect on whit {}{hint}", self.subcommand),
            Some(rival) => format!(
                "{name} has no effect with {}: leave out one of the two{hint}",
                line.long(rival)
            ),
            None => format!(
                "{name} has an effect with {} alone{hint}",
                self.ways(line, on, outputs).join(" or ")
            ),
        }
    }

    /// The options with which an option acts.
    fn ways(
        &self,
        line: &CommandLine<'_>,
        on: &[(Answers, Outputs)],
        outputs: Outputs,
    ) -> Vec<String> {
        if outputs != 0 {
            let named = [(JSON, "--json"), (PAGE, "--html")];
            let of = named.into_iter().filter(|(output, _)| outputs & output != 0);
            return of.map(|(_, name)| name.to_owned()).collect();
        }
        let acts = |answer: &&Answer| on.iter().any(|(on, _)| on & answer.bit != 0);
        let answers = self.answers.iter().filter(acts);
        answers.flat_map(|answer| answer.options.first()).map(|it| line.long(it)).collect()
    }
}

/// Options on the frames of call chains.
const FRAMES: [&str; 3] = ["max_stack", "inline", "no_inline"];

/// [`FRAMES`] with the answers and outputs that have call chains.
const fn frames(on: &'static [(Answers, Outputs)]) -> [Acts; FRAMES.len()] {
    each(FRAMES, on)
}

/// Options that act alike.
const fn each<const N: usize>(
    options: [&'static str; N],
    on: &'static [(Answers, Outputs)],
) -> [Acts; N] {
    let mut acts = [const { Acts("", &[]) }; N];
    let mut at = 0;
    while at < N {
        acts[at] = Acts(options[at], on);
        at += 1;
    }
    acts
}

#[cfg(test)]
mod tests;
