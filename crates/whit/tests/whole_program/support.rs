//! The program under test; everything else is the harness's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use whit_testing::parse::{report, script, stats};
pub(crate) use whit_testing::{Skip, check, probe};

/// The programs that the tests run.
pub(crate) mod tools {
    pub(crate) use super::{beside, record, whit, whole_files};
    pub(crate) use whit_testing::probe::tracefs;
    pub(crate) use whit_testing::run::{command, perf, repository, succeed, text};
    pub(crate) use whit_testing::workload;
}

/// The whit under test.
pub(crate) fn whit() -> Command {
    whit_testing::run::whit(env!("CARGO_BIN_EXE_whit"))
}

/// A program that lies beside whit. `make test` builds it before; cargo does not, for tests of this package.
pub(crate) fn beside(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_whit")).with_file_name(name);
    if is_old(&path) {
        let mut build = tools::command(env!("CARGO"));
        let every_program = ["build", "--quiet", "--workspace", "--exclude", "whit-fuzz", "--bins"];
        tools::succeed(build.args(every_program).current_dir(tools::repository()));
    }
    path
}

/// Whether a program is not there, or one of its sources is newer. cargo lists them in a file beside it.
fn is_old(program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let sources = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = sources.split_whitespace().skip(1);
    changed(program).is_none() || sources.map(Path::new).any(|it| changed(it) > changed(program))
}

/// Recordings of `whit watch` in a folder, by name. Those that are being written have other names.
pub(crate) fn whole_files(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_whole = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("whit-") && name.ends_with(".data")
    };
    let mut files: Vec<_> = found.map(|it| it.path()).filter(is_whole).collect();
    files.sort();
    files
}

/// Records; gives the standard output of the command.
pub(crate) fn record(recorder: &mut Command) -> Result<Vec<u8>, Skip> {
    whit_testing::run::record(recorder).map(|output| output.stdout)
}
