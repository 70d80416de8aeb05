//! `whit record --embed-symbols` where the disk is full, where a signal ends the work, and where the name of the file is
//! no UTF-8: the recording stays whole, and a message names the way to the names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use whit_testing::run::{output, stderr};
use whit_testing::wait::{signal, wait_until};

use crate::support::tools::{text, whit, workload};
use crate::support::{Skip, check, probe};

/// How recordings are made: with chains, to which names are appended, and with dumps, which are written anew.
const WAYS: [(&str, &[&str]); 2] = [
    ("chains", &["-e", "cpu-clock:u", "-F", "997", "-g", "--engine=ring"]),
    ("dumps", &["-e", "cpu-clock:u", "-F", "997", "--call-graph", "dwarf,8192"]),
];
/// The place of the size of all records in the header. It is zero until a recording is complete.
const RECORDS_SIZE_AT: u64 = 48;
/// How often a disk is filled, or a signal sent, in the hope to be in time: names take a fifth of a second.
const TRIES: usize = 10;
/// Samples of half a second at 997 Hz; on a busy machine there are fewer.
const LEAST_SAMPLES: usize = 30;
const WAY_OUT: &str = "whit export --archive -i ";

/// A recorder that embeds names. Its program has much code.
fn recorder(home: &Path, options: &[&str], data: &Path) -> Result<Command, Skip> {
    let mut recorder = whit();
    recorder
        .env("HOME", home)
        .args(["record", "--engine=ring", "-N", "--embed-symbols=all"])
        .args(options);
    recorder.arg("-o").arg(data).arg("--").arg(workload("deep-go")?).args(["--seconds", "0.5"]);
    whit_testing::run::needs_of(&recorder)?;
    Ok(recorder)
}

