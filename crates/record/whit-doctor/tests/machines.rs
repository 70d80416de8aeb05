//! Machines made of files and a scripted kernel.

use std::fs;

use whit_doctor::{
    Area, Count, EngineTrial, Finding, Machine, Probe, ProgramFile, Report, Roots, Status, Target,
    render_json, render_text, run,
};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};
use whit_sys::Errno;
use whit_sys::capability::{Capability, CapabilitySet};
use whit_sys::file_capability::FileCapabilities;
use whit_sys::limit::LimitValue;
use whit_types::CpuId;

/// The scripted kernel's answer to an opening.
type Rule = fn(&Attr, Target) -> Result<(), Errno>;

struct Scripted {
    opens: Rule,
    count: Count,
    load: Result<(), Errno>,
    engine: EngineTrial,
}

impl Probe for Scripted {
    fn count(&mut self, attr: &Attr) -> Result<Count, Errno> {
        (self.opens)(attr, Target::ThisThread).map(|()| self.count)
    }

    fn sample(&mut self, attr: &Attr) -> Result<u64, Errno> {
        (self.opens)(attr, Target::ThisThread).map(|()| 12)
    }

    fn open(&mut self, attr: &Attr, target: Target) -> Result<(), Errno> {
        (self.opens)(attr, target)
    }

    fn run(&mut self, attr: &Attr, target: Target) -> Result<Count, Errno> {
        (self.opens)(attr, target).map(|()| self.count)
    }

    fn time_reads(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno> {
        (self.opens)(attr, Target::ThisThread).map(|()| (1..=rounds as u64).collect())
    }

    fn time_opens(&mut self, attr: &Attr, _rounds: usize) -> Result<Vec<u64>, Errno> {
        (self.opens)(attr, Target::ThisThread).map(|()| vec![2_500_000, 1_500, 900])
    }

    fn time_interrupts(&mut self, attr: &Attr, _rounds: usize) -> Result<Vec<u64>, Errno> {
        (self.opens)(attr, Target::ThisThread).map(|()| vec![0, 4_700, 0])
    }

    fn load_bpf(&mut self) -> Result<(), Errno> {
        self.load
    }

    fn load_engine(&mut self) -> EngineTrial {
        self.engine.clone()
    }
}

const COUNTED: Count = Count { value: 1000, enabled_ns: 50, running_ns: 50 };
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;

fn kernel_side(attr: &Attr) -> bool {
    !attr.has(AttrFlags::EXCLUDE_KERNEL)
}

/// As upstream's kernel answers with `perf_event_paranoid` 2 to a user without capabilities, on
/// a machine with a PMU but without branch records.
fn paranoid_two(attr: &Attr, target: Target) -> Result<(), Errno> {
    if attr.sample_type.contains(SampleType::BRANCH_STACK) {
        return Err(Errno::OPNOTSUPP);
    }
    match target {
        Target::ThisThread if attr.pmu_type == TRACEPOINT => Err(Errno::PERM),
        Target::ThisThread if !kernel_side(attr) => Ok(()),
        _ => Err(Errno::ACCESS),
    }
}

const SETUP: &str = "sudo /usr/bin/whit setup --group perf_users";
const ALL_CAPABILITIES: &str = "000001ffffffffff";

/// A tree of files below a temporary directory, with a machine on it.
struct Fixture {
    dir: tempfile::TempDir,
}

impl Fixture {
    /// A usual server: hardware PMU, tracefs, BTF, cgroup v2.
    fn new(paranoid: i32, capabilities: &str) -> Fixture {
        let fixture = Fixture { dir: tempfile::tempdir().unwrap() };
        let tracing = fixture.dir.path().join("sys/kernel/tracing");
        let status = format!(
            "Name:\twhit\nCapEff:\t{capabilities}\nCapBnd:\t{ALL_CAPABILITIES}\nSeccomp:\t0\n"
        );
        let mounts = format!(
            "42 23 0:13 / {} rw - tracefs none rw\n43 23 0:14 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            tracing.display()
        );
        let paranoid = paranoid.to_string();
        for (path, content) in [
            ("proc/self/status", status.as_str()),
            ("proc/self/uid_map", "         0          0 4294967295\n"),
            ("proc/self/mountinfo", &mounts),
            ("proc/self/maps", "7ff0-7ff1 r-xp 0 00:00 0  [vdso]\n"),
            ("proc/1/status", "Name:\tinit\nUid:\t0\t0\t0\t0\n"),
            ("proc/cpuinfo", "model name\t: A Processor\nflags\t\t: fpu\n"),
            ("proc/kallsyms", "0000000000000000 A fixed\nffffffff81000000 T _stext\n"),
            ("proc/sys/kernel/perf_event_paranoid", &paranoid),
            ("proc/sys/kernel/kptr_restrict", "0\n"),
            ("proc/sys/kernel/perf_event_mlock_kb", "516\n"),
            ("proc/sys/kernel/perf_event_max_sample_rate", "100000\n"),
            ("proc/sys/kernel/perf_event_max_stack", "127\n"),
            ("proc/sys/kernel/nmi_watchdog", "0\n"),
            ("proc/sys/kernel/cap_last_cap", "40\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/bus/event_source/devices/cpu/type", "4\n"),
            ("sys/bus/event_source/devices/cpu/caps/branches", "32\n"),
            ("sys/kernel/tracing/events/sched/sched_switch/id", "372\n"),
            ("sys/kernel/btf/vmlinux", "btf"),
        ] {
            fixture.write(path, content);
        }
        fixture
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.dir.path().join(path)).unwrap();
    }

