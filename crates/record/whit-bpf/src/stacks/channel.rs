//! Records of the program of switches, read from the memory that it writes: `bpf/channel.h`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use whit_sys::bpf::SharedWords;

use super::{FRAMES_MAX, StopReason};

/// Places of stacks and objects: `USER_PLACES`, `KERNEL_PLACES` and `OBJECT_PLACES` of `bpf/stacks.bpf.c`.
pub const PLACES: usize = 16384 + 4096 + 4096;
/// Smallest and largest channel. The largest record takes `FRAMES_MAX` and one words.
const WORDS_MIN: usize = 1024;
const WORDS_MAX: usize = 1 << 24;
/// Words of `struct channel` in front of the ring.
const HEAD_WORDS: usize = 16;
/// Indices of these words: words written, lost records that no record reports yet, whether there is a reader,
/// the earliest and the latest time of these lost records, words read.
const WRITTEN: usize = 0;
const LOST_UNTOLD: usize = 1;
const IS_OPEN: usize = 2;
const LOST_FROM: usize = 4;
const LOST_TO: usize = 5;
const READ: usize = 8;

/// Kinds of records.
const STACK: u64 = 1;
const SWITCH: u64 = 2;
const LOST: u64 = 3;
const CAME: u64 = 4;
const OBJECT: u64 = 5;
const ACCOUNT: u64 = 6;
const READY: u64 = 7;
/// Words of each record except stacks and losses; a switch with a next thread has one more, and one with an object too.
const TIMED_WORDS: u64 = 3;
const LOST_WORDS: u64 = 4;
const ACCOUNT_WORDS: u64 = 6;
/// Flags of a switch.
const IS_PREEMPTION: u64 = 1;
const IS_WITHIN_KERNEL: u64 = 2;
const HAS_NEXT: u64 = 4;
const HAS_FUTEX: u64 = 8;
const HAS_OBJECT: u64 = 16;
const IS_THROTTLED: u64 = 32;
/// Parts of an account.
const HAS_IRQ: u64 = 1;
const HAS_STOLEN: u64 = 2;

/// Words of a channel for so many bytes of records: a power of two.
pub(super) fn words_for(bytes: usize) -> usize {
    (bytes / 8).clamp(WORDS_MIN, WORDS_MAX).next_power_of_two()
}

/// Bytes of `struct channel` with a ring of so many words.
pub(super) fn value_bytes(ring_words: usize) -> usize {
    (HEAD_WORDS + ring_words) * 8
}

/// The place of a record's stack: the latest stack record with this number has the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DictionarySlot(pub u16);

impl DictionarySlot {
    /// From 16 bits, that are 0 for none.
    fn new(bits: u64) -> Option<DictionarySlot> {
        (bits as u16).checked_sub(1).map(DictionarySlot)
    }
}

/// A thread, and its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// The process's number.
    pub pid: u32,
    /// The thread's; 0 is the idle thread.
    pub tid: u32,
}

/// The object of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchObject {
    /// The address of a futex.
    Futex(u64),
    /// The latest object record with this number has its description.
    Described(DictionarySlot),
}

/// A context switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch {
    /// When, by `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// The thread that goes.
    pub thread: Thread,
    /// The next thread, if its switches are recorded, or those of all threads.
    pub next: Option<Thread>,
    /// The thread that goes could have gone on.
    pub is_preemption: bool,
    /// And its cgroup has used its quota of CPU time up.
    pub is_throttled: bool,
    /// And was taken off while it was in the kernel, whatever its state.
    pub is_within_kernel: bool,
    /// `TASK_*` of the thread; 0 is runnable.
    pub state: u16,
    /// The object of the wait, where the program notes it.
    pub object: Option<SwitchObject>,
    /// Its stack in user mode,
    pub user_stack: Option<DictionarySlot>,
    /// Its stack in kernel mode, if kernel stacks are recorded.
    pub kernel_stack: Option<DictionarySlot>,
}

