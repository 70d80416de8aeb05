//! The lacks of a recording, with the commands that give the missing, and commands that tell more.

use super::MAX_SENTENCE;
use super::parts::{FunctionShare, Missing, Recorded};
use super::waits::WaitFacts;
use crate::hists::percent;
use whit_profile::model::{EventId, Profile, StopReason};
use whit_profile::switches::Switches;
use whit_profile::warning::Warning;
use whit_types::OutsideText;

/// Samples below which shares are vague.
const FEW_SAMPLES: u64 = 100;
/// A lack that touches a smaller share of the samples is left out. In percent.
const LACK_PERCENT_MIN: f64 = 5.0;

/// Options of `whit record` that decide how stacks are taken.
const OF_STACKS: [&str; 2] = ["--engine", "--call-graph"];

pub(super) fn missing(
    profile: &Profile,
    event: Option<EventId>,
    switches: Result<Option<&Switches>, ChosenByCpu>,
) -> Vec<Missing> {
    let again = |options: &str, replaced: &[&str]| recorded_with(profile, options, replaced);
    let mut found = Vec::new();
    let mut lacks = |lack: String, command: String| found.push(Missing { lack, command });
    let samples = event.map_or(0, |event| profile.events[event.index()].samples);
    // A higher rate takes no sample of threads that do not run.
    let no_thread_ran = profile.warnings.iter().any(|it| matches!(it, Warning::NoThreadRan { .. }));
    if samples < FEW_SAMPLES && !no_thread_ran {
        let lack = format!("{samples} samples are too few for exact shares");
        lacks(lack, again("-F 4999", &["-F", "--freq", "-c", "--count"]));
    }
    let losses = &profile.losses;
    if losses.lost_records > 0 || losses.lost_samples > 0 {
        lacks(
            "records were lost since rings were full".to_owned(),
            again("-m 16M", &["-m", "--mmap-pages"]),
        );
    }
    if let Some(event) = event {
        unnamed(profile, event, &mut lacks);
    }
    if !profile.recording.has_callchains && samples > 0 {
        lacks("call chains were not recorded".to_owned(), again("-g", &[]));
    }
    if let Some((lack, options)) = cut_stacks(profile).or_else(|| one_frame_chains(profile)) {
        lacks(lack, again(options, &OF_STACKS));
    }
    let wakeups = "--engine=bpf --wakeups";
    match switches {
        Err(ChosenByCpu) => {}
        Ok(None) => lacks("waits were not recorded".to_owned(), again(wakeups, &OF_STACKS)),
        Ok(Some(switches)) if !(switches.sources.stacks && switches.sources.wakeups) => {
            let what = match (switches.sources.stacks, switches.sources.wakeups) {
                (false, false) => "call stacks and wakers of waits were not recorded",
                (false, true) => "call stacks of waits were not recorded",
                _ => "wakers were not recorded",
            };
            lacks(what.to_owned(), again(wakeups, &OF_STACKS));
        }
        Ok(Some(_)) => {}
    }
    if profile.cgroups.is_empty() {
        lacks("cgroups were not recorded".to_owned(), again("--all-cgroups", &[]));
    }
    found
}

/// Samples are chosen by CPU, and waits belong to threads: nobody asked for waits.
#[derive(Clone, Copy, Debug)]
pub struct ChosenByCpu;

/// Samples in code without names.
fn unnamed(profile: &Profile, event: EventId, lacks: &mut impl FnMut(String, String)) {
    let (mut program, mut kernel) = (0u64, 0u64);
    for row in profile.rows.iter().filter(|row| row.event == event) {
        let Some(node) = profile.nodes.get(row.node.index()) else { continue };
        let frame = &profile.frames[node.frame.index()];
        if !profile.functions[frame.function.index()].known {
            let sum = if frame.kernel { &mut kernel } else { &mut program };
            *sum = sum.saturating_add(row.period);
        }
    }
    let total = profile.events[event.index()].period;
    let path = quoted([profile.recording.path.exact()].into_iter());
    let share = |part: u64| Some(percent(part, total)).filter(|share| *share >= LACK_PERCENT_MIN);
    if let Some(share) = share(program) {
        lacks(
            format!("{share:.1}% of the samples are in code of programs without names"),
            format!("whit report --brief -i {path} --symfs FOLDER-WITH-BINARIES"),
        );
    }
    if let Some(share) = share(kernel) {
        lacks(
            format!("{share:.1}% of the samples are in code of the kernel without names"),
            format!("sudo whit report --brief -i {path}"),
        );
    }
}

/// Stacks that could not be unwound to their end, and options that take them better.
fn cut_stacks(profile: &Profile) -> Option<(String, &'static str)> {
    let stops = &profile.stats.unwind_stops;
    let all = stops.iter().map(|stop| stop.1).fold(0, u64::saturating_add);
    let cut = stops.iter().filter(|stop| !stop.0.is_complete());
    let count = cut.clone().map(|stop| stop.1).fold(0, u64::saturating_add);
    let (reason, _) = cut.max_by_key(|stop| stop.1)?;
    let share = percent(count, all);
    let options = match reason {
        StopReason::StackDumpExhausted => "--call-graph dwarf,65528",
        _ => "-g --engine=bpf",
    };
    (share >= LACK_PERCENT_MIN)
        .then(|| (format!("{share:.1}% of the stacks are cut, most since {reason}"), options))
}

