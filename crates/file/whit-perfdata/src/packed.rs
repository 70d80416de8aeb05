//! Context switches in few bytes: repeated data is stored once.
//!
//! A switch as perf writes it is a sample with two call chains and two switch records, some 270
//! bytes, and little but the time is new. Packed, a stack is *defined* once per stream and CPU and
//! has a number from then on; a switch is five words. A row of both stands as the raw data of a
//! sample of its own event ([`PACKED_ID`]), so that perf reads the rest of the recording as ever.
//! [`stream`](crate::stream) unpacks while it reads: no other code sees packed records.
//! `docs/format.md` has the layout.

mod ordinary;
mod packer;
#[cfg(test)]
mod tests;
mod unpacker;

pub use ordinary::{Chains, Ordinary};
pub use packer::{Numbers, Packer};
pub use unpacker::Unpacker;

use crate::attr::{Attr, SampleType};
use crate::feature::EventDesc;

/// The id of packed samples. It stands for the layout too: another one has another id.
pub const PACKED_ID: u64 = 1 << 63 | 5;
/// The ids of the layouts without accounts of CPUs, and without ready files, which are read as well.
const EARLIER_PACKED_IDS: [u64; 2] = [1 << 63 | 1, 1 << 63 | 4];
/// Name of the event that packed samples belong to.
pub const PACKED_NAME: &str = "whit-switches";
/// Most words of a stack's chain: 127 addresses, and the marker in front of them.
pub const CHAIN_WORDS_MAX: usize = 128;

/// Kinds of packed records, the lowest byte of the first word.
const DEFINE: u64 = 1;
const SWITCH: u64 = 2;
const CAME: u64 = 3;
const ACCOUNT: u64 = 4;
const READY: u64 = 5;
/// Words of each but of a definition, which has one and those of the chain.
const SWITCH_WORDS: usize = 5;
const CAME_WORDS: usize = 3;
const ACCOUNT_WORDS: usize = 4;
const READY_WORDS: usize = 3;
/// Flags of a switch: the thread could have gone on; it is said who comes.
const IS_PREEMPTION: u64 = 1;
const HAS_NEXT: u64 = 2;
/// A state has 32 bits; its highest bit moves there.
const STATE_KNOWN: u64 = 1 << 15;
/// Words in front of the packed records: CPU and flags, the id of the samples.
const HEAD_WORDS: usize = 2;
/// Words behind them: the time of the first, and how many records and samples they make ([`tally`]).
const TAIL_WORDS: usize = 2;
/// The same in bytes: the end of the sample.
pub const TAIL_BYTES: usize = TAIL_WORDS * 8;
/// Flags in the upper half of the first word: everybody's switches; some stacks are defined.
const IS_CPU_WIDE: u64 = 1 << 32;
const HAS_DEFINITIONS: u64 = 1 << 33;

/// A thread, and its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// The process's number.
    pub pid: u32,
    /// The thread's; 0 is the idle thread.
    pub tid: u32,
}

impl Thread {
    /// As samples have it.
    fn word(self) -> u64 {
        u64::from(self.tid) << 32 | u64::from(self.pid)
    }
}

/// A context switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switch {
    /// When, in nanoseconds of the recording's clock.
    pub time_ns: u64,
    /// The thread that goes.
    pub thread: Thread,
    /// The thread that comes, if it is recorded.
    pub next: Option<Thread>,
    /// The thread that goes could have gone on.
    pub is_preemption: bool,
    /// Its state, as raw data of a sample: bit 31 says that it is known, the lower ones are what
    /// `sched:sched_switch` has in `prev_state`.
    pub state: u32,
}

/// The event and CPU of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The id of the samples that switches are.
    pub id: u64,
    /// The CPU of its ring.
    pub cpu: u32,
    /// Whether records have the CPU.
    pub has_cpu: bool,
    /// Switches of all threads: each names the thread that the CPU goes to, or comes from.
    pub is_cpu_wide: bool,
}

/// The description of packed samples for perf's readers; apart from the name, they are like those of
/// `bpf_output`.
pub fn describe(bpf_output: &Attr) -> EventDesc {
    EventDesc { attr: bpf_output.clone(), ids: vec![PACKED_ID], name: PACKED_NAME.to_owned() }
}

/// Whether an event is that of packed samples, in a layout that can be read.
pub fn is_packed(event: &EventDesc) -> bool {
    matches!(event.ids[..], [id] if is_packed_id(id)) && can_carry(&event.attr)
}

/// Whether samples of this id are packed ones, in a layout that can be read.
fn is_packed_id(id: u64) -> bool {
    id == PACKED_ID || EARLIER_PACKED_IDS.contains(&id)
}

/// Whether samples like those of an event can be packed ones.
pub fn can_carry(attr: &Attr) -> bool {
    prefix_bytes(attr).is_some()
}

/// Bytes of a packed sample in front of its raw data: header, id, address, thread, time, and the
/// CPU if records have it.
fn prefix_bytes(attr: &Attr) -> Option<usize> {
    let fields = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::RAW;
    match attr.sample_type {
        with_cpu if with_cpu == fields | SampleType::CPU => Some(48),
        without if without == fields => Some(40),
        _ => None,
    }
}

/// The contents of a packed sample, from the last of its words: records, and samples among them.
pub fn tally(last_word: u64) -> (u64, u64) {
    (last_word & 0xffff_ffff, last_word >> 32)
}

/// The word at an index of a slice of whole words.
fn word(bytes: &[u8], at: usize) -> u64 {
    crate::bytes::u64_at(bytes, at * 8).unwrap_or(0)
}