/// The time that a CPU spent besides a thread since the account before; in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// When, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The thread that ran, which may be the idle thread; zeros for one that is not recorded.
    pub thread: Thread,
    /// Time in handlers of interrupts, and in softirqs without these; absent where it is not recorded.
    pub interrupts_ns: Option<(u64, u64)>,
    /// Time that the hypervisor stole; absent where the kernel has no clock of it.
    pub stolen_ns: Option<u64>,
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// From here on this is the stack of a place.
    Stack {
        /// The place that records name from here on.
        place: DictionarySlot,
        /// Why it ends where it does; [`StopReason::Kernel`] for a stack of the kernel.
        reason: StopReason,
        /// Addresses, innermost first.
        frames: &'a [u64],
    },
    /// From here on this is the object of a place, which it takes from another object.
    Object {
        /// The place that switches name from here on.
        place: DictionarySlot,
        /// Its description: `bpf/wait_object.h`.
        words: &'a [u64],
    },
    /// A thread goes, and perhaps another one comes.
    Switch(Switch),
    /// A thread comes, and no record describes the one before. The record may be late: only as the
    /// thread goes.
    SwitchIn {
        /// When, by `CLOCK_MONOTONIC`, in nanoseconds.
        time_ns: u64,
        /// The thread that comes.
        thread: Thread,
    },
    /// A thread comes from an epoll call.
    Ready {
        /// When, by `CLOCK_MONOTONIC`, in nanoseconds.
        time_ns: u64,
        /// The thread that comes.
        thread: Thread,
        /// The latest object record with this number describes the file that was ready first.
        place: DictionarySlot,
    },
    /// The time that a CPU spent besides a thread.
    Account(Account),
    /// Switches that did not fit.
    Lost(Loss),
}

/// Records that did not fit; times by `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Number of lost records.
    pub count: u64,
    /// The earliest of their times.
    pub from_ns: u64,
    /// Time of the latest lost record.
    pub to_ns: u64,
}

/// The channels of all CPUs.
#[derive(Clone, Debug)]
pub struct Channels {
    words: Arc<SharedWords>,
    cpus: usize,
    ring_words: usize,
}

impl Channels {
    /// `words` hold the channels one behind the other, each with room for `ring_words` words of
    /// records, a power of two.
    pub fn new(words: SharedWords, cpus: usize, ring_words: usize) -> Channels {
        Channels { words: Arc::new(words), cpus, ring_words }
    }

    /// That of a CPU, from where it was read last; from now on the program writes to it. There must be
    /// one reader of it at a time.
    pub fn of_cpu(&self, cpu: u32) -> Option<Channel> {
        let cpu = cpu as usize;
        (cpu < self.cpus).then(|| {
            let start = cpu * (HEAD_WORDS + self.ring_words);
            let ring = start + HEAD_WORDS..start + HEAD_WORDS + self.ring_words;
            self.words.words(start + IS_OPEN..start + IS_OPEN + 1).iter().for_each(|is_open| {
                is_open.store(1, Ordering::Release);
            });
            let at = self.words.load(start + READ);
            Channel { words: self.words.clone(), start, ring, at, end: at, frames: Vec::new() }
        })
    }
}

/// The reader's side of a CPU's channel.
pub struct Channel {
    words: Arc<SharedWords>,
    start: usize,
    ring: Range<usize>,
    /// Words read, and words that are there to be read.
    at: u64,
    end: u64,
    frames: Vec<u64>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("at", &self.at).field("end", &self.end).finish()
    }
}

impl Channel {
    /// Bytes of records that were not read yet.
    pub fn available_bytes(&self) -> usize {
        let words = self.words.load(self.start + WRITTEN).wrapping_sub(self.at);
        words.min(self.ring.len() as u64) as usize * 8
    }

    /// Takes the words that are there now.
    pub fn look(&mut self) {
        self.end = self.at + (self.available_bytes() / 8) as u64;
    }

