//! Rules at work: machines of files, and this machine.

use super::*;
use crate::cgroup::tests::{machine, put};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use whit_testing::cgroups::Limited;
use whit_testing::wait::{Busy, is_soon, wait_until};
use whit_testing::{Skip, check};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings(rules: &[&str]) -> Settings {
    Settings { on: rules.iter().map(|rule| rule.parse().unwrap()).collect(), ..Settings::default() }
}

fn started(rules: &[&str], roots: Roots) -> (Triggers, Receiver<Trigger>) {
    start(&settings(rules), roots).unwrap()
}

fn wait_for(triggers: &Triggers, index: usize, is_it: impl Fn(&State) -> bool) {
    let state = || triggers.status().rules[index].state.clone();
    assert!(is_soon(|| is_it(&state())), "{:?}", state());
}

fn is_waiting(state: &State) -> bool {
    matches!(state, State::Waiting { .. })
}

fn is_polling(state: &State) -> bool {
    matches!(state, State::Polling { .. })
}

fn stalls(total_us: u64) -> String {
    format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total_us}\n")
}

fn throttled(periods: u64, name: &str, time: u64) -> String {
    format!("nr_periods {periods}\nnr_throttled {periods}\n{name} {time}\n")
}

#[test]
fn a_machine_without_stall_times_is_waited_for() {
    let (dir, roots) = machine(&[("cgroup2", "")]);
    let (triggers, receiver) = started(&["psi:memory:some:1ms/500ms"], roots.clone());
    wait_for(&triggers, 0, is_waiting);
    let directory = dir.path().join("proc/pressure");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("memory"), stalls(1_000_000)).unwrap();
    wait_for(&triggers, 0, is_polling);
    assert!(receiver.try_recv().is_err(), "older stalls are no event");
    fs::write(directory.join("memory"), stalls(1_002_000)).unwrap();
    let trigger = receiver.recv_timeout(PATIENCE).unwrap();
    assert_eq!(trigger.kind, Kind::Pressure);
    assert!(trigger.detail.exact().contains("stalled 2ms of"), "{trigger}");
    fs::remove_file(directory.join("memory")).unwrap();
    wait_for(&triggers, 0, is_waiting);
    assert_eq!(triggers.status().rules[0].events, 1);
}

#[test]
fn throttling_is_noticed_in_both_versions_and_a_mixture() {
    let old: (&[(&str, &str)], &str, &str) = (&[("cgroup", "cpu")], "cpu", "throttled_time");
    let new: (&[(&str, &str)], &str, &str) = (&[("cgroup2", "")], "unified", "throttled_usec");
    let both: (&[(&str, &str)], &str, &str) =
        (&[("cgroup2", ""), ("cgroup", "cpu")], "cpu", "throttled_time");
    for (mounts, mount, name) in [old, new, both] {
        let (dir, roots) = machine(mounts);
        // Version 2 has such a file without a quota too.
        if mount == "cpu" && mounts.len() > 1 {
            put(&dir, "unified", "other", "cpu.stat", "usage_usec 5\n");
        }
        put(&dir, mount, "web", "cpu.stat", &throttled(10, name, 1_000));
        let (triggers, receiver) = started(&["throttle:50%/500ms@web"], roots);
        wait_for(&triggers, 0, is_polling);
        put(&dir, mount, "web", "cpu.stat", &throttled(14, name, 9_000_000));
        let trigger = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(trigger.kind, Kind::Throttling);
        assert!(trigger.detail.exact().contains("throttled in 4 of 4 periods"), "{trigger}");
    }
}

#[test]
fn latencies_above_the_rule_and_requests_are_events() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let settings = Settings { socket: Some(path.clone()), ..settings(&["latency:shop:250ms"]) };
    let (triggers, receiver) = start(&settings, Roots::default()).unwrap();
    let client = UnixDatagram::unbound().unwrap();
    for message in ["latency shop 250", "latency other 999", "what", "latency shop 251", "dump now"]
    {
        client.send_to(message.as_bytes(), &path).unwrap();
    }
    let next = || receiver.recv_timeout(PATIENCE).unwrap().to_string();
    assert_eq!(next(), "latency: latency:shop:250ms, took 251ms");
    assert_eq!(next(), "request: now");
    assert!(receiver.try_recv().is_err());
    let counted = || (triggers.status().messages, triggers.status().unknown_messages);
    wait_until("the messages are counted", || counted() == (5, 1));
    drop(triggers);
    assert!(!path.exists());
}

