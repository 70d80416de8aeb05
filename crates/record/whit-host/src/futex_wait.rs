//! The futex at which a blocked thread waits, and the holder that glibc's mutex names.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use whit_types::{Pid, Tid};

use crate::processes;
use crate::roots::Roots;

/// `futex` and `futex_wait`, whose first argument is the address.
#[cfg(target_arch = "x86_64")]
const CALLS: [u32; 2] = [202, 455];
#[cfg(not(target_arch = "x86_64"))]
const CALLS: [u32; 2] = [98, 455];

/// Where glibc's mutex has the thread that holds it, from the word that is waited at
/// (`struct __pthread_mutex_s`, `__owner`).
const OWNER_OFFSET: u64 = 8;

/// A thread's wait at a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexWait {
    /// The address of the futex.
    pub address: u64,
    /// The holder, if the futex is that of glibc's mutex. Zero where nobody holds it, the word cannot be read, or the
    /// process counts its threads in another namespace.
    pub owner: u32,
}

/// The futex of a thread that is blocked. `None` where it waits for something else, may not be looked at, or has run
/// since it had left a CPU `switches` times in its life.
pub fn of_blocked(roots: &Roots, pid: Pid, tid: Tid, switches: u64) -> Option<FutexWait> {
    let _in_force = processes::see_others();
    let directory = roots.process(pid, "task").join(tid.0.to_string());
    let address = futex_call(&std::fs::read_to_string(directory.join("syscall")).ok()?)?;
    let owner = match processes::inner_pid(roots, pid) {
        Some(inner) if inner == pid => word(&roots.living(pid, "mem"), address),
        _ => None,
    };
    // All of it was read in one wait.
    let status = std::fs::read_to_string(directory.join("status")).ok()?;
    (switches_of(&status)? == switches).then(|| FutexWait { address, owner: owner.unwrap_or(0) })
}

/// The address, from `/proc/PID/task/TID/syscall`: the number of the call, and its arguments.
fn futex_call(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    let call: u32 = words.next()?.parse().ok()?;
    let address = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    (CALLS.contains(&call) && address != 0).then_some(address)
}

fn word(memory: &Path, futex: u64) -> Option<u32> {
    let mut word = [0; 4];
    let at = futex.checked_add(OWNER_OFFSET)?;
    File::open(memory).ok()?.read_exact_at(&mut word, at).ok()?;
    Some(u32::from_le_bytes(word))
}

fn switches_of(status: &str) -> Option<u64> {
    let count = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use whit_testing::wait::wait_until;

    #[test]
    fn only_calls_that_wait_at_a_futex_have_an_address() {
        let call = CALLS[0];
        assert_eq!(
            futex_call(&format!("{call} 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f01\n")),
            Some(0x7f00)
        );
        assert_eq!(futex_call("0 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f01\n"), None);
        for text in ["running\n", "-1 0x7ffe 0x7f01\n", "", "202", &format!("{call} 7f00")] {
            assert_eq!(futex_call(text), None, "{text}");
        }
    }

    /// Rust's mutex is a word alone, so that the owner here is any number.
    #[test]
    fn a_thread_at_a_mutex_waits_at_its_word() {
        let mutex = Arc::new(Mutex::new(0u64));
        let guard = mutex.lock().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiter = std::thread::spawn({
            let mutex = mutex.clone();
            move || {
                sender.send(Tid(rustix::thread::gettid().as_raw_nonzero().get())).unwrap();
                drop(mutex.lock());
            }
        });
        let (roots, pid, tid) =
            (Roots::default(), Pid(std::process::id() as i32), receiver.recv().unwrap());
        let status = roots.process(pid, "task").join(tid.0.to_string()).join("status");
        let mut found = None;
        wait_until("the thread waits", || {
            let switches =
                std::fs::read_to_string(&status).ok().and_then(|text| switches_of(&text));
            found = switches.and_then(|switches| {
                let wait = of_blocked(&roots, pid, tid, switches)?;
                assert_eq!(of_blocked(&roots, pid, tid, switches + 1), None);
                Some(wait)
            });
            found.is_some()
        });
        let place = std::ptr::from_ref::<Mutex<u64>>(&mutex) as u64;
        let address = found.map_or(0, |wait| wait.address);
        assert!((place..place + 16).contains(&address), "{address:x} of {place:x}");
        drop(guard);
        waiter.join().unwrap();
    }
}
