//! Wall time of programs that know nothing of the test: ping-pong, a pool of threads, PostgreSQL under pgbench.
//!
//! The test stops all threads of the program twice while it is recorded. A stopped thread is on no CPU, so the kernel's
//! counters of it stand still, and belong to one moment.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use whit_testing::wait::{Load, wait_until};

use super::super::seconds_between;
use super::wall;
use super::{CS, Counted, assert_times_agree, bpf_record, charged, whit_record};
use crate::postgres::Postgres;
use crate::support::tools::{command, number, workload};
use crate::support::{Skip, check};

/// Nothing is lost, but some kernels hide a few switch-ins: the interval that ends there is uncertain.
const UNCERTAIN_PARTS_MAX: u64 = 20;
/// The counted part of a program's life.
const COUNTED: Duration = Duration::from_millis(300);

/// The processes of a running program.
trait Program {
    fn processes(&self) -> Vec<u32>;
}

impl Program for Load {
    fn processes(&self) -> Vec<u32> {
        vec![self.id()]
    }
}

/// The kernel's counters of a thread.
#[derive(Clone, Copy, Debug)]
struct Counters {
    cpu_ns: u64,
    run_delay_ns: u64,
    timeslices: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Counters {
    fn read(task: &Path) -> Option<Counters> {
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        let mut times = times.split_ascii_whitespace().map(|word| word.parse().ok());
        let status = std::fs::read_to_string(task.join("status")).ok()?;
        let number = |key: &str| {
            let of_key = |line: &str| line.strip_prefix(key)?.trim().parse().ok();
            status.lines().find_map(of_key)
        };
        Some(Counters {
            cpu_ns: times.next()??,
            run_delay_ns: times.next()??,
            timeslices: times.next()??,
            voluntary: number("voluntary_ctxt_switches:")?,
            involuntary: number("nonvoluntary_ctxt_switches:")?,
        })
    }
}

/// All counters at a moment of the recording's clock.
struct Moment {
    time_ns: u64,
    threads: BTreeMap<u64, Counters>,
}

fn signal(processes: &[u32], name: &str) {
    let ids = processes.iter().map(u32::to_string);
    let status = Command::new("kill").arg(name).args(ids).status().expect("run kill");
    assert!(status.success(), "send {name}");
}

fn tasks(processes: &[u32]) -> Vec<PathBuf> {
    let of = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    processes.iter().flat_map(of).flatten().map(|entry| entry.path()).collect()
}

fn is_stopped(task: &Path) -> bool {
    let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('T'))
}

/// Stops all threads, reads their counters, and lets them go on.
fn stop_and_count(processes: &[u32]) -> Moment {
    signal(processes, "-STOP");
    wait_until("all threads are stopped", || tasks(processes).iter().all(|task| is_stopped(task)));
    let tid = |task: &PathBuf| task.file_name()?.to_str()?.parse().ok();
    let counted = |task: PathBuf| Some((tid(&task)?, Counters::read(&task)?));
    let threads = tasks(processes).into_iter().filter_map(counted).collect();
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    signal(processes, "-CONT");
    Moment { time_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, threads }
}

/// Threads that lived at both moments, with the kernel's counts between them.
fn between(begin: &Moment, end: &Moment) -> Vec<Counted> {
    let counted = |(tid, before): (&u64, &Counters)| {
        let after = end.threads.get(tid)?;
        Some(Counted {
            tid: *tid,
            begin_ns: begin.time_ns,
            end_ns: end.time_ns,
            voluntary: after.voluntary - before.voluntary,
            involuntary: after.involuntary - before.involuntary,
            cpu_ns: after.cpu_ns - before.cpu_ns,
            run_delay_ns: after.run_delay_ns - before.run_delay_ns,
            timeslices: after.timeslices - before.timeslices,
        })
    };
    begin.threads.iter().filter_map(counted).collect()
}