    /// The next of the records that were there at the last look, unless it is of a later time: `None`
    /// then, or where there is no other.
    pub fn next_until(&mut self, time_ns: u64) -> Option<Record<'_>> {
        if self.at >= self.end {
            return None;
        }
        let ring = self.words.words(self.ring.clone());
        let what = word(ring, self.at);
        match what & 0xff {
            kind @ (STACK | OBJECT) => {
                let count = what >> 16 & 0xffff;
                let (count, reason) = (count.min(FRAMES_MAX as u64), (what >> 8) as u8);
                self.frames.clear();
                self.frames.extend((1..=count).map(|frame| word(ring, self.at + frame)));
                self.at += 1 + count;
                let place = DictionarySlot((what >> 32) as u16 % PLACES as u16);
                if kind == OBJECT {
                    return Some(Record::Object { place, words: &self.frames });
                }
                let reason = StopReason::from_number(reason).unwrap_or(StopReason::BadTable);
                Some(Record::Stack { place, reason, frames: &self.frames })
            }
            kind @ (SWITCH | LOST | CAME | ACCOUNT | READY) => {
                let words = [0, 1, 2, 3, 4, 5].map(|at| word(ring, self.at + at));
                let [_, time, last, more, ..] = words;
                if time > time_ns {
                    return None;
                }
                self.at += match kind {
                    LOST => LOST_WORDS,
                    ACCOUNT => ACCOUNT_WORDS,
                    _ => {
                        TIMED_WORDS
                            + u64::from(has(what, HAS_NEXT))
                            + u64::from(has(what, HAS_FUTEX | HAS_OBJECT))
                    }
                };
                Some(match kind {
                    LOST => Record::Lost(Loss { count: last, from_ns: more, to_ns: time }),
                    CAME => {
                        let thread = Thread { pid: last as u32, tid: (what >> 32) as u32 };
                        Record::SwitchIn { time_ns: time, thread }
                    }
                    ACCOUNT => Record::Account(account(words)),
                    READY => {
                        let thread = Thread { pid: last as u32, tid: (what >> 32) as u32 };
                        let place = DictionarySlot::new(last >> 32).unwrap_or(DictionarySlot(0));
                        Record::Ready { time_ns: time, thread, place }
                    }
                    _ => Record::Switch(switch(words)),
                })
            }
            // Nobody writes anything else.
            _ => {
                self.at = self.end;
                None
            }
        }
    }

    /// Switches that did not fit after the last record. The next [`Record::Lost`] reports them again,
    /// with those that follow until records fit.
    pub fn lost_at_end(&self) -> Option<Loss> {
        let written = || self.words.load(self.start + WRITTEN);
        let before = written();
        // The program writes the count last.
        let count = self.words.load(self.start + LOST_UNTOLD);
        let [from_ns, to_ns] = [LOST_FROM, LOST_TO].map(|at| self.words.load(self.start + at));
        // Words written meanwhile may report them.
        let is_last = before == self.at && written() == before;
        (is_last && count > 0).then_some(Loss { count, from_ns, to_ns })
    }

    /// Gives the room of all that was read back.
    pub fn release(&mut self) {
        self.words.store(self.start + READ, self.at);
    }
}

/// A word of the ring by its number since the beginning. The ring's length is a power of two.
fn word(ring: &[AtomicU64], number: u64) -> u64 {
    let index = number as usize & ring.len().wrapping_sub(1);
    ring.get(index).map_or(0, |word| word.load(Ordering::Relaxed))
}

/// Whether a record is a switch with one of some flags.
fn has(what: u64, flags: u64) -> bool {
    what & 0xff == SWITCH && what >> 8 & flags != 0
}

fn account([what, time_ns, pid, irq, softirq, stolen]: [u64; 6]) -> Account {
    let has = |part: u64| what >> 8 & part != 0;
    Account {
        time_ns,
        thread: Thread { pid: pid as u32, tid: (what >> 32) as u32 },
        interrupts_ns: has(HAS_IRQ).then_some((irq, softirq)),
        stolen_ns: has(HAS_STOLEN).then_some(stolen),
    }
}

fn switch([what, time_ns, owner, more, last, _]: [u64; 6]) -> Switch {
    let thread = |pid: u64, tid: u64| Thread { pid: pid as u32, tid: tid as u32 };
    let named = if has(what, HAS_NEXT) { last } else { more };
    let futex = has(what, HAS_FUTEX).then_some(SwitchObject::Futex(named));
    let described = || DictionarySlot::new(named).filter(|_| has(what, HAS_OBJECT));
    Switch {
        time_ns,
        thread: thread(owner, what >> 32),
        next: has(what, HAS_NEXT).then(|| thread(more, more >> 32)),
        is_preemption: what >> 8 & IS_PREEMPTION != 0,
        is_throttled: what >> 8 & IS_THROTTLED != 0,
        is_within_kernel: what >> 8 & IS_WITHIN_KERNEL != 0,
        state: (what >> 16) as u16,
        object: futex.or_else(|| described().map(SwitchObject::Described)),
        user_stack: DictionarySlot::new(owner >> 32),
        kernel_stack: DictionarySlot::new(owner >> 48),
    }
}

#[cfg(test)]
mod tests;