/// The samples of a recording that is whole.
fn samples(data: &Path) -> usize {
    let report = output(whit().args(["report", "--stdio", "-i"]).arg(data));
    let said = stderr(&report);
    assert!(report.status.success() && !said.contains("did not end properly"), "{said}");
    let script = text(whit().args(["script", "-F", "comm,time,ip,sym", "-i"]).arg(data));
    script.split("\n\n").filter(|sample| !sample.trim().is_empty()).count()
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("read a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    names.sort();
    names
}

/// Whether the recorder has completed its file, so that only names are missing.
fn is_complete(data: &Path) -> bool {
    let size = || {
        let mut file = File::open(data)?;
        file.seek(SeekFrom::Start(RECORDS_SIZE_AT))?;
        let mut size = [0; 8];
        file.read_exact(&mut size).map(|()| u64::from_le_bytes(size))
    };
    size().is_ok_and(|size: u64| size > 0)
}

/// Sends a signal while names are collected. Gives the recorder's end and its messages.
fn stopped(mut recorder: Command, data: &Path, name: &str) -> Output {
    recorder.stdout(Stdio::null()).stderr(Stdio::piped());
    for _ in 0..TRIES {
        let child: Child = recorder.spawn().expect("run whit");
        wait_until("the recording is complete", || is_complete(data));
        signal(&child, name);
        let ended = child.wait_with_output().expect("it ends");
        // It had written the names already: the next recording has the whole place again.
        if !ended.status.success() {
            return ended;
        }
        std::fs::remove_file(data).expect("remove the recording");
    }
    panic!("in {TRIES} recordings, no {name} ended the work");
}

#[test]
fn a_killed_recorder_leaves_the_recording_as_it_was() {
    for (way, options) in WAYS {
        check(&format!("embedding_killed_{way}"), || {
            let place = tempfile::tempdir().expect("make a directory");
            let data = place.path().join("perf.data");
            let home = tempfile::tempdir().expect("make a directory");
            let ended = stopped(recorder(home.path(), options, &data)?, &data, "-KILL");
            // Otherwise it has written the names already.
            assert_eq!(ended.status.signal(), Some(9), "{}", stderr(&ended));
            assert_eq!(files(place.path()), std::slice::from_ref(&data));
            assert!(samples(&data) > LEAST_SAMPLES, "{way}");
            Ok(())
        });
    }
}

#[test]
fn a_signal_ends_the_work_and_the_way_to_names_is_said() {
    for (way, options) in WAYS {
        for (name, number) in [("-INT", 2), ("-TERM", 15)] {
            check(&format!("embedding_stopped_{way}_{number}"), || {
                let place = tempfile::tempdir().expect("make a directory");
                let data = place.path().join("perf.data");
                let home = tempfile::tempdir().expect("make a directory");
                let ended = stopped(recorder(home.path(), options, &data)?, &data, name);
                let said = stderr(&ended);
                assert_eq!(ended.status.code(), Some(128 + number), "{said}");
                assert!(said.contains(&format!("signal {number} came before")), "{said}");
                assert!(said.contains(&format!("{WAY_OUT}{}", data.display())), "{said}");
                assert!(said.contains("[ whit record: "), "{said}");
                assert_eq!(files(place.path()), std::slice::from_ref(&data));
                assert!(samples(&data) > LEAST_SAMPLES, "{way}");
                Ok(())
            });
        }
    }
}

/// A file system in memory, which is taken away with the value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(path: PathBuf, size: &str) -> Result<SmallDisk, Skip> {
        probe::root()?;
        std::fs::create_dir(&path).expect("make a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path);
        match output(&mut mount).status.success() {
            true => Ok(SmallDisk(path)),
            false => Err(Skip("a tmpfs cannot be mounted".to_owned())),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Takes all space of the disk.
fn fill(disk: &SmallDisk) {
    let mut filler = File::create(disk.0.join("filler")).expect("make a file");
    let mut piece = vec![1; 1 << 20];
    while !piece.is_empty() {
        if filler.write_all(&piece).is_err() {
            piece.truncate(piece.len() / 2);
        }
    }
}

/// Names are collected first, and the disk is full when they are written.
#[test]
fn a_full_disk_leaves_the_recording_and_says_the_way_to_names() {
    for (way, options) in WAYS {
        check(&format!("embedding_full_disk_{way}"), || {
            let place = tempfile::tempdir().expect("make a directory");
            let disk = SmallDisk::new(place.path().join("disk"), "24M")?;
            let (home, data) = (place.path().join("home"), disk.0.join("perf.data"));
            for _ in 0..TRIES {
                for file in files(&disk.0) {
                    std::fs::remove_file(file).expect("remove a file");
                }
                let mut recorder = recorder(&home, options, &data)?;
                let child = recorder.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
                let child = child.expect("run whit");
                wait_until("the recording is complete", || is_complete(&data));
                fill(&disk);
                let ended = child.wait_with_output().expect("it ends");
                let said = stderr(&ended);
                if said.contains("the names of frames take") {
                    continue;
                }
                assert!(said.contains("No space left on device"), "{said}");
                assert!(said.contains(&format!("{WAY_OUT}{}", data.display())), "{said}");
                assert_eq!(ended.status.code(), Some(0), "{said}");
                assert_eq!(files(&disk.0), [disk.0.join("filler"), data.clone()]);
                assert!(samples(&data) > LEAST_SAMPLES, "{way}: {said}");
                // The way that the message names.
                let archive = place.path().join("archive.data");
                let mut export = whit();
                export.args(["export", "--archive", "-i"]).arg(&data).arg("-o").arg(&archive);
                text(&mut export);
                assert_eq!(samples(&archive), samples(&data));
                return Ok(());
            }
            Err(Skip("names were written before the disk was full".to_owned()))
        });
    }
}

#[test]
fn names_that_are_no_utf8_are_written_to_and_said_as_a_shell_takes_them() {
    check("embedding_no_utf8", || {
        let place = tempfile::tempdir().expect("make a directory");
        let home = tempfile::tempdir().expect("make a directory");
        let data = place.path().join(OsStr::from_bytes(b"perf\xff.data"));
        let (_, options) = WAYS[0];
        let said = stderr(&whit_testing::run::run(&mut recorder(home.path(), options, &data)?));
        assert!(
            said.contains("the names of frames take") && said.contains("perf\\xff.data"),
            "{said}"
        );
        let archive = place.path().join(OsStr::from_bytes(b"archive\xfe.data"));
        let mut export = whit();
        let exported =
            output(export.args(["export", "--archive", "-i"]).arg(&data).arg("-o").arg(&archive));
        let printed = String::from_utf8_lossy(&exported.stdout).into_owned();
        assert!(exported.status.success() && printed.contains("archive\\xfe.data"), "{printed}");
        assert_eq!(samples(&archive), samples(&data));
        std::fs::remove_file(&data).expect("remove the recording");
        let ended = stopped(recorder(home.path(), options, &data)?, &data, "-INT");
        let said = stderr(&ended);
        let quoted = format!("{WAY_OUT}$'{}/perf\\xff.data'", place.path().display());
        assert!(said.contains(&quoted), "{said}");
        Ok(())
    });
}
