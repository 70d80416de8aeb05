//! Name of this machine, and size of its pages.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::StatVfsMountFlags;

use crate::Errno;

/// Size of a page in bytes.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// The fields of `uname(2)` that recordings carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uname {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub release: String,
    /// Architecture.
    pub machine: String,
}

/// Asks the kernel for its names.
pub fn uname() -> Uname {
    let names = rustix::system::uname();
    Uname {
        hostname: names.nodename().to_string_lossy().into_owned(),
        release: names.release().to_string_lossy().into_owned(),
        machine: names.machine().to_string_lossy().into_owned(),
    }
}

/// This process's id.
pub fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// This thread's id.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Whether there is a process with this id, of whichever user.
pub fn is_running(pid: i32) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(pid) else { return false };
    rustix::process::test_kill_process(pid) != Err(Errno::SRCH)
}

/// Asks a process to end (`SIGTERM`).
///
/// # Errors
/// It is another user's, or gone.
pub fn terminate(pid: i32) -> Result<(), Errno> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
}

/// A file in memory, which vanishes with its last descriptor.
///
/// # Errors
/// There are too many descriptors.
pub fn memory_file(name: &str) -> Result<OwnedFd, Errno> {
    rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)
}

/// Gives a pipe room for so many bytes.
///
/// # Errors
/// It is more than the kernel allows, or no pipe.
pub fn widen_pipe(pipe: impl AsFd, bytes: usize) -> Result<(), Errno> {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes).map(drop)
}

/// Has the file system set room aside for a file of so many bytes, whose size stays. File systems and sandboxes that
/// know no such thing do nothing.
///
/// # Errors
/// There is no such room, by the disk, a quota, or the largest size of a file.
pub fn reserve(file: impl AsFd, bytes: u64) -> Result<(), Errno> {
    let keep = rustix::fs::FallocateFlags::KEEP_SIZE;
    unless_unknown(rustix::fs::fallocate(file, keep, 0, bytes.max(1)))
}

/// Only a want of room is an error: writing would fail, too.
fn unless_unknown(reserved: Result<(), Errno>) -> Result<(), Errno> {
    match reserved {
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(error),
        _ => Ok(()),
    }
}

/// Whether the text of `/proc/PID/uid_map` is that of the initial user namespace, which has the
/// whole id space.
pub fn is_initial_id_map(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Whether an open file is on a mount where set-id bits and capabilities of files do not count.
pub fn is_nosuid(file: impl AsFd) -> Result<bool, Errno> {
    Ok(rustix::fs::fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::NOSUID))
}

/// Writes the kernel's cached data to disks (`sync(2)`).
pub fn sync() {
    rustix::fs::sync();
}

/// The effective user id.
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use crate::Errno;

    #[test]
    fn room_is_set_aside_and_the_size_stays() {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::File::from(super::memory_file("room").unwrap());
        super::reserve(&file, 1 << 20).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.blocks() * 512), (0, 1 << 20));
        // FIXME(helper always): u64::MAX on a memfd ALLOCATED ALL OF THE MACHINE'S MEMORY and killed everybody's shells
        // twice (14:32, 14:33). Never reserve huge sizes; use a small tmpfs mount or RLIMIT_FSIZE in a child for the error.
        let (read, _write) = std::io::pipe().unwrap();
        assert_eq!(super::reserve(&read, 1 << 20), Ok(()));
        assert_eq!(super::unless_unknown(Err(Errno::NOSPC)), Err(Errno::NOSPC));
        for unknown in [Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM] {
            assert_eq!(super::unless_unknown(Err(unknown)), Ok(()));
        }
    }

    #[test]
    fn a_pipe_gets_room() {
        let (read, _write) = std::io::pipe().unwrap();
        let before = rustix::pipe::fcntl_getpipe_size(&read).unwrap();
        super::widen_pipe(&read, 2 * before).unwrap();
        assert_eq!(rustix::pipe::fcntl_getpipe_size(&read), Ok(2 * before));
        let file = std::fs::File::from(super::memory_file("none").unwrap());
        assert!(super::widen_pipe(&file, 2 * before).is_err());
    }

    #[test]
    fn the_machine_has_names_and_pages() {
        let names = super::uname();
        assert!(!names.release.is_empty() && !names.machine.is_empty());
        assert!(super::page_size().is_power_of_two());
        assert_eq!(super::pid() as u32, std::process::id());
    }
}
