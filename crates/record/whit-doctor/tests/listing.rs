//! Lists of events of machines made of files, with a scripted kernel.

use std::fs;
use std::path::Path;

use whit_doctor::{
    Count, EngineTrial, Listing, MAX_TRACEPOINTS_TRIED, Machine, Openable, Probe, Roots, Selection,
    Target, TextOptions, Trial, list, render_listing_json, render_listing_text, render_names,
};
use whit_events::{EventTable, PmuTable, TracefsIds, TracepointError, TracepointIds};
use whit_perfdata::attr::{Attr, AttrFlags};
use whit_sys::Errno;
use whit_sys::capability::CapabilitySet;
use whit_sys::limit::LimitValue;

type Rule = fn(&Attr, Target) -> Result<Count, Errno>;

const RUNS: Count = Count { value: 9, enabled_ns: 5, running_ns: 5 };
const NEVER: Count = Count { value: 0, enabled_ns: 5, running_ns: 0 };

/// Opens events by a rule, and notes each opening.
struct Scripted {
    rule: Rule,
    opened: std::rc::Rc<std::cell::Cell<usize>>,
}

impl Probe for Scripted {
    fn run(&mut self, attr: &Attr, target: Target) -> Result<Count, Errno> {
        self.opened.set(self.opened.get() + 1);
        (self.rule)(attr, target)
    }

    fn open(&mut self, attr: &Attr, target: Target) -> Result<(), Errno> {
        self.run(attr, target).map(drop)
    }

    fn count(&mut self, _: &Attr) -> Result<Count, Errno> {
        unreachable!("a list does no work")
    }

    fn sample(&mut self, _: &Attr) -> Result<u64, Errno> {
        unreachable!("a list takes no samples")
    }

    fn time_reads(&mut self, _: &Attr, _: usize) -> Result<Vec<u64>, Errno> {
        unreachable!("a list measures nothing")
    }

    fn time_opens(&mut self, _: &Attr, _: usize) -> Result<Vec<u64>, Errno> {
        unreachable!("a list measures nothing")
    }

    fn time_interrupts(&mut self, _: &Attr, _: usize) -> Result<Vec<u64>, Errno> {
        unreachable!("a list measures nothing")
    }

    fn load_bpf(&mut self) -> Result<(), Errno> {
        unreachable!("a list loads nothing")
    }

    fn load_engine(&mut self) -> EngineTrial {
        unreachable!("a list loads nothing")
    }
}

/// So many tracepoints of one system, beside `sched:sched_switch`.
struct Many(usize);

impl TracepointIds for Many {
    fn systems(&mut self) -> Result<Vec<String>, TracepointError> {
        Ok(vec!["many".to_owned(), "sched".to_owned()])
    }

    fn names(&mut self, system: &str) -> Result<Vec<String>, TracepointError> {
        let many = || (0..self.0).map(|index| format!("point_{index:02}")).collect();
        Ok(if system == "many" { many() } else { vec!["sched_switch".to_owned()] })
    }

    fn id(&mut self, _: &str, _: &str) -> Result<Option<u64>, TracepointError> {
        Ok(Some(7))
    }
}

