//! Which signals end KVM_RUN.

#![allow(unsafe_code)]

use std::os::fd::AsRawFd;

use kvm_ioctls::VcpuFd;
use whit_vpmu::host::OverflowSignal;

use crate::{Error, call};

/// `_IOW(KVMIO, 0x8b, struct kvm_signal_mask)`, whose size the number has without the set behind it.
const KVM_SET_SIGNAL_MASK: libc::c_ulong = 0x4004_ae8b;
/// A set of 64 signals.
const SET_SIZE_BYTES: u32 = 8;

/// `struct kvm_signal_mask` with its set.
#[repr(C)]
struct SignalMask {
    size_bytes: u32,
    set: [u8; SET_SIZE_BYTES as usize],
}

/// While the vCPU runs, the signal of the host's events alone is not blocked: an overflow ends KVM_RUN with
/// EINTR, and the signal waits for [`OverflowSignal::take`]. There is no moment between at which it could be lost.
///
/// # Errors
/// Where KVM refuses.
pub fn interrupt_on_overflow(vcpu: &VcpuFd, _blocked: &OverflowSignal) -> Result<(), Error> {
    let set = !(1_u64 << (OverflowSignal::NUMBER - 1));
    let mask = SignalMask { size_bytes: SET_SIZE_BYTES, set: set.to_ne_bytes() };
    // SAFETY: the descriptor is a vCPU's, and the kernel reads a size and a set of that size from a live
    // struct that has both.
    let result = unsafe { libc::ioctl(vcpu.as_raw_fd(), KVM_SET_SIGNAL_MASK, &raw const mask) };
    if result < 0 {
        return Err(call("KVM_SET_SIGNAL_MASK")(kvm_ioctls::Error::last()));
    }
    Ok(())
}