    fn run(&self, euid: u32, opens: Rule, count: Count) -> Report {
        run(&mut self.machine(euid, opens, count))
    }

    fn machine(&self, euid: u32, opens: Rule, count: Count) -> Machine {
        Machine {
            roots: Roots {
                proc: self.dir.path().join("proc"),
                sys: self.dir.path().join("sys"),
                ..Roots::default()
            },
            release: "6.12.0".into(),
            machine: "x86_64".into(),
            euid,
            program: "/usr/bin/whit".into(),
            program_file: Some(file_of("root", 0o755, None)),
            borrowed: CapabilitySet::EMPTY,
            is_filtered: false,
            open_files: LimitValue { soft: Some(1024), hard: Some(4096) },
            locked_memory: LimitValue { soft: Some(8 << 20), hard: Some(8 << 20) },
            page_size: 4096,
            probe: Box::new(Scripted {
                opens,
                count,
                // In these tests, a process that may count whole CPUs may load programs, too.
                load: opens(&Attr { pmu_type: SOFTWARE, ..Attr::default() }, Target::Cpu(CpuId(0))),
                engine: EngineTrial::Runs { instructions: Some(24_016), without: None },
            }),
        }
    }
}

fn file_of(group: &str, mode: u32, lent: Option<CapabilitySet>) -> ProgramFile {
    let capabilities = lent.map(FileCapabilities::effective);
    ProgramFile { capabilities, group: group.to_owned(), mode, nosuid: false }
}

fn find<'r>(report: &'r Report, what: &str) -> &'r Finding {
    report
        .findings
        .iter()
        .find(|finding| finding.what == what)
        .unwrap_or_else(|| panic!("no finding {what}"))
}

fn remedy<'r>(report: &'r Report, what: &str) -> &'r str {
    find(report, what).remedy.as_deref().unwrap_or_else(|| panic!("no remedy for {what}"))
}

#[test]
fn nothing_is_wrong_for_root_on_a_usual_server() {
    let report = Fixture::new(2, ALL_CAPABILITIES).run(0, |_, _| Ok(()), COUNTED);
    let wrong: Vec<_> = report.findings.iter().filter(|f| f.status != Status::Ok).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(find(&report, "branch records (-b)").detail, "32 entries each");
    assert_eq!(find(&report, "cycles").detail, "counts (1000 in the test)");
    assert!(report.can_record());
    assert!(render_text(&report).ends_with(" ok, 0 degraded, 0 refused, 0 absent\n"));
}

