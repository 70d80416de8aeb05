//! Descriptors that were handed over by number.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use crate::{Errno, check};

/// Lowest number that a duplicate gets: the standard streams are left alone.
const FIRST_NUMBER: i32 = 3;

/// A descriptor of our own for the file of `number`; it is not inherited by commands. `Errno::BADF`
/// when nothing is open under that number.
pub fn duplicate(number: i32) -> Result<OwnedFd, Errno> {
    // SAFETY: plain numbers; duplicating touches no memory and leaves the original as it is.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, FIRST_NUMBER) };
    let fd = check(i64::from(fd))? as i32;
    // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Another descriptor for the same file, which commands inherit.
///
/// # Errors
/// There are too many descriptors.
pub fn inheritable(file: impl AsFd) -> Result<OwnedFd, Errno> {
    rustix::io::dup(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_number_becomes_a_descriptor_of_ones_own() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let copy = duplicate(write.as_raw_fd()).unwrap();
        drop(write);
        rustix::io::write(&copy, b"x").unwrap();
        let mut byte = [0];
        assert_eq!(rustix::io::read(&read, &mut byte).unwrap(), 1);
        assert_eq!(duplicate(1 << 30).unwrap_err(), Errno::BADF);
    }

    #[test]
    fn commands_inherit_what_they_should() {
        let (own, _write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let is_there = |number: i32| {
            let path = format!("/proc/self/fd/{number}");
            std::process::Command::new("test").args(["-e", &path]).status().unwrap().success()
        };
        let inherited = inheritable(&own).unwrap();
        assert_eq!((is_there(own.as_raw_fd()), is_there(inherited.as_raw_fd())), (false, true));
    }
}
