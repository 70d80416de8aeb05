//! Steps that loading any of the programs needs.

use libbpf_rs::{ErrorKind, Object};
use whit_sys::capability::Capability;

use crate::error::BpfError;
use crate::messages;

/// Capabilities for system calls on BPF.
pub(crate) const NEEDED: [Capability; 3] =
    [Capability::Bpf, Capability::PerfMon, Capability::SysAdmin];

/// `BPF_F_TEST_RUN_ON_CPU` in `include/uapi/linux/bpf.h`.
pub(crate) const TEST_RUN_ON_CPU: u32 = 1;
/// Attempts to load a program while signals arrive.
const ATTEMPTS_MAX: usize = 10;

/// Wraps an error of libbpf with the attempted action and libbpf's latest messages.
pub(crate) fn refused(attempt: &'static str) -> impl FnOnce(libbpf_rs::Error) -> BpfError {
    move |source| BpfError::Refused { attempt, source, messages: messages::take() }
}

/// Loads an object. The verifier gives up when a signal arrives; libbpf asks again, but not often
/// enough.
pub(crate) fn load(
    attempt: &'static str,
    load: impl Fn() -> Result<Object, libbpf_rs::Error>,
) -> Result<Object, BpfError> {
    let mut attempts = 1;
    loop {
        match load() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && attempts < ATTEMPTS_MAX => {
                attempts += 1;
            }
            loaded => return loaded.map_err(refused(attempt)),
        }
    }
}
