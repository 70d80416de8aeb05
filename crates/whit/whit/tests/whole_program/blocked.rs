//! Threads that are blocked when recording begins or ends have their stacks in it. A program tells which thread
//! waits where; /proc tells how often each left a CPU.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::tools::{command, perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};
use whit_testing::run;
use whit_testing::wait::wait_until;

/// Threads that never run, and where each waits.
const FOR_GOOD: [(&str, &str); 3] =
    [("in_futex", "futex"), ("in_pipe", "read"), ("in_sleep", "nanosleep")];
const WOKEN: &str = "in_input";

/// The program, with the thread of each role.
struct Waiting {
    program: Child,
    said: Lines<BufReader<ChildStdout>>,
    threads: BTreeMap<String, i64>,
}

impl Waiting {
    /// All threads are where they wait. `input` is what wakes one.
    fn start(input: &Path) -> Result<Waiting, Skip> {
        // Open for both, so that nobody waits for the other end.
        let input = std::fs::File::options().read(true).write(true).open(input);
        let mut program = command(workload("blocked")?)
            .stdin(input.expect("open the pipe"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("run the program");
        let mut said = BufReader::new(program.stdout.take().expect("its output")).lines();
        let mut threads = BTreeMap::from([("pause".to_owned(), i64::from(program.id()))]);
        for _ in 0..=FOR_GOOD.len() {
            let line = said.next().expect("a thread says").expect("read");
            let (role, tid) = line.split_once(' ').expect("role and thread");
            threads.insert(role.to_owned(), tid.parse().expect("a number"));
        }
        let waiting = Waiting { program, said, threads };
        wait_until("all threads wait", || {
            let task = |tid: &i64| format!("/proc/{}/task/{tid}", waiting.program.id());
            let waits = |tid: &i64| {
                let stat = std::fs::read_to_string(task(tid) + "/stat").expect("a state");
                // In the call in which it is for good.
                let call = std::fs::read_to_string(task(tid) + "/syscall").expect("a call");
                stat.contains(") S ") && call != "running\n"
            };
            waiting.threads.values().all(waits)
        });
        Ok(waiting)
    }

    fn pid(&self) -> String {
        self.program.id().to_string()
    }

    fn tid(&self, role: &str) -> i64 {
        self.threads[role]
    }

    /// How often a thread gave its CPU up, and how often it was taken off, by the kernel.
    fn switches(&self, role: &str) -> [u64; 2] {
        let path = format!("/proc/{}/task/{}/status", self.program.id(), self.tid(role));
        let status = std::fs::read_to_string(path).expect("a status");
        ["voluntary_ctxt_switches:\t", "nonvoluntary_ctxt_switches:\t"].map(|name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.parse().ok()).expect("a count")
        })
    }

    /// When the woken thread ran, by its own log.
    fn woken_ns(&mut self) -> u64 {
        let line = self.said.next().expect("it says").expect("read");
        line.strip_prefix("woken ").and_then(|time| time.parse().ok()).expect("a time")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A recording of the program while its input has one byte, as whit reads it.
struct Recorded {
    json: Value,
    text: String,
}

impl Recorded {
    fn of(place: &Path, target: &[&str], meanwhile: &str) -> Result<Recorded, Skip> {
        let out = place.join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "--engine=bpf", "--switch-events", "-e", "cpu-clock"]);
        recorder.args(target).arg("-o").arg(&out).args(["--", "sh", "-c", meanwhile]);
        record(&mut recorder)?;
        Ok(Recorded::read(&out))
    }

    fn read(out: &Path) -> Recorded {
        let read = |form: &[&str]| text(whit().arg("switches").args(form).arg("-i").arg(out));
        let json = read(&["--json", "--worst", "100000"]);
        Recorded {
            json: serde_json::from_str(&json).expect("JSON"),
            text: read(&["--worst", "100000"]),
        }
    }

    fn thread(&self, tid: i64) -> Option<usize> {
        let threads = self.json["threads"].as_array().expect("threads");
        threads.iter().position(|thread| thread["tid"] == tid)
    }

    fn sums(&self, tid: i64) -> &Value {
        &self.json["threads"][self.thread(tid).expect("a thread of the report")]["sums"]
    }

    /// The waits of a thread in order of time.
    fn waits(&self, tid: i64) -> Vec<&Value> {
        let thread = self.thread(tid);
        let all = self.json["worst"].as_array().expect("waits").iter();
        let mut waits: Vec<_> =
            all.filter(|wait| wait["thread"].as_u64() == thread.map(|t| t as u64)).collect();
        waits.sort_by_key(|wait| wait["start_ns"].as_u64());
        waits
    }

