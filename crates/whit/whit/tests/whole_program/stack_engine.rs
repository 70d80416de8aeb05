//! Stacks that are unwound in the kernel (`--engine=bpf`): complete, and readable by perf.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::script::{self, Sample};
use crate::support::tools::{command, perf, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::wait::{Load, wait_until};

/// A second or so of the deep programs: on a busy machine, tables may come a tenth of one late.
const DEEP_ITERATIONS: &str = "40000";
const DEEP_RS_ITERATIONS: &str = "400000";
/// Chains that must be whole, once the tables are there.
const LEAST_WHOLE: f64 = 0.99;

/// A place for recordings and for the cache of unwind tables.
struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().expect("make a directory"))
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("perf.data")
    }

    /// The recording as perf reads it.
    fn for_perf(&self) -> PathBuf {
        let out = self.0.path().join("exported.data");
        text(whit().args(["export", "--perf", "-f", "-i"]).arg(self.data()).arg("-o").arg(&out));
        out
    }

    /// Records; gives whit's messages.
    fn record(&self, program: &Path, options: &[&str], arguments: &[&str]) -> Result<String, Skip> {
        self.run(program, options, arguments).map(|(said, _)| said)
    }

    /// Records; gives whit's messages and the program's output.
    fn run(
        &self,
        program: &Path,
        options: &[&str],
        arguments: &[&str],
    ) -> Result<(String, String), Skip> {
        let mut recorder: Command = whit();
        // Its messages say how many unwind tables were made.
        recorder.env("XDG_CACHE_HOME", self.0.path().join("cache"));
        recorder.args(["record", "-v", "--engine=bpf", "-e", "cpu-clock", "-o"]).arg(self.data());
        recorder.args(options).arg("--").arg(program).args(arguments);
        let output = whit_testing::run::record(&mut recorder)?;
        let [said, printed] = [output.stderr, output.stdout];
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((text(said), text(printed)))
    }
}

/// Samples of a program. The second recording finds its tables in the cache.
fn samples(program: &str, iterations: &str) -> Result<Vec<Sample>, Skip> {
    let (program, place) = (workload(program)?, TestFolder::new());
    place.record(&program, &["-F", "2000"], &["--iterations", "100"])?;
    let said = place.record(&program, &["-F", "2000"], &["--iterations", iterations])?;
    assert!(said.contains("[ whit bpf: "), "{said}");
    let data = place.data();
    Ok(script::parse(&text(whit().args(["script", "-F", "comm,ip,sym", "-i"]).arg(data))))
}

/// From the first whole chain on, chains are whole: the tables are there.
fn assert_whole(samples: &[Sample], through: &str, roots: &[&str], frames: usize) {
    let below: Vec<_> = samples.iter().filter(|sample| sample.passes(through)).collect();
    let is_whole =
        |sample: &&&Sample| roots.contains(&sample.root()) && sample.physical_frames() >= frames;
    let first = below.iter().position(|sample| is_whole(&sample)).unwrap_or(below.len());
    let then = &below[first..];
    let whole = then.iter().filter(is_whole).count();
    assert!(then.len() > 50, "{} of {} samples after {first}", then.len(), samples.len());
    let cut = then.iter().find(|sample| !is_whole(sample));
    let share = whole as f64 / then.len() as f64;
    assert!(share >= LEAST_WHOLE, "{whole} of {} are whole; not {cut:#?}", then.len());
}

#[test]
fn a_cpp_program_to_its_start() {
    check("bpf_cpp", || {
        let samples = samples("deep", DEEP_ITERATIONS)?;
        assert_whole(&samples, "kernels::hash_block", &["_start"], 45);
        Ok(())
    });
}

#[test]
fn a_rust_program_to_its_start() {
    check("bpf_rust", || {
        let samples = samples("deep-rs", DEEP_RS_ITERATIONS)?;
        assert_whole(&samples, "main", &["_start"], 5);
        Ok(())
    });
}

