//! Event lists of any kind: no panic, and what is printed reads back equal. Lists that parse are
//! resolved against a machine with a few PMUs, which must not panic either.
#![cfg_attr(fuzzing, no_main)]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use whit_events::{
    FormatSpec, Pmu, PmuEvent, PmuTable, Term, TermValue, TracepointError, TracepointIds, parse,
    resolve,
};
use whit_fuzz::{Verdict, fuzz_target};

const DICTIONARY: &[&str] = &[
    "cycles",
    "cs",
    "cpu/",
    "event=0x3c",
    "umask=",
    "name='",
    "\\'",
    "\\ '",
    "\"",
    ",",
    "/",
    "{",
    "}",
    ":",
    "ppp",
    "ukhGHPSDWIe",
    "L1-dcache-load-misses",
    "sched:sched_switch",
    "sched:*",
    "mem:0x1000/8:rw",
    "r1a8",
    "1:3",
    "call-graph=dwarf",
    "stack-size=8192",
    "no-time",
    "@cfg=1",
    "uncore_imc",
    "cas_count_read",
    "[!a-z]",
    "0x",
    "18446744073709551615",
    "\\\n",
    "é",
];

static TABLE: LazyLock<PmuTable> = LazyLock::new(|| {
    let spec = |text| FormatSpec::parse(text).expect("a format");
    let formats: BTreeMap<String, FormatSpec> = [
        ("event".to_owned(), spec("config:0-7,32-35")),
        ("umask".to_owned(), spec("config:8-15")),
        ("inv".to_owned(), spec("config:23")),
        ("ldlat".to_owned(), spec("config1:0-63")),
    ]
    .into();
    let code = Term::Pmu { name: "event".to_owned(), value: TermValue::Number(4) };
    let events: BTreeMap<String, PmuEvent> =
        [("cas_count_read".to_owned(), PmuEvent::new(vec![code]))].into();
    let pmu = |name: &str, pmu_type, core| Pmu {
        name: name.to_owned(),
        pmu_type,
        core,
        formats: formats.clone(),
        events: events.clone(),
        ..Pmu::default()
    };
    let pmus = vec![
        pmu("cpu_core", 4, true),
        pmu("cpu_atom", 8, true),
        pmu("uncore_imc_0", 20, false),
        pmu("uncore_imc_1", 21, false),
        Pmu { name: "software".to_owned(), pmu_type: 1, ..Pmu::default() },
    ];
    PmuTable { pmus, problems: Vec::new() }
});

struct Tracepoints;

impl TracepointIds for Tracepoints {
    fn systems(&mut self) -> Result<Vec<String>, TracepointError> {
        Ok(vec!["irq".to_owned(), "sched".to_owned()])
    }

    fn names(&mut self, _system: &str) -> Result<Vec<String>, TracepointError> {
        Ok(vec!["sched_switch".to_owned(), "sched_wakeup".to_owned()])
    }

    fn id(&mut self, _system: &str, name: &str) -> Result<Option<u64>, TracepointError> {
        Ok((name == "sched_switch").then_some(1))
    }
}

fuzz_target!(DICTIONARY, |data| {
    let Ok(text) = std::str::from_utf8(data) else { return Verdict::Reject };
    let list = match parse(text) {
        Ok(list) => list,
        Err(error) => {
            assert!(error.position() <= text.chars().count());
            assert!(!error.to_string().is_empty());
            return Verdict::Reject;
        }
    };
    let printed = list.to_string();
    assert_eq!(parse(&printed).as_ref(), Ok(&list), "{printed}");
    match resolve(&list, &TABLE, &mut Tracepoints) {
        Ok(groups) => assert!(groups.iter().all(|group| !group.events.is_empty())),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Verdict::Keep
});