#[test]
fn an_ordinary_user_reads_the_rights_of_each_level() {
    let report = Fixture::new(2, "0").run(1000, paranoid_two, COUNTED);
    assert_eq!(find(&report, "own processes, user space").status, Status::Ok);
    for (what, command) in [
        ("own processes, kernel", "sudo sysctl kernel.perf_event_paranoid=1, or"),
        ("whole system (-a, -C)", "sudo sysctl kernel.perf_event_paranoid=0, or"),
        ("tracepoint samples", "sudo sysctl kernel.perf_event_paranoid=-1, or"),
        ("processes of other users (-p)", SETUP),
        ("BPF programs", SETUP),
    ] {
        assert_eq!(find(&report, what).status, Status::Refused, "{what}");
        assert!(remedy(&report, what).starts_with(command), "{what}: {}", remedy(&report, what));
        assert!(remedy(&report, what).ends_with(SETUP), "{what}");
    }
    let cycles = find(&report, "cycles");
    assert_eq!(
        (cycles.status, cycles.detail.as_str()),
        (Status::Degraded, "counts in user space only (1000 in the test)")
    );
    assert_eq!(find(&report, "--call-graph lbr").status, Status::Absent);
    assert!(find(&report, "perf_event_mlock_kb").detail.contains("rings of 512 KiB per CPU"));
}

#[test]
fn context_switches_do_not_happen_in_user_space() {
    let nothing = Count { value: 0, ..COUNTED };
    let report = Fixture::new(2, "0").run(1000, paranoid_two, nothing);
    let switches = find(&report, "context-switches");
    assert_eq!(switches.status, Status::Degraded);
    assert!(switches.detail.contains("it happens in the kernel"), "{}", switches.detail);
    assert!(find(&report, "cycles").detail.contains("opens, but does not count"));
    assert_eq!(find(&report, "dummy").status, Status::Ok);
}

#[test]
fn a_distribution_that_refuses_everything_is_distinguished_from_upstream() {
    let report = Fixture::new(3, "0").run(1000, |_, _| Err(Errno::ACCESS), COUNTED);
    assert!(!report.can_record());
    let own = find(&report, "own processes, user space");
    assert_eq!(
        (own.status, own.detail.as_str()),
        (Status::Refused, "perf_event_paranoid is 3 (EACCES)")
    );
    assert!(
        remedy(&report, "own processes, user space")
            .starts_with("sudo sysctl kernel.perf_event_paranoid=2")
    );
    assert_eq!(find(&report, "default event").status, Status::Refused);
    assert!(report.costs.is_empty());
}

#[test]
fn containers_get_their_start_option_as_remedy() {
    let fixture = Fixture::new(-1, "0");
    fixture.write(
        "proc/self/status",
        "CapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\nSeccomp:\t2\n",
    );
    let confined = |opens: Rule| {
        let mut machine = fixture.machine(0, opens, COUNTED);
        machine.is_filtered = true;
        run(&mut machine)
    };
    let report = confined(|_, _| Err(Errno::PERM));
    let command = "start the container with --cap-add=PERFMON";
    assert!(remedy(&report, "own processes, user space").starts_with(command));
    assert!(remedy(&report, "cap_syslog").ends_with("(docker: --cap-add=SYSLOG)"));
    assert!(remedy(&report, "BPF programs").contains("--cap-add=BPF"));
    let gone = confined(|_, _| Err(Errno::NOSYS));
    assert!(remedy(&gone, "cycles").starts_with(command));
    let harmless = fixture.run(0, |_, _| Err(Errno::PERM), COUNTED);
    assert!(remedy(&harmless, "own processes, user space").contains("lockdown"));
}

/// The capabilities that `whit setup` grants.
const LENT: CapabilitySet = CapabilitySet::for_profiling(true);

/// The finding on the program's file for an ordinary user.
fn judged(
    file: ProgramFile,
    borrowed: CapabilitySet,
    change: impl FnOnce(&mut Fixture),
) -> Finding {
    let mut fixture = Fixture::new(2, "0");
    change(&mut fixture);
    let mut machine = fixture.machine(1000, |_, _| Ok(()), COUNTED);
    machine.program_file = Some(file);
    machine.borrowed = borrowed;
    find(&run(&mut machine), "program's file").clone()
}

#[test]
fn a_member_of_the_group_has_the_files_capabilities() {
    let fixture = Fixture::new(2, "0");
    let mut machine = fixture.machine(1000, |_, _| Ok(()), COUNTED);
    machine.program_file = Some(file_of("perf_users", 0o750, Some(LENT)));
    machine.borrowed = LENT;
    let report = run(&mut machine);
    let file = find(&report, "program's file");
    assert_eq!(file.status, Status::Ok, "{file:?}");
    assert_eq!(file.detail, "lends group perf_users cap_sys_ptrace,cap_syslog,cap_perfmon,cap_bpf");
    for name in ["cap_perfmon", "cap_sys_ptrace", "cap_syslog", "cap_bpf"] {
        assert!(find(&report, name).detail.starts_with("lent by the program's file"), "{name}");
    }
    assert!(find(&report, "perf_event_paranoid").detail.contains("lifted"));
    let unneeded = find(&report, "cap_sys_resource");
    assert_eq!(unneeded.status, Status::Ok);
    assert!(unneeded.detail.starts_with("not held, nor needed: "), "{unneeded:?}");
    let lock = remedy(&report, "cap_ipc_lock");
    assert_eq!(lock, "sudo sysctl kernel.perf_event_mlock_kb=4100");
}

