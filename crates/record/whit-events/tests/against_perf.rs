//! The same events through stock perf: names, configs and exclusions must agree.

mod support;

use whit_events::*;
use whit_testing::{Skip, probe, run};

/// Events that open on any machine, and with which perf itself agrees. Event and sampling
/// frequency matter not; what `perf evlist -v` shows of the attribute does.
const EVENTS: &[&str] = &[
    "cpu-clock",
    "cpu-clock:u",
    "cpu-clock:k",
    "cpu-clock:uk",
    "cpu-clock:h",
    "cpu-clock:G",
    "cpu-clock:H",
    "cpu-clock:uG",
    "cpu-clock:pH",
    "cpu-clock:pp",
    "cpu-clock:D",
    "cpu-clock:Du",
    "cpu-clock:I",
    "cpu-clock:e",
    "cpu-clock:b",
    "cpu-clock:uW",
    "cpu-clock:P",
    "cpu-clock:S",
    "cs",
    "migrations:u",
    "1:3:u",
    "cpu-clock//u",
    "cpu-clock/period=1000/u",
    "cpu-clock/name=clock/u",
    "software/config=1/u",
    "software/period=1,name=cs,config=0x3/Duk",
    "software/name='A.B:c=0x1',config=0/u",
    "software/name=\"A.B\",config=0/u",
    "software/name='\"A.B\"',config=0/u",
    "software/config=3 , period = 7/",
    "{cpu-clock:u,task-clock}:k",
    "{cpu-clock,task-clock}:uD",
    "{cpu-clock:p,task-clock}:p",
    "{cpu-clock:H,cs}:u",
    "work{cpu-clock,cs}:S",
    "mem:0x1000",
];

#[derive(PartialEq, Debug)]
struct Shown {
    name: String,
    pmu_type: u64,
    config: u64,
    bits: Vec<String>,
}

/// Without the right to count the kernel, perf rewrites every event it is given.
fn perf_can_compare() -> bool {
    // Whole CPUs are counted with the kernel.
    let probed = probe::perf().and_then(|()| probe::whole_cpus());
    if let Err(Skip(reason)) = &probed {
        whit_testing::skip("whit-events against_perf", reason);
    }
    probed.is_ok()
}

#[test]
fn perf_and_we_mean_the_same() {
    if !perf_can_compare() {
        return;
    }
    let table = PmuTable::from_sysfs(SYSFS_PMUS.as_ref()).expect("the PMUs of this machine");
    let ours = EVENTS.iter().flat_map(|text| {
        let list = parse(text).expect(text);
        resolve(&list, &table, &mut { support::TRACEPOINTS }).expect(text)
    });
    let ours: Vec<Shown> = ours.flat_map(|group| group.events).map(|event| shown(&event)).collect();
    let theirs = perfs();
    assert_eq!(ours.len(), theirs.len(), "{theirs:#?}");
    let differing: Vec<_> =
        ours.iter().zip(&theirs).filter(|(ours, theirs)| ours != theirs).collect();
    assert!(differing.is_empty(), "ours and perf's: {differing:#?}");
}

/// Events whose name and unit `perf stat` shows.
const COUNTED: &[&str] = &[
    "cpu-clock",
    "cpu-clock:u",
    "task-clock/name=mine/",
    "cpu-clock/config=3/",
    "cpu-clock/r3/",
    "1:0",
    "1:1:u",
    "software/config=0/",
    "software/config=1,name=clock/",
    "cs",
    "faults:u",
    "duration_time",
    "user_time:u",
    "system_time",
    "{cs,faults}:u",
    "name{cs,faults}",
    "{duration_time,cs}",
    "cs:b",
    "cs:Wu",
    "{cs,faults}:ub",
    "cgroup-switches",
    "bpf-output",
    "dummy",
    "cycles",
    "r1a8:u",
    "L1-dcache",
    "l1-d-read-miss",
    "LLC-speculative-read-refs",
    "branch-load-misses",
    "msr/tsc/",
    "msr/TSC/",
    "msr/event=tsc/",
    "msr/r0/",
    "msr/event=0,name=x/",
];

