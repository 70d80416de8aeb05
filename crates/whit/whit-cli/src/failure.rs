//! Failures of whit: the message and the exit code.
//!
//! | exit code | |
//! |---|---|
//! | 1 | it cannot be done here: no right, no such event, no such file, a full disk |
//! | 2 | wrong usage: the command line is at fault, whatever the machine |
//! | 3 | `whit diff --fail-above`: something became slower by more |
//! | 126 | the command to record or count cannot be executed |
//! | 127 | there is no such command |
//!
//! Else it is that of the recorded or counted command. 126 and 127 are those of shells, `env` and `timeout`.

use crate::{message, output, perf_commands, version};
use anyhow::Error;
use clap::error::{ContextKind, ErrorKind};
use std::fmt;
use std::io::Write;
use whit_capture::error::CaptureError;
use whit_stat::error::StatError;
use whit_sys::{Errno, WorkloadError};

const FAILED: u8 = 1;
/// The exit code of wrong usage.
pub const WRONG_USAGE: u8 = 2;
const NOT_EXECUTABLE: u8 = 126;
const NO_SUCH_COMMAND: u8 = 127;

/// clap's prefix of its errors.
const CLAPS_PREFIX: &str = "error: ";

/// An error that the command line is at fault for.
#[derive(Debug)]
struct WrongUsage(Error);

impl fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for WrongUsage {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.chain().nth(1)
    }
}

/// Marks an error as one of the command line. For `map_err`.
pub fn usage(error: impl Into<Error>) -> Error {
    WrongUsage(error.into()).into()
}

/// As `bail!`, for errors of the command line.
macro_rules! bail_usage {
    ($($message:tt)*) => {
        return Err($crate::failure::usage(anyhow::anyhow!($($message)*)))
    };
}
pub(crate) use bail_usage;

/// Says why whit fails; gives its exit code.
pub(crate) fn report(error: &Error) -> u8 {
    if let Some(error) = error.downcast_ref::<clap::Error>() {
        return of_command_line(error);
    }
    message::error(output::describe(error));
    exit_code(error)
}

/// The exit code for an error of clap. The help is a result and no error.
fn of_command_line(error: &clap::Error) -> u8 {
    use ErrorKind as K;
    let code = error.exit_code().try_into().unwrap_or(WRONG_USAGE);
    match error.kind() {
        K::DisplayHelp | K::DisplayVersion | K::DisplayHelpOnMissingArgumentOrSubcommand => {
            // Where its reader is gone, nobody misses it.
            let _ = error.print();
            if error.kind() == K::DisplayVersion && std::env::args_os().any(|it| it == "--version")
            {
                let _ = output::stdout().write_all(version::details().as_bytes());
            }
        }
        _ => {
            if let Some(way) = perf_commands::way(error) {
                message::error(way);
                return code;
            }
            let text = error.render().to_string();
            let text = text.strip_prefix(CLAPS_PREFIX).unwrap_or(&text);
            // Our own errors name the way out; below them clap shows the usage of the whole program.
            let is_ours =
                error.get(ContextKind::InvalidArg).is_none() && error.kind() == K::UnknownArgument;
            let first = text.split_once("\n\n").map_or(text, |(first, _)| first);
            message::error(if is_ours { first } else { text });
        }
    }
    code
}

fn exit_code(error: &Error) -> u8 {
    if error.downcast_ref::<WrongUsage>().is_some() {
        return WRONG_USAGE;
    }
    match (error.downcast_ref(), error.downcast_ref()) {
        (Some(CaptureError::Workload(error)), _) | (_, Some(StatError::Workload(error))) => {
            of_workload(error)
        }
        (Some(error), _) if error.is_wrong_usage() => WRONG_USAGE,
        (_, Some(error)) if error.is_wrong_usage() => WRONG_USAGE,
        _ => FAILED,
    }
}

fn of_workload(error: &WorkloadError) -> u8 {
    match error {
        WorkloadError::Exec { source: Errno::NOENT, .. } => NO_SUCH_COMMAND,
        WorkloadError::Exec { .. } => NOT_EXECUTABLE,
        WorkloadError::Empty | WorkloadError::NulByte { .. } => WRONG_USAGE,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};
    use whit_host::error::HostError;

    #[test]
    fn wrong_usage_keeps_its_causes_and_its_code_under_further_context() {
        let error = usage(anyhow!("no number").context("bad value"));
        assert_eq!(output::describe(&error), "bad value: no number");
        let error = Err::<(), _>(error).context("no report").unwrap_err();
        assert_eq!(output::describe(&error), "no report: bad value: no number");
        assert_eq!(exit_code(&error), WRONG_USAGE);
        assert_eq!(exit_code(&anyhow!("disk full")), FAILED);
    }

    #[test]
    fn commands_fail_as_in_a_shell() {
        let exec = |source| WorkloadError::Exec { command: "x".to_owned(), source };
        for (errno, code) in [(Errno::NOENT, 127), (Errno::ACCESS, 126), (Errno::NOEXEC, 126)] {
            assert_eq!(exit_code(&CaptureError::Workload(exec(errno)).into()), code);
            assert_eq!(exit_code(&StatError::Workload(exec(errno)).into()), code);
        }
    }

    #[test]
    fn libraries_say_whether_the_command_line_is_at_fault() {
        assert_eq!(exit_code(&CaptureError::NoEvents.into()), WRONG_USAGE);
        let no_target = || HostError::NothingToRecord;
        assert_eq!(exit_code(&CaptureError::Host(no_target()).into()), WRONG_USAGE);
        assert_eq!(exit_code(&StatError::Host(no_target()).into()), WRONG_USAGE);
        assert_eq!(exit_code(&StatError::CgroupNeedsCpus.into()), WRONG_USAGE);
        assert_eq!(exit_code(&CaptureError::TargetGone.into()), FAILED);
        assert_eq!(exit_code(&StatError::TargetGone.into()), FAILED);
    }
}