#[test]
fn files_that_lend_too_much_or_to_too_many_are_set_up_again() {
    let none = file_of("root", 0o755, None);
    let finding = judged(none, CapabilitySet::EMPTY, |_| ());
    assert_eq!((finding.status, finding.remedy.as_deref()), (Status::Degraded, Some(SETUP)));
    let to_all = judged(file_of("perf_users", 0o755, Some(LENT)), LENT, |_| ());
    assert!(to_all.detail.ends_with("to everybody on this machine"), "{to_all:?}");
    assert_eq!(to_all.remedy.as_deref(), Some(SETUP));
    let again = Some("sudo /usr/bin/whit setup --group profilers");
    let more = LENT.union(CapabilitySet::of(&[Capability::SysAdmin]));
    let more = judged(file_of("profilers", 0o750, Some(more)), LENT, |_| ());
    assert!(more.detail.contains("cap_sys_admin, which profiling does not need"), "{more:?}");
    let less = CapabilitySet::of(&[Capability::PerfMon]);
    let less = judged(file_of("profilers", 0o750, Some(less)), less, |_| ());
    assert!(less.detail.contains("but not cap_sys_ptrace,cap_syslog,cap_bpf"), "{less:?}");
    for finding in [more, less] {
        assert_eq!((finding.status, finding.remedy.as_deref()), (Status::Degraded, again));
    }
}

#[test]
fn capabilities_of_the_file_that_do_not_count_are_explained() {
    let file = file_of("perf_users", 0o750, Some(LENT));
    let status = "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nNoNewPrivs:\t1\n";
    let service =
        judged(file.clone(), CapabilitySet::EMPTY, |f| f.write("proc/self/status", status));
    assert_eq!(service.status, Status::Refused);
    assert!(service.detail.contains("no_new_privs"), "{service:?}");
    assert!(service.remedy.unwrap().contains("NoNewPrivileges=no"));
    let mounted = ProgramFile { nosuid: true, ..file.clone() };
    let mounted = judged(mounted, CapabilitySet::EMPTY, |_| ());
    assert!(mounted.detail.contains("nosuid"), "{mounted:?}");
    let traced = judged(file, CapabilitySet::EMPTY, |_| ());
    assert!(traced.detail.contains("traced"), "{traced:?}");
}

#[test]
fn a_bpf_program_is_loaded_and_not_only_allowed() {
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    let bpf = |load| {
        let mut machine = fixture.machine(0, |_, _| Ok(()), COUNTED);
        let engine = EngineTrial::Runs { instructions: None, without: None };
        machine.probe = Box::new(Scripted { opens: |_, _| Ok(()), count: COUNTED, load, engine });
        find(&run(&mut machine), "BPF programs").clone()
    };
    assert_eq!(bpf(Ok(())).status, Status::Ok);
    let locked = bpf(Err(Errno::PERM));
    assert!(locked.detail.contains("in spite of capabilities"), "{locked:?}");
    assert!(locked.remedy.unwrap().contains("lockdown"));
    assert_eq!(bpf(Err(Errno::NOSYS)).status, Status::Absent);
}

#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    fixture.write("proc/self/uid_map", "0 1000 1\n");
    let report = fixture.run(0, paranoid_two, COUNTED);
    assert_eq!(find(&report, "user namespace").status, Status::Degraded);
    assert_eq!(
        remedy(&report, "own processes, kernel"),
        "sudo sysctl kernel.perf_event_paranoid=1"
    );
}

