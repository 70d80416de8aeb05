//! `--call-graph fp,defer`: user call chains that the kernel takes at the return to user mode.

use std::path::Path;

use whit_testing::parse::stats::Stats;

use whit_testing::run::record;

use crate::support::tools::{text, whit};
use crate::support::{Skip, check, probe};

/// A command that is in the kernel for most of its time.
const COMMAND: [&str; 4] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=256K"];
const BLOCKS: &str = "count=40000";

/// Records the command, and gives the messages of whit.
fn record_to(data: &Path) -> Result<String, Skip> {
    let mut recorder = whit();
    recorder.args(["record", "-e", "cpu-clock", "-F", "2000", "--call-graph", "fp,defer", "-o"]);
    recorder.arg(data).arg("--").args(COMMAND).arg(BLOCKS);
    let output = record(&mut recorder)?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The addresses of each sample's call chain.
fn chains(data: &Path) -> Vec<Vec<u64>> {
    let script = text(whit().args(["script", "--no-inline", "-F", "comm,ip", "-i"]).arg(data));
    let samples = script.split("\n\n").map(|sample| {
        let addresses = sample.lines().filter(|line| line.starts_with('\t'));
        let address = |line: &str| u64::from_str_radix(line.trim(), 16).expect("an address");
        addresses.map(address).collect()
    });
    samples.filter(|chain: &Vec<u64>| !chain.is_empty()).collect()
}

fn is_of_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// Chains that begin in the kernel and end in user mode, and those that begin in the kernel.
fn whole(data: &Path) -> (usize, usize) {
    let chains = chains(data);
    let in_kernel: Vec<_> = chains.iter().filter(|chain| is_of_kernel(chain[0])).collect();
    let is_whole = |chain: &&&Vec<u64>| chain.last().is_some_and(|last| !is_of_kernel(*last));
    (in_kernel.iter().filter(is_whole).count(), in_kernel.len())
}

fn stats(data: &Path) -> Stats {
    Stats::parse(&text(whit().args(["report", "--stats", "-i"]).arg(data)))
}

#[test]
fn deferred_chains_are_recorded_and_joined() {
    check("deferred_chains_are_recorded_and_joined", || {
        probe::deferred_chains()?;
        let directory = tempfile::tempdir().expect("make a directory");
        let data = directory.path().join("perf.data");
        let said = record_to(&data)?;
        assert!(!said.contains("defers no"), "{said}");
        let deferred = stats(&data).by_type.get("CALLCHAIN_DEFERRED").copied().unwrap_or(0);
        let (whole, in_kernel) = whole(&data);
        assert!(in_kernel > 100, "{in_kernel} samples in the kernel");
        assert!(deferred > 100, "{deferred} deferred chains");
        assert!(whole * 100 >= in_kernel * 95, "{whole} of {in_kernel} chains are whole");
        Ok(())
    });
}

#[test]
fn a_kernel_that_defers_nothing_takes_chains_at_each_sample() {
    check("a_kernel_that_defers_nothing_takes_chains_at_each_sample", || {
        if probe::deferred_chains().is_ok() {
            return Err(Skip("the kernel defers user call chains".to_owned()));
        }
        let directory = tempfile::tempdir().expect("make a directory");
        let data = directory.path().join("perf.data");
        let said = record_to(&data)?;
        assert!(
            said.contains("this kernel defers no user call chains (Linux 6.19 does)"),
            "{said}"
        );
        assert_eq!(stats(&data).by_type.get("CALLCHAIN_DEFERRED"), None);
        let (whole, in_kernel) = whole(&data);
        assert!(in_kernel > 100, "{in_kernel} samples in the kernel");
        assert!(whole * 100 >= in_kernel * 95, "{whole} of {in_kernel} chains are whole");
        Ok(())
    });
}

#[test]
fn the_bpf_engine_refuses_them_and_says_what_to_do() {
    let mut recorder = whit();
    recorder.args(["record", "--engine=bpf", "--call-graph", "fp,defer", "-o", "/dev/null"]);
    let output = recorder.args(["--", "true"]).output().expect("run whit");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("take --engine=ring"), "{said}");
}
