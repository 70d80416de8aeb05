//! The environment that this process was given, and the one that it runs with.
//!
//! For a program that runs with borrowed rights the dynamic linker takes variables out of the
//! environment that would change what code runs: `LD_LIBRARY_PATH`, `LD_PRELOAD`, `TMPDIR` and
//! others. The user's command needs them all the same. The strings are still where the kernel put
//! them, between `env_start` and `env_end` of `/proc/self/stat` (`proc_pid_stat(5)`, fields 50 and
//! 51); `/proc/self/environ` itself belongs to root while the process is not dumpable.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::{Errno, check};

/// Largest environment that the kernel passes on (`bprm_stack_limits` in `fs/exec.c`: three
/// quarters of 8 MiB).
const SIZE_MAX_BYTES: usize = 6 << 20;

/// Bytes that go through the pipe at once: every pipe can hold so many.
const CHUNK_BYTES: usize = 4096;

/// Why the given environment is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// `/proc/self/stat` cannot be read.
    #[error("cannot read /proc/self/stat (is /proc mounted?)")]
    Stat(#[source] std::io::Error),
    /// It does not have the fields.
    #[error("/proc/self/stat does not say where the environment is")]
    NoAddresses,
    /// The memory cannot be read.
    #[error("cannot read {size_bytes} bytes of own memory")]
    Memory {
        /// Size of the memory that was asked for.
        size_bytes: usize,
        /// Error of the kernel.
        source: Errno,
    },
}

/// The strings of an environment, in the order and number in which they were given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GivenEnvironment(Vec<CString>);

impl GivenEnvironment {
    fn parse(bytes: &[u8]) -> GivenEnvironment {
        let strings = bytes.split_inclusive(|byte| *byte == 0);
        // The last one always ends with a nul byte unless the process wrote over it.
        GivenEnvironment(
            strings
                .filter_map(|text| CStr::from_bytes_with_nul(text).ok())
                .filter(|text| !text.is_empty())
                .map(CStr::to_owned)
                .collect(),
        )
    }

    /// For `execve(2)`: pointers to the strings, closed by a null pointer. They are valid as long
    /// as `self`.
    pub(crate) fn pointers(&self) -> Vec<*const libc::c_char> {
        self.0.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    }

    /// Names and values of the strings that have both.
    fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().filter_map(|text| {
            let bytes = text.as_bytes();
            let at = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])))
        })
    }
}

/// The environment as the kernel passed it on, and the number of threads of this process.
pub(crate) fn given() -> Result<(GivenEnvironment, u64), EnvironmentError> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(EnvironmentError::Stat)?;
    let Stat { threads, start, end } = Stat::parse(&stat).ok_or(EnvironmentError::NoAddresses)?;
    let size_bytes = end.checked_sub(start).filter(|size| *size <= SIZE_MAX_BYTES);
    let mut bytes = vec![0; size_bytes.ok_or(EnvironmentError::NoAddresses)?];
    read_own_memory(start, &mut bytes)?;
    Ok((GivenEnvironment::parse(&bytes), threads))
}

/// The needed fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    threads: u64,
    start: usize,
    end: usize,
}

impl Stat {
    /// The name, the second field, is in brackets and may hold blanks and brackets.
    fn parse(text: &str) -> Option<Stat> {
        let (_, behind_name) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
        // The first of them is field 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<usize>().ok();
        let (start, end) = (field(50)?, field(51)?);
        (start > 0).then_some(Stat { threads: field(20)? as u64, start, end })
    }
}

/// Through a pipe: the kernel refuses an address that is not mapped.
fn read_own_memory(address: usize, buffer: &mut [u8]) -> Result<(), EnvironmentError> {
    let size_bytes = buffer.len();
    let error = |source| EnvironmentError::Memory { size_bytes, source };
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(error)?;
    let mut done = 0;
    while done < size_bytes {
        let size = CHUNK_BYTES.min(size_bytes - done);
        let from = (address + done) as *const libc::c_void;
        // SAFETY: the kernel reads at most `size` bytes of this process and checks the address.
        let written = unsafe { libc::write(writer.as_raw_fd(), from, size) };
        let written = check(written as i64).map_err(error)? as usize;
        let to = buffer.get_mut(done..done + written).ok_or_else(|| error(Errno::FAULT))?;
        // A pipe gives all that is in it to a reader who has the room.
        let read = rustix::io::read(&reader, to).map_err(error)?;
        if read == 0 || read != written {
            return Err(error(Errno::FAULT));
        }
        done += read;
    }
    Ok(())
}

/// Takes everything but `names` out of this process's environment. There is one thread.
pub(crate) fn keep_only(names: &[&str]) {
    let foreign: Vec<OsString> = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| !names.iter().any(|known| name == known))
        .collect();
    for name in foreign {
        // SAFETY: no other thread exists that could read the environment meanwhile.
        unsafe { std::env::remove_var(name) };
    }
}

/// Puts the variables back that the dynamic linker took out. There is one thread.
pub(crate) fn restore(given: &GivenEnvironment) {
    for (name, value) in given.variables() {
        if std::env::var_os(name).is_none() {
            // SAFETY: no other thread exists that could read the environment meanwhile.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_environment_is_that_of_proc() {
        let (given, threads) = given().unwrap();
        let shown = std::fs::read("/proc/self/environ").unwrap();
        assert_eq!(given, GivenEnvironment::parse(&shown));
        assert!(given.variables().any(|(name, _)| name == "PATH"));
        assert!(threads > 1, "tests run in a thread of their own");
        assert_eq!(given.pointers().len(), given.0.len() + 1);
    }

    #[test]
    fn order_and_doubles_are_kept_and_names_split_at_the_first_sign() {
        let given = GivenEnvironment::parse(b"A=1\0B=x=y\0A=2\0odd\0=z\0\0cut");
        let texts: Vec<_> = given.0.iter().map(|text| text.to_bytes()).collect();
        assert_eq!(texts, [&b"A=1"[..], b"B=x=y", b"A=2", b"odd", b"=z"]);
        let variables: Vec<_> = given.variables().collect();
        let pair = |name, value| (OsStr::new(name), OsStr::new(value));
        assert_eq!(variables, [pair("A", "1"), pair("B", "x=y"), pair("A", "2")]);
    }

    #[test]
    fn fields_are_counted_behind_the_name() {
        let mut fields: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        let line = |fields: &[String]| format!("1 (a) b) {}\n", fields.join(" "));
        let expected = Stat { threads: 20, start: 50, end: 51 };
        assert_eq!(Stat::parse(&line(&fields)), Some(expected));
        fields[50 - 3] = "0".into();
        assert_eq!(Stat::parse(&line(&fields)), None, "not shown to others");
        assert_eq!(Stat::parse("1 (a"), None);
        assert_eq!(Stat::parse(&line(&fields[..40])), None);
    }

    #[test]
    fn memory_that_is_not_mapped_is_refused() {
        let error = read_own_memory(1, &mut [0; 8]).unwrap_err();
        assert!(matches!(error, EnvironmentError::Memory { source: Errno::FAULT, .. }), "{error}");
    }
}
