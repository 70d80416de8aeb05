//! The bounds of the cache for binaries: its size, a full disk, a kill, another root. And the kernel's symbols.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use whit_testing::wait::wait_until;

use crate::support::tools::{command, text, whit};
use crate::support::{Skip, check, probe};

/// Bytes of each program beside its code: so much that three take more than the bound.
const PROGRAM_BYTES: usize = 3 << 20;
const BOUND: &str = "10M";
/// For so long that the recorder looks into the root of the program while it runs: it drains rings once a second at
/// least. By a clock, since CPUs differ by a factor of four.
const LONG: &str = "-DCPU_SECONDS=3";

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("make a directory");
        std::fs::create_dir(directory.path().join("home")).expect("make a directory");
        Place { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cache(&self) -> PathBuf {
        self.path("home/.debug")
    }

    /// A busy program of its own build, with this many bytes.
    fn program(&self, name: &str, bytes: usize) -> Result<PathBuf, Skip> {
        probe::program("cc")?;
        let (source, program) = (self.path(&format!("{name}.c")), self.path(name));
        let code = format!(
            "#include <time.h>\n#ifndef CPU_SECONDS\n#define CPU_SECONDS 0\n#endif\n\
             const char name[] = \"{name}\"; char pad[{bytes}] = {{1}};\n\
             int main(void) {{ volatile unsigned long n = name[0] + pad[0];\n\
             do for (unsigned long i = 0; i < 300000000; i++) n += i;\n\
             while (clock() < CPU_SECONDS * CLOCKS_PER_SEC); return 0; }}\n"
        );
        std::fs::write(&source, code).expect("write a program");
        text(command("cc").args(["-Wl,--build-id=sha1", "-O1", "-o"]).arg(&program).arg(&source));
        Ok(program)
    }

    fn recorder(&self, options: &[&str], program: &Path) -> Command {
        let mut recorder = whit();
        recorder.env("HOME", self.path("home"));
        recorder.args(["record", "-e", "cpu-clock:u", "-F", "499", "--engine=ring", "-v"]);
        recorder.args(options).arg("-o").arg(self.path("perf.data")).arg("--").arg(program);
        recorder
    }

    fn record(&self, options: &[&str], program: &Path) -> Result<String, Skip> {
        let output = whit_testing::run::record(&mut self.recorder(options, program))?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Whether the cache has a copy of a program.
    fn has(&self, program: &Path) -> bool {
        let below = program.strip_prefix("/").expect("an absolute path");
        let copies = std::fs::read_dir(self.cache().join(below)).into_iter().flatten();
        copies.filter_map(Result::ok).any(|copy| copy.path().join("elf").is_file())
    }

    fn size_bytes(&self) -> u64 {
        let said = text(command("du").args(["-sb", "--"]).arg(self.cache()));
        said.split_whitespace().next().and_then(|size| size.parse().ok()).expect("a size")
    }

    fn parts(&self) -> usize {
        let kept = std::fs::read_dir(self.cache().join(".whit-kept")).into_iter().flatten();
        let names = kept.filter_map(Result::ok).map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
    }
}

#[test]
fn the_copies_of_longest_disuse_go_first() {
    check("kept_evicted", || {
        let place = Place::new();
        let bounds = ["--buildid-cache-size", BOUND];
        let programs: Vec<_> = ["one", "two", "three"]
            .iter()
            .map(|name| place.program(name, PROGRAM_BYTES))
            .collect::<Result<_, _>>()?;
        for program in &programs[..2] {
            place.record(&bounds, program)?;
            assert!(place.has(program));
        }
        // Used again, so that the second is the older one.
        place.record(&bounds, &programs[0])?;
        let said = place.record(&bounds, &programs[2])?;
        assert!(
            place.has(&programs[0]) && !place.has(&programs[1]) && place.has(&programs[2]),
            "{said}"
        );
        assert!(said.contains("--buildid-cache-size") || said.contains("removed"), "{said}");
        assert!(place.size_bytes() < 11 << 20, "{}", place.size_bytes());
        Ok(())
    });
}

#[test]
fn a_full_disk_leaves_no_part_of_a_copy() {
    check("kept_full_disk", || {
        let place = Place::new();
        let program = place.program("large", PROGRAM_BYTES)?;
        let home = place.path("home");
        let mut mount = command("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2M", "tmpfs"]).arg(&home);
        if !mount.output().is_ok_and(|output| output.status.success()) {
            return Err(Skip("a tmpfs cannot be mounted".to_owned()));
        }
        let said = place.record(&[], &program);
        let (is_there, parts) = (place.has(&program), place.parts());
        let _ = command("umount").arg(&home).status();
        let said = said?;
        assert!(said.contains("not copied to"), "{said}");
        assert!(!is_there && parts == 0, "{said}");
        let report = text(whit().args(["report", "--stdio", "-i"]).arg(place.path("perf.data")));
        assert!(report.contains("main"), "{report}");
        Ok(())
    });
}

