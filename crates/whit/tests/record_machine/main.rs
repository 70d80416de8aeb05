//! `whit record` while a CPU goes offline. Its events never count again, so that recordings by other tests would miss
//! that CPU: this runs alone, in a program of its own, where `WHIT_TEST_MACHINE` is set.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use whit_testing::parse::stats::Stats;
use whit_testing::run::text;
use whit_testing::wait::wait_until;
use whit_testing::{Skip, check, probe};

const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";

fn whit() -> Command {
    whit_testing::run::whit(env!("CARGO_BIN_EXE_whit"))
}

/// Size of a file, or of all files of a directory.
fn size(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter_map(|e| Some(e.metadata().ok()?.len())).sum(),
        Err(_) => path.metadata().map_or(0, |metadata| metadata.len()),
    }
}

fn has_exited(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_some())
}

#[test]
fn a_cpu_that_goes_offline_ends_nothing() {
    check("a_cpu_that_goes_offline_ends_nothing", || {
        probe::may_change_the_machine()?;
        probe::whole_cpus()?;
        if fs::write(SWITCH, "1").is_err() {
            return Err(Skip("there is no second CPU that can be switched off here".into()));
        }
        let directory = tempfile::tempdir().expect("make a directory");
        for mode in ["", "--threads --affinity=cpu --aio"] {
            let path = directory.path().join("offline.data");
            let mut whit_record = whit();
            whit_record.args(["record", "-e", "cpu-clock", "-F", "999"]);
            whit_record.args(mode.split_ascii_whitespace()).arg("-o").arg(&path);
            whit_record.args(["-a", "--", "sleep", "1"]).stderr(Stdio::piped());
            let mut recorder = whit_record.spawn().expect("run whit");
            wait_until("the recording begins", || size(&path) > 0 || has_exited(&mut recorder));
            let off = fs::write(SWITCH, "0");
            let mut said = String::new();
            let mut pipe = recorder.stderr.take().expect("a pipe");
            pipe.read_to_string(&mut said).expect("read what whit says");
            let status = recorder.wait().expect("wait for whit");
            fs::write(SWITCH, "1").expect("switch the CPU on again");
            off.map_err(|error| Skip(format!("CPU 1 cannot be switched off: {error}")))?;
            assert!(status.success(), "{mode}: {said}");
            let stats = text(whit().args(["report", "--stats", "-i"]).arg(&path));
            assert!(Stats::parse(&stats).samples() > 0, "{mode}");
        }
        Ok(())
    });
}
