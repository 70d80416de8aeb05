//! Tables of vendors' events, from files of our own making to events that can be opened.

mod support;

use support::{HYBRID, INTEL, TRACEPOINTS, table, tree};
use whit_events::*;

const MODEL: &str = r#"[
  {"EventName": "INST_RETIRED.ANY", "EventCode": "0x00", "UMask": "0x01",
   "SampleAfterValue": "2000003", "BriefDescription": "Retired."},
  {"EventName": "MEM_TRANS.SLOW", "EventCode": "0xcd", "UMask": "0x1", "MSRIndex": "0x3F6",
   "MSRValue": "0x80", "BriefDescription": "Loads over 128 cycles.", "PublicDescription": "More."},
  {"EventName": "BAD.CODE", "EventCode": "many"},
  {"MetricName": "IPC", "MetricExpr": "INST_RETIRED.ANY / CYCLES"}
]"#;

const UNCORE: &str = r#"[
  {"EventName": "UNC_M_READS", "EventCode": "0x04", "Unit": "iMC", "PerPkg": "1",
   "ScaleUnit": "64Bytes"},
  {"EventName": "CAS_COUNT_READ", "EventCode": "0x05", "Unit": "iMC"},
  {"EventName": "UNC_NOWHERE", "EventCode": "0x01", "Unit": "nowhere"}
]"#;

const MAP: &str = "Family-model,Version,Filename,EventType\n\
                   GenuineIntel-6-(8E|9E),v1,lake,core\n\
                   GenuineIntel-6-97,v1,/alder/big.json,hybridcore,0x40,0x1,Core\n\
                   GenuineIntel-6-97,v1,/alder/small.json,hybridcore,0x20,0x1,Atom\n\
                   GenuineIntel-6-1,v1,../outside,core\n\
                   0x00000000410fd0c0,v1,arm/one,core\n";

