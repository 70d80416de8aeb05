//! A container of a stranger, and folders of binaries that a member names.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use whit_testing::wait::wait_until;
use whit_testing::workload;

use super::{SECRET, WAYS, shown_to_root};
use crate::privileges::fixture::{
    Fixture, STRANGER, Skip, check, copy_program, set_mode, stderr, stdout,
};

/// A process with compiled code, which is root in a user namespace and sees a `/tmp` of its own.
struct Contained {
    child: Child,
}

/// Goes on as the program, from a directory that the namespace covers.
const ENTER: &str = "exec 3<\"$1\"; mount -t tmpfs none /tmp && cp /proc/self/fd/3 /tmp/jit && \
                     chmod 755 /tmp/jit && exec /tmp/jit --seconds 120";

impl Contained {
    fn start(fixture: &Fixture) -> Result<Contained, Skip> {
        let unshare = |arguments: &[&str]| {
            let mut command = STRANGER.command("unshare");
            command.args(["--user", "--map-root-user", "--mount"]).args(arguments);
            command
        };
        if !unshare(&["true"]).output().is_ok_and(|said| said.status.success()) {
            return Err(Skip("this user can make no user namespace".to_owned()));
        }
        let program = fixture.path().join("jit");
        copy_program(&workload("jit")?.display().to_string(), &program);
        let mut enter = unshare(&["sh", "-c", ENTER, "sh"]);
        let child = enter.arg(&program).stdout(Stdio::null()).spawn().expect("run the program");
        let contained = Contained { child };
        wait_until("the process wrote its perf-map", || {
            contained.inside(&contained.map()).exists()
        });
        Ok(contained)
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    /// A path of the container, as the machine sees it.
    fn inside(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.id()))
    }

    fn map(&self) -> String {
        format!("/tmp/perf-{}.map", self.id())
    }

    /// Runs a command in it, by its own root.
    fn does(&self, arguments: &[&str]) {
        let mut command = STRANGER.command("nsenter");
        command.args(["--preserve-credentials", "--user", "--mount", "--target"]);
        command.arg(self.id().to_string()).args(arguments);
        let said = command.output().expect("run nsenter");
        assert!(said.status.success(), "{arguments:?}: {}", stderr(&said));
    }

    fn put_link(&self, at: &str, to: &Path) {
        self.does(&["ln", "-sfT", &to.to_string_lossy(), at]);
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a place that the container sees.
fn secret() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir_in("/var/tmp").expect("make a directory");
    set_mode(place.path(), 0o755);
    let secret = place.path().join("secret");
    fs::write(&secret, format!("0 7fffffffffff {SECRET}\n")).expect("write the secret");
    set_mode(&secret, 0o600);
    (place, secret)
}

/// The container leads by links, by mounts, and by its program, to a file that only root may read.
#[test]
fn a_container_leads_roots_recorder_to_no_secret() {
    check("a_container_leads_roots_recorder_to_no_secret", || {
        let fixture = Fixture::new()?;
        let contained = Contained::start(&fixture)?;
        let (_place, secret) = secret();
        let shown = |way| shown_to_root(&fixture, contained.id(), way);
        let nothing: [PathBuf; 0] = [];
        // Where the container has the place of the link, that is no secret of the machine.
        let elsewhere = fixture.path().join("secret");
        fs::copy(&secret, &elsewhere).expect("copy the secret");
        let up = Path::new("../../../../../..").join(elsewhere.strip_prefix("/").unwrap());
        for link in [&secret, &elsewhere, &up] {
            contained.put_link(&contained.map(), link);
            for way in WAYS {
                assert_eq!(shown(way), nothing, "{} {way:?}", link.display());
            }
        }
        // The program itself becomes a link, and a file beside it that looks like another recorder's.
        for at in ["/tmp/jit".to_owned(), format!("/tmp/jit-{}.dump", contained.id())] {
            contained.put_link(&at, &secret);
        }
        for way in WAYS {
            assert_eq!(shown(way), nothing, "links of the program {way:?}");
        }
        // A mount of root's file has no link on its way.
        let map = contained.map();
        contained.does(&["rm", &map]);
        contained.does(&["touch", &map]);
        contained.does(&["mount", "--bind", &secret.to_string_lossy(), &map]);
        for (mode, is_secret) in [(0o600, true), (0o644, false)] {
            set_mode(&secret, mode);
            for way in WAYS {
                let shown = shown(way);
                assert_eq!(shown.is_empty(), is_secret, "{mode:o} {way:?}: {shown:?}");
            }
        }
        Ok(())
    });
}

/// Functions of a program that only its user can read.
const FUNCTION: &str = "burn_inner";

/// A member has no more files through `--symfs` than without whit: neither those of a directory that is not theirs, nor
/// those behind the root of a process that is not theirs.
#[test]
fn folders_of_binaries_are_read_with_the_members_rights() {
    check("folders_of_binaries_are_read_with_the_members_rights", || {
        let fixture = Fixture::set_up()?;
        let private = fixture.path().join("private");
        fs::create_dir(&private).expect("make a directory");
        let program = private.join("burn");
        copy_program(&workload("silent")?.display().to_string(), &program);
        chown(&private, Some(STRANGER.uid), Some(STRANGER.gid)).expect("give it away");
        set_mode(&private, 0o700);
        let mut burn = STRANGER.command(&program);
        let burn = burn.stdout(Stdio::null()).spawn().expect("run the program");
        let burn = Ended(burn);
        let recorded = fixture
            .by_member(&["record", "-a", "-e", "cpu-clock", "--engine=ring", "-o", "own"])
            .args(["--", "sleep", "0.5"])
            .output()
            .expect("run whit");
        assert!(recorded.status.success(), "{}", stderr(&recorded));
        let (link, root) = (fixture.home().join("link"), format!("/proc/{}/root", burn.0.id()));
        symlink(&root, &link).expect("make a link");
        let folders = ["/".to_owned(), root, link.to_string_lossy().into_owned()];
        let data = fixture.home().join("own");
        let pid = burn.0.id().to_string();
        for folder in &folders {
            let symfs = format!("--symfs={folder}");
            // Root's own reading has the names: they can be found there.
            let by_root = Command::new(env!("CARGO_BIN_EXE_whit"))
                .args(["report", "--stdio", &symfs, "-i"])
                .arg(&data)
                .output()
                .expect("run whit");
            assert!(stdout(&by_root).contains(FUNCTION), "{folder}: {}", stderr(&by_root));
            for face in [
                &["report", "--stdio", "-i", "own"][..],
                &["script", "-i", "own"],
                &["annotate", "--stdio", "-i", "own"],
                &["top", "--stdio", "-e", "cpu-clock", "-d", "1", "-n", "1", "-p", &pid],
            ] {
                let said = fixture.by_member(face).arg(&symfs).output().expect("run whit");
                for text in [stdout(&said), stderr(&said)] {
                    assert!(!text.contains(FUNCTION), "{folder} {face:?}: {text}");
                }
            }
        }
        let mine = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let made: Vec<_> = fs::read_dir(&private).expect("list it").map(mine).collect();
        assert_eq!(made, ["burn"]);
        Ok(())
    });
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
