//! Java virtual machines write the names of their code. Each of them decides how long that takes, and any program can
//! look like one: all of them together have one deadline, and a signal ends the wait.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use whit_host::java::{self, JavaError};
use whit_host::roots::Roots;
use whit_sys::SignalWatch;
use whit_types::Pid;

use crate::notice::{Listener, Notice};

use super::set_up_watch::SIGNALS;

/// One virtual machine listens within 5 s, and writes a million names in less than the rest.
const WITHIN: Duration = Duration::from_secs(35);
/// The file system of a process may hold a thread for longer than its deadline: it is left behind then.
const GRACE: Duration = Duration::from_secs(1);
/// Virtual machines that are asked at a time.
const AT_ONCE: usize = 16;
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(50);

type Answer = (Pid, Result<(), JavaError>);

/// Has these write their names, and says which did not.
pub(super) fn ask(roots: &Roots, pids: Vec<Pid>, listener: &mut dyn Listener) {
    let deadline = Instant::now() + WITHIN;
    // Where signals cannot be watched, the deadline ends the wait.
    let signals = SignalWatch::new(&SIGNALS).ok();
    let is_stopped = || signals.as_ref().is_some_and(|it| matches!(it.next(), Ok(Some(_))));
    let mut unanswered: BTreeSet<Pid> = pids.iter().copied().collect();
    let (answers, incoming) = channel();
    let threads = pids.len().min(AT_ONCE);
    let waiting = Arc::new(Mutex::new(VecDeque::from(pids)));
    for _ in 0..threads {
        let (roots, waiting, answers) = (roots.clone(), waiting.clone(), answers.clone());
        std::thread::spawn(move || ask_in_turn(&roots, &waiting, &answers, deadline));
    }
    drop(answers);
    let why = loop {
        match incoming.recv_timeout(LOOK_FOR_SIGNALS) {
            Ok((pid, outcome)) => {
                unanswered.remove(&pid);
                if let Err(error) = outcome {
                    listener.notice(Notice::JavaWithoutMap { pid, why: error.to_string() });
                }
            }
            Err(RecvTimeoutError::Disconnected) => break "its turn did not come",
            Err(RecvTimeoutError::Timeout) => {}
        }
        if is_stopped() {
            break "a signal ended the wait for its answer";
        }
        if Instant::now() >= deadline + GRACE {
            break "its files or those in front of it do not answer";
        }
    };
    lock(&waiting).clear();
    for pid in unanswered {
        listener.notice(Notice::JavaWithoutMap { pid, why: why.to_owned() });
    }
}

fn ask_in_turn(
    roots: &Roots,
    waiting: &Mutex<VecDeque<Pid>>,
    answers: &Sender<Answer>,
    deadline: Instant,
) {
    loop {
        let next = lock(waiting).pop_front();
        let Some(pid) = next.filter(|_| Instant::now() < deadline) else { return };
        let outcome = java::write_perf_map(roots, pid, deadline);
        if answers.send((pid, outcome)).is_err() {
            return;
        }
    }
}

fn lock(waiting: &Mutex<VecDeque<Pid>>) -> MutexGuard<'_, VecDeque<Pid>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
