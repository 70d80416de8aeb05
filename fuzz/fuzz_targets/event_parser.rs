//! Event lists of any kind: no panic, and the printed list parses to an equal one. Lists that parse
//! are resolved against a machine with a few PMUs; the printed list must resolve to the same
//! events.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use whit_events::{
    EventList, FormatSpec, Pmu, PmuEvent, PmuTable, ResolvedGroup, Term, TermValue,
    TracepointError, TracepointIds, parse, resolve,
};
use whit_fuzz::fuzz_target;
use whit_types::CpuId;

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
    let parameter = Term::Pmu { name: "ldlat".to_owned(), value: TermValue::Text("?".to_owned()) };
    let scaled = PmuEvent {
        scale: 6.1e-5,
        unit: "MiB".to_owned(),
        per_package: true,
        ..PmuEvent::new(vec![code.clone(), Term::Period(100_003)])
    };
    let events: BTreeMap<String, PmuEvent> = [
        ("cas_count_read".to_owned(), scaled),
        ("mem-loads".to_owned(), PmuEvent::new(vec![code, parameter])),
    ]
    .into();
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
        Pmu { cpus: Some(vec![CpuId(0)]), uncore: true, ..pmu("uncore_imc_0", 20, false) },
        Pmu { cpus: Some(vec![CpuId(0)]), uncore: true, ..pmu("uncore_imc_1", 21, false) },
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

fuzz_target!(|data| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let list = match parse(text) {
        Ok(list) => list,
        Err(error) => {
            assert!(error.position() <= text.chars().count());
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let printed = list.to_string();
    assert_eq!(parse(&printed).as_ref(), Ok(&list), "{printed}");
    let read = parse(&printed).expect("read back above");
    match (resolved(&list), resolved(&read)) {
        (Ok(before), Ok(after)) => {
            assert!(before.iter().all(|group| !group.events.is_empty()));
            assert_eq!(before, after, "{printed}");
        }
        (Err(before), Err(after)) => assert_eq!(before, after, "{printed}"),
        (before, after) => panic!("{printed}: {before:?} became {after:?}"),
    }
});

/// The list's meaning, without spelling: names that were not given, and places in messages.
fn resolved(list: &EventList) -> Result<Vec<ResolvedGroup>, String> {
    let mut groups = resolve(list, &TABLE, &mut Tracepoints).map_err(|error| {
        assert!(!error.to_string().is_empty());
        error.kind.to_string()
    })?;
    let events = groups.iter_mut().flat_map(|group| &mut group.events);
    events.filter(|event| !event.name_given).for_each(|event| event.name.clear());
    Ok(groups)
}
