//! Which of `-p`, `-t`, `-C`, `-a` and the command says whom to record or count.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use crate::failure::{bail_usage, usage};
use crate::symbol_args::thread_id;
use anyhow::{Context, Result};
use whit_host::named::{NameNote, Names};
use whit_host::process_name::ProcessName;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_types::{Tid, parse_cpu_list};

/// Arguments that name whom: perf's names and meanings.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TargetArgs {
    /// Measure all CPUs
    #[arg(short, long)]
    all_cpus: bool,
    /// Measure these CPUs: 0-3,8
    #[arg(short = 'C', long, value_name = "LIST")]
    cpu: Option<String>,
    /// Measure these running processes: an ID, or a name that one process has
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',', value_parser = ProcessName::parse)]
    pid: Vec<ProcessName>,
    /// Measure these running threads
    #[arg(short, long, value_name = "TID,..", value_delimiter = ',', value_parser = thread_id)]
    tid: Vec<i32>,
}

fn list(ids: &[impl ToString]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A user by number or name.
fn uid(user: &str) -> Result<u32> {
    if let Ok(uid) = user.parse() {
        return Ok(uid);
    }
    let known =
        whit_sys::users::uid_of(user).with_context(|| format!("cannot look up user '{user}'"))?;
    known.with_context(|| format!("there is no user '{user}'"))
}

impl TargetArgs {
    /// Chooses as perf does: `-p` over `-t` over `-u` over `-C` and `-a` over the command; with none
    /// of them, all CPUs. Gives the overridden options.
    pub(crate) fn choose(
        &self,
        user: Option<&str>,
        has_command: bool,
        roots: &Roots,
    ) -> Result<(Target, Vec<&'static str>)> {
        let system_wide = self.all_cpus || self.cpu.is_some();
        let by_id = !self.pid.is_empty() || !self.tid.is_empty();
        let mut overridden = Vec::new();
        if !self.pid.is_empty() && !self.tid.is_empty() {
            overridden.push("-p overrides -t");
        }
        if by_id && user.is_some() {
            overridden.push("-p and -t override -u");
        }
        if (by_id || user.is_some()) && system_wide {
            overridden.push("-p, -t and -u override -a and -C");
        }
        let target = if !self.pid.is_empty() {
            Target::Processes(
                self.pid.iter().map(|name| name.resolve(roots)).collect::<Result<_, _>>()?,
            )
        } else if !self.tid.is_empty() {
            Target::Threads(self.tid.iter().copied().map(Tid).collect())
        } else if let Some(user) = user {
            Target::User(uid(user)?)
        } else if let Some(list) = &self.cpu {
            Target::SystemWide(Some(parse_cpu_list(list).map_err(usage)?))
        } else if self.all_cpus || !has_command {
            Target::SystemWide(None)
        } else {
            Target::Command
        };
        Ok((target, overridden))
    }

    /// Whether `-a` or `-C` says that CPUs are recorded.
    pub(crate) fn covers_cpus(&self) -> bool {
        self.all_cpus || self.cpu.is_some()
    }

    /// The target that goes by these names, on all CPUs or those of `-C`.
    ///
    /// # Errors
    /// Another option says whom to record, too.
    pub(crate) fn choose_by_name(
        &self,
        user: Option<&str>,
        names: &Names,
        roots: &Roots,
    ) -> Result<(Target, Vec<NameNote>)> {
        if !self.pid.is_empty() || !self.tid.is_empty() || user.is_some() {
            bail_usage!(
                "-p, -t and -u say whom to record, as --cgroup, --container, --unit and --comm do: give one"
            );
        }
        let cpus = self.cpu.as_deref().map(parse_cpu_list).transpose().map_err(usage)?;
        let (chosen, notes) = names.resolve(roots)?;
        Ok((Target::Named(chosen, cpus), notes))
    }

    /// How perf's heading names the target: the list of CPUs as it was given.
    pub(crate) fn title(&self, command: &[std::ffi::OsString]) -> String {
        if !self.pid.is_empty() {
            return format!("process id '{}'", list(&self.pid));
        }
        if !self.tid.is_empty() {
            return format!("thread id '{}'", list(&self.tid));
        }
        match &self.cpu {
            Some(cpus) if !self.all_cpus => format!("'CPU(s) {cpus}'"),
            None if !self.all_cpus && !command.is_empty() => {
                let words = command.iter().map(|word| word.to_string_lossy());
                format!("'{}'", words.collect::<Vec<_>>().join(" "))
            }
            _ => "'system wide'".to_owned(),
        }
    }
}
