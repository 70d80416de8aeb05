//! The options of every comparison that runs programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::args::{WORKLOADS, default_cache, installed_whit, seconds};

/// Where programs and files are, and how long a program may run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Setup {
    /// Directory in which recordings and counts are written and removed [default: whit/bench in the
    /// user's cache]
    #[arg(long = "dir", value_name = "DIR", default_value_os_t = default_cache(),
          hide_default_value = true)]
    pub(crate) directory: PathBuf,

    /// Directory of the workloads
    #[arg(long, value_name = "DIR", default_value = WORKLOADS)]
    pub(crate) workloads: PathBuf,

    /// Seconds after which a run is killed
    #[arg(long = "timeout", value_name = "SECONDS", default_value = "120",
          value_parser = seconds(1..=86_400))]
    pub(crate) limit: Duration,

    /// Another whit to compare [default: the one in the folder of this program]
    #[arg(long, value_name = "PROGRAM", default_value_os_t = installed_whit(),
          hide_default_value = true)]
    pub(crate) whit: PathBuf,
}

impl Setup {
    /// The names of its arguments, for those that require one more if one of these is given.
    pub(crate) const IDS: [&str; 4] = ["directory", "workloads", "limit", "whit"];

    /// Fails where one of the workloads, or whit, is not built.
    pub(crate) fn require(&self, workloads: &[&str]) -> Result<()> {
        for program in workloads.iter().map(|name| self.workloads.join(name)) {
            ensure!(
                program.exists(),
                "there is no {} to run: build it with `make -C bench/workloads` in whit's repository, \
                 or name the directory of the workloads with --workloads",
                program.display()
            );
        }
        require_cache(&self.directory, "--dir")?;
        require_whit(&self.whit)
    }
}

/// Fails where the folder is the default of a user without a home directory.
pub(crate) fn require_cache(directory: &Path, option: &str) -> Result<()> {
    let is_known = !directory.as_os_str().is_empty();
    ensure!(is_known, "there is no home directory to keep recordings in: use {option}");
    Ok(())
}

/// Another whit is found when it runs: it may be in `PATH`.
pub(crate) fn require_whit(whit: &Path) -> Result<()> {
    ensure!(
        whit != installed_whit() || whit.is_file(),
        "there is no {} to compare: build it with `cargo build -p whit`, or name another whit with --whit",
        whit.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        setup: Setup,
    }

    #[test]
    fn a_workload_that_is_not_built_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        std::fs::write(directory.path().join("deep"), "").unwrap();
        let words = ["bench", "--workloads", path, "--dir", path, "--timeout", "7", "--whit", "w"];
        let setup = Line::parse_from(words).setup;
        let error = setup.require(&["deep", "token"]).unwrap_err().to_string();
        assert!(error.contains(&format!("{path}/token to run: build it")), "{error}");
        setup.require(&["deep"]).unwrap();
        assert_eq!((setup.limit.as_secs(), setup.whit.to_str()), (7, Some("w")));
        assert!(require_cache(Path::new(""), "--dir").unwrap_err().to_string().contains("--dir"));
    }
}