const FILES: &[(&str, &str)] = &[
    ("sys/bus/event_source/devices/software/type", "1\n"),
    ("sys/bus/event_source/devices/cpu/type", "4\n"),
    ("sys/bus/event_source/devices/cpu/caps/max_precise", "3\n"),
    ("sys/bus/event_source/devices/cpu/format/event", "config:0-7\n"),
    ("sys/bus/event_source/devices/cpu/events/mem-loads", "event=0xcd\n"),
    ("sys/bus/event_source/devices/msr/type", "9\n"),
    ("sys/bus/event_source/devices/msr/format/event", "config:0-63\n"),
    ("sys/bus/event_source/devices/msr/events/tsc", "event=0x0\n"),
    ("sys/bus/event_source/devices/power/type", "20\n"),
    ("sys/bus/event_source/devices/power/cpumask", "0\n"),
    ("sys/bus/event_source/devices/power/format/event", "config:0-7\n"),
    ("sys/bus/event_source/devices/power/events/energy-pkg", "event=0x02\n"),
    ("sys/bus/event_source/devices/power/events/energy-pkg.scale", "0.5\n"),
    ("sys/bus/event_source/devices/power/events/energy-pkg.unit", "Joules\n"),
    ("sys/bus/event_source/devices/uncore_imc_0/type", "21\n"),
    ("sys/bus/event_source/devices/uncore_imc_0/format/event", "config:0-7\n"),
    ("sys/bus/event_source/devices/uncore_imc_0/events/reads", "event=0x04\n"),
    ("sys/bus/event_source/devices/uncore_imc_1/type", "22\n"),
    ("sys/bus/event_source/devices/uncore_imc_1/format/event", "config:0-7\n"),
    ("sys/bus/event_source/devices/uncore_imc_1/events/reads", "event=0x04\n"),
    ("sys/bus/event_source/devices/hv_24x7/type", "24\n"),
    ("sys/bus/event_source/devices/hv_24x7/format/core", "config:0-7\n"),
    ("sys/bus/event_source/devices/hv_24x7/events/PM_CYC", "core=?\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/sys/kernel/cap_last_cap", "40\n"),
    ("proc/self/uid_map", "0 0 4294967295\n"),
];

const ROOT: &str = "000001ffffffffff";
const NO_CAPABILITY: &str = "0000000000000000";

struct Bench {
    dir: tempfile::TempDir,
    machine: Machine,
    opened: std::rc::Rc<std::cell::Cell<usize>>,
}

fn bench(capabilities: &str, rule: Rule) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let status = format!(
        "Name:\twhit\nCapEff:\t{capabilities}\nCapBnd:\t{ROOT}\nNoNewPrivs:\t0\nSeccomp:\t0\n"
    );
    for (path, content) in FILES.iter().chain(&[("proc/self/status", status.as_str())]) {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let opened = std::rc::Rc::default();
    let limit = LimitValue { soft: Some(1024), hard: Some(4096) };
    let machine = Machine {
        roots: Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            ..Roots::default()
        },
        release: "6.1.0".into(),
        machine: "x86_64".into(),
        euid: 1000,
        program: "/opt/whit".into(),
        program_file: None,
        borrowed: CapabilitySet::default(),
        is_filtered: false,
        open_files: limit,
        locked_memory: limit,
        page_size: 4096,
        probe: Box::new(Scripted { rule, opened: std::rc::Rc::clone(&opened) }),
    };
    Bench { dir, machine, opened }
}

impl Bench {
    fn table(&self) -> PmuTable {
        let devices = self.dir.path().join("sys/bus/event_source/devices");
        PmuTable::from_sysfs(&devices).unwrap()
    }

    fn list(&mut self, words: &[&str]) -> Listing {
        let table = self.table();
        let selection = Selection::new(words.iter().copied());
        list(&mut self.machine, &table, &mut Many(3), &selection, Trial::Usual)
    }

    fn openable(&mut self, name: &str) -> Openable {
        let listing = self.list(&[]);
        let event = listing.events.into_iter().find(|event| event.entry.name == name);
        event.unwrap_or_else(|| panic!("{name} is listed")).openable
    }
}

fn everything_runs(_: &Attr, _: Target) -> Result<Count, Errno> {
    Ok(RUNS)
}

/// As the kernel at level 2 answers a user without capabilities: `msr` cannot tell user space from
/// the kernel.
fn level_2(attr: &Attr, target: Target) -> Result<Count, Errno> {
    const MSR: u32 = 9;
    let user_only = attr.has(AttrFlags::EXCLUDE_KERNEL);
    match (target, attr.pmu_type) {
        (Target::Cpu(_), _) => Err(Errno::ACCESS),
        (_, _) if !user_only => Err(Errno::ACCESS),
        (_, MSR) => Err(Errno::INVAL),
        (_, 3) => Err(Errno::NOENT),
        _ => Ok(RUNS),
    }
}

