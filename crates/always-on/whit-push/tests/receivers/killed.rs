//! A process that is killed while it writes and sends.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use whit_push::Kind;
use whit_testing::wait::wait_until;

use crate::server::{Answer, Server, TAKEN};
use crate::support::{Run, hasty};

/// With it, this test is the process that is killed. Its text is the address of the receiver and the spool.
const CHILD: &str = "WHIT_PUSH_TEST_CHILD";
const NAME: &str = "killed::no_window_in_the_spool_is_lost_with_the_process";

#[test]
fn no_window_in_the_spool_is_lost_with_the_process() {
    if let Ok(text) = std::env::var(CHILD) {
        return be_killed(&text);
    }
    // It takes each second window, so that some wait when the process is killed; at the end it takes all.
    let takes_all = Arc::new(AtomicBool::new(false));
    let of_server = takes_all.clone();
    let server = Server::start(move |number, _| match number % 2 {
        1 if !of_server.load(Ordering::Relaxed) => Answer::Status(503, "", Vec::new()),
        _ => TAKEN,
    });
    let mut run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
    run.stop(Duration::ZERO);
    let spool = run.place.path().join("one");
    for round in 1..=3 {
        let before = server.requests().len();
        let mut child = Command::new(std::env::current_exe().expect("the test's own program"));
        child.args(["--exact", NAME, "--nocapture"]).stdout(Stdio::null()).stderr(Stdio::null());
        child.env(CHILD, format!("{} {}", server.url(), run.place.path().display()));
        let mut child = child.spawn().expect("start the test's own program");
        wait_until("it sends", || server.requests().len() > before + 5 + 3 * round);
        child.kill().expect("kill it");
        child.wait().expect("wait for it");
    }
    let whole = files(&spool, false);
    assert!(whole > 0, "nothing waited when the process was killed");
    takes_all.store(true, Ordering::Relaxed);
    run.resume();
    assert_eq!(run.status("one").found.windows, whole as u64);
    assert_eq!(files(&spool, true), 0, "parts of files are gone");
    let done = run.wait("one", "all are sent", |it| it.waiting.windows == 0);
    assert_eq!((done.dropped.windows(), done.sent.windows), (0, whole as u64));
    let distinct: BTreeSet<_> = server.requests().into_iter().map(|it| it.body).collect();
    assert!(distinct.len() > 5);
}

fn files(spool: &std::path::Path, partial: bool) -> usize {
    let files = std::fs::read_dir(spool).expect("list").flatten();
    files.filter(|it| it.file_name().to_string_lossy().starts_with(".partial-") == partial).count()
}

fn be_killed(text: &str) {
    let (url, place) = text.split_once(' ').expect("two words");
    let settings = [("one".to_owned(), hasty(Kind::Otlp, url))].into_iter().collect();
    let pusher = whit_push::Pusher::start(&settings, place.as_ref()).expect("start");
    let golden = crate::support::Golden::load("perf-containers");
    let second = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    for at in 0.. {
        pusher.accept(&golden.content(), &crate::support::window(second.as_secs() + at));
        // Else there are more than can be sent at the end in the time that the test waits.
        std::thread::sleep(Duration::from_millis(10));
    }
}