#[test]
fn every_switch_has_its_stacks_and_perf_reads_them() {
    check("bpf_switches", || {
        let (program, place) = (workload("pingpong")?, TestFolder::new());
        place.record(&program, &[], &["--iterations", "10"])?;
        let arguments = ["--iterations", "20000", "--threads", "4"];
        let said = place.record(&program, &["--switch-events", "-m", "16M"], &arguments)?;
        assert!(said.contains(" lost 0 "), "{said}");
        let mut script = perf()?;
        script.args(["script", "--show-switch-events", "-F", "comm,tid,event,ip,sym", "-i"]);
        let printed = text(script.arg(place.for_perf()));
        let count = |what: &str| printed.lines().filter(|line| line.contains(what)).count();
        let (outs, ins) = (count("PERF_RECORD_SWITCH OUT"), count("PERF_RECORD_SWITCH IN"));
        let switches = count("context-switches:");
        assert!(switches > 1000 && outs == switches, "{switches} {outs}");
        // Each thread but the one that ran when the recording began has come once more than it went, but
        // for its end.
        assert!(ins.abs_diff(outs) <= 4, "{ins} {outs}");
        // Nothing of the recorder's own stands in front of the scheduler. (A sample by the clock may well
        // come while a program runs.)
        let stacks = printed.split("\n\n").filter(|lines| lines.contains("context-switches:"));
        for stack in stacks {
            assert!(!stack.contains("bpf_trace_run"), "frames of the BPF program: {stack}");
        }
        let waits = count("await_turn");
        assert!(waits * 10 > switches, "{waits} of {switches} lead to the function that waits");
        Ok(())
    });
}

/// Nothing else writes into the rings, and they hold a fraction of a second.
#[test]
fn switches_alone_have_the_reader_woken() {
    check("bpf_switches_alone", || {
        let (program, place) = (workload("pingpong")?, TestFolder::new());
        let (iterations, threads) = ("30000", "4");
        let arguments = ["--iterations", iterations, "--threads", threads];
        place.record(&program, &["--switch-events", "-m", "256K", "-F", "1"], &arguments)?;
        let json = text(whit().args(["switches", "--json", "-i"]).arg(place.data()));
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let seen = json["total"]["sync_count"].as_u64().expect("a count");
        // A reader that looks once a second alone has 7000; one on a busy machine loses some.
        assert!(seen > 20_000, "{seen} switches of about 120000");
        Ok(())
    });
}

/// The other threads of the process switch, too.
#[test]
fn one_thread_alone() {
    check("bpf_one_thread", || {
        let (program, place) = (workload("pingpong")?, TestFolder::new());
        let mut load = Command::new(program);
        let load = Load::start(load.args(["--threads", "4", "--iterations", "100000000"]));
        let threads = || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", load.id())).expect("threads");
            let names = tasks.map(|task| task.expect("a thread").file_name());
            names.filter_map(|name| name.into_string().ok()).collect::<Vec<_>>()
        };
        wait_until("the load has its threads", || threads().len() == 4);
        let tid = threads().pop().expect("a thread");
        let options = ["--switch-events", "-t", &tid];
        place.record(Path::new("sleep"), &options, &["0.3"])?;
        drop(load);
        let mut script = perf()?;
        script.args(["script", "--show-switch-events", "-F", "tid,event", "-i"]);
        let printed = text(script.arg(place.for_perf()));
        let of_thread = |line: &&str| line.split_whitespace().next() == Some(&tid);
        let lines: Vec<_> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
        let other = lines.iter().find(|line| !of_thread(line));
        assert!(lines.len() > 100 && other.is_none(), "{} of {tid}: {other:?}", lines.len());
        Ok(())
    });
}

/// There processes have other numbers than those that programs in the kernel find first.
#[test]
fn in_a_pid_namespace_of_its_own() {
    check("bpf_pid_namespace", || {
        let (program, place) = (workload("pingpong")?, TestFolder::new());
        probe::bpf_stacks()?;
        let namespace = ["--pid", "--fork", "--mount-proc"];
        probe::need_program("unshare", &[&namespace[..], &["true"]].concat())?;
        let mut recorder = Command::new("unshare");
        recorder.args(namespace).arg(whit().get_program());
        recorder.args(["record", "--engine=bpf", "--wakeups", "-e", "cpu-clock", "-o"]);
        recorder.arg(place.data()).arg("--").arg(program);
        let output = recorder.args(["--iterations", "5000", "--threads", "4"]).output();
        let output = output.expect("run unshare");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("; lost 0 "), "{said}");
        let mut script = perf()?;
        script.args(["script", "--show-switch-events", "-F", "comm,tid,event,ip,sym", "-i"]);
        let printed = text(script.arg(place.for_perf()));
        let count = |what: &str| printed.lines().filter(|line| line.contains(what)).count();
        let (outs, ins) = (count("PERF_RECORD_SWITCH OUT"), count("PERF_RECORD_SWITCH IN"));
        assert!(outs > 1000 && outs == count("context-switches:"), "{outs} switches: {said}");
        // A thread that has ended has no number there any more.
        assert!(ins.abs_diff(outs) <= 8, "{ins} {outs}");
        let wakes = count("sched:sched_waking:");
        assert!(wakes * 2 > outs && count("await_turn") * 3 > outs, "{wakes} {outs}: {said}");
        Ok(())
    });
}

