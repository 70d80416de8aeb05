//! The actions and refusals of `whit setup`.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use whit_sys::capability::CapabilitySet;
use whit_sys::file_capability::FileCapabilities;

use crate::privileges::fixture::{
    Fixture, GROUP, MEMBER, Skip, check, copy_program, need, set_mode, stderr, stdout,
};

const LENT: FileCapabilities = FileCapabilities::effective(CapabilitySet::for_profiling(true));

/// Owner, group, mode and capabilities.
fn state(path: &Path) -> (u32, u32, u32, Option<FileCapabilities>) {
    let metadata = fs::metadata(path).unwrap();
    let capabilities = FileCapabilities::of_file(File::open(path).unwrap()).unwrap();
    (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777, capabilities)
}

/// A script in mounts of its own.
fn in_own_mounts(script: &str) -> Output {
    Command::new("unshare").args(["--mount", "sh", "-ec", script]).output().unwrap()
}

#[test]
fn root_gives_and_takes_back() {
    check("root_gives_and_takes_back", || {
        let fixture = Fixture::new()?;
        let output = fixture.setup(&[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(state(&fixture.whit()), (0, GROUP, 0o750, Some(LENT)));
        let said = stdout(&output);
        for part in ["sudo usermod -aG 54321 USER", "cap_perfmon", "0750"] {
            assert!(said.contains(part), "{part} in {said}");
        }
        // A second time changes nothing, and does not fail.
        assert!(fixture.setup(&[]).status.success());
        assert_eq!(state(&fixture.whit()), (0, GROUP, 0o750, Some(LENT)));
        let output = fixture.setup(&["--undo"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(state(&fixture.whit()), (0, 0, 0o755, None));
        assert!(fixture.setup(&["--undo"]).status.success(), "there is nothing left to undo");
        Ok(())
    });
}

#[test]
fn a_dry_run_prints_the_commands_that_do_the_same() {
    check("a_dry_run_prints_the_commands_that_do_the_same", || {
        need("setcap", "-h")?;
        let fixture = Fixture::new()?;
        let before = state(&fixture.whit());
        for (option, wanted) in [
            (&["--dry-run"][..], (0, GROUP, 0o750, Some(LENT))),
            (&["--dry-run", "--undo"], (0, 0, 0o755, None)),
        ] {
            let held = state(&fixture.whit());
            let output = fixture.setup(option);
            assert!(output.status.success(), "{}", stderr(&output));
            assert_eq!(state(&fixture.whit()), held, "a dry run changes nothing");
            let commands = stdout(&output);
            let run = Command::new("sh").args(["-ec", &commands]).output().unwrap();
            assert!(run.status.success(), "{commands}: {}", stderr(&run));
            assert_eq!(state(&fixture.whit()), wanted, "{commands}");
        }
        assert_eq!(before, state(&fixture.whit()));
        Ok(())
    });
}

#[test]
fn ordinary_users_get_the_commands_with_sudo() {
    check("ordinary_users_get_the_commands_with_sudo", || {
        let fixture = Fixture::new()?;
        let before = state(&fixture.whit());
        let output = fixture.by_member(&["setup", "--group", "no_such_group"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "nothing was done");
        assert!(stderr(&output).contains("it takes root"), "{}", stderr(&output));
        let said = stdout(&output);
        let path = fixture.whit().display().to_string();
        let capabilities = "cap_sys_ptrace,cap_syslog,cap_perfmon,cap_bpf+ep";
        let expected = [
            "sudo groupadd --system no_such_group".to_owned(),
            format!("sudo chown root:no_such_group {path}"),
            format!("sudo chmod 0750 {path}"),
            format!("sudo setcap {capabilities} {path}"),
            "# and for each who is to record: sudo usermod -aG no_such_group USER".to_owned(),
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
        assert_eq!(before, state(&fixture.whit()));
        Ok(())
    });
}

/// The group is created in a copy of `/etc`, in mounts that nobody else sees.
#[test]
fn a_group_that_is_missing_is_created() {
    check("a_group_that_is_missing_is_created", || {
        need("unshare", "--version")?;
        need("/usr/sbin/groupadd", "--help")?;
        let fixture = Fixture::new()?;
        let whit = fixture.whit();
        let etc = fixture.path().join("etc");
        let (whit, etc) = (whit.display(), etc.display());
        let output = in_own_mounts(&format!(
            "cp -a /etc {etc}; mount --bind {etc} /etc
             {built} setup --group whit_test_group --binary {whit}
             stat -c %G {whit}; grep ^whit_test_group: /etc/group",
            built = env!("CARGO_BIN_EXE_whit"),
        ));
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stdout(&output);
        assert!(said.contains("created)"), "{said}");
        assert!(said.contains("\nwhit_test_group\nwhit_test_group:x:"), "{said}");
        let groups = fs::read_to_string("/etc/group").unwrap();
        assert!(!groups.contains("whit_test_group"), "the machine's own list is untouched");
        Ok(())
    });
}

#[test]
fn places_that_others_can_change_are_refused() {
    check("places_that_others_can_change_are_refused", || {
        let fixture = Fixture::new()?;
        let before = state(&fixture.whit());
        let refused = |reason: &str| {
            let output = fixture.setup(&[]);
            assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
            let text = stderr(&output);
            assert!(text.contains(reason), "{reason} in {text}");
            assert!(text.contains("sudo install -o root -g root -m 0755"), "{text}");
        };
        set_mode(fixture.path(), 0o777);
        refused("can be written by everybody");
        set_mode(fixture.path(), 0o775);
        std::os::unix::fs::chown(fixture.path(), None, Some(GROUP)).unwrap();
        refused("can be written by group 54321");
        set_mode(fixture.path(), 0o755);
        std::os::unix::fs::chown(fixture.path(), Some(MEMBER.uid), None).unwrap();
        refused("belongs to user 54321");
        std::os::unix::fs::chown(fixture.path(), Some(0), Some(0)).unwrap();
        assert_eq!(state(&fixture.whit()), before, "nothing was changed");
        set_mode(&fixture.whit(), 0o757);
        refused("what is in it could be changed");
        set_mode(&fixture.whit(), 0o755);
        assert!(fixture.setup(&[]).status.success(), "nothing else was in the way");
        Ok(())
    });
}

#[test]
fn links_and_other_programs_are_refused() {
    check("links_and_other_programs_are_refused", || {
        let fixture = Fixture::new()?;
        let setup = |path: &Path| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
            let command = command.args(["setup", "--group", "54321", "--binary"]).arg(path);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
            stderr(&output)
        };
        let link = fixture.path().join("link");
        symlink(fixture.whit(), &link).unwrap();
        let text = setup(&link);
        assert!(text.contains("is a symbolic link to") && text.contains("/whit"), "{text}");
        let shell = fixture.path().join("shell");
        copy_program("/bin/sh", &shell);
        let text = setup(&shell);
        assert!(text.contains("is not a copy of this whit"), "{text}");
        assert_eq!(state(&shell).3, None);
        let bad = Command::new(fixture.whit()).args(["setup", "--group", "-f"]).output().unwrap();
        assert!(!bad.status.success());
        Ok(())
    });
}

#[test]
fn mounts_that_ignore_or_cannot_keep_capabilities_are_refused() {
    check("mounts_that_ignore_or_cannot_keep_capabilities_are_refused", || {
        need("unshare", "--version")?;
        let fixture = Fixture::new()?;
        let place = fixture.path().join("mount");
        fs::create_dir(&place).unwrap();
        let place = place.display();
        let setup = |mount: &str, change: &str| {
            let output = in_own_mounts(&format!(
                "{mount} {place}; cp {built} {place}/whit; {change}
                 {built} setup --group 54321 --binary {place}/whit",
                built = env!("CARGO_BIN_EXE_whit"),
            ));
            assert!(!output.status.success(), "{}", stdout(&output));
            stderr(&output)
        };
        let text = setup("mount -t tmpfs -o nosuid,mode=755 tmpfs", "");
        assert!(text.contains("mounted nosuid"), "{text}");
        let read_only = format!("mount -o remount,ro {place}");
        let text = setup("mount -t tmpfs -o mode=755 tmpfs", &read_only);
        assert!(text.contains("mounted read-only"), "{text}");
        if !fs::read_to_string("/proc/filesystems").is_ok_and(|list| list.contains("\tramfs\n")) {
            return Err(Skip("the last part needs ramfs, which keeps no attributes".into()));
        }
        let text = setup("mount -t ramfs -o mode=755 ramfs", "");
        assert!(text.contains("keeps no extended attributes"), "{text}");
        Ok(())
    });
}