    fn stack(&self, wait: &Value) -> Vec<String> {
        let name = |number: &Value| {
            let number = number.as_u64().expect("a function") as usize;
            self.json["functions"][number]["name"].as_str().unwrap_or_default().to_owned()
        };
        wait["stack"].as_array().expect("a stack").iter().map(name).collect()
    }

    /// It waited there from the beginning to the end.
    fn assert_throughout(&self, tid: i64, role: &str, call: &str) {
        let [wait] = self.waits(tid)[..] else { panic!("{role}: {:?}", self.waits(tid)) };
        let stack = self.stack(wait);
        assert!(stack.iter().any(|name| name == role), "{role}: {stack:?}");
        assert!(stack.iter().any(|name| name.contains(call)), "{role}: {stack:?}");
        assert!(wait["begun_before"] == true && wait["open"] == true, "{role}: {wait}");
        let span = |at: usize| self.json["span_ns"][at].as_u64().expect("a time");
        assert_eq!(wait["start_ns"], span(0), "{role}");
        assert_eq!(wait["duration_ns"], span(1) - span(0), "{role}");
        let sums = self.sums(tid);
        assert_eq!(sums["throughout_count"], 1, "{role}: {sums}");
        assert_eq!(sums["throughout_wait_ns"], wait["duration_ns"], "{role}");
        for none in ["sync_count", "preempt_count", "open_count", "lossy_count", "cpu_ns"] {
            assert_eq!(sums[none], 0, "{role}: {none}");
        }
    }
    /// All threads that never ran waited through two stretches of recorded time.
    fn assert_twice(&self, waiting: &Waiting) {
        for (role, call) in FOR_GOOD {
            let waits = self.waits(waiting.tid(role));
            let [first, second] = waits[..] else { panic!("{role}: {waits:?}") };
            for wait in [first, second] {
                let stack = self.stack(wait);
                assert!(stack.iter().any(|name| name.contains(call)), "{role}: {stack:?}");
                assert!(wait["begun_before"] == true && wait["open"] == true, "{role}: {wait}");
            }
            let sums = self.sums(waiting.tid(role));
            assert_eq!(sums["throughout_count"], 2, "{role}");
            assert_eq!(sums["throughout_wait_ns"], self.json["recorded_ns"], "{role}");
        }
    }
}

fn pipe(place: &Path) -> std::path::PathBuf {
    let path = place.join("input");
    assert!(Command::new("mkfifo").arg(&path).status().expect("run mkfifo").success());
    path
}

/// One byte for the thread that waits for it, and time before and behind.
fn one_byte(input: &Path) -> String {
    format!("sleep 0.2; echo >{}; sleep 0.2", input.display())
}

fn needs() -> Result<(), Skip> {
    probe::bpf_stacks()?;
    // bpf_copy_from_user_task().
    probe::kernel_since(5, 18)
}

#[test]
fn threads_that_wait_throughout_a_recording_have_their_stacks() {
    check("blocked_throughout", || {
        needs()?;
        for target in ["-p", "-a"] {
            let place = tempfile::tempdir().expect("make a directory");
            let input = pipe(place.path());
            let mut waiting = Waiting::start(&input)?;
            let before: Vec<_> =
                FOR_GOOD.map(|(role, _)| waiting.switches(role)).into_iter().collect();
            let woken_before = waiting.switches(WOKEN);
            let pid = waiting.pid();
            let target = if target == "-p" { vec!["-p", &pid] } else { vec!["-a"] };
            let recorded = Recorded::of(place.path(), &target, &one_byte(&input))?;
            let woken_ns = waiting.woken_ns();
            for ((role, call), before) in FOR_GOOD.into_iter().zip(before) {
                assert_eq!(waiting.switches(role), before, "{role} ran");
                recorded.assert_throughout(waiting.tid(role), role, call);
            }
            recorded.assert_throughout(waiting.tid("pause"), "main", "pause");
            assert!(recorded.text.contains(", blocked when recording began"), "{}", recorded.text);

            // Its first wait is as long as it was recorded, the second one begins in the recording.
            let tid = waiting.tid(WOKEN);
            let waits = recorded.waits(tid);
            let [first, .., last] = waits[..] else { panic!("{waits:?}") };
            let stack = recorded.stack(first);
            assert!(stack.iter().any(|name| name == WOKEN), "{stack:?}");
            assert!(first["begun_before"] == true && first["open"] == false, "{first}");
            assert_eq!(first["start_ns"], recorded.json["span_ns"][0]);
            let time = |wait: &Value, name: &str| wait[name].as_u64().expect("a time");
            let came = time(first, "start_ns") + time(first, "duration_ns");
            assert!(came < woken_ns && woken_ns < time(last, "start_ns"), "{waits:?} {woken_ns}");
            let stack = recorded.stack(last);
            assert!(stack.iter().any(|name| name == "in_input_again"), "{stack:?}");
            assert!(last["begun_before"] == false && last["open"] == true, "{last}");
            // Counts are the kernel's.
            let sums = recorded.sums(tid);
            let now = waiting.switches(WOKEN);
            let counted = [0, 1].map(|kind| now[kind] - woken_before[kind]);
            assert_eq!(
                [&sums["sync_count"], &sums["preempt_count"]].map(Value::as_u64),
                counted.map(Some)
            );
            assert_eq!(sums["throughout_count"], 0);
        }
        Ok(())
    });
}

