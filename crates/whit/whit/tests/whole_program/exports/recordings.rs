//! The five recordings, each made once.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::tools::{repository, whit, workload};
use crate::support::{Skip, check, record};

/// A recording that is exported.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    /// Options that both `whit report` and `whit export` get.
    pub(crate) options: Vec<String>,
}

impl Example {
    /// The command with this recording as its input.
    pub(crate) fn whit(&self, subcommand: &str) -> Command {
        let mut whit = whit();
        whit.arg(subcommand).arg("-i").arg(&self.path).args(&self.options);
        whit
    }

    /// The recording in a format.
    pub(crate) fn export(&self, format: &str, folder: &Path) -> PathBuf {
        self.export_with(format, folder, &[])
    }

    /// The same with further options.
    pub(crate) fn export_with(&self, format: &str, folder: &Path, options: &[&str]) -> PathBuf {
        let out = folder.join(format!("{}{}.{format}", self.name, options.concat()));
        let mut export = self.whit("export");
        export.args(["--format", format, "-o"]).arg(&out).args(options);
        let output = export.output();
        let output = output.expect("run whit");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", self.name);
        out
    }
}

pub(super) fn golden(name: &'static str) -> Example {
    let folder = repository().join("tests/recordings/golden");
    let root = folder.join("root").display().to_string();
    let path = folder.join(name).join("recording.data");
    Example { name, path, options: vec!["--symfs".to_owned(), root] }
}

pub(crate) fn recorded(
    name: &'static str,
    folder: &Path,
    options: &[&str],
    command: &[&str],
) -> Result<Example, Skip> {
    let path = folder.join(format!("{name}.data"));
    let mut recorder = whit();
    // On a busy machine the recorder may get no CPU for a tenth of a second: only one example is to have losses.
    recorder
        .args(["record", "--engine=ring", "-e", "cpu-clock:u", "-m", "4M"])
        .args(options)
        .arg("-o")
        .arg(&path);
    recorder.arg("--").arg(workload(command[0])?).args(&command[1..]);
    record(&mut recorder)?;
    Ok(Example { name, path, options: Vec::new() })
}

/// All five; those that this machine cannot record are skipped by name.
pub(crate) fn all(folder: &TempDir) -> Vec<Example> {
    let mut examples = vec![golden("perf-cgroups"), golden("losses")];
    let place = folder.path();
    let dumps = ["-F", "997", "--call-graph", "dwarf,8192"];
    let waits = ["-F", "997", "--switch-events", "--call-graph", "dwarf,4096"];
    type Made<'a> = (&'static str, &'a [&'a str], &'a [&'a str]);
    let made: [Made<'_>; 3] = [
        ("cpp", &dumps, &["deep", "--seconds", "0.5"]),
        ("go", &["-F", "997", "-g"], &["deep-go", "--seconds", "0.5"]),
        ("waits", &waits, &["pingpong", "--threads", "4", "--iterations", "20000"]),
    ];
    for (name, options, command) in made {
        check(&format!("exports of {name}"), || {
            examples.push(recorded(name, place, options, command)?);
            Ok(())
        });
    }
    examples
}