/// The caller of the wait of a switch, as `callers` prints it.
fn caller(sample: &Sample) -> String {
    let letter = |function: &str| {
        let of = |letter: &&str| sample.passes(&format!("{function}_{letter}"));
        ["a", "b"].into_iter().find(of).unwrap_or("-")
    };
    let depth = sample.frames.iter().filter(|frame| frame.symbol == "dig").count();
    format!("{}{}{}", letter("outer"), letter("inner"), depth.saturating_sub(1))
}

/// Stacks that are known again are looked up by where the thread is: others of the same place, and of the
/// same depth, must not be taken for them.
#[test]
fn a_stack_is_not_taken_for_another_of_the_same_place() {
    check("bpf_callers", || {
        let (program, place) = (workload("callers")?, TestFolder::new());
        place.record(&program, &[], &["--iterations", "10"])?;
        let (said, printed) =
            place.run(&program, &["--switch-events"], &["--iterations", "2000"])?;
        assert!(said.contains(" lost 0 "), "{said}");
        let mut script = whit();
        script.args(["script", "-F", "comm,event,ip,sym", "-i"]);
        let samples = script::parse(&text(script.arg(place.data())));
        let waits = samples.iter().filter(|sample| {
            sample.head.contains("context-switches") && sample.passes("do_nanosleep")
        });
        let mut wanted = printed.lines().peekable();
        let (mut matched, mut cut, mut others) = (0, 0, 0);
        for wait in waits.map(caller) {
            // Before the program's tables were there.
            let is_cut = wait.contains('-');
            match wanted.next_if(|wanted| is_cut || wait == *wanted) {
                Some(_) if is_cut => cut += 1,
                Some(_) => matched += 1,
                // A wait that was over before it began, but was preempted, is none to the program.
                None => others += 1,
            }
        }
        let rest = wanted.count();
        let counts = format!("{matched} matched, {cut} cut, {others} others, {rest} not found");
        assert!(rest == 0 && matched > 1000 && cut < 200 && others < 20, "{counts}: {said}");
        Ok(())
    });
}

/// Each event's samples are its own, also those of the events that children inherit.
#[test]
fn several_events_at_once() {
    check("bpf_events", || {
        let (program, place) = (Path::new("/bin/sh"), TestFolder::new());
        let mut both = String::from("true; ");
        both.push_str(workload("pingpong")?.to_str().expect("a path"));
        both.push_str(" --iterations 3000 --threads 4");
        let options = ["-F", "2000", "-e", "task-clock,page-faults/period=1/"];
        place.record(program, &options, &["-c", &both])?;
        let mut counter = perf()?;
        counter.args(["stat", "-x,", "-e", "page-faults", "--"]).arg(program).args(["-c", &both]);
        let counted = counter.output().expect("run perf").stderr;
        let counted = String::from_utf8_lossy(&counted).into_owned();
        let faults = counted.split(',').next().and_then(|count| count.trim().parse::<usize>().ok());
        let faults = faults.unwrap_or_else(|| panic!("{counted}"));
        let mut script = perf()?;
        script.args(["script", "-F", "comm,tid,period,event,ip", "-i"]).arg(place.data());
        let printed = text(&mut script);
        let of = |event: &str| printed.lines().filter(|line| line.contains(event)).count();
        let [clock, task_clock] = [" cpu-clock:", " task-clock:"].map(of);
        assert!(clock > 20 && clock.abs_diff(task_clock) * 2 < clock, "{clock} {task_clock}");
        let sampled = of(" page-faults/period=1/:");
        assert!(sampled > 100 && sampled.abs_diff(faults) * 10 < faults, "{sampled} of {faults}");
        let tids: std::collections::HashSet<_> = printed
            .lines()
            .filter(|line| line.contains(" task-clock:"))
            .filter_map(|line| line.split_whitespace().nth(1))
            .collect();
        assert!(tids.len() > 4, "only threads {tids:?} have samples of task-clock");
        Ok(())
    });
}