#[test]
fn other_threads_are_not_recorded() {
    check("blocked_threads_alone", || {
        needs()?;
        let place = tempfile::tempdir().expect("make a directory");
        let waiting = Waiting::start(&pipe(place.path()))?;
        let tid = waiting.tid("in_futex");
        let recorded = Recorded::of(place.path(), &["-t", &tid.to_string()], "sleep 0.2")?;
        recorded.assert_throughout(tid, "in_futex", "futex");
        for other in ["in_pipe", "in_sleep", "in_input", "pause"] {
            assert!(recorded.waits(waiting.tid(other)).is_empty(), "{other}");
        }
        assert_eq!(recorded.json["total"]["throughout_count"], 1);
        Ok(())
    });
}

/// Each time that recording is switched on is a beginning.
#[test]
fn pauses_divide_waits() {
    check("blocked_pauses", || {
        needs()?;
        let place = tempfile::tempdir().expect("make a directory");
        let waiting = Waiting::start(&pipe(place.path()))?;
        let pid = waiting.pid();
        let ranges = ["-p", &pid, "-D", "10-110,210-310"];
        Recorded::of(place.path(), &ranges, "sleep 0.5")?.assert_twice(&waiting);
        Ok(())
    });
}

/// A command for the recorder's control channel, in a shell that waits for the answer.
const ASK: &str = "ask() { echo $1 >&3; read answer <&4; [ \"$answer\" = ack ]; }";

/// So is each `enable` of the control channel, and each `disable` is an end.
#[test]
fn commands_of_the_control_channel_divide_waits() {
    check("blocked_control", || {
        needs()?;
        let place = tempfile::tempdir().expect("make a directory");
        let waiting = Waiting::start(&pipe(place.path()))?;
        let [control, answers] = ["control", "answers"].map(|name| {
            let path = place.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().expect("run mkfifo").success());
            path.display().to_string()
        });
        let (pid, channel) = (waiting.pid(), format!("fifo:{control},{answers}"));
        let target = ["-p", &pid, "-D", "-1", "--control", &channel];
        let meanwhile = format!(
            "{ASK}; exec 3<>{control} 4<>{answers}; \
             for twice in 1 2; do ask enable && sleep 0.1 && ask disable && sleep 0.1 || exit 1; done"
        );
        Recorded::of(place.path(), &target, &meanwhile)?.assert_twice(&waiting);
        Ok(())
    });
}

/// Each output has the stacks of its own beginning and end.
#[test]
fn each_of_several_outputs_has_the_threads_that_wait_throughout_it() {
    check("blocked_outputs", || {
        needs()?;
        let place = tempfile::tempdir().expect("make a directory");
        let waiting = Waiting::start(&pipe(place.path()))?;
        let out = place.path().join("perf.data");
        let mut recorder = whit();
        recorder.args(["record", "--engine=bpf", "--switch-events", "-e", "cpu-clock"]);
        recorder.args(["-p", &waiting.pid(), "--switch-output=signal", "-o"]).arg(&out);
        // A signal that comes before the recorder has taken the one before asks for nothing more.
        let meanwhile = "looks=0; for outputs in 1 2; do sleep 0.3; kill -USR2 $PPID; \
                         until [ $(ls \"$0\" | grep -c '^perf.data.') = $outputs ] || \
                         [ $((looks += 1)) = 400 ]; do sleep 0.05; done; \
                         done; sleep 0.3";
        record(recorder.args(["--", "sh", "-c", meanwhile]).arg(place.path()))?;
        let files = std::fs::read_dir(place.path()).expect("read the directory");
        let files = files.map(|file| file.expect("a file").path());
        let is_output = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("perf.data."))
        };
        let outputs: Vec<_> = files.filter(is_output).collect();
        assert_eq!(outputs.len(), 3, "{outputs:?}");
        for output in outputs {
            let recorded = Recorded::read(&output);
            for (role, call) in FOR_GOOD {
                recorded.assert_throughout(waiting.tid(role), role, call);
            }
        }
        Ok(())
    });
}

