//! Packing: what a recorder does.

use std::collections::HashMap;

use super::ordinary::{Ordinary, set_size};
use super::{
    ACCOUNT, CAME, CHAIN_WORDS_MAX, DEFINE, HAS_DEFINITIONS, HAS_NEXT, IS_CPU_WIDE, IS_PREEMPTION,
    Origin, PACKED_ID, READY, STATE_KNOWN, SWITCH, SWITCH_WORDS, Switch, TAIL_WORDS, Thread,
};
use crate::cpu_account::CpuAccount;
use crate::record::{misc, record_type};

/// A sample is closed when it has so much: with two definitions and a switch it is still a record.
const FULL_BYTES: usize = 56 << 10;
/// Addresses of futexes that are remembered as defined.
const FUTEXES_MAX: usize = 1 << 14;
/// Bytes that one addition may still need.
const _: () = assert!(FULL_BYTES + (2 * CHAIN_WORDS_MAX + 64) * 8 < 65_528);

/// The numbers of the stacks and the object of a switch; 0 where it names none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    /// The stack in the kernel.
    pub kernel: u32,
    /// The stack in user mode.
    pub user: u32,
    /// The object of the wait.
    pub object: u32,
}

/// Packs the switches of one CPU, for one stream.
#[derive(Clone, Debug)]
pub struct Packer {
    origin: Origin,
    /// Stacks and objects that are defined.
    defined: u32,
    /// The number of each defined futex, by its address; [`FUTEXES_MAX`] at most.
    futexes: HashMap<u64, u32>,
    /// Time of the sample that is being filled.
    first_ns: u64,
    last_ns: u64,
    records: u32,
    samples: u32,
    flags: u64,
    words: Vec<u8>,
}

impl Packer {
    /// For switches from there.
    pub fn new(origin: Origin) -> Packer {
        Packer {
            origin,
            defined: 0,
            futexes: HashMap::new(),
            first_ns: u64::MAX,
            last_ns: 0,
            records: 0,
            samples: 0,
            flags: 0,
            words: Vec::new(),
        }
    }

    /// Another stream begins: no stack is defined in it.
    pub fn forget(&mut self) {
        self.defined = 0;
        self.futexes.clear();
    }

    /// Defines a stack: marker and addresses, as words in bytes, [`CHAIN_WORDS_MAX`] at most. Gives its
    /// number.
    pub fn define(&mut self, chain: &[u8]) -> u32 {
        let words = (chain.len() / 8).min(CHAIN_WORDS_MAX);
        self.defined += 1;
        self.flags |= HAS_DEFINITIONS;
        self.put(DEFINE | (words as u64) << 16 | u64::from(self.defined) << 32);
        self.words.extend_from_slice(&chain[..words * 8]);
        self.defined
    }

    /// The number of a futex: it is defined as a stack is, by a chain of its address behind a word of zero. Readers
    /// that know of no futexes take it for a stack that no switch names.
    pub fn define_futex(&mut self, address: u64) -> u32 {
        if let Some(number) = self.futexes.get(&address) {
            return *number;
        }
        if self.futexes.len() >= FUTEXES_MAX {
            self.futexes.clear();
        }
        let number = self.define(&crate::wait_object::futex_chain(address));
        self.futexes.insert(address, number);
        number
    }

    /// Adds a switch at stacks and an object with these numbers, 0 for none.
    pub fn switch(&mut self, switch: &Switch, numbers: Numbers) {
        let Switch { time_ns, thread, next, is_preemption, state } = *switch;
        let Numbers { kernel, user, object } = numbers;
        let flags = u64::from(is_preemption) * IS_PREEMPTION + u64::from(next.is_some()) * HAS_NEXT;
        let known = u64::from(state >> 31) * STATE_KNOWN;
        let state = known | (u64::from(state) & (STATE_KNOWN - 1));
        let next = next.unwrap_or_default();
        let words: [u64; SWITCH_WORDS] = [
            SWITCH | flags << 8 | state << 16 | u64::from(thread.tid) << 32,
            time_ns,
            u64::from(thread.pid) | u64::from(next.pid) << 32,
            u64::from(kernel) | u64::from(user) << 32,
            u64::from(next.tid) | u64::from(object) << 32,
        ];
        words.into_iter().for_each(|word| self.put(word));
        let (records, samples) = Ordinary::tally(switch);
        self.count(time_ns, records, samples);
    }

