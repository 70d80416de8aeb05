//! The time of interrupts, softirqs and the hypervisor, against stock perf's tracepoints and the kernel's counts.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::tools::{number, perf, record, text, tracefs, whit, workload};
use crate::support::{check, probe};

/// Tracepoints of handlers, at their beginnings and, with `exit`, their ends. perf may not record `irq_work`.
const HANDLERS: [&str; 5] = [
    "irq:irq_handler",
    "irq_vectors:local_timer",
    "irq_vectors:reschedule",
    "irq_vectors:call_function",
    "irq_vectors:call_function_single",
];
const SOFTIRQ: &str = "irq:softirq";
/// The parts of a CPU's time.
const PARTS: [&str; 6] =
    ["threads_ns", "irq_ns", "softirq_ns", "stolen_ns", "idle_ns", "unknown_ns"];
/// The programs take their clock before or behind perf, which takes up to a microsecond for a hit.
const HIT_NS: u64 = 1_000;
/// A handler of interrupts may take a page fault's worth of time longer than perf shows, and `irq_work` is in whit's sum
/// alone.
const HANDLER_NS: u64 = 10_000;

fn wall(data: &Path) -> Value {
    let mut report = whit();
    report.args(["report", "--wall", "--json", "--no-debuginfod", "-i"]).arg(data);
    serde_json::from_str(&text(&mut report)).expect("JSON")
}

/// A part of a time, 0 where the kernel does not have it.
fn part(value: &Value, key: &str) -> u64 {
    let of = value.get(key).unwrap_or_else(|| panic!("no {key} in {value}"));
    if of.is_null() { 0 } else { number(value, key) }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Times of a CPU by perf's records: in handlers, in softirqs without these, and the number of each.
#[derive(Clone, Copy, Default, Debug)]
struct ByPerf {
    irq: (u64, u64),
    softirq: (u64, u64),
    irq_since: Option<u64>,
    softirq_since: Option<u64>,
    within_softirq: u64,
}

impl ByPerf {
    fn see(&mut self, tracepoint: &str, time: u64) {
        let ended = |since: Option<u64>, sum: &mut (u64, u64), less: u64| {
            let Some(since) = since else { return 0 };
            *sum = (sum.0 + time - since - less, sum.1 + 1);
            time - since
        };
        match tracepoint.rsplit_once('_') {
            Some((SOFTIRQ, "entry")) => {
                (self.softirq_since, self.within_softirq) = (Some(time), 0);
            }
            Some((SOFTIRQ, _)) => {
                ended(self.softirq_since.take(), &mut self.softirq, self.within_softirq);
            }
            Some((_, "entry")) => self.irq_since = Some(time),
            _ => self.within_softirq += ended(self.irq_since.take(), &mut self.irq, 0),
        }
    }
}

/// Times of handlers between two moments by perf, by CPU.
fn by_perf(script: &str, from: u64, to: u64) -> BTreeMap<u64, ByPerf> {
    let mut cpus = BTreeMap::new();
    for line in script.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [cpu, time, tracepoint] = fields[..] else { panic!("{line}") };
        let cpu = cpu.trim_matches(['[', ']']).parse().expect("a CPU");
        let time = time.trim_end_matches(':').replace('.', "").parse().expect("a time");
        if (from..=to).contains(&time) {
            let times: &mut ByPerf = cpus.entry(cpu).or_default();
            times.see(tracepoint.trim_end_matches(':'), time);
        }
    }
    cpus
}