fn files() -> tempfile::TempDir {
    tree(&[
        ("mapfile.csv", MAP),
        ("lake/core.json", MODEL),
        ("lake/uncore.json", UNCORE),
        ("lake/broken.json", "{"),
        ("alder/big.json", r#"{"Header": {}, "Events": [{"EventName": "W", "EventCode": "1"}]}"#),
        ("alder/small.json", r#"{"Header": {}, "Events": [{"EventName": "W", "EventCode": "2"}]}"#),
        (
            "standard.json",
            r#"[{"EventName": "L1I_REFILL", "EventCode": "0x01", "BriefDescription": "Refills."}]"#,
        ),
        (
            "arm/one/cache.json",
            r#"[{"ArchStdEvent": "l1i_refill"}, {"ArchStdEvent": "UNHEARD_OF"}]"#,
        ),
    ])
}

fn resolved(machine: &PmuTable, text: &str) -> Vec<ResolvedEvent> {
    let groups = resolve(&parse(text).unwrap(), machine, &mut { TRACEPOINTS });
    groups.unwrap_or_else(|error| panic!("{error}")).into_iter().flat_map(|g| g.events).collect()
}

#[test]
fn names_of_a_table_resolve_on_their_pmus() {
    let dir = files();
    let cpu = CpuIdentity::new("GenuineIntel-6-9E-A");
    let events = EventTable::read(dir.path(), Some(&cpu)).unwrap();
    let problems: Vec<String> = events.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("broken.json: no JSON"), "{problems:?}");
    assert!(problems[1].contains("event bad.code: EventCode is `many`"), "{problems:?}");
    let mut machine = table(INTEL);
    assert_eq!(machine.add_events(events.events), 1, "one belongs to no PMU");

    let any = &resolved(&machine, "inst_retired.any")[0];
    assert_eq!((any.config[0], any.default_period), (0xc0, Some(2_000_003)));
    assert_eq!(any.terms.sampling, None, "what the table proposes is not what the user asks for");
    let slow = &resolved(&machine, "cpu/MEM_TRANS.SLOW,ldlat=0x10/pp")[0];
    assert_eq!(slow.config, [0x1cd, 0x10, 0, 0]);
    let reads = resolved(&machine, "unc_m_reads");
    let pmus: Vec<_> = reads.iter().map(|e| (e.pmu.as_str(), e.scale, e.unit.as_str())).collect();
    assert_eq!(pmus, [("uncore_imc_0", 64.0, "Bytes"), ("uncore_imc_1", 64.0, "Bytes")]);
    assert!(reads.iter().all(|event| event.per_package && event.auto_merge));
    // The table's code, the kernel's unit.
    let replaced = &resolved(&machine, "cas_count_read")[0];
    assert_eq!((replaced.config[0], replaced.unit.as_str()), (5, "MiB"));
    let described = machine.find("cpu").and_then(|pmu| pmu.event("Mem_Trans.Slow")).unwrap();
    assert_eq!(described.description, "Loads over 128 cycles.");
    assert_eq!(described.long_description, "More.");
}

#[test]
fn misspelt_vendor_names_are_recognised() {
    let mut machine = table(INTEL);
    machine.add_events(EventTable::from_json("here", MODEL).events);
    let error = resolve(&parse("inst_retierd.any").unwrap(), &machine, &mut { TRACEPOINTS });
    let message = error.unwrap_err().to_string();
    assert!(message.contains("did you mean inst_retired.any?"), "{message}");
}

#[test]
fn kinds_of_core_have_tables_of_their_own() {
    let dir = files();
    let cpu = CpuIdentity::new("GenuineIntel-6-97-2");
    let mut machine = table(HYBRID);
    machine.add_events(EventTable::read(dir.path(), Some(&cpu)).unwrap().events);
    let mut shown: Vec<_> =
        resolved(&machine, "w").into_iter().map(|e| (e.pmu, e.config[0], e.auto_merge)).collect();
    shown.sort();
    assert_eq!(shown, [("cpu_atom".to_owned(), 2, false), ("cpu_core".to_owned(), 1, false)]);
}

#[test]
fn events_of_an_architecture_are_filled_in() {
    let dir = files();
    let arm = CpuIdentity::from_midr("0x00000000413fd0c1").unwrap();
    let by_map = EventTable::read(dir.path(), Some(&arm)).unwrap();
    let by_name = EventTable::read(&dir.path().join("arm/one"), None).unwrap();
    assert_eq!(by_map, by_name);
    assert_eq!(by_map.events.len(), 1);
    assert_eq!(by_map.events[0].name, "l1i_refill");
    assert_eq!(by_map.events[0].event.description, "Refills.");
    assert!(by_map.problems[0].why.contains("event UNHEARD_OF"), "{:?}", by_map.problems);
}

#[test]
fn a_single_file_or_model_needs_no_map() {
    let dir = files();
    let model = EventTable::read(&dir.path().join("lake"), None).unwrap();
    let file = EventTable::read(&dir.path().join("lake/core.json"), None).unwrap();
    assert_eq!((model.events.len(), file.events.len()), (5, 2));
}

#[test]
fn unreadable_tables_are_reported_with_the_remedy() {
    let dir = files();
    let read = |path: &str, cpu: Option<&str>| {
        let cpu = cpu.map(CpuIdentity::new);
        EventTable::read(&dir.path().join(path), cpu.as_ref()).unwrap_err().to_string()
    };
    assert!(read("none", None).contains("cannot read event tables from"));
    assert!(read("arm", None).contains("holds neither mapfile.csv nor a .json file"));
    let other = read("", Some("AuthenticAMD-25-1-1"));
    assert!(other.contains("nothing for this processor (AuthenticAMD-25-1-1)"), "{other}");
    assert!(read("", None).contains("which is not known"));
    let cpu = CpuIdentity::new("GenuineIntel-6-1-0");
    let outside = EventTable::read(dir.path(), Some(&cpu)).unwrap();
    assert!(outside.problems[0].why.contains("leads out of the directory"));
}

#[test]
fn problems_are_bounded() {
    let bad = vec![r#"{"EventName": "X", "EventCode": "?"}"#; MAX_TABLE_PROBLEMS + 7].join(",");
    let table = EventTable::from_json("here", &format!("[{bad}]"));
    assert_eq!((table.problems.len(), table.more_problems), (MAX_TABLE_PROBLEMS, 7));
}

/// The machine's `identifier` decides which events of a device apply.
#[test]
fn devices_are_known_by_their_identifier() {
    let machine = |identifier: &str| {
        table(&[
            ("arm_cmn_0/type", "30\n"),
            ("arm_cmn_0/format/eventid", "config:0-15\n"),
            ("arm_cmn_0/identifier", identifier),
        ])
    };
    let json =
        r#"[{"EventName": "HNF", "EventidCode": "0x5", "Unit": "arm_cmn", "Compat": "43401"}]"#;
    let added = |identifier| {
        let mut machine = machine(identifier);
        machine.add_events(EventTable::from_json("here", json).events);
        machine.pmus[0].event("hnf").is_some()
    };
    assert!(added("43401\n") && !added("43402\n"));
}
