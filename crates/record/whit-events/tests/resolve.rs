//! Events on machines of several kinds, made of files.

mod support;

use support::{HYBRID, INTEL, TRACEPOINTS, table, tree};
use whit_events::*;

fn groups_on(files: &[(&str, &str)], text: &str) -> Result<Vec<ResolvedGroup>, ResolveError> {
    let list = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    resolve(&list, &table(files), &mut { TRACEPOINTS })
}

fn all_on(files: &[(&str, &str)], text: &str) -> Vec<ResolvedEvent> {
    let groups = groups_on(files, text).unwrap_or_else(|error| panic!("{error}"));
    groups.into_iter().flat_map(|group| group.events).collect()
}

fn one(text: &str) -> ResolvedEvent {
    let mut all = all_on(INTEL, text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn refusal(text: &str) -> String {
    groups_on(INTEL, text).expect_err(text).to_string()
}

#[test]
fn symbols_have_the_kernels_numbers() {
    for (text, pmu_type, config) in [
        ("cycles", TYPE_HARDWARE, 0),
        ("ref-cycles:u", TYPE_HARDWARE, 9),
        ("cs", TYPE_SOFTWARE, 3),
        ("cgroup-switches", TYPE_SOFTWARE, 11),
        ("L1-dcache-load-misses", TYPE_HW_CACHE, 0x10000),
        ("dTLB-store-misses", TYPE_HW_CACHE, 0x10103),
        ("r1a8", TYPE_RAW, 0x1a8),
        ("1:3", TYPE_SOFTWARE, 3),
        ("cycles/config=7/", TYPE_HARDWARE, 7),
        ("cpu-clock/r3/", TYPE_SOFTWARE, 3),
        ("cpu/instructions/", TYPE_HARDWARE, 1),
        ("cpu/r1a8/", TYPE_RAW, 0x1a8),
        ("software/cs/", TYPE_SOFTWARE, 3),
        ("software/config=0x3/", TYPE_SOFTWARE, 3),
    ] {
        let event = one(text);
        assert_eq!(
            (event.pmu_type, event.config[0], event.name.as_str()),
            (pmu_type, config, text)
        );
    }
}

#[test]
fn names_are_those_of_perf() {
    for (text, name) in [
        ("cycles:ppp", "cycles:ppp"),
        ("software/period=1,name=cs,config=0x3/Duk", "cs"),
        ("L1-dcache-load-misses:u", "L1-dcache-load-misses"),
        ("l1d-loads", "l1d-loads"),
        ("sched:sched_switch:u", "sched:sched_switch"),
        ("cpu/event=0x3C , umask=1/u", "cpu/event=0x3C , umask=1/u"),
        ("mem:0x1000/4:rw:u", "mem:0x1000/4:rw:u"),
        ("cycles/name='a b'/u", "a b"),
    ] {
        assert_eq!(one(text).name, name);
    }
    let built = EventList { text: String::new(), items: parse("cs:u").unwrap().items };
    assert_eq!(
        resolve(&built, &table(INTEL), &mut { TRACEPOINTS }).unwrap()[0].events[0].name,
        "cs:u"
    );
}

#[test]
fn pmu_terms_are_laid_into_the_config_words() {
    let event = one("cpu/event=0x3c,umask=0x1,cmask=1,inv,edge,period=5,name=x/Duk");
    assert_eq!(event.config, [0x0184_013c, 0, 0, 0]);
    assert_eq!((event.pmu_type, event.max_precise), (TYPE_RAW, Some(3)));
    assert_eq!(event.terms.sampling, Some(Sampling::Period(5)));
    assert!(event.pinned && event.exclude.hypervisor && !event.exclude.kernel);
    assert_eq!(one("uncore_imc_0/event=0xfab/").config[0], 0xf_0000_00ab);
}

#[test]
fn named_events_bring_terms_scale_and_unit() {
    let loads = one("cpu/mem-loads/pp");
    assert_eq!((loads.config, loads.precise_ip), ([0x1cd, 3, 0, 0], PreciseIp::Level(2)));
    assert_eq!(one("cpu/mem-loads,ldlat=30/").config[1], 30);
    assert_eq!(one("cpu/event=mem-loads/").config[0], 0x1cd);
    assert_eq!(one("mem-loads:P").precise_ip, PreciseIp::Max);
    let written = one("mem-loads/ldlat=30,name=slow/pp");
    assert_eq!((written.config, written.name.as_str()), ([0x1cd, 30, 0, 0], "slow"));
    assert_eq!((one("cpu/cycles/").pmu_type, one("cpu/cycles/").config[0]), (TYPE_RAW, 0x3c));
    let energy = one("power/energy-pkg/");
    assert_eq!((energy.unit.as_str(), energy.scale), ("Joules", 2.328_306_436_538_696_3e-10));
    assert!(energy.uncore);
    assert_eq!(energy.cpus.map(|cpus| cpus.len()), Some(1));
    assert_eq!(one("hv_24x7/PM_CYC,core=7/").config[0], 0x7_0002);
}

#[test]
fn instances_and_patterns_give_an_event_each() {
    for text in
        ["uncore_imc/cas_count_read/", "imc/event=4/", "uncore_imc_[01]/event=4/", "cas_count_read"]
    {
        let pmus: Vec<_> = all_on(INTEL, text).into_iter().map(|event| event.pmu).collect();
        assert_eq!(pmus, ["uncore_imc_0", "uncore_imc_1"], "{text}");
    }
    // The free-running counters have no `event` field and are left out.
    assert_eq!(all_on(INTEL, "uncore_imc*/event=4/").len(), 2);
    // An instance may be called by the address of its device.
    assert_eq!(one("ccn/event=1/").pmu, "ccn_5e6a0");
    assert_eq!(one("imc_1/event=1/").pmu, "uncore_imc_1");
}

#[test]
fn instances_are_merged_and_kinds_of_core_are_not() {
    let merged = |files, text| {
        all_on(files, text).iter().map(|e| (e.auto_merge, e.written)).collect::<Vec<_>>()
    };
    assert_eq!(merged(INTEL, "cs,uncore_imc/event=4/"), [(false, 0), (true, 1), (true, 1)]);
    assert_eq!(merged(INTEL, "{cs,cs},cas_count_read")[2..], [(true, 2), (true, 2)]);
    assert_eq!(merged(INTEL, "uncore_imc_0/event=4/"), [(false, 0)]);
    assert_eq!(merged(HYBRID, "cycles"), [(false, 0), (false, 0)]);
    assert_eq!(merged(HYBRID, "cpu/event=1/"), [(false, 0), (false, 0)]);
}

#[test]
fn clocks_are_in_milliseconds_and_tool_events_in_nanoseconds() {
    for (text, scale, unit) in [
        ("cpu-clock:u", 1e-6, "msec"),
        ("task-clock/name=x/", 1e-6, "msec"),
        ("1:0", 1e-6, "msec"),
        ("cpu-clock/config=3/", 1.0, ""),
        ("software/config=0/", 1.0, ""),
        ("cycles", 1.0, ""),
        ("duration_time", 1.0, "ns"),
        ("user_time:u", 1.0, "ns"),
    ] {
        let event = one(text);
        assert_eq!((event.scale, event.unit.as_str()), (scale, unit), "{text}");
        assert_eq!(event.tool.is_some(), unit == "ns", "{text}");
    }
}

#[test]
fn tracepoints_are_looked_up() {
    let switch = one("sched:sched_switch");
    assert_eq!(
        (switch.pmu_type, switch.config[0], switch.default_period),
        (TYPE_TRACEPOINT, 372, Some(1))
    );
    let names = |text| all_on(INTEL, text).into_iter().map(|event| event.name).collect::<Vec<_>>();
    assert_eq!(names("sched:sched_[sw]*[hp]"), ["sched:sched_switch", "sched:sched_wakeup"]);
    assert_eq!(names("*:*").len(), 4);
    assert_eq!(
        all_on(INTEL, "{sched:*}:S").iter().map(|e| e.leader).collect::<Vec<_>>(),
        [0, 0, 0]
    );
}

#[test]
fn breakpoints_have_perfs_defaults() {
    let attr = |text| one(text).breakpoint.expect("a breakpoint");
    assert_eq!((attr("mem:0x1000").len, attr("mem:0x1000").bp_type), (4, 3));
    assert_eq!((attr("mem:0x1000:x").len, attr("mem:0x1000:x").bp_type), (8, 4));
    assert_eq!((attr("mem:0x1000/8:w").len, attr("mem:0x1000/8:w").bp_type), (8, 2));
}

#[test]
fn group_modifiers_come_after_the_members_own() {
    let groups = groups_on(INTEL, "cs,{cycles:u,instructions}:kpSD,faults").unwrap();
    let group = &groups[1].events;
    assert!(group.iter().all(|event| event.sample_read && event.precise_ip == PreciseIp::Level(1)));
    let bits =
        |e: &ResolvedEvent| (e.exclude.user, e.exclude.kernel, e.exclude.hypervisor, e.pinned);
    assert_eq!(bits(&group[0]), (false, false, true, true));
    assert_eq!(bits(&group[1]), (true, false, true, false));
    let leaders: Vec<_> = groups.iter().flat_map(|g| &g.events).map(|e| e.leader).collect();
    assert_eq!(leaders, [0, 1, 1, 3]);
}

#[test]
fn guests_are_left_out_unless_modifiers_say_otherwise() {
    assert!(one("cycles").exclude.guest);
    assert!(one("cycles:u").exclude.guest);
    assert!(!one("cycles:k").exclude.guest);
    assert_eq!(one("cycles:G").exclude, Exclude { host: true, ..Exclude::default() });
}

#[test]
fn hybrid_machines_count_on_each_kind_of_core() {
    let events = all_on(HYBRID, "cycles:u");
    let shown: Vec<_> = events.iter().map(|e| (e.name.as_str(), e.config[0], e.pmu_type)).collect();
    assert_eq!(shown, [("cpu_core/cycles/u", 4 << 32, 0), ("cpu_atom/cycles/u", 8 << 32, 0)]);
    let groups = groups_on(HYBRID, "{cs,cycles,instructions}").unwrap();
    let parts: Vec<Vec<&str>> =
        groups.iter().map(|g| g.events.iter().map(|e| e.name.as_str()).collect()).collect();
    assert_eq!(
        parts,
        [
            vec!["cs", "cpu_core/cycles/", "cpu_core/instructions/"],
            vec!["cpu_atom/cycles/", "cpu_atom/instructions/"]
        ]
    );
    assert!(groups.iter().all(|group| group.split));
    assert_eq!(all_on(HYBRID, "cpu/event=1/").len(), 2);
}

#[test]
fn a_group_over_several_pmus_is_split() {
    let groups = groups_on(INTEL, "work{uncore_imc/event=4/,uncore_imc/event=5/}").unwrap();
    let pmus: Vec<Vec<&str>> =
        groups.iter().map(|g| g.events.iter().map(|e| e.pmu.as_str()).collect()).collect();
    assert_eq!(pmus, [["uncore_imc_0"; 2], ["uncore_imc_1"; 2]]);
    assert!(groups.iter().all(|g| g.name.as_deref() == Some("work")));
}

#[test]
fn restricting_to_user_space_shows_in_the_name() {
    for (text, name) in [
        ("cycles", "cycles:u"),
        ("cycles:p", "cycles:pu"),
        ("cpu/event=1/", "cpu/event=1/u"),
        ("sched:sched_switch", "sched:sched_switch:u"),
        ("cycles/name=mine/", "mine"),
    ] {
        let mut event = one(text);
        assert!(event.counts_kernel());
        event.restrict_to_user();
        assert_eq!((event.name.as_str(), event.counts_kernel()), (name, false));
        let tracepoint = text.starts_with("sched:").then_some("sched:sched_switch");
        assert_eq!(event.tracepoint(), tracepoint);
    }
    assert_eq!(one("sched:sched_switch/name=mine/").tracepoint(), None);
}

#[test]
fn refusals_name_the_alternatives() {
    for (text, parts) in [
        ("cycels", vec!["has an event cycels", "did you mean cycles?"]),
        ("mem-lods", vec!["did you mean mem-loads?"]),
        ("power", vec!["events of the PMU power are written power/…/"]),
        (
            "cpi/event=1/",
            vec!["no PMU cpi", "breakpoint, ccn_5e6a0, cpu, hv_24x7", "did you mean cpu?"],
        ),
        (
            "cpu/evnt=1/",
            vec![
                "PMU cpu has no term evnt",
                "cmask, edge, event",
                "cpu-cycles, cycles-ct, mem-loads",
                "did you mean event?",
            ],
        ),
        ("cpu/perod=1/", vec!["did you mean period?"]),
        (
            "cpu/event=0x100/",
            vec!["0x100 is too big for term event of PMU cpu: at most 0xff (config:0-7)"],
        ),
        ("cpu/umask/", vec!["term umask of PMU cpu has 8 bits and needs a value"]),
        ("cpu/umask=mem/", vec!["takes a number, not `mem`"]),
        ("cpu/mem-loads,topdown-retiring/", vec!["mem-loads and topdown-retiring are both events"]),
        ("hv_24x7/PM_CYC/", vec!["event PM_CYC of PMU hv_24x7 needs core=…"]),
        (
            "cs,sched:sched_swich",
            vec!["no tracepoint sched:sched_swich", "did you mean sched:sched_switch?", "\n     ^"],
        ),
        ("shed:sched_switch", vec!["did you mean sched:sched_switch?"]),
        ("cycles/stack-size=70000/", vec!["stack-size=70000 is out of range: 1 to 65528"]),
        ("{cs,faults:D}", vec!["only the first event of a group"]),
        ("{cs:ppp,faults}:p", vec!["more than 3 modifiers p"]),
        ("cycles-ct", vec!["PMU cpu has no term in_tx"]),
    ] {
        let message = refusal(text);
        for part in parts {
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}

#[test]
fn an_error_in_sysfs_costs_that_part_only() {
    let dir = tree(&[
        ("good/type", "7\n"),
        ("good/format/event", "config:0-7\n"),
        ("good/format/odd", "config:7-0\n"),
        ("good/events/broken", "event=\n"),
        ("bad/type", "seven\n"),
        ("bare/format/event", "config:0-7\n"),
    ]);
    let table = PmuTable::from_sysfs(dir.path()).unwrap();
    assert_eq!(table.names().collect::<Vec<_>>(), ["good"]);
    assert_eq!(table.pmus[0].formats.len(), 1);
    let problems: Vec<String> = table.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:?}");
    let missing = PmuTable::from_sysfs(&dir.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("sudo mount -t sysfs"), "{missing}");
}

#[test]
fn tracefs_is_read_when_asked() {
    let dir = tree(&[
        ("events/sched/sched_switch/id", "372\n"),
        ("events/sched/enable", "0\n"),
        ("events/sched/only_a_format/format", ""),
        ("events/header_page", ""),
        ("secret/id", "1\n"),
    ]);
    let mut ids = TracefsIds::new(dir.path());
    assert_eq!(ids.systems().unwrap(), ["sched"]);
    assert_eq!(ids.names("sched").unwrap(), ["sched_switch"]);
    assert_eq!(ids.id("sched", "sched_switch").unwrap(), Some(372));
    assert_eq!(ids.id("sched", "none").unwrap(), None);
    assert_eq!(ids.id("..", "secret").unwrap(), None);
    let error = TracefsIds::new(dir.path().join("none")).id("a", "b").unwrap_err();
    assert!(error.to_string().contains("sudo mount -t tracefs"), "{error}");
}