/// Each sum is exact.
fn assert_sums(wall: &Value) {
    for cpu in list(wall, "cpus") {
        let sum: u64 = PARTS.iter().map(|name| part(cpu, name)).sum();
        assert_eq!(sum, number(cpu, "elapsed_ns") + number(cpu, "excess_ns"), "{cpu}");
        assert_eq!(number(cpu, "excess_ns"), 0, "{cpu}");
        assert_eq!(number(cpu, "elapsed_ns"), number(wall, "recorded_ns"), "{cpu}");
    }
    let parts = |of: &Value| ["irq_ns", "softirq_ns", "stolen_ns"].map(|name| part(of, name));
    let mut sum = 0;
    for thread in list(wall, "threads") {
        let (sums, cpu_ns) = (&thread["sums"], number(&thread["sums"], "cpu_ns"));
        let of_thread: u64 = parts(sums).iter().sum();
        assert!(of_thread <= cpu_ns, "{thread}");
        sum += cpu_ns - of_thread;
    }
    let threads = list(wall, "cpus").iter().map(|cpu| number(cpu, "threads_ns"));
    assert_eq!(threads.sum::<u64>(), sum, "{}", wall["total"]);
}

#[test]
fn a_flood_of_softirqs_takes_the_time_that_perf_shows() {
    check("interrupts::a_flood_of_softirqs_takes_the_time_that_perf_shows", || {
        probe::bpf_stacks()?;
        let events = tracefs()?;
        let flood = workload("flood")?;
        let folder = tempfile::tempdir().expect("make a directory");
        let [data, of_perf] = ["whit.data", "perf.data"].map(|name| folder.path().join(name));
        let mut recorder = perf()?;
        // The clock of whit's recordings with switches.
        recorder.args(["record", "-q", "-a", "-m", "8M", "-k", "CLOCK_MONOTONIC", "-o"]);
        recorder.arg(&of_perf);
        let has =
            |handler: &&&str| events.join(format!("{}_entry", handler.replace(':', "/"))).exists();
        for handler in HANDLERS.iter().filter(has).chain([&SOFTIRQ]) {
            ["entry", "exit"].iter().for_each(|end| {
                recorder.args(["-e", &format!("{handler}_{end}")]);
            });
        }
        let inner = whit();
        recorder.arg("--").arg(inner.get_program());
        recorder.args(["record", "-q", "-a", "--engine=bpf", "--switch-events", "-F", "99", "-o"]);
        recorder.arg(&data).arg("--");
        record(recorder.arg(flood).args(["--iterations", "4000", "--receivers", "256"]))?;
        let wall = wall(&data);
        assert_sums(&wall);
        assert_eq!(wall["sources"]["interrupts"], true, "{}", wall["sources"]);

        let mut script = perf()?;
        script.args(["script", "--show-lost-events", "--ns", "-F", "cpu,time,event", "-i"]);
        let script = text(script.arg(&of_perf));
        assert!(!script.contains("LOST"), "perf lost records");
        let span = |at: usize| wall["span_ns"][at].as_u64().expect("a moment");
        let by_perf = by_perf(&script, span(0), span(1));
        let (cpu, times) = by_perf.iter().max_by_key(|(_, times)| times.softirq.0).expect("a CPU");
        let of_cpu = |cpus: &[Value]| {
            let found = cpus.iter().find(|of| number(of, "cpu") == *cpu);
            ["irq_ns", "softirq_ns"].map(|part| number(found.expect("the CPU"), part))
        };
        let [irq, softirq] = of_cpu(list(&wall, "cpus"));
        println!("CPU {cpu}: interrupts {irq} ns, softirqs {softirq} ns, by perf {times:?}");
        // Each datagram is 20 to 50 us for 256 sockets, as fast as the machine is: more than the bound below can hide.
        assert!(times.softirq.0 > 8 * HIT_NS * times.softirq.1, "{times:?}");
        assert!(
            softirq.abs_diff(times.softirq.0) <= HIT_NS * times.softirq.1,
            "{softirq} {times:?}"
        );
        assert!(irq.abs_diff(times.irq.0) <= HANDLER_NS * times.irq.1, "{irq} {times:?}");

        // The flood's softirqs run within its own calls, unless the kernel gives them to ksoftirqd.
        let softirqs = |name: &str| {
            let of_name = |thread: &&Value| {
                thread["comm"].as_str().is_some_and(|comm| comm.starts_with(name))
            };
            let threads = list(&wall, "threads").iter().filter(of_name);
            threads.map(|thread| number(&thread["sums"], "softirq_ns")).sum::<u64>()
        };
        let both = softirqs("flood") + softirqs("ksoftirqd");
        assert!(both >= times.softirq.0 / 10 * 9, "{both} {times:?}");
        Ok(())
    });
}

