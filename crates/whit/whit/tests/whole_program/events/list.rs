//! `whit list`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::events::support::{
    Skip, as_unprivileged, check, list, listed, perf, probe, spellings, state, stderr, stdout, whit,
};

/// Kinds of event whose names both lists have.
const KINDS: [&str; 6] = [
    "Hardware event",
    "Software event",
    "Tool event",
    "Hardware cache event",
    "Kernel PMU event",
    "Tracepoint event",
];

/// perf's names by kind: `  name OR alias   [Kind]`.
fn perfs_names() -> Result<BTreeMap<String, BTreeSet<String>>, Skip> {
    let mut by_kind: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in perf(&["list"])?.lines() {
        let Some((names, kind)) = line.trim().trim_end_matches(']').rsplit_once('[') else {
            continue;
        };
        let names = names.split(" OR ").map(|name| name.trim().to_owned());
        let names = names.filter(|name| !name.starts_with("whit_"));
        by_kind.entry(kind.to_owned()).or_default().extend(names);
    }
    Ok(by_kind)
}

/// Names of one kind that pass the filter, in every spelling.
fn our_names(events: &[Value], kind: &str, wanted: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let of_kind = events.iter().filter(|event| event["kind"] == kind && wanted(event));
    // Recorders that run meanwhile make probes and take them away.
    of_kind.flat_map(spellings).filter(|name| !name.starts_with("whit_")).collect()
}

/// perf leaves out what the machine does not have; whit lists it and says so. Which events of PMUs
/// may be named without the PMU, the two see differently. Later perfs have more tool events.
#[test]
fn names_are_those_of_perf_list() {
    check("names_are_those_of_perf_list", || {
        let perfs = perfs_names()?;
        let ours = listed(&[]);
        for kind in KINDS {
            let theirs = perfs.get(kind).cloned().unwrap_or_default();
            let all = our_names(&ours, kind, |_| true);
            let is_short = |name: &&String| kind == "Kernel PMU event" && !name.contains('/');
            let first_of = |difference: Vec<&String>| -> Vec<String> {
                difference.into_iter().filter(|name| !is_short(name)).take(5).cloned().collect()
            };
            let missing = first_of(theirs.difference(&all).collect());
            assert!(missing.is_empty() || kind == "Tool event", "{kind}: whit lacks {missing:?} …");
            let usable = our_names(&ours, kind, |event| state(event) != "not-supported");
            let extra = first_of(usable.difference(&theirs).collect());
            assert!(extra.is_empty(), "{kind}: perf lacks {extra:?} …");
        }
        Ok(())
    });
}

#[test]
fn every_line_is_an_event_and_json_has_the_same() {
    let text = list(&["hw", "sw", "cache", "pmu"]);
    assert!(text.status.success(), "{}", stderr(&text));
    let shown: Vec<String> = stdout(&text)
        .lines()
        .map(|line| line.trim().split(['[', ' ']).next().unwrap_or_default().to_owned())
        .collect();
    let named: Vec<String> = listed(&["hw", "sw", "cache", "pmu"])
        .iter()
        .map(|event| event["name"].as_str().expect("a name").to_owned())
        .collect();
    assert!(named.len() > 40 && named.contains(&"page-faults".to_owned()), "{named:?}");
    assert_eq!(shown, named);
    assert!(!stdout(&text).contains('\u{1b}'), "no colours");
}

#[test]
fn software_events_open_and_tool_events_need_no_opening() {
    for event in listed(&["sw"]) {
        let expected: &[&str] = match event["kind"].as_str() {
            Some("Tool event") => &["by-tool"],
            _ => &["opens", "user-only", "not-permitted"],
        };
        assert!(expected.contains(&state(&event)), "{event}");
    }
}

#[test]
fn a_pattern_without_an_event_gets_a_suggestion_and_fails() {
    let output = list(&["cycels", "page-faults"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output), "whit: no event matches 'cycels'; did you mean cycles?\n");
    assert!(stdout(&output).starts_with("  page-faults OR faults "), "{}", stdout(&output));
    let metrics = list(&["--no-check", "metric"]);
    assert_eq!(metrics.status.code(), Some(1));
    assert!(stderr(&metrics).contains("no event matches 'metric': whit has no metrics"));
}

#[test]
fn plain_names_are_for_completion() {
    let output = list(&["-q", "sw"]);
    let names = stdout(&output);
    assert!(names.lines().all(|name| !name.contains([' ', '['])), "{names}");
    assert!(names.lines().any(|name| name == "cs"), "{names}");
    assert_eq!(stderr(&output), "");
    // A reader that goes away is no error.
    let shell = "\"$0\" list -q | head -1";
    let program = whit(&[]).get_program().to_owned();
    let piped = std::process::Command::new("sh").args(["-c", shell]).arg(program).output();
    let piped = piped.expect("a shell");
    assert_eq!((stdout(&piped).lines().count(), stderr(&piped).as_str()), (1, ""));
}

#[test]
fn details_list_the_parts_of_each_pmu() {
    let output = list(&["--details", "--no-check", "pmu"]);
    let text = stdout(&output);
    assert!(text.contains("  PMU software: type 1, "), "{text}");
    let only = stdout(&list(&["--details", "--no-check", "--unit", "software"]));
    assert!(only.starts_with("  PMU software: type 1, ") && only.lines().count() == 1, "{only}");
}

#[test]
fn tracepoints_are_tried_where_they_are_few() {
    check("tracepoints_are_tried_where_they_are_few", || {
        let all = listed(&["tracepoint"]);
        probe::tracefs()?;
        assert!(!all.is_empty(), "no tracepoint is listed");
        assert!(all.iter().all(|event| state(event) == "not-tried"), "{} events", all.len());
        let few = listed(&["sched:sched_swi*", "sched:sched_process_exec"]);
        assert_eq!(few.len(), 2);
        assert!(few.iter().all(|event| state(event) != "not-tried"), "{few:?}");
        let all = list(&["tracepoint"]);
        assert!(stderr(&all).contains("were not opened one by one (--check-all does it)"));
        Ok(())
    });
}

/// A user without rights reads which events are hidden or restricted, and how to change that.
#[test]
fn an_ordinary_user_reads_which_events_are_hidden() {
    check("an_ordinary_user_reads_which_events_are_hidden", || {
        let dir = tempfile::tempdir().expect("a directory");
        let output = as_unprivileged(dir.path(), &["list"])?;
        let (text, notes) = (stdout(&output), stderr(&output));
        assert!(output.status.success(), "{notes}");
        let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let level: i64 = level.expect("a level").trim().parse().expect("a number");
        let faults = text.lines().find(|line| line.starts_with("  page-faults")).expect("faults");
        match level {
            2 => {
                assert!(faults.contains("user space only"), "{faults}");
                assert!(notes.contains("sudo sysctl kernel.perf_event_paranoid=1"), "{notes}");
            }
            level if level < 2 => assert!(faults.contains(" ok "), "{faults}"),
            _ => assert!(faults.contains("not permitted: "), "{faults}"),
        }
        let hidden = !text.contains("[Tracepoint event]");
        assert_eq!(hidden, notes.contains("tracepoints are hidden: "), "{notes}");
        if hidden {
            let only = as_unprivileged(dir.path(), &["list", "tracepoint"])?;
            assert_eq!(only.status.code(), Some(1), "nothing is listed");
            assert!(stderr(&only).contains("sudo mount"), "{}", stderr(&only));
        }
        Ok(())
    });
}