/// perf writes samples of tracepoints, with their data and by its filters; a program has told the stacks.
#[test]
fn samples_of_tracepoints_have_their_stacks() {
    check("bpf_tracepoints", || {
        let (program, place) = (workload("pingpong")?, TestFolder::new());
        let tracepoint = "syscalls:sys_enter_futex/period=1";
        probe::tracepoint("syscalls", "sys_enter_futex")?;
        let (all, waits) = (format!("{tracepoint},name=all/"), format!("{tracepoint},name=waits/"));
        // FUTEX_WAIT or FUTEX_WAKE, of private futexes.
        let options = ["-m", "16M", "-e", &all, "-e", &waits, "--filter", "op == 0x80"];
        place.record(&program, &options, &["--iterations", "10"])?;
        let arguments = ["--iterations", "3000", "--threads", "4"];
        let said = place.record(&program, &options, &arguments)?;
        assert!(said.contains(" lost 0 ") && said.contains("hits of tracepoints"), "{said}");
        let mut script = perf()?;
        script.args(["script", "-F", "comm,tid,event,trace,ip,sym", "-i"]).arg(place.data());
        let printed = text(&mut script);
        let of = |event: &'static str| {
            let is_of =
                move |sample: &&str| sample.lines().next().is_some_and(|line| line.contains(event));
            printed.split("\n\n").filter(is_of).collect::<Vec<_>>()
        };
        let [all, waits] = [of(" all:"), of(" waits:")];
        let wait = |sample: &&&str| sample.contains("op: 0x00000080,");
        let wanted = all.iter().filter(wait).count();
        assert!(wanted > 1000 && all.len() > wanted, "{wanted} of {}", all.len());
        assert_eq!((waits.len(), waits.iter().filter(wait).count()), (wanted, wanted));
        let whole =
            |sample: &&str| sample.contains("do_syscall_64") && sample.contains("await_turn");
        // On a busy machine the command has begun before the program knows of its mappings.
        let unknown = waits.iter().take_while(|sample| !whole(sample)).count();
        let known = &waits[unknown..];
        assert!(known.len() > 1000, "{} of {wanted}: {said}", known.len());
        let cut: Vec<_> = known.iter().filter(|sample| !whole(sample)).collect();
        assert!(cut.len() * 100 < known.len(), "{} of {}: {}", cut.len(), known.len(), cut[0]);
        Ok(())
    });
}

#[test]
fn perfs_own_samples_are_recorded_with_those_of_the_engine() {
    check("bpf_dumps", || {
        let (program, place) = (workload("deep")?, TestFolder::new());
        let options = ["-F", "1000", "--call-graph", "dwarf,16384", "-m", "32M"];
        let said = place.record(&program, &options, &["--iterations", "30000"])?;
        assert!(said.contains("; lost 0 "), "{said}");
        let data = place.data();
        let mut script = perf()?;
        let printed = text(script.args(["script", "-F", "tid,event,ip", "-i"]).arg(&data));
        let samples: Vec<&str> =
            printed.split("\n\n").filter(|lines| lines.contains(':')).collect();
        let of = |event: &str| samples.iter().filter(|lines| lines.contains(event)).count();
        let (walked, dumped) = (of("bpf-stacks:"), of("cpu-clock:"));
        assert!(walked == dumped && walked > 50, "{walked} and {dumped}: {printed}");
        let mut report = perf()?;
        let report = text(report.args(["report", "--stdio", "-g", "none", "-i"]).arg(&data));
        let titles = report.lines().filter(|line| line.starts_with("# Samples: "));
        let wanted = ["of event 'cpu-clock'", "of event 'bpf-stacks'"];
        assert!(titles.zip(wanted).all(|(title, end)| title.ends_with(end)), "{report}");
        assert_eq!(report.matches("# Samples: ").count(), 2, "{report}");
        Ok(())
    });
}

