//! Ending a program together with its children: a recorder's target outlives it.

use std::fs;
use std::io;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

/// Rounds in which descendants are looked for: new ones may appear between two looks.
const ROUNDS_MAX: usize = 100;
/// Most processes that are ended in one round.
const PROCESSES_MAX: usize = 100_000;

/// Kills `child` and all its descendants; does not reap the child.
pub fn kill(child: &mut Child) -> io::Result<()> {
    for _ in 0..ROUNDS_MAX {
        let descendants = descendants(child.id());
        if descendants.is_empty() {
            break;
        }
        for id in descendants {
            if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
                // A process that has ended meanwhile needs no signal.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
    child.kill()
}

/// All running descendants, each after its parent. Empty where the kernel does not tell.
fn descendants(id: u32) -> Vec<u32> {
    let mut found = children(id);
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        found.extend(children(found[next]));
        next += 1;
    }
    found.retain(|id| !is_zombie(*id));
    found
}

/// The processes that this one has started and that have not ended. Empty where the kernel does not tell.
pub fn children(id: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split(' ').filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Ended, and not yet waited for by its parent.
fn is_zombie(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn grandchildren_go_too() {
        let script = "sh -c 'sleep 1000 & echo $!; wait' & wait";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        assert!(descendants(child.id()).contains(&grandchild));
        kill(&mut child).unwrap();
        child.wait().unwrap();
        // The process that inherits it reaps it at any time.
        let gone = || !fs::exists(format!("/proc/{grandchild}")).unwrap() || is_zombie(grandchild);
        while !gone() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_without_children_has_none() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert!(descendants(child.id()).is_empty());
        kill(&mut child).unwrap();
        assert!(!child.wait().unwrap().success());
    }
}
