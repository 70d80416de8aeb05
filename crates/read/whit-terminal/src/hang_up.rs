//! The end of the terminal itself.

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, IsTerminal};
use std::{process, thread};

/// The exit code of a shell whose program SIGHUP ended.
const HUNG_UP: i32 = 129;

/// Ends the program when its terminal is gone. A closed terminal reads as empty without end, which the reader of keys
/// takes for keys that are still to come; and nobody is left to give a screen back to.
pub(crate) fn end_with_terminal() {
    if !io::stdin().is_terminal() {
        return;
    }
    let wait = || {
        let stdin = io::stdin();
        // No flag is asked for, so that only errors and the hang-up end the wait.
        let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
        loop {
            match poll(&mut fds, None) {
                Ok(_) => process::exit(HUNG_UP),
                Err(error) if error == rustix::io::Errno::INTR => {}
                Err(_) => return,
            }
        }
    };
    // Without the thread, signals still end the program.
    let _ = thread::Builder::new().name("hang-up".to_owned()).spawn(wait);
}