#[test]
fn the_recording_counts_walks_and_reasons_of_cut_stacks() {
    check("bpf_ledger", || {
        let (program, place) = (workload("deep")?, TestFolder::new());
        let stacks = || -> Result<(Value, String), Skip> {
            place.record(&program, &["-F", "2000"], &["--iterations", DEEP_ITERATIONS])?;
            let data = place.data();
            let json = text(whit().args(["report", "--json", "-i"]).arg(&data));
            let report: Value = serde_json::from_str(&json).expect("JSON");
            let lines = text(whit().args(["report", "--ledger", "-i"]).arg(data));
            Ok((report["ledger"]["stacks"].clone(), lines))
        };
        let ((first, _), (second, lines)) = (stacks()?, stacks()?);
        let number = |of: &Value, field: &str| of[field].as_u64().expect("a number");
        for of in [&first, &second] {
            let ended = of["ended"].as_object().expect("ends");
            let sum: u64 = ended.values().filter_map(Value::as_u64).sum();
            assert_eq!(sum, number(of, "walks"), "{of}");
            assert!(number(of, "frames") >= sum && number(of, "tables") > 3, "{of}");
            assert!(number(of, "rows") > 1000 && number(of, "build_ns") > 0, "{of}");
            // A word each for a row, and the index.
            assert!(number(of, "table_bytes") > 4 * number(of, "rows"), "{of}");
        }
        assert_eq!(number(&first, "cached_tables"), 0, "{first}");
        assert!(number(&second, "cached_tables") >= 3, "{second}");
        // They are there before the command begins.
        assert!(second["ended"]["no_table_yet"].is_null(), "{second}");
        for line in ["  stacks walked  ", "  complete  ", "  unwind tables  "] {
            assert!(lines.contains(line), "{line}: {lines}");
        }
        Ok(())
    });
}

/// The engine's part of the ledger; every walk in it ended for a reason.
fn accounted(place: &TestFolder) -> Value {
    let json = text(whit().args(["report", "--json", "-i"]).arg(place.data()));
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let stacks = report["ledger"]["stacks"].clone();
    let ended = stacks["ended"].as_object().expect("ends");
    let sum: u64 = ended.values().filter_map(Value::as_u64).sum();
    assert_eq!(Some(sum), stacks["walks"].as_u64(), "{stacks}");
    assert!(sum > 0, "{stacks}");
    stacks
}

fn script(place: &TestFolder) -> Vec<Sample> {
    let data = place.data();
    script::parse(&text(whit().args(["script", "-F", "comm,tid,ip,sym", "-i"]).arg(data)))
}

/// From the first whole chain on, those that lead through a function are whole, all but a few.
fn assert_mostly_whole(samples: &[Sample], through: &str, fewest: usize) {
    assert_share_whole(samples, through, fewest, LEAST_WHOLE);
}

/// The same for a share of those.
fn assert_share_whole(samples: &[Sample], through: &str, fewest: usize, least: f64) {
    let is_known = |sample: &&Sample| sample.root() == "_start";
    let first = samples.iter().position(|sample| is_known(&sample)).unwrap_or(samples.len());
    let samples = &samples[first..];
    let below: Vec<_> = samples.iter().filter(|sample| sample.passes(through)).collect();
    let whole = below.iter().filter(|sample| sample.root() == "_start").count();
    assert!(below.len() >= fewest, "{} of {} lead through {through}", below.len(), samples.len());
    let cut = below.iter().find(|sample| sample.root() != "_start");
    let share = whole as f64 / below.len() as f64;
    assert!(share >= least, "{through}: {whole} of {} are whole; not {cut:#?}", below.len());
}

#[test]
fn c_through_signals_callbacks_linkage_tables_the_vdso_and_a_late_library() {
    check("bpf_corners", || {
        let (program, place) = (workload("corners")?, TestFolder::new());
        place.record(&program, &["-F", "2000"], &["--iterations", "500"])?;
        // Not in step with the alarms, which would fall between samples.
        place.record(&program, &["-F", "1987"], &["--seconds", "3"])?;
        let samples = script(&place);
        // The handler over any interrupted code, callbacks out of qsort, frames of unknown size. The
        // interrupted code may be the late library, before its table is there.
        assert_share_whole(&samples, "on_alarm", 5, 0.9);
        assert_mostly_whole(&samples, "compare", 50);
        assert_mostly_whole(&samples, "alloca_and", 100);
        // Through an entry of the linkage table into a library that was loaded late.
        let late = |sample: &&Sample| sample.frames.iter().any(|f| f.symbol.contains("gamma"));
        let late: Vec<_> = samples.iter().filter(late).collect();
        let whole = late.iter().filter(|sample| sample.root() == "_start").count();
        assert!(late.len() > 50 && whole * 10 > late.len() * 9, "{whole} of {}", late.len());
        let in_vdso = |sample: &&Sample| sample.physical_leaf().starts_with("__vdso_");
        let in_vdso: Vec<_> = samples.iter().filter(in_vdso).collect();
        let whole = in_vdso.iter().filter(|sample| sample.root() == "_start").count();
        assert!(!in_vdso.is_empty() && whole * 10 > in_vdso.len() * 9, "{whole} of {in_vdso:?}");
        accounted(&place);
        Ok(())
    });
}