/// Call chains by frame pointers that end behind the first frame.
fn one_frame_chains(profile: &Profile) -> Option<(String, &'static str)> {
    let counts = profile.warnings.iter().find_map(|warning| match warning {
        Warning::OneFrameChains { chains, of_one_frame } => Some((*of_one_frame, *chains)),
        _ => None,
    });
    let share = counts.map(|(of_one_frame, chains)| percent(of_one_frame, chains))?;
    Some((format!("{share:.1}% of the user call chains have one frame"), "--engine=auto"))
}

/// The command that recorded, with more options and without those that these replace.
fn recorded_with(profile: &Profile, options: &str, replaced: &[&str]) -> String {
    let words: Vec<&str> = profile.recording.cmdline.iter().map(OutsideText::exact).collect();
    let Some(at) = words.iter().position(|word| *word == "record") else {
        return format!("whit record {options} -- COMMAND");
    };
    let rest = quoted(without(&words[at + 1..], replaced).into_iter());
    // A part of a command, or one with escaped characters, would be another command.
    let is_exact = rest.chars().count() <= MAX_SENTENCE && !rest.contains(whit_types::is_escaped);
    let rest = if is_exact { rest.as_str() } else { "-- COMMAND" };
    format!("whit record {options} {rest}").trim_end().to_owned()
}

/// The words without options of these names and their values. A command and its options stay whole.
fn without<'a>(words: &[&'a str], replaced: &[&str]) -> Vec<&'a str> {
    let mut left = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            left.push(word);
            left.extend(words);
            break;
        }
        let (name, has_value) = match word.split_once('=') {
            Some((name, _)) if name.starts_with("--") => (name, true),
            _ => (word, false),
        };
        if !replaced.contains(&name) {
            left.push(word);
        } else if !has_value {
            words.next();
        }
    }
    left
}

/// Words as a shell takes them, in one line.
pub(super) fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    let quote = |word: &str| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.map(quote).collect::<Vec<_>>().join(" ")
}

/// Commands that tell more of the heaviest facts: of waits first where threads mostly wait.
pub(super) fn next(
    recorded: &Recorded,
    hottest: Option<&FunctionShare>,
    has_path: bool,
    waits: Option<&WaitFacts>,
) -> Vec<String> {
    let path = quoted([recorded.path.as_str()].into_iter());
    let mut of_functions = Vec::new();
    if let Some(row) = hottest {
        let handle = &row.function.handle;
        if has_path {
            of_functions.push(format!("whit report -i {path} --callers {handle}"));
        }
        of_functions.push(format!("whit annotate -i {path} {handle}"));
    }
    let mut of_waits = Vec::new();
    if let Some(wait) = waits.and_then(|waits| waits.longest.first.first()) {
        of_waits.push(format!("whit switches -i {path} --wait {}", wait.handle));
        of_waits.push(format!("whit switches -i {path} --worst --tid {}", wait.thread.handle));
    }
    match waits.is_some_and(WaitFacts::come_first) {
        true => [of_waits, of_functions].concat(),
        false => [of_functions, of_waits].concat(),
    }
}

/// The command that shows the whole critical path.
pub(super) fn path(recorded: &Recorded, request: Option<&str>) -> String {
    let path = quoted([recorded.path.as_str()].into_iter());
    let request = request.map(|name| format!(" --request {}", quoted([name].into_iter())));
    format!("whit why -i {path}{}", request.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["a b", "it's", "-F", "", "$(rm)"];
        assert_eq!(quoted(words.into_iter()), r"'a b' 'it'\''s' -F '' '$(rm)'");
    }

    #[test]
    fn the_command_is_recorded_again_with_other_options() {
        let mut profile = Profile::default();
        let words =
            ["/usr/bin/perf", "record", "--call-graph", "dwarf", "--", "x", "--call-graph", "1"];
        profile.recording.cmdline = words.map(OutsideText::from).to_vec();
        assert_eq!(
            recorded_with(&profile, "--engine=bpf --wakeups", &OF_STACKS),
            "whit record --engine=bpf --wakeups -- x --call-graph 1"
        );
        for other in ["a\nb", &"x".repeat(MAX_SENTENCE + 1)] {
            profile.recording.cmdline = ["perf", "record", other].map(OutsideText::from).to_vec();
            assert_eq!(recorded_with(&profile, "-g", &[]), "whit record -g -- COMMAND");
        }
        profile.recording.cmdline.clear();
        assert_eq!(recorded_with(&profile, "-g", &[]), "whit record -g -- COMMAND");
    }
}