#[test]
fn a_counter_that_never_runs_is_no_zero() {
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    fixture.write("proc/sys/kernel/nmi_watchdog", "1\n");
    let waiting = Count { value: 0, enabled_ns: 5000, running_ns: 0 };
    let report = fixture.run(0, |_, _| Ok(()), waiting);
    let cycles = find(&report, "cycles");
    assert_eq!(cycles.status, Status::Degraded);
    assert!(cycles.detail.contains("never put on the PMU"), "{}", cycles.detail);
    assert_eq!(remedy(&report, "cycles"), "sudo sysctl kernel.nmi_watchdog=0");
    let shared = Count { value: 7, enabled_ns: 1000, running_ns: 250 };
    let report = fixture.run(0, |_, _| Ok(()), shared);
    assert!(find(&report, "cycles").detail.contains("25% of the time"));
}

#[test]
fn a_virtual_machine_without_counters_falls_back_to_the_clock() {
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    fixture.remove("sys/bus/event_source/devices/cpu/type");
    fixture.write("sys/bus/event_source/devices/software/type", "1\n");
    fixture.write("proc/cpuinfo", "flags\t: fpu hypervisor\n");
    let opens: Rule = |attr, _| if attr.pmu_type == SOFTWARE { Ok(()) } else { Err(Errno::NOENT) };
    let report = fixture.run(0, opens, COUNTED);
    assert_eq!(find(&report, "core PMU").status, Status::Absent);
    assert!(remedy(&report, "core PMU").contains("pmu=on"));
    let default = find(&report, "default event");
    assert_eq!(default.status, Status::Degraded);
    assert!(
        default.detail.starts_with("cpu-clock, a timer: cycles does not sample"),
        "{}",
        default.detail
    );
    assert_eq!(find(&report, "cycles").detail, "no PMU here has it (ENOENT)");
}

#[test]
fn missing_file_systems_come_with_the_command_that_mounts_them() {
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    fixture.write("proc/self/mountinfo", "");
    fixture.remove("sys/kernel/btf/vmlinux");
    fixture.write("proc/kallsyms", "0000000000000000 T _stext\n");
    fixture.write("proc/sys/kernel/kptr_restrict", "2\n");
    let report = fixture.run(0, |_, _| Ok(()), COUNTED);
    assert_eq!(remedy(&report, "tracefs"), "sudo mount -t tracefs tracefs /sys/kernel/tracing");
    assert_eq!(
        remedy(&report, "perf_event controller"),
        "sudo mount -t cgroup2 none /sys/fs/cgroup"
    );
    assert!(remedy(&report, "BTF").contains("CONFIG_DEBUG_INFO_BTF"));
    assert!(remedy(&report, "kernel symbols (/proc/kallsyms)").contains("kptr_restrict=0"));
}

#[test]
fn a_version_1_hierarchy_with_the_controller_wins() {
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    fixture.write(
        "proc/self/mountinfo",
        "1 0 0:1 / /cg/unified rw - cgroup2 c rw\n2 0 0:2 / /cg/perf rw - cgroup c rw,perf_event\n",
    );
    let report = fixture.run(0, |_, _| Ok(()), COUNTED);
    assert!(find(&report, "perf_event controller").detail.starts_with("version 1 at /cg/perf"));
}

#[test]
fn settings_and_limits_that_are_too_low_are_raised() {
    let fixture = Fixture::new(2, "0");
    fixture.write("proc/sys/kernel/perf_event_max_sample_rate", "500\n");
    fixture.write("proc/sys/kernel/perf_event_max_stack", "16\n");
    fixture.write("proc/sys/kernel/perf_event_mlock_kb", "64\n");
    fixture.write("sys/devices/system/cpu/online", "0-1023\n");
    let report = fixture.run(1000, paranoid_two, COUNTED);
    for (what, command) in [
        ("perf_event_max_sample_rate", "sudo sysctl kernel.perf_event_max_sample_rate=100000"),
        ("perf_event_max_stack", "sudo sysctl kernel.perf_event_max_stack=127"),
        ("perf_event_mlock_kb", "sudo sysctl kernel.perf_event_mlock_kb=516"),
        ("open files (RLIMIT_NOFILE)", "sudo prlimit --pid $$ --nofile=16448:16448"),
    ] {
        assert_eq!(
            (find(&report, what).status, remedy(&report, what)),
            (Status::Degraded, command)
        );
    }
}

#[test]
fn a_machine_without_proc_is_a_finding_too() {
    let fixture = Fixture { dir: tempfile::tempdir().unwrap() };
    let report = fixture.run(0, |_, _| Ok(()), COUNTED);
    assert!(remedy(&report, "process status").contains("mount -t proc"));
    assert!(!report.can_record());
}

