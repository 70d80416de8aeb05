//! Table files and maps of any kind: no panic, and every event from a table can be added to a
//! machine and looked up there, used or refused.
#![no_main]

use whit_events::{EventTable, FormatSpec, Owner, Pmu, PmuTable, TracefsIds, parse, resolve};
use whit_fuzz::fuzz_target;

fn machine() -> PmuTable {
    let spec = |text| FormatSpec::parse(text).expect("a format");
    let formats = [
        ("event".to_owned(), spec("config:0-7,32-35")),
        ("umask".to_owned(), spec("config:8-15")),
        ("inv".to_owned(), spec("config:23")),
    ];
    let pmu = |name: &str, pmu_type, core| Pmu {
        name: name.to_owned(),
        pmu_type,
        core,
        formats: formats.clone().into(),
        ..Pmu::default()
    };
    let pmus = vec![pmu("cpu", 4, true), pmu("uncore_imc_0", 20, false)];
    PmuTable { pmus, problems: Vec::new() }
}

fuzz_target!(|data| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let table = EventTable::from_json("fuzz", text);
    let names: Vec<(String, Owner)> =
        table.events.iter().map(|event| (event.name.clone(), event.owner.clone())).collect();
    let mut machine = machine();
    let homeless = machine.add_events(table.events);
    assert!(homeless <= names.len());
    let mut tracepoints = TracefsIds::new("/nonexistent");
    for (name, owner) in names {
        if owner == Owner::Cores {
            assert!(machine.pmus[0].event(&name).is_some(), "{name}");
        }
        if let Ok(list) = parse(&name) {
            match resolve(&list, &machine, &mut tracepoints) {
                Ok(groups) => assert!(groups.iter().all(|group| !group.events.is_empty())),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
});
