//! Which of `-p`, `-t`, `-C`, `-a` and the command says whom to record.

use super::RecordArgs;
use anyhow::{Context, Result};
use whit_capture::cpus;
use whit_capture::target::Target;

/// A user by number or name.
fn uid(user: &str) -> Result<u32> {
    if let Ok(uid) = user.parse() {
        return Ok(uid);
    }
    let known =
        whit_sys::users::uid_of(user).with_context(|| format!("cannot look up user '{user}'"))?;
    known.with_context(|| format!("there is no user '{user}'"))
}

/// Chooses as perf does: `-p` over `-t` over `-u` over `-C` and `-a` over the command; with none of them
/// everything is recorded. Gives what was overridden.
pub(super) fn choose(args: &RecordArgs) -> Result<(Target, Vec<&'static str>)> {
    let system_wide = args.all_cpus || args.cpu.is_some();
    let by_id = !args.pid.is_empty() || !args.tid.is_empty();
    let mut overridden = Vec::new();
    if !args.pid.is_empty() && !args.tid.is_empty() {
        overridden.push("-p overrides -t");
    }
    if by_id && args.uid.is_some() {
        overridden.push("-p and -t override -u");
    }
    if (by_id || args.uid.is_some()) && system_wide {
        overridden.push("-p, -t and -u override -a and -C");
    }
    let target = if !args.pid.is_empty() {
        Target::Processes(args.pid.clone())
    } else if !args.tid.is_empty() {
        Target::Threads(args.tid.clone())
    } else if let Some(user) = &args.uid {
        Target::User(uid(user)?)
    } else if let Some(list) = &args.cpu {
        Target::SystemWide(Some(cpus::parse_list(list)?))
    } else if args.all_cpus || args.command.is_empty() {
        Target::SystemWide(None)
    } else {
        Target::Command
    };
    Ok((target, overridden))
}
