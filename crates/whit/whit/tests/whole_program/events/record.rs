//! Odd events through `whit record`, read back by perf; wrong ones answered.

use std::path::Path;

use crate::events::support::{check, listed, perf, probe, state, stderr, whit};

fn record(dir: &Path, events: &[&str]) -> std::process::Output {
    let mut command = whit(&["record", "--engine=ring", "-o", "out.data"]);
    command.args(events.iter().flat_map(|event| ["-e", event]));
    command.args(["--", "true"]).current_dir(dir).output().expect("whit runs")
}

/// As the documents type them, behind one layer of quoting of the shell.
#[test]
fn quoted_names_are_kept_in_the_recording() {
    check("quoted_names_are_kept_in_the_recording", || {
        let dir = tempfile::tempdir().expect("a directory");
        let output = record(
            dir.path(),
            &[
                r"software/name=\ 'CPU_CLK_UNHALTED.THREAD:cmask=0x1\ ',period=0x3567e0,config=0/u",
                r"software/name='OFFCORE_RESPONSE:request=DEMAND_RFO:response=L3_HIT.SNOOP_HITM',config=0x3/u",
                r#"software/period=1,name="a 'b' / c, {d}",config=0x3/Du"#,
                "page-faults:u,{cs,faults/name=mine/}:Su",
            ],
        );
        assert!(output.status.success(), "{}", stderr(&output));
        let file = dir.path().join("out.data");
        let names = perf(&["evlist", "-i", file.to_str().expect("a path")])?;
        let names: Vec<&str> = names.lines().filter(|name| !name.starts_with('#')).collect();
        let expected = [
            "CPU_CLK_UNHALTED.THREAD:cmask=0x1",
            "OFFCORE_RESPONSE:request=DEMAND_RFO:response=L3_HIT.SNOOP_HITM",
            "a 'b' / c, {d}",
            "page-faults:u",
            "cs",
            "mine",
        ];
        assert_eq!(names[..expected.len()], expected, "{names:?}");
        Ok(())
    });
}

#[test]
fn every_software_event_that_is_listed_as_open_records() {
    check("every_software_event_that_is_listed_as_open_records", || {
        let usable = ["opens", "user-only"];
        let events = listed(&["sw"]);
        let open = events.iter().filter(|event| usable.contains(&state(event)));
        let names: Vec<&str> = open.filter_map(|event| event["name"].as_str()).collect();
        probe::own_events()?;
        assert!(!names.is_empty(), "{events:?}");
        let dir = tempfile::tempdir().expect("a directory");
        let output = record(dir.path(), &[&names.join(",")]);
        assert!(output.status.success(), "{}", stderr(&output));
        Ok(())
    });
}

#[test]
fn wrong_events_are_answered_with_place_and_suggestion() {
    let dir = tempfile::tempdir().expect("a directory");
    // An event that this machine lacks may exist on another; a misspelt one is wrong usage.
    for (code, event, parts) in [
        (1, "cs,cycels:u", vec!["at character 4", "did you mean cycles?", "\n     ^"]),
        (2, "cpu-clock:ux", vec!["at character 12", "a modifier (one of ", "found `x`"]),
        (1, "software/perod=1/", vec!["at character 10", "did you mean period?"]),
        (1, "sofware/config=3/", vec!["did you mean software?", "this machine has no PMU"]),
        (2, "{cs,faults", vec!["a closing `}` for the group opened"]),
    ] {
        let output = record(dir.path(), &[event]);
        assert_eq!(output.status.code(), Some(code), "{event}");
        let message = stderr(&output);
        for part in parts {
            assert!(message.contains(part), "{event}: {message}");
        }
        assert!(!dir.path().join("out.data").exists(), "{event}: a file was made");
    }
}
