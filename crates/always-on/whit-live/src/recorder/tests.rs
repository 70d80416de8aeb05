//! Shells in the place of recorders.

use super::*;
use crate::Bounds;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use whit_testing::wait::wait_until;

const STREAM: &str = "../../../tests/recordings/golden/perf-pipe/recording.data";
const PATIENCE: Duration = Duration::from_secs(60);

fn parts() -> Parts {
    let bounds = Bounds { keep_ns: u64::MAX, bytes_max: 1 << 30 };
    Parts {
        stream: LiveStream::new(bounds, Instant::now()),
        changed: Box::new(|| ()),
        obeys: true,
        said: Box::new(|_| ()),
        is_hurried: false,
        end_timeout: PATIENCE,
    }
}

fn shell(line: &str, parts: Parts) -> Recorder {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    Recorder::start(command, parts).unwrap()
}

fn wait_for_end(recorder: &Recorder) {
    wait_until("the stream ends", || recorder.stream().is_over());
}

#[test]
fn a_stream_is_read_to_its_end_and_messages_are_kept() {
    let (changes, lines) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<String>>>::default());
    let (changed, said) = (changes.clone(), lines.clone());
    let parts = Parts {
        changed: Box::new(move || {
            changed.fetch_add(1, Ordering::SeqCst);
        }),
        said: Box::new(move |line| said.lock().unwrap().push(line.to_owned())),
        ..parts()
    };
    let mut recorder = shell(&format!("cat {STREAM}; echo whit: a >&2; echo b >&2; exit 3"), parts);
    wait_for_end(&recorder);
    let ended = recorder.end();
    assert_eq!((ended.code, ended.signal, ended.messages.as_str()), (Some(3), None, "whit: a\nb"));
    assert_eq!((ended.how.as_str(), ended.error), ("exit status: 3", None));
    assert_eq!(*lines.lock().unwrap(), ["whit: a", "b"]);
    // The beginning and the end, at least.
    assert!(changes.load(Ordering::SeqCst) >= 2);
    assert!(recorder.stream().is_announced() && recorder.stream().has_begun());
    let bytes = recorder.stream().with_window(|window, _| window.bytes());
    assert!(bytes > 0 && bytes <= std::fs::metadata(STREAM).unwrap().len() as usize, "{bytes}");
}

#[test]
fn a_stream_that_is_none_is_an_error() {
    let mut recorder = shell("echo this is not the beginning of a recording", parts());
    wait_for_end(&recorder);
    let ended = recorder.end();
    assert!(ended.error.is_some() && ended.how.contains("does not begin"), "{ended:?}");
    assert!(!recorder.stream().is_announced());
}

#[test]
fn orders_reach_a_recorder_that_obeys_and_no_other() {
    let mut recorder = shell("read line; echo $line >&2; exec sleep 60", parts());
    assert_eq!(recorder.stream().ask_to_drain(), Some(1));
    // Nobody answers.
    assert!(!recorder.stream().wait_for(1, Duration::from_millis(20)));
    wait_until("the order arrives", || recorder.messages() == "drain 1");
    let ended = recorder.end();
    assert_eq!((ended.code, ended.signal), (None, Some(15)));
    // Its input is empty: it does not wait for any.
    let mut deaf = shell("read line; exit $?", Parts { obeys: false, ..parts() });
    assert_eq!(deaf.stream().ask_to_drain(), None);
    wait_for_end(&deaf);
    assert_eq!(deaf.end().code, Some(1));
}

#[test]
fn a_recorder_that_does_not_end_is_killed() {
    let end_timeout = Duration::from_millis(50);
    let line = "trap '' TERM; echo ready >&2; while :; do sleep 0.01; done";
    let mut recorder = shell(line, Parts { end_timeout, ..parts() });
    wait_until("the signal is ignored", || recorder.messages() == "ready");
    assert_eq!(recorder.end().signal, Some(9));
}

#[test]
fn a_hurried_recorder_begins_with_the_priority_that_this_user_may_have() {
    let wanted = std::thread::spawn(|| {
        whit_sys::scheduling::hurry();
        whit_sys::scheduling::nice()
    });
    let wanted = wanted.join().unwrap();
    // The nineteenth field of the line, the seventeenth behind the name.
    let line = "set -- $(cut -d ')' -f 2 /proc/$$/stat); shift 16; echo $1 >&2";
    let mut recorder = shell(line, Parts { is_hurried: true, ..parts() });
    wait_for_end(&recorder);
    assert_eq!(recorder.end().messages, wanted.to_string());
    let mut other = shell(line, parts());
    wait_for_end(&other);
    assert_eq!(other.end().messages, whit_sys::scheduling::nice().to_string());
}
