//! The kernel features that the programs need, each with the first Linux that has it.
//!
//! Programs at tracepoints by their types (`tp_btf`, since Linux 5.5) are older than the rest, and not
//! asked for: libbpf would try one at a function of the kernel, which some kernels do not have.

use libbpf_rs::ProgramType;
use whit_sys::{Errno, bpf, privilege};

use crate::kernel_need::KernelNeed;
use crate::loading::NEEDED;
use crate::messages;

/// Functions of the kernel that programs for perf events call, by number: `enum bpf_func_id`.
const HELPERS: [(u32, KernelNeed); 4] = [
    (112, KernelNeed { what: "bpf_probe_read_user", since: "5.5" }),
    (158, KernelNeed { what: "bpf_get_current_task_btf", since: "5.11" }),
    (174, KernelNeed { what: "bpf_get_attach_cookie", since: "5.15" }),
    (175, KernelNeed { what: "bpf_task_pt_regs", since: "5.15" }),
];
const EXCHANGE: KernelNeed = KernelNeed { what: "atomic exchange in BPF programs", since: "5.12" };
/// The helper by which programs find mappings without an announcement. It is optional.
pub const FIND_VMA: KernelNeed = KernelNeed { what: "bpf_find_vma", since: "5.17" };
/// Its number in the kernel's list of helpers.
const FIND_VMA_NUMBER: u32 = 180;

/// The place of programs that sample waits.
pub(super) const SCHED_EXIT: KernelNeed =
    KernelNeed { what: "the tracepoint sched_exit_tp", since: "6.15" };

/// The place of programs that record requests of sockets.
pub(super) const SOCK_RECV_LENGTH: KernelNeed =
    KernelNeed { what: "the tracepoint sock_recv_length", since: "6.3" };

/// Whether programs can find mappings by themselves.
pub(super) fn finds_mappings() -> bool {
    let _in_force = privilege::raise(&NEEDED);
    ProgramType::PerfEvent.is_helper_supported(FIND_VMA_NUMBER).unwrap_or(false)
}

/// The features that this kernel lacks, found by trying; empty if it cannot be tried.
pub fn lacking() -> Vec<KernelNeed> {
    messages::listen();
    let _in_force = privilege::raise(&NEEDED);
    let mut lacking = Vec::new();
    for (number, need) in HELPERS {
        let is_there = ProgramType::PerfEvent.is_helper_supported(number);
        if is_there.is_ok_and(|is_there| !is_there) {
            lacking.push(need);
        }
    }
    if bpf::try_load().is_ok() && bpf::try_load_exchange() == Err(Errno::INVAL) {
        lacking.push(EXCHANGE);
    }
    // The messages of the trial are of no interest.
    let _ = messages::take();
    lacking
}