#[test]
fn an_ordinary_user_reads_the_remedy_of_each_refusal() {
    let mut bench = bench(NO_CAPABILITY, level_2);
    let lift = |level| {
        Some(format!(
            "sudo sysctl kernel.perf_event_paranoid={level}, or for this program alone: sudo \
             /opt/whit setup --group perf_users"
        ))
    };
    assert_eq!(bench.openable("page-faults"), Openable::UserOnly { remedy: lift(1) });
    let refused = |level| Openable::NotPermitted {
        detail: "perf_event_paranoid is 2 (EACCES)".into(),
        remedy: lift(level),
    };
    assert_eq!(bench.openable("msr/tsc/"), refused(1));
    assert_eq!(bench.openable("power/energy-pkg/"), refused(0));
    assert!(matches!(bench.openable("LLC-loads"), Openable::NotSupported { .. }));
    assert_eq!(bench.openable("duration_time"), Openable::ByTool);
    let notes = bench.list(&["sw", "msr/*"]).notes;
    let whats: Vec<&str> = notes.iter().map(|note| note.what.as_str()).collect();
    assert_eq!(whats, ["12 events: user space only", "1 event: not permitted"]);
}

#[test]
fn events_that_never_run_or_stay_at_zero_do_not_count() {
    let mut never = bench(ROOT, |_, _| Ok(NEVER));
    let state = never.openable("instructions");
    assert!(
        matches!(&state, Openable::DoesNotCount { detail, .. } if detail.contains("never put"))
    );
    // Page faults may well be none; cycles may not.
    let mut silent = bench(ROOT, |_, _| Ok(Count { value: 0, ..RUNS }));
    assert_eq!(silent.openable("page-faults"), Openable::Opens);
    let state = silent.openable("cycles");
    assert!(
        matches!(&state, Openable::DoesNotCount { detail, .. } if detail.contains("nothing came"))
    );
}

/// PMUs outside the cores refuse exclusions that they lack.
#[test]
fn guests_are_counted_where_they_cannot_be_distinguished() {
    let mut bench = bench(ROOT, |attr, _| match attr.has(AttrFlags::EXCLUDE_GUEST) {
        true => Err(Errno::INVAL),
        false => Ok(RUNS),
    });
    assert_eq!(bench.openable("power/energy-pkg/"), Openable::Opens);
}

#[test]
fn events_that_need_values_are_not_opened() {
    let mut bench = bench(ROOT, everything_runs);
    let wanted = Openable::NeedsParameters { parameters: vec!["core".into()] };
    assert_eq!(bench.openable("hv_24x7/PM_CYC/"), wanted);
    assert_eq!(wanted.to_string(), "needs values: core");
}

#[test]
fn many_tracepoints_are_not_opened_one_by_one() {
    let mut bench = bench(ROOT, everything_runs);
    let table = bench.table();
    let mut tracepoints = |trial, count: usize, words: &[&str]| {
        bench.opened.set(0);
        let selection = Selection::new(words.iter().copied());
        let listing = list(&mut bench.machine, &table, &mut Many(count), &selection, trial);
        let tried = listing.events.iter().filter(|event| event.openable == Openable::Opens);
        (tried.count(), bench.opened.get(), listing)
    };
    let few = MAX_TRACEPOINTS_TRIED - 1;
    let (tried, opened, listing) = tracepoints(Trial::Usual, few, &["tracepoint"]);
    assert_eq!((tried, opened, listing.notes.len()), (MAX_TRACEPOINTS_TRIED, few + 1, 0));
    let (tried, opened, listing) = tracepoints(Trial::Usual, few + 1, &["tracepoint"]);
    assert_eq!((tried, opened), (0, 1));
    assert!(listing.notes[0].what.contains("sched:sched_switch, tried for all of them: ok"));
    let (tried, ..) = tracepoints(Trial::Everything, 40, &["tracepoint"]);
    assert_eq!(tried, 41);
    let (tried, opened, _) = tracepoints(Trial::Nothing, 40, &[]);
    assert_eq!((tried, opened), (0, 0));
    let (_, opened, listing) = tracepoints(Trial::Usual, 40, &["hw"]);
    assert_eq!((opened, listing.events.len()), (10, 10), "no tracepoint is looked at");
}

