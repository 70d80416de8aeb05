//! The recordings that a member of the group can make.

use std::fs;
use std::os::unix::fs::MetadataExt;

use whit_sys::capability::CapabilitySet;

use crate::privileges::fixture::{Busy, Fixture, MEMBER, Skip, check, stderr, stdout};

/// Leaves out machines where everybody may do what a member may.
fn need_a_lock(fixture: &Fixture) -> Result<(), Skip> {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse::<i32>().is_ok_and(|level| level < 1) {
        return Err(Skip("perf_event_paranoid lets everybody record the whole machine".into()));
    }
    let plain = fixture.record(&["-a"], "exit 0");
    assert!(!plain.status.success(), "an ordinary user recorded the whole machine");
    let text = stderr(&plain);
    assert!(text.contains("whit)\" setup --group perf_users"), "the way out in {text}");
    Ok(())
}

#[test]
fn a_member_records_the_whole_machine_and_the_command_gains_nothing() {
    check("a_member_records_the_whole_machine_and_the_command_gains_nothing", || {
        let fixture = Fixture::new()?;
        need_a_lock(&fixture)?;
        assert!(fixture.setup(&[]).status.success());
        let busy = Busy::of_stranger();
        let mut record = fixture.by_member(&["record", "-a", "-e", "cpu-clock", "-o", "all", "--"]);
        let script = "cat /proc/self/status; sleep 0.3";
        let output = record.args(["sh", "-c", script]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let status = stdout(&output);
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(
                CapabilitySet::from_status(&status, set),
                Some(CapabilitySet::EMPTY),
                "{set} in {status}"
            );
        }
        assert!(status.contains("NoNewPrivs:\t0"), "set-uid commands work: {status}");
        let file = fs::metadata(fixture.home().join("all")).unwrap();
        assert_eq!((file.uid(), file.gid()), (MEMBER.uid, MEMBER.gid));
        assert_eq!(file.mode() & 0o7777, 0o600);
        let mut script = fixture.by_member(&["script", "-i", "all", "-F", "pid,ip,sym,dso"]);
        let output = script.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let samples = stdout(&output);
        let of_busy = |line: &&str| line.split_whitespace().any(|w| w == busy.id().to_string());
        assert!(samples.lines().any(|line| of_busy(&line)), "{samples}");
        // Its mappings were read although it belongs to somebody else.
        let shell = fs::canonicalize("/bin/sh").unwrap();
        let named = samples.lines().any(|line| line.contains(&*shell.to_string_lossy()));
        assert!(named, "{} in {samples}", shell.display());
        Ok(())
    });
}

#[test]
fn a_member_records_a_process_of_another_user() {
    check("a_member_records_a_process_of_another_user", || {
        let fixture = Fixture::set_up()?;
        let busy = Busy::of_stranger();
        let pid = busy.id().to_string();
        let output = fixture.record(&["-p", &pid, "-o", "one"], "sleep 0.3");
        assert!(output.status.success(), "{}", stderr(&output));
        let mut report =
            fixture.by_member(&["report", "-i", "one", "--stdio", "--sort", "dso", "-g", "none"]);
        let report = stdout(&report.output().unwrap());
        let shell = fs::canonicalize("/bin/sh").unwrap();
        let name = shell.file_name().unwrap().to_string_lossy().into_owned();
        assert!(report.contains(&name), "{name} in {report}");
        Ok(())
    });
}

/// `whit report` gives every capability up, but has opened the kernel's list of symbols before.
#[test]
fn a_member_sees_names_of_the_kernel() {
    check("a_member_sees_names_of_the_kernel", || {
        if fs::read_to_string("/proc/sys/kernel/kptr_restrict").is_ok_and(|v| v.trim() == "2") {
            return Err(Skip("kptr_restrict is 2: nobody sees addresses".into()));
        }
        let fixture = Fixture::new()?;
        need_a_lock(&fixture)?;
        assert!(fixture.setup(&[]).status.success());
        let calls = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); : </proc/self/stat; done";
        let output = fixture.record(&["-o", "kernel"], calls);
        assert!(output.status.success(), "{}", stderr(&output));
        let mut script = fixture.by_member(&["script", "-i", "kernel", "-F", "ip,sym,dso"]);
        let samples = stdout(&script.output().unwrap());
        let kernel: Vec<_> =
            samples.lines().filter(|line| line.contains("[kernel.kallsyms]")).collect();
        assert!(!kernel.is_empty(), "{samples}");
        let unnamed = kernel.iter().filter(|line| line.contains("[unknown]")).count();
        assert_eq!(unnamed, 0, "{kernel:#?}");
        Ok(())
    });
}

#[test]
fn the_doctor_lists_a_members_capabilities() {
    check("the_doctor_lists_a_members_capabilities", || {
        let fixture = Fixture::set_up()?;
        let output = fixture.by_member(&["doctor", "--json"]).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap();
        let status = |what: &str| {
            let finding = findings.iter().find(|finding| finding["what"] == what);
            finding.unwrap_or_else(|| panic!("no finding {what}"))["status"].clone()
        };
        for what in [
            "own processes, kernel",
            "processes of other users (-p)",
            "whole system (-a, -C)",
            "program's file",
            "cap_perfmon",
            "cap_sys_ptrace",
            "cap_syslog",
            "cap_bpf",
        ] {
            assert_eq!(status(what), "ok", "{what}");
        }
        Ok(())
    });
}

#[test]
fn a_request_without_the_right_is_refused_for_the_right() {
    check("a_request_without_the_right_is_refused_for_the_right", || {
        let events = whit_testing::probe::tracefs()?;
        let fixture = Fixture::new()?;
        let others = fs::metadata(events.parent().expect("tracefs")).unwrap().mode() & 0o5;
        let output = fixture.record(&["--request", "web=tcp:8080", "-o", "refused"], "exit 0");
        let text = stderr(&output);
        assert!(!output.status.success(), "{text}");
        // Where an administrator lets others read it, the BPF programs are refused.
        assert!(others != 0 || text.contains("Permission denied"), "{text}");
        assert!(!text.contains("not mounted"), "{text}");
        Ok(())
    });
}