/// Records the processes while a shell waits, and counts meanwhile.
fn record_stopped(recorder: &mut Command, processes: &[u32]) -> Result<Vec<Counted>, Skip> {
    let ids: Vec<_> = processes.iter().map(u32::to_string).collect();
    recorder.args(["-p", &ids.join(","), "--", "sh", "-c", "echo begun; read line"]);
    whit_testing::run::needs_of(recorder)?;
    recorder.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut recorder = recorder.spawn().expect("run whit");
    let mut line = String::new();
    BufReader::new(recorder.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    let begin = stop_and_count(processes);
    std::thread::sleep(COUNTED);
    let end = stop_and_count(processes);
    recorder.stdin.take().expect("a pipe").write_all(b"end\n").expect("end the shell");
    assert!(recorder.wait().expect("wait for whit").success(), "whit record failed");
    Ok(between(&begin, &end))
}

/// Compares all threads; the largest distance as a share of the tolerance.
fn compared(data: &Path, recorder: &mut Command, program: &dyn Program) -> Result<f64, Skip> {
    let (all, stolen_ns) = charged(|| record_stopped(recorder, &program.processes()))?;
    let switches: u64 = all.iter().map(|counted| counted.voluntary + counted.involuntary).sum();
    assert!(switches > 100, "the program did little: {all:?}");
    let json = wall_between(data, &all);
    let share = |counted| wall::sums_agree(sums(&json, counted), counted, stolen_ns);
    Ok(all.iter().map(share).fold(0.0, f64::max))
}

/// The report of the time between the two moments.
fn wall_between(data: &Path, all: &[Counted]) -> Value {
    let first = all.first().expect("a thread");
    let json = wall::wall(data, &["--time", &seconds_between(first)]);
    wall::assert_identity(&json);
    let [lossy, elapsed] = ["lossy_ns", "elapsed_ns"].map(|key| number(&json["total"], key));
    assert!(lossy <= elapsed / UNCERTAIN_PARTS_MAX, "{}", json["total"]);
    json
}

fn sums<'j>(json: &'j Value, counted: &Counted) -> &'j Value {
    let mut threads = json["threads"].as_array().expect("threads").iter();
    let found = threads.find(|thread| thread["tid"] == counted.tid);
    &found.unwrap_or_else(|| panic!("no thread {} in {json}", counted.tid))["sums"]
}

fn assert_wall_time(program: &dyn Program) -> Result<(), Skip> {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("perf.data");
    for packing in [&[][..], &["--no-pack"]] {
        let arguments = [&["--wakeups", "-e", "cpu-clock"], packing].concat();
        assert_times_agree(|| {
            let mut recorder = bpf_record(&data, &arguments, dir.path())?;
            compared(&data, &mut recorder, program)
        })?;
    }
    let events = format!("cpu-clock,{CS}");
    let arguments = ["--engine=ring", "-g", "--switch-events", "-e", &events];
    let (all, _) =
        charged(|| record_stopped(&mut whit_record(&data, &arguments), &program.processes()))?;
    let json = wall_between(&data, &all);
    for counted in &all {
        assert_eq!(number(sums(&json, counted), "uncovered_ns"), 0, "{counted:?} {json}");
    }
    Ok(())
}

#[test]
fn wall_time_of_a_ping_pong_is_the_kernels() {
    check("wall_of_ping_pong", || {
        let mut pingpong = command(workload("pingpong")?);
        pingpong.args(["--threads", "2", "--iterations", "1000000000"]);
        assert_wall_time(&Load::start(&mut pingpong))
    });
}

#[test]
fn wall_time_of_a_pool_is_the_kernels() {
    check("wall_of_a_pool", || {
        let mut pool = command(workload("pool")?);
        pool.args(["--threads", "20", "--every-us", "5000", "--seconds", "1000"]);
        assert_wall_time(&Load::start(&mut pool))
    });
}

impl Program for Postgres {
    fn processes(&self) -> Vec<u32> {
        self.backends()
    }
}

#[test]
fn wall_time_of_postgresql_under_pgbench_is_the_kernels() {
    check("wall_of_postgresql", || assert_wall_time(&Postgres::start()?));
}
