//! The compared recorders, and their refusals.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde::Serialize;

use crate::installed::{Absent, apart, version};
use crate::peer::perf;
pub(crate) use crate::recording::RecorderKind;

/// Longest text of a refusal that is shown.
const REFUSAL_MAX_CHARS: usize = 200;
/// perf goes on without an option that it was built without, and says so with these words.
const IGNORED: &str = "is being ignored because";

/// A recorder that is installed here.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Recorder {
    pub(crate) kind: RecorderKind,
    pub(crate) program: PathBuf,
    /// First line of the program's `--version`.
    pub(crate) version: String,
    /// Its help for `record`: options that are not in it are refused without a run.
    #[serde(skip)]
    help: String,
}

impl Recorder {
    /// Looks for the program, asks for its version and its options.
    pub(crate) fn detect(
        kind: RecorderKind,
        whit: &Path,
    ) -> Result<Recorder, Absent<RecorderKind>> {
        let program = match kind {
            RecorderKind::Perf => perf(),
            RecorderKind::Whit => whit.to_owned(),
        };
        let version = version(&program).map_err(|reason| Absent { kind, reason })?;
        let help = match kind {
            RecorderKind::Perf => help(&program),
            // whit itself names the options that it does not know.
            RecorderKind::Whit => String::new(),
        };
        Ok(Recorder { kind, program, version, help })
    }

    /// All that are here, and why others are not.
    pub(crate) fn detect_all(whit: &Path) -> (Vec<Recorder>, Vec<Absent<RecorderKind>>) {
        apart(RecorderKind::value_variants().iter().map(|kind| Recorder::detect(*kind, whit)))
    }

    /// Why an installed perf is too old for these options; `None` where it is not.
    pub(crate) fn lacks(&self, options: &[String]) -> Option<String> {
        if self.help.is_empty() {
            return None;
        }
        let missing = options.iter().find_map(|option| {
            let name = long_name(option)?;
            let known = |word: &str| word.split(['=', '[', ',']).next() == Some(name);
            (!self.help.split_ascii_whitespace().any(known)).then_some(name)
        })?;
        Some(format!("{} is too old: it has no {missing}", self.version))
    }

    /// The words of a command that records `target` into `output`.
    pub(crate) fn arguments(
        &self,
        options: &[String],
        output: &Path,
        target: &[String],
    ) -> Vec<String> {
        let mut words = vec!["record".to_owned()];
        // As perf has it, unless the options name another.
        words.extend((self.kind == RecorderKind::Whit).then(|| "--engine=ring".to_owned()));
        words.extend(options.iter().cloned());
        words.extend(["-o".to_owned(), output.display().to_string(), "--".to_owned()]);
        words.extend(target.iter().cloned());
        words
    }

    /// That command. Nothing of the user's set-up plays in.
    pub(crate) fn command(&self, options: &[String], output: &Path, target: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments(options, output, target))
            .env("DEBUGINFOD_URLS", "")
            .env("PERF_CONFIG", "/dev/null");
        command
    }
}

/// The name under which perf's help has an option; `None` for options that every perf has.
fn long_name(option: &str) -> Option<&str> {
    if option.strip_prefix("-z").is_some_and(|level| level.bytes().all(|b| b.is_ascii_digit())) {
        return Some("--compression-level");
    }
    option.starts_with("--").then(|| option.split('=').next().unwrap_or(option))
}

/// perf prints its help to standard error, with an exit code of 129.
fn help(program: &Path) -> String {
    let output = Command::new(program)
        .args(["record", "-h"])
        .env("PERF_CONFIG", "/dev/null")
        .stdin(Stdio::null())
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
    )
}

/// Options that perf ignored.
pub(crate) fn ignored(stderr: &str) -> Option<String> {
    stderr.lines().find(|line| line.contains(IGNORED)).map(shorten)
}

/// The line that says why a recorder did not start its target.
pub(crate) fn refusal(stderr: &str) -> String {
    let is_noise = |line: &str| {
        line.is_empty()
            || line == "Error:"
            || line.starts_with("WARNING:")
            || line.starts_with("Warning:")
            || line.contains(": warning: ")
            || line.starts_with("info:")
    };
    let lines = || stderr.lines().map(str::trim);
    let line = lines().find(|line| !is_noise(line)).or_else(|| lines().next_back());
    line.map_or_else(|| "without a word".to_owned(), shorten)
}

fn shorten(line: &str) -> String {
    let line = line.trim();
    let line = ["whit: error: ", "whit: ", "Warning: "]
        .iter()
        .find_map(|prefix| line.strip_prefix(prefix))
        .unwrap_or(line);
    match line.char_indices().nth(REFUSAL_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(help: &str) -> Recorder {
        Recorder {
            kind: RecorderKind::Perf,
            program: "perf".into(),
            version: "perf version 4.19".into(),
            help: help.to_owned(),
        }
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn an_option_that_a_perf_does_not_have_is_named() {
        let old = recorder(" -F, --freq <n>\n   --aio[=<n>]  Use\n --switch-events  Record");
        assert_eq!(old.lacks(&strings(&["-F", "max", "--aio=4", "--switch-events"])), None);
        let lack = old.lacks(&strings(&["--aio", "--threads=cpu"])).unwrap();
        assert_eq!(lack, "perf version 4.19 is too old: it has no --threads");
        assert!(old.lacks(&strings(&["-z3"])).unwrap().contains("--compression-level"));
        let new = recorder("-z, --compression-level[=<n>]");
        assert_eq!(new.lacks(&strings(&["-z"])), None);
        assert_eq!(recorder("").lacks(&strings(&["--threads"])), None, "it says itself");
    }

    #[test]
    fn refusals_are_found_among_warnings() {
        let stderr = "WARNING: registers\ninfo: Using a maximum frequency rate of 100000 Hz\n\
            --affinity option is mutually exclusive to parallel streaming mode.\n";
        assert!(refusal(stderr).starts_with("--affinity option is"), "{}", refusal(stderr));
        assert_eq!(
            refusal("whit: warning: x\nwhit: unknown option '--aio'"),
            "unknown option '--aio'"
        );
        assert_eq!(refusal("Error:\nThe event is not supported."), "The event is not supported.");
        assert_eq!(refusal("WARNING: only this"), "WARNING: only this");
        assert_eq!(refusal(""), "without a word");
        let long = "é".repeat(1000);
        assert_eq!(refusal(&long).chars().count(), REFUSAL_MAX_CHARS + 1);
    }

    #[test]
    fn missing_features_of_perf_are_noticed() {
        let stderr = "  Warning: option `aio' is being ignored because no HAVE_AIO_SUPPORT=1\n";
        assert!(ignored(stderr).unwrap().starts_with("option `aio'"));
        assert_eq!(ignored("[ perf record: Woken up 1 times ]"), None);
    }

    #[test]
    fn the_command_records_the_target_into_the_output() {
        let words = recorder("").arguments(
            &strings(&["-F", "max"]),
            Path::new("OUT"),
            &strings(&["deep", "--threads", "2"]),
        );
        assert_eq!(words.join(" "), "record -F max -o OUT -- deep --threads 2");
    }

    #[test]
    fn a_recorder_that_is_not_there_is_absent() {
        let absent = Recorder::detect(RecorderKind::Whit, Path::new("/nonexistent/whit"));
        assert!(absent.unwrap_err().reason.contains("/nonexistent/whit"));
    }
}
