//! Receivers that are slow, broken, busy or away.

use std::time::{Duration, Instant};

use whit_push::{Kind, State};
use whit_testing::{Skip, check};

use crate::server::{Answer, Server, TAKEN};
use crate::support::{Run, hasty};

fn status(status: u16) -> Answer {
    Answer::Status(status, "", b"so it is".to_vec())
}

#[test]
fn a_busy_receiver_is_asked_again_when_it_says_and_not_before() {
    let server = Server::start(|number, _| match number {
        0 => Answer::Status(429, "Retry-After: 1\r\n", b"slow down".to_vec()),
        _ => TAKEN,
    });
    let run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
    run.push([1, 2]);
    let waits = run.wait("one", "the receiver is busy", |it| it.state == State::Waiting);
    assert_eq!(waits.last_error.as_deref(), Some("answered with status 429: slow down"));
    assert!(waits.next_try_s.is_some_and(|it| it <= 1.1), "{waits:?}");
    let requests = server.wait_for(3);
    assert!(requests[1].at - requests[0].at >= Duration::from_secs(1));
    assert_eq!(requests[0].body, requests[1].body, "the same window comes again");
    let done = run.wait("one", "both are sent", |it| it.sent.windows == 2);
    assert_eq!((done.retries, done.dropped.windows(), done.last_error), (1, 0, None));
}

#[test]
fn a_receiver_that_fails_is_asked_again() {
    let server = Server::start(|number, _| if number < 3 { status(500) } else { TAKEN });
    let run = Run::start(&[("one", hasty(Kind::Parca, &server.url()))]);
    run.push([1]);
    let done = run.wait("one", "it is sent", |it| it.sent.windows == 1);
    assert_eq!((done.retries, server.requests().len()), (3, 4));
}

#[test]
fn a_window_that_is_refused_is_counted_and_the_next_one_is_sent() {
    for code in [400, 413, 422] {
        let server = Server::start(move |number, _| if number == 0 { status(code) } else { TAKEN });
        let run = Run::start(&[("one", hasty(Kind::Pyroscope, &server.url()))]);
        run.push([1, 2]);
        let done = run.wait("one", "the second is sent", |it| it.sent.windows == 1);
        assert_eq!((done.dropped.refused.windows, done.dropped.windows()), (1, 1), "{code}");
        assert_eq!((done.retries, server.requests().len(), done.waiting.windows), (0, 2, 0));
    }
}

#[test]
fn a_wrong_address_or_token_loses_nothing() {
    for code in [301, 401, 403, 404] {
        let server = Server::start(move |_, _| status(code));
        let mut run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
        run.push([1, 2]);
        let now = run.wait("one", "it is told", |it| it.state == State::Misconfigured);
        assert!(now.last_error.is_some_and(|it| it.contains(&code.to_string())), "{code}");
        assert!(now.next_try_s.is_some_and(|it| it > 20.0), "{code}: people are slow");
        let ended = run.stop(Duration::from_secs(5));
        assert_eq!((ended[0].waiting.windows, ended[0].dropped.windows()), (2, 0), "{code}");
    }
}

#[test]
fn a_connection_that_is_cut_midway_is_made_again() {
    let server = Server::start(|number, _| if number < 2 { Answer::Reset } else { TAKEN });
    let run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
    run.push([1]);
    let done = run.wait("one", "it is sent", |it| it.sent.windows == 1);
    assert_eq!((done.retries, done.dropped.windows()), (2, 0));
    assert_eq!((server.requests().len(), server.connections()), (3, 3));
}

