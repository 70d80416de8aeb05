//! Recordings that another recorder makes meanwhile are as they would be alone.

use crate::support::tools::{perf, record, text, whit};
use crate::support::{check, probe};
use whit_testing::wait::Busy;

/// The fields of these events differ, so a sample that has the id of no event of the recording cannot be read. The second
/// one is pinned: when its thread comes, the kernel counts it behind those events of the CPU that are not.
const EVENTS: &str = "cpu-clock,software/period=1,name=cs,config=0x3/kD";
/// Each of them is a switch at least.
const SLEEPS: usize = 20;

#[test]
fn perfs_samples_of_switches_keep_their_ids_beside_the_bpf_engine() {
    check("perfs_samples_of_switches_keep_their_ids_beside_the_bpf_engine", || {
        probe::bpf_stacks()?;
        let place = tempfile::tempdir().expect("make a directory");
        let (ours, theirs) = (place.path().join("ours.data"), place.path().join("theirs.data"));
        // The engine has its event of switches where it saw no switch out of the idle thread. No CPU is idle here.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let busy: Vec<_> = (0..cpus).map(|_| Busy::start()).collect();
        busy.iter().for_each(Busy::wait_for_work);
        let perfs = perf()?;
        let mut recorder = whit();
        recorder.args(["record", "-a", "--engine=bpf", "--switch-events", "-o"]).arg(&ours);
        recorder.arg("--").arg(perfs.get_program()).args(["record", "-q", "-F", "1000", "-o"]);
        let sleeps = "sleep 0.005; ".repeat(SLEEPS);
        recorder.arg(&theirs).args(["-e", EVENTS, "--", "sh", "-c", &sleeps]);
        record(&mut recorder)?;
        let events = text(perf()?.args(["script", "-F", "event", "-i"]).arg(&theirs));
        let switches = events.lines().filter(|line| line.trim().starts_with("cs")).count();
        assert!(switches >= SLEEPS, "{switches} switches\n{events}");
        Ok(())
    });
}
