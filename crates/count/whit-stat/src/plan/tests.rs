use whit_host::roots::Roots;
use whit_types::OutsideText;

use super::*;
use crate::counter::tests::counters;

fn on(model: &str) -> Machine {
    Machine::choose(Some(model), &Roots::default()).unwrap()
}

fn text(model: &str, events: &str) -> String {
    forecast(&counters(events), on(model)).to_string()
}

fn in_cgroups(events: &str, cgroups: &[&str]) -> Vec<Counter> {
    let mut counters = counters(events);
    for (counter, name) in counters.iter_mut().zip(cgroups) {
        counter.cgroup = (!name.is_empty()).then(|| OutsideText::new((*name).into()));
    }
    counters
}

#[test]
fn fixed_counters_are_used_and_software_events_need_none() {
    let text = text("skylake", "cycles,instructions,ref-cycles,task-clock");
    assert_eq!(
        text,
        "PMU of skylake: Intel, version 4, 4 general-purpose counters, 3 fixed ones\n\n\
         all of the time\n    cycles on fixed1\n\
         all of the time\n    instructions on fixed0\n\
         all of the time\n    ref-cycles on fixed2\n\n\
         needs no counter of this PMU: task-clock\n"
    );
}

#[test]
fn more_events_than_counters_take_turns() {
    let events = "r1,r2,r3,r4,r5,r6";
    assert!(forecast(&counters(events), on("zen4")).fits());
    let of_skylake = forecast(&counters(events), on("skylake"));
    assert!(!of_skylake.fits());
    let text = of_skylake.to_string();
    assert!(text.contains("67% of the time (4 of 6 turns)\n    r1 on"), "{text}");
    assert!(text.contains("pmc0 is shared by r1,"), "{text}");
}

#[test]
fn a_group_is_all_or_nothing_unless_it_is_weak() {
    let strict = text("k10", "{r1,r2,r3,r4,r5}");
    assert!(strict.contains("never: 5 events in one group and 4 counters"), "{strict}");
    let weak = text("k10", "{r1,r2,r3,r4,r5}:W");
    assert!(weak.contains("80% of the time (4 of 5 turns)"), "{weak}");
}

#[test]
fn modifiers_keep_an_event_off_fixed_counters() {
    // instructions with a threshold of 1, and without
    let text = text("skylake", "r10000c0,r00c0");
    assert!(text.contains("r10000c0 on pmc0") && text.contains("r00c0 on fixed0"), "{text}");
    let amd = super::tests::text("zen3", "ref-cycles");
    assert!(amd.contains("ref-cycles on pmc0"), "{amd}");
}

#[test]
fn siblings_never_wait_for_each_other_and_parents_count_with_them() {
    let events = "r1,r2,r3,r4,r5,r6,r7,r8";
    let siblings = in_cgroups(events, &["p/a", "p/a", "p/a", "p/a", "p/b", "p/b", "p/b", "p/b"]);
    assert!(forecast(&siblings, on("k10")).fits());
    let with_parent = in_cgroups(events, &["p/a", "p/a", "p/a", "p/a", "p", "", "pa", "pa"]);
    let forecast = forecast(&with_parent, on("k10"));
    assert!(!forecast.fits());
    let text = forecast.to_string();
    let headings: Vec<_> = text.lines().filter(|line| line.starts_with("while")).collect();
    assert_eq!(
        headings,
        [
            "while tasks outside of these cgroups run:",
            "while tasks of p/a run:",
            "while tasks of p run:",
            "while tasks of pa run:"
        ]
    );
    assert!(text.contains("67% of the time (4 of 6 turns)\n    r1"), "{text}");
    let of_pa = text.split("tasks of pa run:").nth(1).unwrap();
    assert!(of_pa.contains("r6") && of_pa.contains("r7") && !of_pa.contains("r5"), "{of_pa}");
}

#[test]
fn cgroups_with_the_same_fate_share_a_line() {
    let names = ["a", "b", "c", "d", "e"];
    let mut all = in_cgroups("r1,r1,r1,r1,r1", &names);
    all.extend(counters("r2"));
    let text = forecast(&all, on("k10")).to_string();
    assert!(text.contains("while tasks of a, b, c and 2 more run:"), "{text}");
}

#[test]
fn the_watchdog_holds_a_counter() {
    let watched = Machine { has_watchdog: true, ..on("k10") };
    let text = forecast(&counters("r1,r2,r3,r4"), watched).to_string();
    assert!(
        text.contains("all of the time, pinned\n    the kernel's NMI watchdog on pmc0"),
        "{text}"
    );
    assert!(text.contains("75% of the time (3 of 4 turns)"), "{text}");
}

#[test]
fn unknown_pmus_are_answered_with_the_list() {
    let error = Machine::choose(Some("skylark"), &Roots::default()).unwrap_err().to_string();
    assert!(error.contains("'skylark'") && error.contains("zen3"), "{error}");
    let sys = tempfile::tempdir().unwrap();
    let roots = Roots { sys: sys.path().to_owned(), ..Roots::default() };
    let error = Machine::choose(None, &roots).unwrap_err().to_string();
    assert!(error.contains("no hardware events") && error.contains("--plan=skylake"), "{error}");
    // With a PMU in the kernel, the CPU describes it, or why not is said.
    std::fs::create_dir_all(sys.path().join("bus/event_source/devices/cpu")).unwrap();
    match Machine::choose(None, &roots) {
        Ok(machine) => assert!(machine.to_string().starts_with("PMU of this CPU: ")),
        Err(error) => assert!(error.to_string().contains("--plan=skylake"), "{error}"),
    }
}

#[test]
fn nothing_to_plan_is_said() {
    assert!(text("zen4", "faults").contains("no event needs a counter"));
}