#[test]
fn packed_and_ordinary_recordings_have_the_same_accounts() {
    check("interrupts::packed_and_ordinary_recordings_have_the_same_accounts", || {
        probe::bpf_stacks()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let [packed, exported, direct] =
            ["packed", "exported", "direct"].map(|name| folder.path().join(name));
        let run = |data: &Path, options: &[&str]| {
            let mut recorder = whit();
            recorder.args(["record", "-q", "-a", "--engine=bpf", "--switch-events", "-F", "99"]);
            recorder.args(options).arg("-o").arg(data);
            record(recorder.args(["--", "sleep", "0.3"])).map(|_| ())
        };
        run(&packed, &[])?;
        text(whit().args(["export", "--perf", "-i"]).arg(&packed).arg("-o").arg(&exported));
        let sql = "select sum(irq_dur), sum(softirq_dur), sum(stolen_dur) from sched where certain";
        let of_table = text(whit().args(["query", "--csv", "-c", sql, "-i"]).arg(&packed));
        let [packed, exported] = [wall(&packed), wall(&exported)];
        assert_sums(&packed);
        assert!(number(&packed["total"], "irq_ns") > 0, "{}", packed["total"]);
        let of_report = ["irq_ns", "softirq_ns", "stolen_ns"].map(|part| {
            let of = packed["total"][part].as_u64();
            of.map(|ns| ns.to_string()).unwrap_or_default()
        });
        assert_eq!(of_table.lines().last(), Some(of_report.join(",").as_str()), "{of_table}");
        for key in ["sources", "recorded_ns", "total", "cpus"] {
            assert_eq!(packed[key], exported[key], "{key}");
        }
        run(&direct, &["--no-pack"])?;
        let direct = wall(&direct);
        assert_sums(&direct);
        assert!(number(&direct["total"], "irq_ns") > 0, "{}", direct["total"]);
        Ok(())
    });
}

/// A tick of `/proc/stat`: `USER_HZ` is 100 on all machines that the engine supports.
const TICK_NS: u64 = 10_000_000;

/// The time that the hypervisor stole from all CPUs, in whole ticks.
fn stolen_by_kernel() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("read /proc/stat");
    let mut columns = stat.lines().next().expect("a line").split_whitespace();
    columns.nth(8).expect("a column of stolen time").parse::<u64>().expect("ticks") * TICK_NS
}

#[test]
fn stolen_time_is_what_the_kernel_counts() {
    check("interrupts::stolen_time_is_what_the_kernel_counts", || {
        probe::bpf_stacks()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let load = workload("pingpong")?;
        let before = stolen_by_kernel();
        let mut recorder = whit();
        recorder.args(["record", "-q", "-a", "--engine=bpf", "--switch-events", "-F", "99", "-o"]);
        recorder.arg(&data);
        record(recorder.arg("--").arg(load).args(["--threads", "8", "--iterations", "50000"]))?;
        let counted = stolen_by_kernel() - before;
        let wall = wall(&data);
        assert_sums(&wall);
        if wall["sources"]["stolen"] == false {
            println!("the kernel has no clock of stolen time");
            assert!(wall["total"]["stolen_ns"].is_null(), "{}", wall["total"]);
            return Ok(());
        }
        let cpus = list(&wall, "cpus");
        let stolen: u64 = cpus.iter().map(|cpu| number(cpu, "stolen_ns")).sum();
        if counted == 0 {
            println!("no whole tick was stolen in this time: only its absence is compared");
        }
        println!("stolen {stolen} ns, {counted} ns by the kernel in a longer time");
        // The kernel counts whole ticks of each CPU, which may have begun before.
        assert!(stolen <= counted + 2 * TICK_NS * cpus.len() as u64, "{stolen} {counted}");
        Ok(())
    });
}
