//! The options of every comparison that runs programs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::setup::Setup;

use super::{WORKLOADS, default_cache, installed_whit};

/// Where programs and files are, and how long a program may run.
#[derive(Args, Debug)]
pub(super) struct SetupArgs {
    /// Directory in which recordings and counts are written and removed [default: whit/bench in the
    /// user's cache]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Directory of the workloads
    #[arg(long, value_name = "DIR", default_value = WORKLOADS)]
    workloads: PathBuf,

    /// Seconds after which a run is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// Another whit to compare [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    whit: Option<PathBuf>,
}

impl SetupArgs {
    /// Their ids, for arguments that require one more if one of these is given.
    pub(super) const IDS: [&str; 4] = ["dir", "workloads", "timeout", "whit"];

    /// Fails where one of the workloads is not built.
    pub(super) fn with_workloads(&self, names: &[&str]) -> Result<Setup> {
        let missing = names.iter().map(|name| self.workloads.join(name)).find(|p| !p.exists());
        if let Some(program) = missing {
            bail!(
                "there is no {} to run: build it with `make -C bench/workloads` in whit's repository, \
                 or name the directory of the workloads with --workloads",
                program.display()
            );
        }
        Ok(Setup {
            whit: self.whit.clone().map_or_else(installed_whit, Ok)?,
            workloads: self.workloads.clone(),
            directory: self.dir.clone().map_or_else(default_cache, Ok)?,
            limit: Duration::from_secs(self.timeout),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        setup: SetupArgs,
    }

    fn setup(words: &[&str]) -> SetupArgs {
        Line::parse_from([&["bench"], words].concat()).setup
    }

    #[test]
    fn a_workload_that_is_not_built_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        std::fs::write(directory.path().join("deep"), "").unwrap();
        let args = setup(&["--workloads", path, "--dir", path, "--timeout", "7", "--whit", "w"]);
        let error = args.with_workloads(&["deep", "token"]).unwrap_err().to_string();
        assert!(error.contains(&format!("{path}/token to run: build it")), "{error}");
        let setup = args.with_workloads(&["deep"]).unwrap();
        assert_eq!((setup.limit.as_secs(), setup.whit.to_str()), (7, Some("w")));
        assert_eq!(
            (setup.workloads.as_path(), setup.directory.as_path()),
            (directory.path(), directory.path())
        );
    }
}