#[test]
fn counters_have_perfs_names_and_units() {
    if !perf_can_compare() {
        return;
    }
    let table = PmuTable::from_sysfs(SYSFS_PMUS.as_ref()).expect("the PMUs of this machine");
    let has_pmu = |text: &&&str| !text.starts_with("msr/") || table.find("msr").is_some();
    for text in COUNTED.iter().filter(has_pmu) {
        let list = parse(text).expect(text);
        let groups = resolve(&list, &table, &mut { support::TRACEPOINTS }).expect(text);
        let events = groups.iter().flat_map(|group| &group.events);
        let ours: Vec<_> = events.map(|event| (event.unit.clone(), event.name.clone())).collect();
        let mut perf = run::perf().expect("it can compare");
        let output = run::output(perf.args(["stat", "-x,", "-e", text, "true"]));
        let printed = run::stderr(&output);
        // count,unit,event,…
        let theirs: Vec<_> = printed
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .filter_map(|line| {
                let mut fields = line.split(',').skip(1).map(str::to_owned);
                Some((fields.next()?, fields.next()?))
            })
            .collect();
        assert_eq!(ours, theirs, "{text}: {printed}");
    }
}

fn shown(event: &ResolvedEvent) -> Shown {
    let exclude = event.exclude;
    let precise = match event.precise_ip {
        PreciseIp::Level(level) => level,
        PreciseIp::Max => 3,
    };
    let bits = [
        (event.pinned, "pinned: 1".to_owned()),
        (event.exclusive, "exclusive: 1".to_owned()),
        (exclude.user, "exclude_user: 1".to_owned()),
        (exclude.kernel, "exclude_kernel: 1".to_owned()),
        (exclude.hypervisor, "exclude_hv: 1".to_owned()),
        (exclude.idle, "exclude_idle: 1".to_owned()),
        (precise > 0, format!("precise_ip: {precise}")),
        (exclude.host, "exclude_host: 1".to_owned()),
        (exclude.guest, "exclude_guest: 1".to_owned()),
    ];
    let bits = bits.into_iter().filter(|(set, _)| *set).map(|(_, text)| text).collect();
    Shown {
        name: event.name.clone(),
        pmu_type: event.pmu_type.into(),
        config: event.config[0],
        bits,
    }
}

/// Records with perf and reads its attributes back.
fn perfs() -> Vec<Shown> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("perf.data");
    let file = file.to_str().expect("a path");
    let options =
        ["record", "-o", file].into_iter().chain(EVENTS.iter().flat_map(|text| ["-e", text]));
    let record = perf(&options.chain(["true"]).collect::<Vec<_>>());
    assert!(record.0, "perf record: {}", record.1);
    let (_, listed) = perf(&["evlist", "-v", "-i", file]);
    let events = listed.lines().filter(|line| line.contains(": type: "));
    events.filter(|line| !line.starts_with("dummy:")).map(parse_shown).collect()
}

fn perf(arguments: &[&str]) -> (bool, String) {
    let output = run::perf().expect("it can compare").args(arguments).output().expect("perf runs");
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

fn parse_shown(line: &str) -> Shown {
    let (name, attributes) = line.split_once(": type: ").expect("a type");
    let attributes = format!("type: {attributes}");
    let field = |key: &str| attributes.split(", ").find_map(|part| part.strip_prefix(key));
    let number = |key: &str| {
        let text = field(key).unwrap_or("0");
        let hex = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        hex.unwrap_or_else(|| text.parse()).expect("a number")
    };
    let wanted = ["exclude_", "pinned", "exclusive", "precise_ip"];
    let bits = attributes.split(", ").filter(|part| wanted.iter().any(|key| part.starts_with(key)));
    Shown {
        name: name.to_owned(),
        pmu_type: number("type: "),
        config: number("config: "),
        bits: bits.map(str::to_owned).collect(),
    }
}
