//! Files that a process or a user leads whit to, and that must not come out anywhere.

mod containers;

use std::fs;
use std::os::unix::fs::{lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use whit_testing::wait::wait_until;
use whit_testing::{run, workload};

use crate::privileges::fixture::{Fixture, STRANGER, Skip, check, copy_program, set_mode, stderr};

/// In the secret file, in the form of a perf-map: the name of all code that there is.
const SECRET: &str = "secret_of_root";
/// Ways of recording the process by root.
const WAYS: [&[&str]; 2] = [&["-g"], &["--engine=bpf"]];
/// Readers of a recording.
const FACES: [&[&str]; 4] = [
    &["report", "--stdio", "-i"],
    &["script", "-i"],
    &["annotate", "--stdio", "-i"],
    &["export", "--archive", "-o", "-", "-i"],
];

/// A process with compiled code, by a user that is in no list.
struct Compiled {
    child: Child,
    map: PathBuf,
}

impl Compiled {
    fn start(fixture: &Fixture) -> Result<Compiled, Skip> {
        let program = fixture.path().join("jit");
        if !program.exists() {
            copy_program(&workload("jit")?.display().to_string(), &program);
        }
        let mut command = STRANGER.command(&program);
        let child = command.args(["--seconds", "120"]).stdout(Stdio::null()).spawn();
        let child = child.expect("run the program");
        let map = PathBuf::from(format!("/tmp/perf-{}.map", child.id()));
        let compiled = Compiled { child, map };
        wait_until("the process wrote its perf-map", || compiled.map.exists());
        Ok(compiled)
    }

    /// The user of the process may put a link to any path there.
    fn lead_to(&self, secret: &Path) {
        fs::remove_file(&self.map).expect("remove the perf-map");
        symlink(secret, &self.map).expect("make a link");
        lchown(&self.map, Some(STRANGER.uid), Some(STRANGER.gid)).expect("give it away");
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.map);
    }
}

fn has_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
}

/// All regular files below a directory that have the secret.
fn files_with_secret(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
        if kind.is_dir() {
            files_with_secret(&path, found);
        } else if kind.is_file() && fs::read(&path).is_ok_and(|bytes| has_secret(&bytes)) {
            found.push(path);
        }
    }
}

/// The files and outputs that have the secret after root recorded a process.
fn shown_to_root(fixture: &Fixture, pid: u32, way: &[&str]) -> Vec<PathBuf> {
    let output = tempfile::tempdir_in(fixture.path()).expect("make a directory");
    let data = output.path().join("perf.data");
    let by_root = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        command.env("HOME", output.path()).env("XDG_CACHE_HOME", output.path().join("cache"));
        command.env_remove("PERF_BUILDID_DIR").stdin(Stdio::null());
        command
    };
    let mut record = by_root();
    record.args(["record", "-e", "cpu-clock:u", "-p", &pid.to_string()]).args(way).arg("-o");
    let said = record.arg(&data).args(["--", "sleep", "0.3"]).output().expect("run whit");
    assert!(said.status.success(), "{way:?}: {}", stderr(&said));
    let mut shown = Vec::new();
    files_with_secret(output.path(), &mut shown);
    for face in FACES {
        let said = by_root().args(face).arg(&data).output().expect("run whit");
        if has_secret(&said.stdout) || has_secret(&said.stderr) {
            shown.push(face[0].into());
        }
    }
    shown
}

/// A process of a stranger has a link to root's file for a perf-map. Root reads and keeps the perf-maps of all.
#[test]
fn a_perf_map_leads_roots_recorder_to_no_secret() {
    check("a_perf_map_leads_roots_recorder_to_no_secret", || {
        let fixture = Fixture::new()?;
        let secret = fixture.path().join("secret");
        let compiled = Compiled::start(&fixture)?;
        fs::write(&secret, format!("0 7fffffffffff {SECRET}\n")).expect("write the secret");
        compiled.lead_to(&secret);
        // A file that all may read is no secret: the link works, and the search below finds the text.
        for (mode, is_secret) in [(0o600, true), (0o640, true), (0o644, false)] {
            set_mode(&secret, mode);
            for way in WAYS {
                let shown = shown_to_root(&fixture, compiled.child.id(), way);
                assert_eq!(shown.is_empty(), is_secret, "{mode:o} {way:?}: {shown:?}");
            }
        }
        assert_eq!(fs::read(&secret).unwrap(), format!("0 7fffffffffff {SECRET}\n").as_bytes());
        Ok(())
    });
}

/// Programs that profilers run by name.
const PLANTED: [&str; 12] = [
    "addr2line",
    "objdump",
    "perl",
    "python3",
    "debuginfod-find",
    "sh",
    "env",
    "perf",
    "gdb",
    "cc",
    "less",
    "whit-serve",
];

#[test]
fn a_member_plants_no_program() {
    check("a_member_plants_no_program", || {
        let fixture = Fixture::set_up()?;
        let (planted, marker) = (fixture.path().join("planted"), fixture.path().join("marker"));
        fs::create_dir(&planted).expect("make a directory");
        fs::write(&marker, "").expect("make the marker");
        set_mode(&marker, 0o666);
        for name in PLANTED {
            let path = planted.join(name);
            let text = format!("#!/bin/bash\necho {name} >> {}\n", marker.display());
            run::write_program(&path, &text);
        }
        let run = |arguments: &[&str]| {
            let mut command = fixture.by_member(arguments);
            for variable in ["PATH", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "PERF_EXEC_PATH"]
            {
                command.env(variable, &planted);
            }
            command.output().expect("run whit")
        };
        let recorded =
            run(&["record", "-a", "-e", "cpu-clock", "-o", "own", "--", "/bin/sleep", "0.2"]);
        assert!(recorded.status.success(), "{}", stderr(&recorded));
        for face in [
            &["report", "--stdio", "-g", "-i", "own"][..],
            &["annotate", "--stdio", "-i", "own"],
            &["script", "-i", "own"],
            &["export", "--format", "folded", "-o", "-", "-i", "own"],
            &["report", "--html", "page.html", "-i", "own"],
            &["doctor"],
        ] {
            run(face);
        }
        assert_eq!(fs::read_to_string(&marker).unwrap(), "", "these were run");
        // The marker works: a command of the user's own choice is found there.
        run(&["record", "-e", "cpu-clock:u", "-o", "own2", "--", "addr2line"]);
        assert_eq!(fs::read_to_string(&marker).unwrap(), "addr2line\n");
        Ok(())
    });
}
