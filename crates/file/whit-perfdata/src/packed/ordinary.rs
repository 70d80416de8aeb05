//! Switches as perf writes them.

use super::{Origin, Switch, Thread};
use crate::cpu_account::CpuAccount;
use crate::ready_file;
use crate::record::{HEADER_SIZE_BYTES, misc, record_type};
use crate::wait_object;

/// Each switch is one.
const PERIOD: u64 = 1;
/// Bytes of the raw data behind the word of its size: the state. The object of the wait follows.
const STATE_BYTES: usize = 4;
/// Bytes of the marker of a chain.
const MARKER_BYTES: usize = 8;

/// The stacks and the object of a switch, as words in bytes, a marker first; empty where it names none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chains<'a> {
    /// The stack in the kernel.
    pub kernel: &'a [u8],
    /// The stack in user mode.
    pub user: &'a [u8],
    /// The object of the wait ([`wait_object`](crate::wait_object)).
    pub object: &'a [u8],
}

/// Writes the records that switches of a CPU make.
#[derive(Clone, Copy, Debug)]
pub struct Ordinary {
    origin: Origin,
}

impl Ordinary {
    /// For switches from there.
    pub fn new(origin: Origin) -> Ordinary {
        Ordinary { origin }
    }

    /// Appends a sample of the thread that goes, and that it goes and another comes. Chains are words in
    /// bytes, a marker first.
    pub fn switch(&self, switch: &Switch, chains: Chains<'_>, out: &mut Vec<u8>) {
        let Switch { thread, next, time_ns, .. } = *switch;
        self.sample(switch, chains, out);
        let preempt = if switch.is_preemption { misc::SWITCH_OUT_PREEMPT } else { 0 };
        self.record(thread, next, time_ns, misc::SWITCH_OUT | preempt, out);
        if let Some(next) = next.filter(|next| next.tid != 0) {
            self.record(next, Some(thread), time_ns, 0, out);
        }
    }

    /// Appends that a thread comes, after an unknown one.
    pub fn came(&self, thread: Thread, time_ns: u64, out: &mut Vec<u8>) {
        self.record(thread, Some(Thread::default()), time_ns, 0, out);
    }

    /// Appends that a thread goes, nobody knows why or where it was.
    pub fn went(&self, thread: Thread, next: Thread, time_ns: u64, out: &mut Vec<u8>) {
        self.record(thread, Some(next), time_ns, misc::SWITCH_OUT, out);
    }

    /// Appends what the CPU spent besides a thread up to that time.
    pub fn account(&self, thread: Thread, time_ns: u64, account: &CpuAccount, out: &mut Vec<u8>) {
        self.bpf_event(account.body(), (thread, time_ns), out);
    }

    /// Appends the first ready file of a thread that comes from a wait for several: the chain of its description.
    pub fn ready(&self, thread: Thread, time_ns: u64, object: &[u8], out: &mut Vec<u8>) {
        let description = object.get(wait_object::MARKER_BYTES..).unwrap_or_default();
        self.bpf_event(ready_file::body(description), (thread, time_ns), out);
    }

    /// Appends a BPF_EVENT record of whit's own.
    fn bpf_event(
        &self,
        body: impl Iterator<Item = u8>,
        (thread, time_ns): (Thread, u64),
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let header = u64::from(record_type::BPF_EVENT);
        out.extend_from_slice(&header.to_le_bytes());
        out.extend(body);
        let id = [thread.word(), time_ns].into_iter().chain(self.cpu()).chain([self.origin.id]);
        out.extend(id.flat_map(u64::to_le_bytes));
        set_size(out, start);
    }

    /// Records and samples of a switch.
    pub fn tally(switch: &Switch) -> (u32, u32) {
        let comes = switch.next.is_some_and(|next| next.tid != 0);
        (2 + u32::from(comes), 1)
    }

    fn sample(&self, switch: &Switch, chains: Chains<'_>, out: &mut Vec<u8>) {
        let Chains { kernel, user, object } = chains;
        // Behind the marker is where the thread was.
        let ip = [kernel, user].iter().find_map(|chain| crate::bytes::u64_at(chain, 8));
        let start = out.len();
        let header = u64::from(record_type::SAMPLE) | u64::from(misc::KERNEL) << 32;
        let mut put = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        let fields = [self.origin.id, ip.unwrap_or(0), switch.thread.word(), switch.time_ns];
        put(header);
        fields.into_iter().for_each(&mut put);
        self.cpu().into_iter().for_each(&mut put);
        put(PERIOD);
        put(((kernel.len() + user.len()) / 8) as u64);
        out.extend_from_slice(kernel);
        out.extend_from_slice(user);
        let object = object.get(MARKER_BYTES..).unwrap_or_default();
        let size = (STATE_BYTES + object.len()) as u64;
        out.extend_from_slice(&(size | u64::from(switch.state) << 32).to_le_bytes());
        out.extend_from_slice(object);
        set_size(out, start);
    }

    /// A thread that comes or goes, as a record of the kernel. `other` is the one on the other side.
    fn record(
        &self,
        thread: Thread,
        other: Option<Thread>,
        time: u64,
        bits: u16,
        out: &mut Vec<u8>,
    ) {
        let other = other.filter(|_| self.origin.is_cpu_wide);
        let kind = match other {
            Some(_) => record_type::SWITCH_CPU_WIDE,
            None => record_type::SWITCH,
        };
        let start = out.len();
        let mut put = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        put(u64::from(kind) | u64::from(bits) << 32);
        other.into_iter().for_each(|other| put(other.word()));
        put(thread.word());
        put(time);
        self.cpu().into_iter().for_each(&mut put);
        put(self.origin.id);
        set_size(out, start);
    }

    /// The CPU, where records have it.
    fn cpu(&self) -> Option<u64> {
        self.origin.has_cpu.then_some(u64::from(self.origin.cpu))
    }
}

/// Writes the size of the record that begins there and ends at the end: a few words, or two stacks of the
/// most frames, which fit.
pub(super) fn set_size(out: &mut [u8], start: usize) {
    let size = (out.len() - start) as u16;
    out[start + 6..start + HEADER_SIZE_BYTES].copy_from_slice(&size.to_le_bytes());
}