/// Other readers see an event that has nothing to do with the others.
#[test]
fn perf_reads_the_stacks_as_samples_of_an_event_of_their_own() {
    check("blocked_perf", || {
        needs()?;
        perf()?;
        let place = tempfile::tempdir().expect("make a directory");
        let waiting = Waiting::start(&pipe(place.path()))?;
        let recorded = Recorded::of(place.path(), &["-p", &waiting.pid()], "sleep 0.2")?;
        assert_eq!(recorded.json["total"]["throughout_count"], 5);
        let out = place.path().join("perf.data");
        let script = text(perf()?.arg("script").arg("-i").arg(&out));
        for (role, _) in FOR_GOOD {
            let tid = waiting.tid(role).to_string();
            let of_thread = |sample: &&str| sample.split_whitespace().nth(1) == Some(&tid);
            let samples: Vec<_> = script.split("\n\n").filter(of_thread).collect();
            let [begin, end] = samples[..] else { panic!("{role}: {script}") };
            for sample in [begin, end] {
                assert!(sample.contains("whit-blocked:"), "{sample}");
                assert!(sample.contains(&format!(" {role}+0x")), "{sample}");
            }
        }
        Ok(())
    });
}

/// Records a waiting process under strace, which refuses a call if one is named. Gives the recorder's messages,
/// and the calls of its first thread.
fn traced(pid: &str, out: &Path, refuse: Option<usize>) -> (String, Vec<String>) {
    let log = out.with_extension("calls");
    let mut recorder = command("strace");
    recorder.args(["-f", "-e", "trace=bpf", "-o"]).arg(&log);
    if let Some(call) = refuse {
        // libbpf asks a second time, for the verifier's log.
        recorder.arg("-e").arg(format!("inject=bpf:error=EINVAL:when={call}..{}", call + 1));
    }
    recorder.arg(whit().get_program()).args(["record", "--engine=bpf", "--switch-events"]);
    recorder.args(["-e", "cpu-clock", "-p", pid, "-o"]).arg(out).args(["--", "sleep", "0.2"]);
    let said = run::stderr(&run::run(&mut recorder));
    let log = std::fs::read_to_string(&log).expect("read the calls");
    let calls = log.lines().filter_map(|line| line.split_once(" bpf("));
    let first = calls.clone().next().map(|(thread, _)| thread).unwrap_or_default();
    let of_first = calls.filter(|(thread, _)| thread.trim() == first.trim());
    (said, of_first.map(|(_, call)| call.to_owned()).collect())
}

/// Kernels before 5.18 refuse the program that reads these stacks, and no other. A newer kernel seems to do so.
#[test]
fn where_the_program_does_not_load_all_else_is_recorded() {
    check("blocked_refused", || {
        needs()?;
        probe::program("strace")?;
        let place = tempfile::tempdir().expect("make a directory");
        let out = place.path().join("perf.data");
        let waiting = Waiting::start(&pipe(place.path()))?;
        let is_load = |call: &String| call.contains("prog_name=\"blocked\"");
        let (said, calls) = traced(&waiting.pid(), &out, None);
        assert!(!said.contains("have no stacks"), "{said}");
        assert!(Recorded::read(&out).json["total"]["throughout_count"] == 5, "{said}");
        let load = calls.iter().position(is_load).expect("the program is loaded");

        let (said, calls) = traced(&waiting.pid(), &out, Some(load + 1));
        let refused: Vec<_> = calls.iter().filter(|call| call.contains("(INJECTED)")).collect();
        assert!(refused.len() == 2 && refused.into_iter().all(is_load), "{calls:?}");
        let warning = "threads that are blocked when recording begins or ends have no stacks (that takes \
                       Linux 5.18): cannot load the BPF program that unwinds blocked threads: Invalid argument";
        assert_eq!(said.matches(warning).count(), 1, "{said}");
        let recorded = Recorded::read(&out);
        assert_eq!(recorded.json["total"]["throughout_count"], 0);
        for (role, _) in FOR_GOOD {
            assert!(recorded.waits(waiting.tid(role)).is_empty(), "{role}");
        }
        let report = text(whit().args(["report", "--json", "-i"]).arg(&out));
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["ledger"]["reads_blocked"], 0);
        Ok(())
    });
}
