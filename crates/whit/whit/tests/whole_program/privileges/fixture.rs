//! A copy of whit in a place of root's own, and users to run it.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use whit_sys::capability::CapabilitySet;
pub(crate) use whit_testing::run::{stderr, stdout};
pub(crate) use whit_testing::{Skip, probe};
use whit_testing::{run, wait};

/// The group that whit is set up for. No list has it.
pub(crate) const GROUP: u32 = 54_321;
/// A member of the group.
pub(crate) const MEMBER: User = User { uid: 54_321, gid: GROUP };
/// Nobody in particular.
pub(crate) const STRANGER: User = User { uid: 54_322, gid: 54_322 };
/// Folders for copies, in this order: the first whose mount respects capabilities of files.
const PLACES: [&str; 3] = ["/tmp", "/var/tmp", "/usr/local/lib"];

/// Runs the body of the test `name`; where it says that something is missing, that is announced.
pub(crate) fn check(name: &str, body: impl FnOnce() -> Result<(), Skip>) {
    whit_testing::check(&format!("privileges::{name}"), body);
}

/// A user and a group that no list has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl User {
    /// A command that this user runs, in no other group, and with nothing of root's.
    pub(crate) fn command(self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        // From root, this gives up supplementary groups and capabilities too.
        command.uid(self.uid).gid(self.gid).current_dir("/").stdin(Stdio::null());
        command
    }
}

/// A directory that everybody can look into and only root can write, with a copy of whit and a
/// directory of the member's.
pub(crate) struct Fixture {
    dir: TempDir,
}

impl Fixture {
    /// A copy that is not set up.
    pub(crate) fn new() -> Result<Fixture, Skip> {
        probe::root()?;
        let status = fs::read_to_string("/proc/self/status").expect("read own status");
        let bounding = CapabilitySet::from_status(&status, "CapBnd").expect("a bounding set");
        let missing = CapabilitySet::for_profiling(true).without(bounding);
        if !missing.is_empty() {
            return Err(Skip(format!("no program here can gain {missing}")));
        }
        let heeds = |place: &&&str| {
            File::open(place).is_ok_and(|d| whit_sys::system::is_nosuid(&d) == Ok(false))
        };
        let place = PLACES.iter().find(heeds);
        let place = place.ok_or_else(|| Skip(format!("{PLACES:?} are mounted nosuid")))?;
        let dir = tempfile::Builder::new().prefix("whit-privileges-").tempdir_in(place);
        let dir = dir.expect("make a directory");
        let fixture = Fixture { dir };
        set_mode(fixture.dir.path(), 0o755);
        copy_program(env!("CARGO_BIN_EXE_whit"), &fixture.whit());
        let home = fixture.home();
        fs::create_dir(&home).expect("make a directory");
        set_mode(&home, 0o700);
        chown(&home, Some(MEMBER.uid), Some(MEMBER.gid)).expect("give it away");
        Ok(fixture)
    }

    /// A copy that the members of [`GROUP`] may record with.
    pub(crate) fn set_up() -> Result<Fixture, Skip> {
        let fixture = Fixture::new()?;
        let output = fixture.setup(&[]);
        assert!(output.status.success(), "{}", stderr(&output));
        Ok(fixture)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The copy.
    pub(crate) fn whit(&self) -> PathBuf {
        self.dir.path().join("whit")
    }

    /// The directory that belongs to the member.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// `whit setup` for the copy, by root.
    pub(crate) fn setup(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
        command.args(["setup", "--group", &GROUP.to_string()]).args(options);
        command.arg("--binary").arg(self.whit()).output().expect("run whit setup")
    }

    /// The copy, run by the member in their directory.
    pub(crate) fn by_member(&self, arguments: &[&str]) -> Command {
        let mut command = MEMBER.command(self.whit());
        command.args(arguments).current_dir(self.home());
        command
    }

    /// A shell script that the member records, with options before it.
    pub(crate) fn record(&self, options: &[&str], script: &str) -> Output {
        let mut command = self.by_member(&["record", "-e", "cpu-clock"]);
        command.args(options).args(["--", "sh", "-c", script]).output().expect("run whit record")
    }
}

/// A process that burns CPU until it is dropped.
pub(crate) struct Busy(wait::Busy);

impl Busy {
    pub(crate) fn of_stranger() -> Busy {
        Busy(wait::Busy::by(&mut STRANGER.command("/bin/sh")))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The path to a file through this process: going there takes the right to look into it.
    pub(crate) fn way_to(&self, path: &Path) -> PathBuf {
        let way = PathBuf::from(format!("/proc/{}/root{}", self.id(), path.display()));
        let parent = way.parent().expect("a directory");
        assert!(parent.is_dir(), "root goes to {}", parent.display());
        way
    }
}

/// Copies a program that everybody may run.
pub(crate) fn copy_program(from: &str, to: &Path) {
    run::copy_program(from, to);
    set_mode(to, 0o755);
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("change a mode");
}

/// Whether a program can be run at all.
pub(crate) fn need(program: &str, argument: &str) -> Result<(), Skip> {
    probe::need_program(program, &[argument])
}