    /// Adds that a thread comes.
    pub fn came(&mut self, thread: Thread, time_ns: u64) {
        self.put(CAME | u64::from(thread.tid) << 32);
        self.put(time_ns);
        self.put(u64::from(thread.pid));
        self.count(time_ns, 1, 0);
    }

    /// Adds that a thread comes from a wait for several files, and the number of the first one that is ready.
    pub fn ready(&mut self, thread: Thread, time_ns: u64, object: u32) {
        self.put(READY | u64::from(thread.tid) << 32);
        self.put(time_ns);
        self.put(u64::from(thread.pid) | u64::from(object) << 32);
        self.count(time_ns, 1, 0);
    }

    /// Adds what the CPU spent besides a thread up to that time: several times where a number is too large for one.
    pub fn account(&mut self, thread: Thread, time_ns: u64, account: &CpuAccount) {
        let mut rest = account.times_ns();
        loop {
            let [irq, softirq, stolen] = rest.map(|ns| ns.min(u64::from(u32::MAX)));
            self.put(ACCOUNT | u64::from(account.parts()) << 8 | u64::from(thread.tid) << 32);
            self.put(time_ns);
            self.put(u64::from(thread.pid) | stolen << 32);
            self.put(irq | softirq << 32);
            self.count(time_ns, 1, 0);
            rest = rest.map(|ns| ns.saturating_sub(u64::from(u32::MAX)));
            if rest == [0; 3] {
                return;
            }
        }
    }

    /// Bytes that wait to be [finished](Packer::finish).
    pub fn pending_bytes(&self) -> usize {
        self.words.len()
    }

    /// Appends the packed switches if they fill a record.
    pub fn finish_if_full(&mut self, out: &mut Vec<u8>) {
        if self.words.len() >= FULL_BYTES {
            self.finish(out);
        }
    }

    /// Appends the packed switches: one sample, or nothing.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.words.is_empty() {
            return;
        }
        let Origin { id, cpu, has_cpu, is_cpu_wide } = self.origin;
        let start = out.len();
        let raw_bytes = 4 + (super::HEAD_WORDS + TAIL_WORDS) * 8 + self.words.len();
        let flags = self.flags | if is_cpu_wide { IS_CPU_WIDE } else { 0 };
        let mut put = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        put(u64::from(record_type::SAMPLE) | u64::from(misc::KERNEL) << 32);
        [PACKED_ID, 0, 0, self.last_ns].into_iter().for_each(&mut put);
        has_cpu.then_some(u64::from(cpu)).into_iter().for_each(&mut put);
        // Size, and four bytes of nothing: words are aligned then.
        put(raw_bytes as u64);
        put(u64::from(cpu) | flags);
        put(id);
        out.extend_from_slice(&self.words);
        let mut put = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        put(self.first_ns);
        put(u64::from(self.records) | u64::from(self.samples) << 32);
        set_size(out, start);
        let origin = self.origin;
        let (words, futexes) = (std::mem::take(&mut self.words), std::mem::take(&mut self.futexes));
        *self = Packer { defined: self.defined, futexes, words, ..Packer::new(origin) };
        self.words.clear();
    }

    fn count(&mut self, time_ns: u64, records: u32, samples: u32) {
        self.first_ns = self.first_ns.min(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        self.records += records;
        self.samples += samples;
    }

    fn put(&mut self, word: u64) {
        self.words.extend_from_slice(&word.to_le_bytes());
    }
}