#[test]
fn a_recorder_that_is_killed_while_it_keeps_leaves_whole_copies_alone() {
    check("kept_killed", || {
        let place = Place::new();
        let program = place.program("large", 200 << 20)?;
        let mut recorder = place.recorder(&[], &program).spawn().expect("start whit");
        let mut is_writing = false;
        wait_until("a copy is written, or has been", || {
            // A part of a copy is there for as long as it is written.
            is_writing = place.parts() > 0;
            is_writing || place.has(&program) || recorder.try_wait().is_ok_and(|end| end.is_some())
        });
        recorder.kill().expect("kill whit");
        recorder.wait().expect("wait for it");
        if !is_writing {
            return Err(Skip("the copy was made at once here".to_owned()));
        }
        assert!(!place.has(&program));
        // The next recording that makes a copy takes the rest away.
        let said = place.record(&[], &program)?;
        assert!(place.has(&program) && place.parts() == 0, "{said}");
        Ok(())
    });
}

#[test]
fn a_program_in_another_root_is_kept_with_its_own_name() {
    check("kept_chroot", || {
        probe::root()?;
        let place = Place::new();
        let program = place.program("inside", PROGRAM_BYTES)?;
        text(
            command("cc")
                .args(["-static", "-Wl,--build-id=sha1", "-O1", LONG, "-o"])
                .arg(&program)
                .arg(place.path("inside.c")),
        );
        let root = place.path("root");
        std::fs::create_dir_all(root.join("opt")).expect("make a directory");
        whit_testing::run::copy_program(&program, root.join("opt/inside"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.join("opt/inside"), mode).expect("set the mode");
        let mut recorder = place.recorder(&[], Path::new("chroot"));
        let output = whit_testing::run::record(recorder.arg(&root).arg("/opt/inside"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        std::fs::remove_dir_all(&root).expect("remove the root");
        let mut report = whit();
        report.env("HOME", place.path("home")).args(["report", "--stdio", "--no-children", "-i"]);
        let report = text(report.arg(place.path("perf.data")));
        let row = report.lines().find(|line| line.contains("inside") && line.contains("main"));
        assert!(row.is_some(), "{said}\n{report}");
        Ok(())
    });
}

#[test]
fn samples_of_kernel_code_keep_the_symbols_of_the_kernel() {
    check("kept_kernel", || {
        probe::root()?;
        let place = Place::new();
        let copies = |place: &Place| {
            let found = std::fs::read_dir(place.cache().join("[kernel.kallsyms]"));
            let found = found.into_iter().flatten().filter_map(Result::ok);
            found.map(|copy| copy.path().join("kallsyms")).collect::<Vec<_>>()
        };
        let busy =
            ["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=40000", "status=none"];
        let record = |event: &str| {
            let mut recorder = whit();
            recorder.env("HOME", place.path("home"));
            recorder.args(["record", "-e", event, "-F", "499", "--engine=ring", "-o"]);
            whit_testing::run::record(recorder.arg(place.path("perf.data")).args(busy))
        };
        let running = std::fs::read_to_string("/proc/kallsyms").expect("read the list");
        let text = running.lines().find(|line| line.ends_with(" _text"));
        if text.is_none_or(|line| line.starts_with("0000000000000000 ")) {
            return Err(Skip("the kernel hides its addresses".to_owned()));
        }
        record("cpu-clock:u")?;
        assert!(copies(&place).is_empty());
        record("cpu-clock")?;
        let copy = copies(&place).pop().expect("a copy");
        let kept = std::fs::read(&copy).expect("read the copy");
        assert!(kept.len() > 1 << 20 && running.as_bytes().starts_with(&kept[..1 << 20]));
        // A second recording of the same start leaves it as it is.
        let before = copy.metadata().and_then(|copy| copy.modified()).expect("a time");
        record("cpu-clock")?;
        assert_eq!(copy.metadata().and_then(|copy| copy.modified()).expect("a time"), before);
        // One of another start is made anew.
        std::fs::write(&copy, "1000 T _text\n").expect("write another list");
        record("cpu-clock")?;
        assert!(std::fs::read(&copy).expect("read the copy").len() > 1 << 20);
        Ok(())
    });
}
