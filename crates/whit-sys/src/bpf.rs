//! Whether BPF programs may be loaded: by loading one that does nothing.

use std::os::fd::{FromRawFd, OwnedFd};

use crate::capability::Capability;
use crate::{Errno, check, privilege};

/// `BPF_PROG_LOAD` in `include/uapi/linux/bpf.h`.
const PROG_LOAD: libc::c_int = 5;
/// `BPF_PROG_TYPE_PERF_EVENT`: may be attached to any perf event.
const TYPE_PERF_EVENT: u32 = 7;
/// `r0 = 0; exit`, each a `struct bpf_insn`: opcode, registers, offset, immediate value.
const NOTHING: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
/// Helpers for tracing are for programs with such a licence; this one calls none.
const LICENSE: &std::ffi::CStr = c"GPL";

/// What loading a program for perf events needs.
const LOADING: [Capability; 3] = [Capability::Bpf, Capability::PerfMon, Capability::SysAdmin];

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` has had since Linux 4.9; the kernel takes
/// what is missing for zero.
#[repr(C)]
#[derive(Default)]
struct LoadAttr {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// Loads a program for perf events that does nothing, and unloads it. `Errno::PERM` where this
/// process may not, `Errno::NOSYS` where the kernel has no BPF.
pub fn try_load() -> Result<(), Errno> {
    let attr = LoadAttr {
        prog_type: TYPE_PERF_EVENT,
        insn_cnt: NOTHING.len() as u32,
        insns: NOTHING.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        ..LoadAttr::default()
    };
    let _in_force = privilege::raise(&LOADING);
    // SAFETY: the attribute is live and has the size that is given; the addresses in it are of
    // constants, which the kernel only reads.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const attr, size_of_val(&attr)) };
    let fd = check(fd)? as i32;
    // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::CapabilitySet;

    #[test]
    fn a_program_is_loaded_or_the_right_is_missing() {
        let usable = CapabilitySet::usable().unwrap();
        let may = usable.has(Capability::SysAdmin)
            || (usable.has(Capability::Bpf) && usable.has(Capability::PerfMon));
        match try_load() {
            Ok(()) => {}
            Err(Errno::PERM) => assert!(!may, "a lockdown or a filter forbids it"),
            Err(error) => assert_eq!(error, Errno::NOSYS),
        }
    }
}
