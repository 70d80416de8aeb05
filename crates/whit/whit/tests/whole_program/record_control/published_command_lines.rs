//! The command lines of Alexey Budankov's talk on perf's advancements (Linux Piter 2019), with `perf`
//! replaced by `whit`.

use super::support::{TestFolder, count, has, has_perf, probe, samples, stderr};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Up to Linux 6.18 at least, two recorders of the same software event on one CPU spoil each other's
/// samples if they take different stacks (two of `perf record -a -e cs` do so as well). The kernel
/// computes the sample size of one with the call chain of the other.
static ONE_RECORDER: Mutex<()> = Mutex::new(());

/// Runs a line as a shell does; `whit` is the one under test.
fn shell(place: &TestFolder, line: &str) -> Output {
    let whit = whit_testing::run::whit(env!("CARGO_BIN_EXE_whit"));
    let whit = whit.get_program().to_string_lossy();
    let script = format!("whit() {{ \"{whit}\" \"$@\"; }}\n{line}\n");
    Command::new("bash")
        .args(["-c", &script])
        .current_dir(place.dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs in place of the published benchmarks, which take minutes.
const WORKLOAD: &str = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01'";

/// The published events: three of the hardware, context switches typed by the kernel.
const EVENTS: &str = "cycles,instructions,ref-cycles,software/period=1,name=cs,config=0x3/Duk";

/// The 14 events of the parallel line, quoted as there.
const PARALLEL: [(&str, &str, &str); 12] = [
    ("event=0x3c", "CPU_CLK_UNHALTED.THREAD", "Duk"),
    ("umask=0x3", "CPU_CLK_UNHALTED.REF_TSC", "Duk"),
    ("event=0xc0", "INST_RETIRED.ANY", "Duk"),
    ("event=0x3c,umask=0x1", "CPU_CLK_UNHALTED.REF_XCLK", "uk"),
    ("event=0x3c,umask=0x2", "CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE", "uk"),
    ("event=0xc2,umask=0x2", "UOPS_RETIRED.RETIRE_SLOTS", "uk"),
    ("event=0xc7,umask=0x2", "FP_ARITH_INST_RETIRED.SCALAR_SINGLE", "uk"),
    ("event=0xc7,umask=0x8", "FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE", "uk"),
    ("event=0xc7,umask=0x20", "FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE", "uk"),
    ("event=0xc7,umask=0x1", "FP_ARITH_INST_RETIRED.SCALAR_DOUBLE", "uk"),
    ("event=0xb1,umask=0x10", "UOPS_EXECUTED.X87", "uk"),
    ("event=0xb1,umask=0x1", "UOPS_EXECUTED.THREAD", "uk"),
];

/// Records, and gives whit's messages; perf reads the same number of samples.
fn records(place: &TestFolder, line: &str, output: &str) -> String {
    let alone = ONE_RECORDER.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = shell(place, line);
    drop(alone);
    let text = stderr(&ran);
    assert_eq!(ran.status.code(), Some(0), "{line}\n{text}");
    assert!(samples(&ran)[0] > 0, "{line}\n{text}");
    if has_perf("seed") {
        assert_eq!(count(&place.path(output), "SAMPLE events"), samples(&ran)[0], "{line}");
    }
    text
}

#[test]
fn asynchronous_streaming_and_numa_awareness() {
    if !has("asynchronous streaming", probe::whole_cpus()) {
        return;
    }
    for modes in ["", "--aio", "--affinity=node", "--affinity=cpu", "--aio --affinity=cpu"] {
        let place = TestFolder::new();
        let text = records(
            &place,
            &format!(
                "whit record -a -N -B -T -R -g -F 1000 --call-graph dwarf,1024 \
                 --user-regs=IP,SP,BP --switch-events -e {EVENTS} --skip-unsupported {modes} \
                 -- {WORKLOAD}"
            ),
            "perf.data",
        );
        assert!(!text.contains("'cs'"), "the typed context switches are recorded: {text}");
    }
}

#[test]
fn typed_context_switches_of_a_process_and_of_the_whole_system() {
    for scope in ["", "-a"] {
        if scope == "-a" && !has("typed context switches", probe::whole_cpus()) {
            return;
        }
        let place = TestFolder::new();
        records(
            &place,
            &format!(
                "whit record {scope} -N -B -T -R -F 1000 -g --call-graph dwarf,1024 \
                 --switch-events -e {EVENTS} --skip-unsupported -- {WORKLOAD}"
            ),
            "perf.data",
        );
    }
}

#[test]
fn extended_event_naming() {
    let place = TestFolder::new();
    let name = "OFFCORE_RESPONSE:request=DEMAND_RFO:response=L3_HIT.SNOOP_HITM";
    let event = format!("cpu/name=\\'{name}\\',period=0x3567e0,event=0x3c,cmask=0x1/Duk");
    let ran = shell(
        &place,
        &format!("whit record --skip-unsupported -e {event},task-clock:u -- {WORKLOAD}"),
    );
    let text = stderr(&ran);
    assert_eq!(ran.status.code(), Some(0), "{text}");
    assert!(samples(&ran)[0] > 0, "{text}");
    let header = Command::new(env!("CARGO_BIN_EXE_whit"))
        .args(["report", "-i"])
        .arg(place.path("perf.data"))
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&header.stdout).into_owned();
    // Either the machine has it, and it keeps its name, or it was left out by name.
    assert!(report.contains(name) || text.contains(name), "{text}\n{report}");
    let alone = shell(&place, &format!("whit record -e {event} -- {WORKLOAD}"));
    if !alone.status.success() {
        assert!(stderr(&alone).contains(name), "{}", stderr(&alone));
    }
}

#[test]
fn parallel_streaming_with_quoted_names() {
    let place = TestFolder::new();
    let (period, stack_size) = (1_000_000, 1024);
    let events: Vec<_> = PARALLEL
        .iter()
        .map(|(terms, name, modifiers)| {
            format!("cpu/period={period},{terms},name='\\\"{name}\\\"'/{modifiers}")
        })
        .collect();
    let quoted = events.join(",").replace('\'', "'\"'\"'");
    let line = |events: &str, skip: &str| {
        format!(
            "whit record --threads --dir --output-dir ____bt.{stack_size}.data {skip} \
             -N -B -T -R --call-graph dwarf,{stack_size} --user-regs=ip,bp,sp \
             -e '{events}' --clockid=monotonic_raw -- {WORKLOAD}"
        )
    };
    let refused = shell(&place, &line(&quoted, ""));
    let text = stderr(&refused);
    if !refused.status.success() {
        assert!(text.contains("CPU_CLK_UNHALTED.THREAD"), "{text}");
    }
    let with_clock = format!("{quoted},cpu-clock/period={period},name=clock/u");
    let text = records(&place, &line(&with_clock, "--skip-unsupported"), "____bt.1024.data");
    assert!(place.path("____bt.1024.data/data.0").exists());
    for (_, name, _) in PARALLEL.iter().filter(|_| !refused.status.success()) {
        assert!(text.contains(name), "{name} is named: {text}");
    }
}
