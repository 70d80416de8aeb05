//! Connects [`whit_vpmu`] to KVM, and boots a small guest that samples with it.
//!
//! - [`forward_msrs`]: accesses to the PMU's registers leave the guest (KVM_CAP_X86_USER_SPACE_MSR,
//!   KVM_X86_SET_MSR_FILTER).
//! - [`apply_leaves`]: the guest finds the PMU (KVM_SET_CPUID2).
//! - [`KvmVpmu`]: answers the exits and injects interrupts: NMIs, or a vector that the VMM raises. KVM's own PMU has to be
//!   off or unused: the filter takes its registers.
//! - [`interrupt_on_overflow`]: the host events' signal ends KVM_RUN (KVM_SET_SIGNAL_MASK).
//! - [`guest`]: a VM for the image that is built from `guest/`.
//!
//! [`whit_vpmu`]'s documentation begins with the limits of RDPMC.
//!
//! # Unsafe code
//!
//! Two blocks: the guest's memory is given to the kernel (`guest`), and KVM_SET_SIGNAL_MASK, for which `kvm-ioctls` has
//! no function. On other systems than x86-64 Linux the crate is empty.
//!
//! The guest's local APIC decides how an overflow reaches it; reset leaves its entry masked:
//!
//! ```
//! use whit_vpmu::{Delivery, Interrupt};
//! use whit_vpmu_kvm::Line;
//!
//! let mut line = Line::default();
//! assert_eq!(line.pmi(true), Delivery::Masked);
//! // The guest writes LVTPC: deliver as an NMI.
//! line.lvtpc.write(0x400);
//! assert_eq!(line.pmi(true), Delivery::Delivered);
//! assert_eq!(line.not_injected(), 0);
//! ```
//!
//! The guest takes samples. The example is not run, since it needs `/dev/kvm`:
//!
//! ```no_run
//! use std::time::Duration;
//! use whit_vpmu::host::{EventMap, HostOptions, HostPerf, OverflowSignal};
//! use whit_vpmu::{IntelPmu, PmuModel, VpmuConfig};
//! use whit_vpmu_kvm::guest::{Work, run};
//!
//! let signal = OverflowSignal::block()?;
//! let host = HostPerf::for_this_thread(EventMap::Raw, HostOptions::default())?;
//! let config = VpmuConfig::new(PmuModel::intel(IntelPmu::default())?);
//! let limit = Duration::from_secs(10);
//! let work = Work { samples: 100, period: 100_000, code: 0xc0, limit };
//! let done = run(config, host, &work, &signal)?;
//! assert!(done.nmis >= 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller turns KVM's own PMU off, calls [`forward_msrs`] and [`apply_leaves`] before the vCPU runs, blocks the
//! overflow signal in the vCPU's thread, and calls [`KvmVpmu::enter`] before each KVM_RUN.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![deny(unsafe_code)]

mod adapter;
mod cpuid;
pub mod guest;
mod line;
mod setup;
mod signal_mask;

pub use adapter::KvmVpmu;
pub use cpuid::apply_leaves;
pub use line::Line;
pub use setup::forward_msrs;
pub use signal_mask::interrupt_on_overflow;

/// Request that KVM refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no `/dev/kvm`, or this user may not open it.
    #[error(
        "cannot open /dev/kvm: {0}; load kvm_intel or kvm_amd, and join the group that owns it"
    )]
    NoKvm(#[source] kvm_ioctls::Error),
    /// KVM lacks something.
    #[error("this kernel's KVM lacks {0}: it is in Linux 5.10 and later")]
    Lacks(&'static str),
    /// A call failed.
    #[error("{call} failed: {source}")]
    Call {
        /// Name of the KVM call.
        call: &'static str,
        /// The error of the system call.
        source: kvm_ioctls::Error,
    },
    /// The guest's memory cannot be had.
    #[error("cannot allocate the guest's memory: {0}")]
    Memory(String),
    /// The guest did a forbidden access.
    #[error("the guest {0}")]
    Guest(String),
    /// The host's events cannot be had.
    #[error("cannot count on the host: {0}")]
    Host(#[from] whit_vpmu::OpenError),
}

fn call(call: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> Error {
    move |source| Error::Call { call, source }
}
