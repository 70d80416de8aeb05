//! The objects of waits: a program waits for files, sockets, pipes and the like that it names itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;
use whit_testing::run::output;

use crate::support::tools::{number, record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// Records the program with arguments; gives its output.
fn recorded<S: AsRef<OsStr>>(data: &Path, options: &[&str], args: &[S]) -> Result<String, Skip> {
    probe::bpf_stacks()?;
    let program = workload("objects")?;
    let mut recorder = whit();
    recorder.args(["record", "-q", "--engine=bpf", "--wakeups"]).args(options).arg("-o").arg(data);
    recorder.arg("--").arg(program).args(args);
    let said = record(&mut recorder)?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

fn json(args: &[&str], data: &Path) -> Value {
    let json = text(whit().args(args).args(["--no-debuginfod", "-i"]).arg(data));
    serde_json::from_str(&json).expect("JSON")
}

/// The thread that waits, and the number of its waits by object.
fn stated(said: &str) -> (u64, BTreeMap<String, u64>) {
    let (mut tid, mut waits) = (0, BTreeMap::new());
    for line in said.lines() {
        let (head, object) = line.split_once(" object=").expect("an object");
        let word = |key: &str| {
            let (_, rest) = head.split_once(key).expect("a word");
            rest.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
        };
        tid = word("tid=");
        *waits.entry(object.to_owned()).or_default() += word("count=");
    }
    (tid, waits)
}

/// The number and time of voluntary waits of a thread, by object.
fn by_object(switches: &Value, tid: u64) -> BTreeMap<String, (u64, u64)> {
    let mut waits: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in switches["rows"].as_array().expect("rows") {
        let thread = &switches["threads"][number(row, "thread") as usize];
        let Some(object) = row["wait_object"]["name"].as_str() else { continue };
        if thread["tid"].as_u64() == Some(tid) {
            let (count, ns) = waits.entry(object.to_owned()).or_default();
            *count += number(&row["sums"], "sync_count");
            *ns += number(&row["sums"], "sync_wait_ns");
        }
    }
    waits
}

fn objects_are_those_that_the_program_names(options: &[&str]) -> Result<(), Skip> {
    let folder = tempfile::tempdir().expect("make a directory");
    let data = folder.path().join("perf.data");
    let files = tempfile::tempdir_in(folder.path()).expect("make a directory");
    let said = recorded(&data, options, &[files.path()])?;
    let (tid, stated) = stated(&said);
    // A kernel may lack message queues and semaphores.
    assert!((24..=27).contains(&stated.len()), "{said}");
    let switches = json(&["switches", "--json"], &data);
    let waits = by_object(&switches, tid);
    for (object, count) in &stated {
        // A call whose thread is woken in vain waits again. Waits at a wrong object lack here.
        assert!(waits.get(object).is_some_and(|it| it.0 >= *count), "{object}: {waits:#?}");
    }
    // All other waits, such as those for pages, have a reason.
    let others: Vec<_> = waits.keys().filter(|object| !stated.contains_key(*object)).collect();
    assert!(others.iter().all(|object| object.starts_with("unknown (")), "{others:?}");
    // Sums over objects are those of the thread, to the nanosecond.
    let threads = switches["threads"].as_array().expect("threads");
    let sums =
        &threads.iter().find(|it| it["tid"].as_u64() == Some(tid)).expect("the thread")["sums"];
    let all = waits.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    assert_eq!(all, (number(sums, "sync_count"), number(sums, "sync_wait_ns")));
    what_is_sent_is_from_its_sender(&switches, tid);
    event_loops_have_the_class_of_the_file_that_ends_them(&switches, tid);
    filters_take_parts_of_names(&data, tid, &waits);
    Ok(())
}

/// Waits in `epoll_wait`: by clients, by a peer that the program has connected to, and by other files.
fn event_loops_have_the_class_of_the_file_that_ends_them(switches: &Value, tid: u64) {
    let mut found: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for row in switches["rows"].as_array().expect("rows") {
        let thread = &switches["threads"][number(row, "thread") as usize];
        let class = row["wait_class"].as_str().expect("a class");
        let name = row["wait_object"]["name"].as_str().unwrap_or_default();
        if thread["tid"].as_u64() == Some(tid) && ["poll", "idle-loop", "peer"].contains(&class) {
            let kind = match row["wait_object"]["kind"].as_str() {
                Some("inet-socket") if name.ends_with("(listens)") => "listens",
                Some("inet-socket") => "connection",
                Some(kind) => kind,
                None => continue,
            };
            *found.entry((kind.to_owned(), class)).or_default() +=
                number(&row["sums"], "sync_count");
        }
    }
    let count = |kind: &str, class: &str| {
        let key = |it: &&(String, &str)| it.0 == kind && it.1 == class;
        found.iter().find(|(it, _)| key(it)).map_or(0, |(_, count)| *count)
    };
    // Seven waits of each kind at least; the connection is one of a client first, and one to a server then.
    assert!(
        count("listens", "idle-loop") >= 7 && count("connection", "idle-loop") >= 7,
        "{found:?}"
    );
    assert!(count("connection", "peer") >= 7, "{found:?}");
    assert!(count("pipe", "poll") >= 7 && count("no-file", "poll") >= 7, "{found:?}");
    let is_poll = |(kind, class): &(String, &str)| {
        ["listens", "connection", "unix-socket"].contains(&&**kind) == (*class != "poll")
    };
    assert!(found.keys().all(is_poll), "{found:?}");
}

/// A packet of this machine wakes in an interrupt of the call that sends it.
fn what_is_sent_is_from_its_sender(switches: &Value, tid: u64) {
    let thread = |index: &Value| &switches["threads"][index.as_u64().expect("a thread") as usize];
    let mut wake_ups = 0;
    for waker in switches["wakers"].as_array().expect("wakers") {
        let row = &switches["rows"][number(waker, "row") as usize];
        let name = row["wait_object"]["name"].as_str().unwrap_or_default();
        if thread(&row["thread"])["tid"] == tid && name.starts_with("tcp 127.0.0.1") {
            assert_eq!(waker["from_interrupt"], false, "{waker}");
            assert_ne!(thread(&waker["thread"])["tid"], tid, "{waker}");
            wake_ups += number(waker, "count");
        }
    }
    // Four kinds of waits, seven each.
    assert!(wake_ups >= 28, "{wake_ups}: {}", switches["wakers"]);
}

fn filters_take_parts_of_names(data: &Path, tid: u64, waits: &BTreeMap<String, (u64, u64)>) {
    let tcp = json(&["switches", "--json", "--wait-object", "tcp 127.0.0.1"], data);
    let chosen = by_object(&tcp, tid).into_iter().filter(|(_, sums)| *sums != (0, 0));
    let wanted = waits.iter().filter(|(name, _)| name.starts_with("tcp 127.0.0.1"));
    assert_eq!(chosen.collect::<BTreeMap<_, _>>(), wanted.map(|(k, v)| (k.clone(), *v)).collect());
    let wall = json(&["report", "--wall", "--json", "--wait-object", "pipe:["], data);
    let thread = wall["threads"].as_array().expect("threads").iter();
    let thread = thread.into_iter().find(|it| it["tid"].as_u64() == Some(tid)).expect("the thread");
    let pipes: u64 =
        waits.iter().filter(|(name, _)| name.starts_with("pipe:[")).map(|(_, sums)| sums.1).sum();
    let sums = &thread["sums"];
    assert_eq!(number(sums, "waiting_ns") + number(sums, "run_queue_ns"), pipes, "{thread}");
    let args = ["switches", "--stdio", "--wait-object", "/nothere", "-i"];
    let none = output(whit().args(args).arg(data));
    let text = String::from_utf8_lossy(&none.stdout);
    let warning = "--wait-object /nothere: no thread waited for an object of such a name";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn objects_of_packed_switches_are_those_that_the_program_names() {
    check("objects_of_packed_switches_are_those_that_the_program_names", || {
        objects_are_those_that_the_program_names(&[])
    });
}

#[test]
fn objects_of_ordinary_switches_are_those_that_the_program_names() {
    check("objects_of_ordinary_switches_are_those_that_the_program_names", || {
        objects_are_those_that_the_program_names(&["--no-pack"])
    });
}

/// Sleeps for other times each: four times as many as a CPU keeps stacks, so that some fall on any place.
const SLEEPS: usize = 65_536;

/// The object of a switch is announced between its two stacks, and takes the place of neither.
#[test]
fn many_objects_leave_the_stacks_of_their_waits_alone() {
    check("many_objects_leave_the_stacks_of_their_waits_alone", || {
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        recorded(&data, &[], &["--sleeps", &SLEEPS.to_string()])?;
        let switches = json(&["switches", "--json"], &data);
        let mut objects = BTreeSet::new();
        for row in switches["rows"].as_array().expect("rows") {
            // Pages of the program come from its file.
            let is_sleep = row["wait_object"]["kind"] == "time";
            if number(&row["sums"], "sync_count") > 0 && is_sleep {
                // Only the kernel's stack has the class: the program makes the call by its number.
                assert_eq!(row["wait_class"], "sleep", "{row}");
                objects.insert(row["wait_object"]["name"].to_string());
            }
        }
        // A timer may expire before its thread leaves the CPU.
        assert!(objects.len() > SLEEPS / 10 * 9 && objects.len() <= SLEEPS, "{}", objects.len());
        Ok(())
    });
}
