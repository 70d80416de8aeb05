//! Where BPF is refused.

use crate::stat::cgroup::Cgroup;
use crate::stat::engines::ON;
use crate::stat::support::{Skip, check, counted, probe, said, whit};
use crate::stat::table::{count, rows};
use crate::stat::users::{by_unprivileged, copy};
use std::fs::File;
use std::path::Path;
use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::file_capability::FileCapabilities;

/// Lends a copy of whit these capabilities.
fn lend(whit: &Path, capabilities: &[Capability]) -> Result<(), Skip> {
    let lent = FileCapabilities::effective(CapabilitySet::of(capabilities));
    let given = lent.give(File::open(whit).unwrap());
    given.map_err(|error| Skip(format!("no capabilities can be given to a file here: {error}")))
}

#[test]
fn without_the_right_to_bpf_the_kernels_events_count_and_that_is_said_once() {
    check("bpf::without_the_right_to_bpf", || {
        let group = Cgroup::make("fallback", &["a"])?;
        let (_dir, whit) = copy()?;
        lend(&whit, &[Capability::PerfMon])?;
        let name = group.of("a");
        let cgroup = ["-a", "--for-each-cgroup", &name, "-e", "page-faults"];
        let run = |options: &[&str]| {
            let output = by_unprivileged(&whit, &[options, &cgroup, &["sleep", "0.3"]].concat());
            (output.status.success(), said(&output))
        };
        // Root's work, meanwhile.
        let script = group.work_in("a");
        let work = format!("while :; do {script}; done");
        let mut worker = std::process::Command::new("sh").args(["-c", &work]).spawn().unwrap();
        let auto = run(&["-r", "2"]);
        let off = run(&["--bpf-counters=off"]);
        let on = run(&[ON]);
        let lines = run(&["-x;", "--quiet"]);
        worker.kill().unwrap();
        worker.wait().unwrap();
        let (succeeded, text) = auto;
        assert!(succeeded, "{text}");
        assert_eq!(text.matches("whit: warning").count(), 1, "{text}");
        let warning =
            "it takes cap_bpf and cap_perfmon: run whit as root or set it up with whit setup";
        assert!(text.contains(warning) && text.contains("--bpf-counters=off says that"), "{text}");
        assert!(text.contains("counted by the kernel's cgroup events: 1 cgroup"), "{text}");
        assert!(count(&rows(&text), "page-faults", &name) > 100.0, "{text}");
        let (succeeded, text) = off;
        assert!(succeeded && !text.contains("warning"), "{text}");
        assert!(count(&rows(&text), "page-faults", &name) > 100.0, "{text}");
        let (succeeded, text) = on;
        assert!(!succeeded && text.contains("cgroups cannot be counted by BPF"), "{text}");
        assert!(text.contains("cap_bpf") && text.contains("--bpf-counters=auto"), "{text}");
        assert_eq!(lines, (true, String::new()));
        Ok(())
    });
}

#[test]
fn a_member_counts_by_bpf_and_the_command_gains_nothing() {
    check("bpf::a_member_counts_by_bpf", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("member", &[])?;
        let (_dir, whit) = copy()?;
        lend(&whit, &[Capability::PerfMon, Capability::Bpf])?;
        let line = [ON, "-a", "-I", "50", "-e", "cpu-clock", "-G", &group.name];
        let output = by_unprivileged(&whit, &[&line[..], &["cat", "/proc/self/status"]].concat());
        let text = said(&output);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("counted by BPF: 1 cgroup"), "{text}");
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let line = status.lines().find(|line| line.starts_with(set)).expect(set);
            assert!(line.trim_end().ends_with("0000000000000000"), "{line}");
        }
        Ok(())
    });
}

#[test]
fn bpf_without_cgroups_is_the_kernels_events() {
    let text = counted(&[ON, "-e", "page-faults:u", "true"]);
    assert!(text.contains("--bpf-counters is about cgroups"), "{text}");
    assert!(count(&rows(&text), "page-faults:u", "") > 0.0, "{text}");
    let text = counted(&["-e", "page-faults:u", "true"]);
    assert!(!text.contains("BPF") && !text.contains("bpf"), "{text}");
    let refused = whit(&["--bpf-counters=maybe", "true"]).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("on, off or auto"));
}