#[test]
fn the_end_of_a_process_is_an_event() {
    if let Err(Skip(reason)) = whit_testing::probe::pidfd() {
        return whit_testing::skip("whit-trigger exit", &reason);
    }
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let rule = format!("exit:{}", child.id());
    let (triggers, receiver) = started(&[&rule], Roots::default());
    assert_eq!(triggers.status().rules[0].state, State::Kernel);
    assert!(receiver.try_recv().is_err());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        receiver.recv_timeout(PATIENCE).unwrap().to_string(),
        format!("exit: {rule}, ended")
    );
    wait_for(&triggers, 0, |state| *state == State::Over);
}

#[test]
fn a_socket_without_a_folder_is_refused_by_its_path() {
    let settings = Settings { socket: Some("/nowhere/at/all".into()), ..settings(&[]) };
    let error = start(&settings, Roots::default()).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}

fn has_stall_times() -> Result<(), Skip> {
    match fs::OpenOptions::new().write(true).open("/proc/pressure/cpu") {
        Ok(_) => Ok(()),
        Err(error) => Err(Skip(format!("/proc/pressure/cpu cannot be written: {error}"))),
    }
}

#[test]
fn the_kernel_reports_stalls() {
    check("the_kernel_reports_stalls", || {
        has_stall_times()?;
        let (triggers, receiver) = started(&["psi:cpu:some:10ms/2s"], Roots::default());
        assert_eq!(triggers.status().rules[0].state, State::Kernel);
        let cpus = std::thread::available_parallelism().unwrap().get();
        let _crowd: Vec<Busy> = (0..2 * cpus).map(|_| Busy::start()).collect();
        let trigger = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(trigger.kind, Kind::Pressure);
        assert!(trigger.detail.exact().contains("% in 10 s"), "{trigger}");
        Ok(())
    });
}

#[test]
fn a_cgroup_that_appears_and_vanishes_is_watched_while_it_exists() {
    check("a_cgroup_that_appears_and_vanishes_is_watched_while_it_exists", || {
        has_stall_times()?;
        let mount = whit_testing::probe::cgroups_v2()?;
        let name = format!("whit-trigger-{}", std::process::id());
        let path = mount.join(&name);
        let rule = format!("psi:cpu:some:1ms/2s@{name}");
        let (triggers, _receiver) = started(&[&rule], Roots::default());
        wait_for(&triggers, 0, is_waiting);
        for _ in 0..2 {
            fs::create_dir(&path).unwrap();
            wait_for(&triggers, 0, |state| *state == State::Kernel);
            fs::remove_dir(&path).unwrap();
            wait_for(&triggers, 0, is_waiting);
        }
        Ok(())
    });
}

#[test]
fn a_throttled_program_is_an_event() {
    check("a_throttled_program_is_an_event", || {
        let mount = whit_testing::probe::cgroups_v2()?;
        let name = format!("whit-throttle-{}", std::process::id());
        let rule = format!("throttle:30ms/1s@{name}");
        let (triggers, receiver) = started(&[&rule], Roots::default());
        wait_for(&triggers, 0, is_waiting);
        let _limited = Limited::start(&mount, &name, 10)?;
        let trigger = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(trigger.kind, Kind::Throttling);
        assert!(is_polling(&triggers.status().rules[0].state));
        Ok(())
    });
}

#[test]
fn requests_of_a_name_that_take_longer_are_events_of_each_rule() {
    let (triggers, receiver) =
        started(&["request:query:10ms", "request:query:1s", "request:page:1ms"], Roots::default());
    assert!(triggers.status().rules.iter().all(|rule| rule.state == State::Recording));
    for (name, ms) in [("query", 10), ("query", 11), ("other", 99_999), ("query", 2000)] {
        let detail = ", key 7".to_owned();
        let took = Duration::from_millis(ms);
        triggers.report(RecordedRequest { name: name.to_owned(), took, detail });
    }
    let events: Vec<_> = (0..3).map(|_| receiver.recv_timeout(PATIENCE).unwrap()).collect();
    let texts: Vec<_> = events.iter().map(ToString::to_string).collect();
    let wanted = [
        "slow-request: request:query:10ms, took 11ms, key 7",
        "slow-request: request:query:10ms, took 2s, key 7",
        "slow-request: request:query:1s, took 2s, key 7",
    ];
    assert_eq!(texts, wanted);
    wait_until("the events are counted", || {
        let counts: Vec<_> = triggers.status().rules.iter().map(|rule| rule.events).collect();
        counts == [2, 1, 0]
    });
    assert!(receiver.try_recv().is_err());
}
