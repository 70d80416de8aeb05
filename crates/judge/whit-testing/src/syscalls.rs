//! The system calls of the probes, without policy: no retries, no fallbacks, no borrowed capabilities.
//!
//! These are not whit's wrappers on purpose. `whit-sys` raises capabilities and repairs attributes around the
//! same calls; a defect there must not turn into a skip.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Size of the `perf_event_attr` that the probes pass (`PERF_ATTR_SIZE_VER5`).
pub(crate) const ATTR_BYTES: usize = 112;
/// Size of the `union bpf_attr` that the probes pass: up to `attach_prog_fd`.
pub(crate) const BPF_ATTR_BYTES: usize = 120;
/// Size of `struct io_uring_params`.
const IO_URING_PARAMS_BYTES: usize = 120;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The descriptor that a system call returned, or the errno that it left behind.
fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel has just made this descriptor for the caller, and nobody else knows of it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `perf_event_open(2)` without a group.
pub(crate) fn perf_event_open(
    attr: &[u8; ATTR_BYTES],
    pid: i32,
    cpu: i32,
    flags: u64,
) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    let flags = CLOSE_ON_EXEC | flags;
    // SAFETY: `attr` is a live buffer of the size that its own size field names; the kernel reads that much, and
    // may write the size field.
    let result = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attr.as_mut_ptr(), pid, cpu, -1_i32, flags)
    };
    descriptor(result)
}

/// The program that every type of program may be: `return 0`.
static RETURN_ZERO: [u64; 2] = [0x0000_0000_0000_00b7, 0x95];
/// Helpers that only a program under this licence may call are not called.
static LICENSE: &[u8; 4] = b"GPL\0";

/// Loads a program of a type that does nothing (`BPF_PROG_LOAD`).
pub(crate) fn load_program(program_type: u32) -> io::Result<OwnedFd> {
    const PROG_LOAD: u32 = 5;
    let mut attr = [0_u64; BPF_ATTR_BYTES / 8];
    attr[0] = u64::from(program_type) | (RETURN_ZERO.len() as u64) << 32;
    attr[1] = RETURN_ZERO.as_ptr().addr() as u64;
    attr[2] = LICENSE.as_ptr().addr() as u64;
    bpf(PROG_LOAD, &mut attr)
}

/// Has a program of type `BPF_PROG_TYPE_RAW_TRACEPOINT` called at a tracepoint until the result is dropped
/// (`BPF_RAW_TRACEPOINT_OPEN`).
pub(crate) fn attach_raw_tracepoint(
    program: BorrowedFd<'_>,
    name: &'static std::ffi::CStr,
) -> io::Result<OwnedFd> {
    const RAW_TRACEPOINT_OPEN: u32 = 17;
    let mut attr = [0_u64; BPF_ATTR_BYTES / 8];
    attr[0] = name.as_ptr().addr() as u64;
    attr[1] = program.as_raw_fd() as u64;
    bpf(RAW_TRACEPOINT_OPEN, &mut attr)
}

/// `bpf(2)` for commands that give a descriptor. Every address in `attr` is one of a static.
fn bpf(command: u32, attr: &mut [u64; BPF_ATTR_BYTES / 8]) -> io::Result<OwnedFd> {
    // SAFETY: `attr` is a live buffer of the size that is passed; the addresses in it are those of statics that
    // end in a zero byte or have the length that is passed beside them.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), BPF_ATTR_BYTES) };
    descriptor(result)
}

/// `io_uring_setup(2)`, with the smallest ring.
pub(crate) fn io_uring_setup() -> io::Result<OwnedFd> {
    let mut params = [0_u64; IO_URING_PARAMS_BYTES / 8];
    // SAFETY: `params` is a live buffer of the size of `struct io_uring_params`, all zero, which the kernel fills.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1_u32, params.as_mut_ptr()) };
    descriptor(result)
}

/// `pidfd_open(2)` on a process.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and no memory.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0_u32) };
    descriptor(result)
}
