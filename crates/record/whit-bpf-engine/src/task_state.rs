//! The state in which a thread left its CPU, as recordings keep it: the raw data of a sample of
//! `context-switches` (`docs/bpf-engine.md`).

use whit_bpf::stacks::channel::Switch;

/// Says that there is a state: the kernel itself writes zeros where an event has no raw data.
const IS_KNOWN: u32 = 1 << 31;

/// `TASK_REPORT` in `include/linux/sched.h`: states that have a letter.
const REPORTED: u16 = 0x7f;
/// `TASK_UNINTERRUPTIBLE`, and with it `TASK_NOLOAD` it is `TASK_IDLE`.
const UNINTERRUPTIBLE: u16 = 0x2;
const IDLE: u16 = 0x402;
/// `TASK_RTLOCK_WAIT` and `TASK_FROZEN`, which are reported as uninterruptible.
const OTHERS: u16 = 0x1000 | 0x8000;
/// How `sched:sched_switch` reports an idle one, and one that was preempted within the kernel.
const REPORTED_IDLE: u32 = 0x80;
const PREEMPTED: u32 = 0x100;
/// Behind the bits of the tracepoint: the thread's cgroup has used its quota of CPU time up.
const THROTTLED: u32 = 1 << 14;

/// The state as `sched:sched_switch` has it in `prev_state`: `__trace_sched_switch_state()`.
pub(super) fn word(switch: &Switch) -> u32 {
    let state = match switch.state {
        _ if switch.is_within_kernel => Some(PREEMPTED),
        _ if switch.is_preemption => Some(0),
        state if state & IDLE == IDLE => Some(REPORTED_IDLE),
        state if state & OTHERS != 0 => Some(u32::from(UNINTERRUPTIBLE)),
        // Other states have no letter: the thread exits, or was woken already.
        state => (state & REPORTED).checked_ilog2().map(|bit| 1 << bit),
    };
    let throttled = if switch.is_throttled { THROTTLED } else { 0 };
    state.map_or(0, |state| state | throttled | IS_KNOWN)
}

#[cfg(test)]
mod tests {
    use whit_bpf::stacks::channel::Thread;

    use super::*;

    #[test]
    fn states_are_those_of_the_tracepoint() {
        let switch = |state, is_preemption, is_within_kernel| Switch {
            time_ns: 0,
            thread: Thread { pid: 0, tid: 0 },
            next: None,
            is_preemption,
            is_throttled: false,
            is_within_kernel,
            state,
            object: None,
            user_stack: None,
            kernel_stack: None,
        };
        let slept = |state| word(&switch(state, false, false));
        assert_eq!(slept(1), 1 | IS_KNOWN);
        // TASK_KILLABLE; TASK_INTERRUPTIBLE and freezable.
        assert_eq!((slept(0x102), slept(0x2001)), (2 | IS_KNOWN, 1 | IS_KNOWN));
        assert_eq!((slept(0x402), slept(0x1000)), (0x80 | IS_KNOWN, 2 | IS_KNOWN));
        assert_eq!((slept(0x8000), slept(4)), (2 | IS_KNOWN, 4 | IS_KNOWN));
        // TASK_WAKING, TASK_DEAD.
        assert_eq!((slept(0x200), slept(0x80)), (0, 0));
        assert_eq!(word(&switch(0, true, false)), IS_KNOWN);
        assert_eq!(word(&switch(1, true, true)), 0x100 | IS_KNOWN);
        let throttled = Switch { is_throttled: true, ..switch(0, true, false) };
        assert_eq!(word(&throttled), 0x4000 | IS_KNOWN);
    }
}