/// The frame address of the dynamic linker's entry is made from rbx, which its callees have saved.
#[test]
fn stacks_through_calls_that_the_dynamic_linker_binds_are_whole() {
    check("bpf_lazy", || {
        let (program, place) = (workload("lazy")?, TestFolder::new());
        for iterations in ["10", "100"] {
            place.record(&program, &["-F", "5000", "--all-user"], &["--iterations", iterations])?;
        }
        let samples = script(&place);
        let first = samples.iter().position(|sample| sample.passes("outer"));
        let samples = &samples[first.unwrap_or(samples.len())..];
        let bound = samples.iter().filter(|sample| sample.passes("outer"));
        let whole = bound.filter(|sample| sample.root() == "_start").count();
        assert!(whole > 300, "{whole} of {}", samples.len());
        let cut = samples.iter().find(|sample| sample.root() != "_start");
        let share = whole as f64 / samples.len() as f64;
        assert!(share >= LEAST_WHOLE, "{whole} of {} are whole; not {cut:#?}", samples.len());
        accounted(&place);
        Ok(())
    });
}

#[test]
fn children_that_fork_have_their_parents_mappings_and_those_that_exec_their_own() {
    check("bpf_forks", || {
        let (program, place) = (workload("forks")?, TestFolder::new());
        place.record(&program, &["-F", "2000"], &["--count", "3"])?;
        place.record(&program, &["-F", "5000"], &["--count", "90"])?;
        let samples = script(&place);
        // Known from the first instruction on.
        assert_mostly_whole(&samples, "burn_in_fork", 50);
        // After an exec the recorder has to hear of the new mappings first, of some milliseconds that a
        // child burns.
        let execs = samples.iter().filter(|sample| {
            sample.frames.iter().any(|frame| frame.symbol.starts_with("burn_in_exec"))
        });
        let execs: Vec<_> = execs.collect();
        let whole = execs.iter().filter(|sample| sample.root() == "_start").count();
        assert!(execs.len() > 30 && whole * 4 > execs.len(), "{whole} of {}", execs.len());
        accounted(&place);
        Ok(())
    });
}

/// A process that has mapped everything on another CPU is known on the recorded one; events of the other CPU
/// are not recorded.
#[test]
fn one_cpu_alone() {
    check("bpf_one_cpu", || {
        let (program, place) = (workload("deep")?, TestFolder::new());
        probe::online_cpus(2)?;
        let script =
            "taskset -c 0 \"$0\" --iterations 240000 & sleep 0.5; taskset -p -c 1 $!; wait";
        let program = program.to_str().expect("a path of UTF-8");
        // Space for the switches of other tests meanwhile.
        let options = ["-F", "2000", "--switch-events", "-m", "32M", "-C", "1"];
        let said = place.record(Path::new("sh"), &options, &["-c", script, program])?;
        assert!(said.contains(" 0 lost; "), "{said}");
        let data = place.data();
        let lines = text(whit().args(["script", "-F", "tid,cpu,ip,sym", "-i"]).arg(data));
        let samples = script::parse(&lines);
        let elsewhere = samples.iter().find(|sample| !sample.head.contains("[001]"));
        assert!(elsewhere.is_none(), "{elsewhere:?}");
        // Tables may be late, with all that runs on a machine.
        let stacks = accounted(&place);
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let unknown = number(&stacks["ended"]["no_process"]);
        assert!(unknown * 4 < number(&stacks["walks"]), "{stacks}");
        Ok(())
    });
}