#[test]
fn text_lists_each_remedy_once_and_json_is_whole() {
    let report = Fixture::new(2, "0").run(1000, paranoid_two, COUNTED);
    let text = render_text(&report);
    let command = "      sudo /usr/bin/whit setup";
    assert_eq!(text.matches(command).count(), 1, "{text}");
    assert!(text.contains("open and close task-clock"));
    assert!(text.contains("1.5 µs (900 ns to 2.5 ms, 3 times)"), "{text}");
    assert!(text.contains("timer interrupt (cpu-clock)"), "{text}");
    assert!(text.contains("below noise (below noise to 4.7 µs, 3 times)"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&render_json(&report).unwrap()).unwrap();
    let findings = json["findings"].as_array().unwrap();
    assert_eq!(findings.len(), report.findings.len());
    assert_eq!((&findings[0]["area"], &findings[0]["status"]), (&"recording".into(), &"ok".into()));
    assert!(findings[0]["remedy"].is_null());
    assert_eq!(json["costs"][1]["median_ns"], 1500);
}

/// On the real kernel, the report has a line for each area and does not contradict itself.
#[test]
fn this_machine_gets_a_report() {
    let report = run(&mut Machine::this());
    // A machine may have no PMU, and runtimes are those of processes that somebody names.
    let maybe = [Area::Pmus, Area::Runtimes];
    for area in Area::ALL.into_iter().filter(|area| !maybe.contains(area)) {
        assert!(report.of(area).next().is_some(), "{area:?}");
    }
    let own = find(&report, "own processes, user space").status;
    if own == Status::Ok {
        let clock = find(&report, "task-clock");
        assert!(clock.detail.contains("counts"), "{}", clock.detail);
        assert!(!report.costs.is_empty());
    }
    for finding in &report.findings {
        assert!(!(finding.status == Status::Ok && finding.remedy.is_some()), "{finding:?}");
    }
}

#[test]
fn the_bpf_engine_runs_or_something_is_lacking_and_named() {
    const ENGINE: &str = "bpf engine (--engine=bpf)";
    let fixture = Fixture::new(2, ALL_CAPABILITIES);
    let with = |engine: EngineTrial| {
        let mut machine = fixture.machine(0, |_, _| Ok(()), COUNTED);
        machine.probe =
            Box::new(Scripted { opens: |_, _| Ok(()), count: COUNTED, load: Ok(()), engine });
        run(&mut machine)
    };
    let report = with(EngineTrial::Runs { instructions: Some(24_016), without: None });
    let found = find(&report, ENGINE);
    assert!(found.status == Status::Ok && found.detail.contains("24016"), "{found:?}");
    assert!(!found.detail.contains("lacks"), "{found:?}");
    let without = Some("bpf_find_vma (since Linux 5.17)".to_owned());
    let report = with(EngineTrial::Runs { instructions: None, without });
    let found = find(&report, ENGINE);
    assert!(found.status == Status::Ok && found.detail.contains("Linux 5.17"), "{found:?}");
    let lacks = ["bpf_task_pt_regs (since Linux 5.15)", "atomic exchange (since Linux 5.12)"];
    let report = with(EngineTrial::Lacks(lacks.map(str::to_owned).into()));
    let found = find(&report, ENGINE);
    assert_eq!(found.status, Status::Absent);
    assert!(lacks.iter().all(|need| found.detail.contains(need)), "{found:?}");
    assert!(remedy(&report, ENGINE).contains("--engine=ring"));
    let report = with(EngineTrial::Refused("no room".to_owned()));
    assert_eq!(find(&report, ENGINE).status, Status::Refused);
    assert_eq!(find(&report, ENGINE).detail, "no room");

    let mut machine = fixture.machine(0, |_, _| Ok(()), COUNTED);
    machine.machine = "aarch64".into();
    let report = run(&mut machine);
    assert!(find(&report, ENGINE).detail.contains("x86-64 alone"));
    let report = fixture.run(1000, paranoid_two, COUNTED);
    assert_eq!(find(&report, ENGINE).status, Status::Refused);
    fixture.remove("sys/kernel/btf/vmlinux");
    let report = fixture.run(0, |_, _| Ok(()), COUNTED);
    let found = find(&report, ENGINE);
    assert!(found.status == Status::Absent && found.detail.contains("BTF"), "{found:?}");
}
