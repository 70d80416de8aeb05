//! Error messages for wrong events: whole messages, against a machine made of files.

mod support;

use std::fmt::Write;

use support::{INTEL, TRACEPOINTS, table};
use whit_events::*;

/// One of each way to be wrong, and the slips that people make.
const WRONG: &[&str] = &[
    // The list.
    "",
    "cycles,",
    ",cycles",
    "cycles instructions",
    "cycles;instructions",
    "cycles}",
    "{cycles,cs",
    "{}",
    "{cycles,{cs}}",
    "{cycles,cs}:x",
    "12",
    "4294967296:1",
    "1:0xg",
    // Modifiers.
    "cycles:ux",
    "cycles:uu",
    "cycles:pppp",
    "cycles:user",
    "cs,{cs,faults:D}",
    "{cs:ppp,faults}:p",
    // Names.
    "cycels",
    "instuctions:u,cs",
    "page-fault",
    "cache-miss",
    "cpu-migration",
    "L1-dcache-lod-misses",
    "L1-icache-stores",
    "iTLB-prefetches",
    "mem-lods",
    "sched_switch",
    "zzzzzzzz",
    "power",
    "uncore_imc",
    // PMUs.
    "cpi/event=1/",
    "uncore_imz/event=4/",
    "uncore_xyz*/event=4/",
    "cycels/period=1000/",
    // Terms.
    "cpu/event=1",
    "cpu/event=1 umask=2/",
    "cpu/event=1,umsk=2/u",
    "cpu/=1/",
    "cpu/perod=1/",
    "cpu/event=0x100/",
    "cpu/event=0x1g/",
    "cpu/umask/",
    "cpu/umask=mem/",
    "cpu/period=99999999999999999999/",
    "cpu/period='5'/",
    "cpu/mem-loads,topdown-retiring/",
    "cpu/time=2/",
    "cpu/name/",
    "cpu/name=''/",
    "cpu/name='abc/",
    "cpu/name='abc'x/",
    "cpu/@/",
    "hv_24x7/PM_CYC/",
    "cycles-ct",
    "cycles/umask=1/",
    "cycles/call-graph=dwraf/",
    "cs,cycles/stack-size=70000/",
    "cycles/max-stack=70000/",
    // Tracepoints and breakpoints.
    "sched:",
    "sched:sched_swich",
    "shed:sched_switch",
    "nothing:at_all",
    "sched:x*",
    "mem:x",
    "mem:0x10/",
    "mem:0x10:q",
    "mem:0x10:rr",
];

fn message(text: &str) -> String {
    match parse(text) {
        Err(error) => error.to_string(),
        Ok(list) => match resolve(&list, &table(INTEL), &mut { TRACEPOINTS }) {
            Err(error) => error.to_string(),
            Ok(groups) => panic!("{text} is taken for {groups:?}"),
        },
    }
}

#[test]
fn messages_have_the_place_the_expected_form_and_the_nearest_name() {
    let mut all = String::new();
    for text in WRONG {
        let _ = writeln!(all, "{text:?}\n{}\n", message(text));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_machine_without_hardware_counters_says_so() {
    let files = &INTEL[..3];
    let list = parse("cpu/event=0x3c/").unwrap();
    let error = resolve(&list, &table(files), &mut { TRACEPOINTS }).unwrap_err();
    let wanted = "event cpu/event=0x3c/ at character 1: this machine has no PMU cpu (nor any other that \
                  counts hardware events of the cores: in virtual machines that is the host's to \
                  allow); it has breakpoint, software, tracepoint\n  cpu/event=0x3c/\n  ^";
    assert_eq!(error.to_string(), wanted);
}

/// A caret of each error of a list of several lines stands under the character that is wrong.
#[test]
fn carets_are_under_the_term_that_is_wrong() {
    let text = "cycles,\\\n  cpu/event=1,umask=0x100,name='é'/u,cs";
    let error = resolve(&parse(text).unwrap(), &table(INTEL), &mut { TRACEPOINTS }).unwrap_err();
    let shown = error.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    let caret = lines[2].chars().count() - 1;
    assert!(lines[1].chars().skip(caret).collect::<String>().starts_with("umask=0x100"), "{shown}");
}