#[test]
fn each_walk_of_many_short_processes_ends_for_a_reason() {
    check("bpf_spawn", || {
        let (program, place) = (workload("spawn")?, TestFolder::new());
        let said = place.record(&program, &["-F", "5000"], &["--iterations", "40"])?;
        assert!(said.contains(" 0 lost; "), "{said}");
        let stacks = accounted(&place);
        let complete = stacks["ended"]["end_of_stack"].as_u64().unwrap_or(0);
        assert!(complete > 0, "{stacks}");
        // Processes of their own, each by an exec.
        let samples = script(&place);
        let threads = samples.iter().filter(|sample| sample.head.starts_with("exe "));
        let threads: HashSet<&str> = threads.map(|sample| sample.head.as_str()).collect();
        assert!(threads.len() > 50, "{} of {}", threads.len(), samples.len());
        Ok(())
    });
}

/// They have ended before whit sees their mappings: their stacks are complete nevertheless.
#[test]
fn short_processes_are_known_as_soon_as_they_run() {
    /// Share of the walks that may be cut: the memory's lock is not always free.
    const CUT_MAX: f64 = 0.05;
    check("short_processes_are_known_as_soon_as_they_run", || {
        let (program, place) = (workload("spawn")?, TestFolder::new());
        let said = place.record(&program, &["--switch-events"], &["--iterations", "100"])?;
        // `bpf_find_vma`.
        probe::kernel_since(5, 17)?;
        assert!(said.contains(" mappings found before they were announced"), "{said}");
        let stacks = accounted(&place);
        let count = |value: &Value| value.as_u64().expect("a count") as f64;
        // No walk ended so where there is no number.
        let cut = stacks["ended"]["no_process"].as_u64().unwrap_or(0) as f64;
        let share = cut / count(&stacks["walks"]);
        assert!(share <= CUT_MAX, "{share}: {stacks}");
        Ok(())
    });
}

#[test]
fn a_go_program_to_the_start_of_its_goroutines() {
    check("bpf_go", || {
        let samples = samples("deep-go", DEEP_ITERATIONS)?;
        assert_whole(&samples, "main.drive", &["runtime.goexit.abi0", "runtime.goexit"], 4);
        Ok(())
    });
}

#[test]
fn unsupported_options_are_refused_before_the_recording() {
    let directory = tempfile::tempdir().expect("make a directory");
    let data = directory.path().join("perf.data");
    for (options, why) in [
        (&["-e", "dummy"][..], "an event to sample"),
        (&["-e", "{cpu-clock,page-faults}:S"][..], "counts of groups"),
        (&["-e", "cpu-clock", "--weight"][..], "further fields"),
        (&["-e", "cpu-clock", "--call-graph", "dwarf", "--switch-events"][..], "--switch-events"),
        (&["-e", "cpu-clock,task-clock", "--call-graph", "dwarf"][..], "one event"),
        (&["-e", "cpu-clock", "--per-thread"][..], "--per-thread"),
        (&["-e", "cpu-clock", "--switch-events", "-k", "raw"][..], "CLOCK_MONOTONIC"),
    ] {
        let mut recorder = command(env!("CARGO_BIN_EXE_whit"));
        recorder.args(["record", "--engine=bpf", "-o"]).arg(&data).args(options).arg("true");
        let output = recorder.output().expect("run whit");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{options:?}: {said}");
        assert!(said.contains("--engine=ring") && !data.exists(), "{said}");
    }
}

/// Recordings of whole machines. In four of ten, the first wake-up comes from an interrupt of an idle CPU, for which the
/// kernel gave another place of the registers. One of 400 such tests would miss it.
const WHOLE_MACHINES: usize = 10;

#[test]
fn an_idle_cpu_that_comes_first_hides_no_registers() {
    check("an_idle_cpu_that_comes_first_hides_no_registers", || {
        probe::bpf_stacks()?;
        probe::whole_cpus()?;
        let folder = tempfile::tempdir().expect("make a directory");
        let program = workload("pingpong")?;
        for _ in 0..WHOLE_MACHINES {
            let mut recorder = whit();
            recorder.args(["record", "-a", "--engine=bpf", "--wakeups", "-e", "cpu-clock", "-o"]);
            recorder.arg(folder.path().join("perf.data"));
            recorder.arg("--").arg(&program).args(["--threads", "2", "--iterations", "300"]);
            let output = whit_testing::run::record(&mut recorder)?;
            let said = whit_testing::run::stderr(&output);
            assert!(said.contains("stacks complete") && !said.contains("32-bit code"), "{said}");
        }
        Ok(())
    });
}