#[test]
fn a_receiver_that_never_answers_holds_up_no_other_one() {
    let slow = Server::start(|_, _| Answer::Silent);
    let fast = Server::start(|_, _| TAKEN);
    let mut to_slow = hasty(Kind::Otlp, &slow.url());
    to_slow.timeout.0 = Duration::from_secs(1);
    let mut run = Run::start(&[("fast", hasty(Kind::Otlp, &fast.url())), ("slow", to_slow)]);
    let begun = Instant::now();
    run.push(1..=5);
    let accepted = begun.elapsed();
    run.wait("fast", "all are sent", |it| it.sent.windows == 5);
    let of_slow = run.wait("slow", "the time is over", |it| it.retries > 0);
    assert!(of_slow.last_error.is_some_and(|it| it.contains("timeout")));
    assert_eq!((of_slow.sent.windows, of_slow.waiting.windows), (0, 5));
    // The window is put down, whatever the receiver does; five writes to a disk take less.
    assert!(accepted < Duration::from_secs(4), "{accepted:?}");
    let begun = Instant::now();
    let ended = run.stop(Duration::from_millis(100));
    assert!(begun.elapsed() < Duration::from_secs(4), "the end waits for nobody");
    assert_eq!(ended[1].waiting.windows, 5);
}

#[test]
fn windows_wait_for_a_receiver_that_is_away_also_over_a_restart() {
    let server = Server::start(|_, _| TAKEN);
    let address = server.address();
    let mut run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
    run.push([1]);
    run.wait("one", "it is sent", |it| it.sent.windows == 1);
    drop(server);
    run.push([2, 3]);
    run.wait("one", "nobody is there", |it| it.retries >= 2);
    let ended = run.stop(Duration::from_secs(5));
    assert_eq!((ended[0].state, ended[0].waiting.windows), (State::Stopped, 2));
    let server = Server::start_at(address, |_, _| TAKEN);
    run.resume();
    assert_eq!(run.status("one").found.windows, 2);
    run.push([4]);
    let done = run.wait("one", "all are sent", |it| it.sent.windows == 3);
    assert_eq!((done.waiting.windows, done.dropped.windows()), (0, 0));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn the_loss_is_what_the_spool_does_not_hold_and_it_is_counted() {
    let server = Server::start(|_, _| status(503));
    let probe = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
    probe.push([1]);
    let size = probe.wait("one", "it waits", |it| it.waiting.windows == 1).waiting.bytes;
    let mut settings = hasty(Kind::Otlp, &server.url());
    // Windows differ by some bytes.
    settings.spool.max_bytes.0 = 3 * size + size / 2;
    let run = Run::start(&[("one", settings)]);
    run.push(1..=8);
    let now = run.status("one");
    assert_eq!((now.waiting.windows, now.dropped.spool_full.windows), (3, 5));
    assert_eq!((now.accepted, now.dropped.windows()), (8, 5));
}

#[test]
fn a_full_disk_stops_no_window_that_the_receiver_takes() {
    check("a_full_disk_stops_no_window_that_the_receiver_takes", || {
        let server = Server::start(|_, _| TAKEN);
        let mut run = Run::start(&[("one", hasty(Kind::Otlp, &server.url()))]);
        run.stop(Duration::ZERO);
        let disk = SmallDisk::mount(run.place.path())?;
        run.resume();
        disk.fill();
        run.push([1, 2]);
        let done = run.wait("one", "both are sent", |it| it.sent.windows == 2);
        assert_eq!((done.dropped.windows(), done.waiting.windows), (0, 0));
        disk.empty();
        drop(server);
        run.push([3]);
        let now = run.wait("one", "the disk takes it", |it| it.waiting.windows == 1);
        assert_eq!(now.in_memory.windows, 0);
        // Nobody takes them now, and the disk is full once more.
        disk.fill();
        run.push([4]);
        let now = run.status("one");
        assert_eq!((now.waiting.windows, now.in_memory.windows), (2, 1));
        run.stop(Duration::ZERO);
        Ok(())
    });
}

/// A small disk in the place of the spool.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: &std::path::Path) -> Result<SmallDisk, Skip> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(path);
        let output = mount.output().map_err(|error| Skip(format!("no mount here: {error}")))?;
        match output.status.success() {
            true => Ok(SmallDisk(path.to_owned())),
            false => Err(Skip("a tmpfs cannot be mounted".to_owned())),
        }
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.join("others")).expect("make a file");
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("others")).expect("remove a file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Its last user may just be closing.
        let _ = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