#[test]
fn tracepoints_that_cannot_be_read_are_a_note() {
    let mut bench = bench(ROOT, everything_runs);
    let table = bench.table();
    let selection = Selection::new(["tracepoint"]);
    let mut hidden = TracefsIds::new(Path::new("/nonexistent"));
    let listing = list(&mut bench.machine, &table, &mut hidden, &selection, Trial::Usual);
    assert!(listing.events.is_empty());
    assert!(listing.notes[0].what.starts_with("tracepoints are hidden: there is no tracefs"));
    assert!(listing.notes[0].remedy.as_ref().is_some_and(|lift| lift.contains("mount -t tracefs")));
}

#[test]
fn patterns_without_an_event_get_a_suggestion() {
    let mut bench = bench(ROOT, everything_runs);
    for (pattern, nearest) in [
        ("cycels", Some("cycles")),
        ("shced:*", Some("sched:*")),
        ("sched_swich", Some("sched:sched_switch")),
        ("msr/tcs", Some("msr/tsc/")),
        ("uncore_imz_0", Some("uncore_imc_0")),
        ("qqqqqqqq", None),
    ] {
        let listing = bench.list(&[pattern, "cs"]);
        let unmatched: Vec<_> =
            listing.unmatched.iter().map(|u| (u.pattern.as_str(), u.nearest.as_deref())).collect();
        assert_eq!(unmatched, [(pattern, nearest)]);
        assert!(!listing.events.is_empty(), "the other pattern is listed");
    }
    assert!(bench.list(&["software*"]).unmatched.is_empty(), "a PMU without events");
}

#[test]
fn units_and_renamed_events_are_filtered() {
    let mut bench = bench(ROOT, everything_runs);
    let mut table = bench.table();
    let json = r#"[{"EventName": "NEW.NAME", "EventCode": "1"},
                   {"EventName": "OLD.NAME", "EventCode": "1", "Deprecated": "1"}]"#;
    table.add_events(EventTable::from_json("here", json).events);
    let mut names = |selection: &Selection| -> Vec<String> {
        let listing = list(&mut bench.machine, &table, &mut Many(0), selection, Trial::Usual);
        listing.events.into_iter().map(|event| event.entry.name).collect()
    };
    let mut selection = Selection::default();
    selection.pmu = Some("cpu".into());
    assert_eq!(names(&selection), ["cpu/mem-loads/", "cpu/new.name/"]);
    selection.deprecated = true;
    assert_eq!(names(&selection), ["cpu/mem-loads/", "cpu/new.name/", "cpu/old.name/"]);
}

#[test]
fn the_text_has_one_line_for_each_event() {
    let mut bench = bench(NO_CAPABILITY, level_2);
    let listing = bench.list(&["pmu", "cs", "sched:*"]);
    let text = render_listing_text(&listing, TextOptions::default());
    assert_eq!(text.lines().count(), listing.events.len());
    insta::assert_snapshot!(text);
    let details = TextOptions { details: true, ..TextOptions::default() };
    insta::assert_snapshot!("details", render_listing_text(&listing, details));
    let names = render_names(&listing);
    assert!(names.starts_with("context-switches\ncs\n"), "{names}");
    assert!(names.contains("\nuncore_imc/reads/\nreads\n"), "{names}");
}

#[test]
fn json_has_every_field() {
    let mut bench = bench(NO_CAPABILITY, level_2);
    let json = render_listing_json(&bench.list(&["power", "uncore_imc"])).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let energy = &value["events"][0];
    assert_eq!(energy["name"], "power/energy-pkg/");
    assert_eq!((&energy["unit"], &energy["scale"]), (&"Joules".into(), &0.5.into()));
    assert_eq!(energy["openable"]["state"], "not-permitted");
    assert!(energy["openable"]["remedy"].as_str().unwrap().contains("paranoid=0"));
    assert_eq!(value["events"][1]["pmus"].as_array().unwrap().len(), 2);
    assert_eq!(value["pmus"][0]["cpus"], "0");
    assert_eq!(value["pmus"][0]["formats"]["event"], "config:0-7");
}
