//! Unpacking: what a reader does.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::{
    ACCOUNT, ACCOUNT_WORDS, CAME, CAME_WORDS, CHAIN_WORDS_MAX, Chains, DEFINE, HAS_DEFINITIONS,
    HAS_NEXT, HEAD_WORDS, IS_CPU_WIDE, IS_PREEMPTION, Numbers, Ordinary, Origin, READY,
    READY_WORDS, STATE_KNOWN, SWITCH, SWITCH_WORDS, Switch, TAIL_WORDS, Thread, is_packed_id,
    prefix_bytes, word,
};
use crate::cpu_account::CpuAccount;
use crate::feature::EventDesc;
use crate::record::{HEADER_SIZE_BYTES, RawRecord, record_type};

/// Unpacks blocks of one stream. The first reading, from the start, finds the definitions of stacks; after
/// that, blocks can be unpacked in any order and by several threads.
#[derive(Debug)]
pub struct Unpacker {
    prefix_bytes: usize,
    has_cpu: bool,
    stacks: RwLock<Stacks>,
}

/// Chains, by CPU: that of number 1 is the first.
type Stacks = HashMap<u32, Vec<Box<[u8]>>>;

/// The contents of a packed sample.
struct Content<'a> {
    origin: Origin,
    has_definitions: bool,
    words: &'a [u8],
}

/// A packed record.
enum Item<'a> {
    Define { number: u32, chain: &'a [u8] },
    Switch { switch: Switch, numbers: Numbers },
    Came { thread: Thread, time_ns: u64 },
    Account { thread: Thread, time_ns: u64, account: CpuAccount },
    Ready { thread: Thread, time_ns: u64, object: u32 },
}

impl Unpacker {
    /// For streams with packed samples of this event; `None` where they cannot be read.
    pub fn new(event: &EventDesc) -> Option<Unpacker> {
        let prefix_bytes = prefix_bytes(&event.attr)?;
        let has_cpu = prefix_bytes > 40;
        Some(Unpacker { prefix_bytes, has_cpu, stacks: RwLock::default() })
    }

    /// Appends the records of a block; packed ones become ordinary ones. A packed record that makes no sense
    /// stays as it is.
    pub fn unpack(&self, block: &[u8], out: &mut Vec<u8>) {
        self.learn(block);
        let stacks = self.stacks.read().unwrap_or_else(PoisonError::into_inner);
        // Where those begin that are not packed, and are copied all at once.
        let (mut plain, mut at) = (0, 0);
        while let Some((record, tail)) = RawRecord::split(&block[at..]) {
            let behind = block.len() - tail.len();
            if let Some(content) = self.content(record) {
                out.extend_from_slice(&block[plain..at]);
                let start = out.len();
                let stacks = stacks.get(&content.origin.cpu).map_or(&[][..], Vec::as_slice);
                if content.unpack(stacks, out) {
                    plain = behind;
                } else {
                    out.truncate(start);
                    plain = at;
                }
            }
            at = behind;
        }
        out.extend_from_slice(&block[plain..]);
    }

    /// Takes up the definitions of a block that are new.
    fn learn(&self, mut rest: &[u8]) {
        while let Some((record, tail)) = RawRecord::split(rest) {
            rest = tail;
            let Some(content) = self.content(record).filter(|content| content.has_definitions)
            else {
                continue;
            };
            let cpu = content.origin.cpu;
            let known = |stacks: &Stacks| stacks.get(&cpu).map_or(0, Vec::len);
            let mut count = known(&self.stacks.read().unwrap_or_else(PoisonError::into_inner));
            for item in content.items() {
                // They follow each other; others are known, or stand where nobody can have put them.
                if let Item::Define { number, chain } = item
                    && number as usize == count + 1
                {
                    let mut stacks = self.stacks.write().unwrap_or_else(PoisonError::into_inner);
                    // Somebody else may have read the same.
                    if known(&stacks) == count {
                        stacks.entry(cpu).or_default().push(chain.into());
                    }
                    count += 1;
                }
            }
        }
    }

    /// The contents of a record, if it is packed.
    fn content<'a>(&self, record: RawRecord<'a>) -> Option<Content<'a>> {
        if record.header.kind != record_type::SAMPLE || !is_packed_id(word(record.body, 0)) {
            return None;
        }
        // The raw data's size, and its padding word.
        let words = record.body.get(self.prefix_bytes - HEADER_SIZE_BYTES + 8..)?;
        let inner = words.len().checked_sub((HEAD_WORDS + TAIL_WORDS) * 8)?;
        let first = word(words, 0);
        let origin = Origin {
            id: word(words, 1),
            cpu: first as u32,
            has_cpu: self.has_cpu,
            is_cpu_wide: first & IS_CPU_WIDE != 0,
        };
        let words = &words[HEAD_WORDS * 8..][..inner];
        Some(Content { origin, has_definitions: first & HAS_DEFINITIONS != 0, words })
    }
}

impl<'a> Content<'a> {
    /// The records up to the first that makes no sense.
    fn items(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let mut rest = self.words;
        std::iter::from_fn(move || {
            let (item, tail) = split(rest)?;
            rest = tail;
            Some(item)
        })
    }

    /// Appends the ordinary records. Returns whether all of it makes sense.
    fn unpack(&self, stacks: &[Box<[u8]>], out: &mut Vec<u8>) -> bool {
        let ordinary = Ordinary::new(self.origin);
        let chain = |number: u32| {
            let index = (number as usize).wrapping_sub(1);
            stacks.get(index).map_or(&[][..], |chain| chain)
        };
        let mut rest = self.words;
        while let Some((item, tail)) = split(rest) {
            match item {
                Item::Define { .. } => {}
                Item::Switch { switch, numbers: Numbers { kernel, user, object } } => {
                    let (kernel, user, object) = (chain(kernel), chain(user), chain(object));
                    ordinary.switch(&switch, Chains { kernel, user, object }, out);
                }
                Item::Came { thread, time_ns } => ordinary.came(thread, time_ns, out),
                Item::Account { thread, time_ns, account } => {
                    ordinary.account(thread, time_ns, &account, out);
                }
                Item::Ready { thread, time_ns, object } => {
                    ordinary.ready(thread, time_ns, chain(object), out);
                }
            }
            rest = tail;
        }
        rest.is_empty()
    }
}

/// The first packed record of some words.
fn split(words: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let first = word(words, 0);
    let upper = |word: u64| (word >> 32) as u32;
    let size = match first & 0xff {
        DEFINE => 1 + usize::from((first >> 16) as u16),
        SWITCH => SWITCH_WORDS,
        CAME => CAME_WORDS,
        ACCOUNT => ACCOUNT_WORDS,
        READY => READY_WORDS,
        _ => return None,
    };
    let (item, tail) = words.split_at_checked(size * 8)?;
    let item = match first & 0xff {
        DEFINE => {
            let chain = &item[8..];
            if chain.len() > CHAIN_WORDS_MAX * 8 {
                return None;
            }
            Item::Define { number: upper(first), chain }
        }
        SWITCH => {
            let (pids, stacks) = (word(item, 2), word(item, 3));
            let state = first >> 16 & 0xffff;
            let next = Thread { pid: upper(pids), tid: word(item, 4) as u32 };
            let switch = Switch {
                time_ns: word(item, 1),
                thread: Thread { pid: pids as u32, tid: upper(first) },
                next: (first >> 8 & HAS_NEXT != 0).then_some(next),
                is_preemption: first >> 8 & IS_PREEMPTION != 0,
                state: ((state & STATE_KNOWN) << 16 | state & (STATE_KNOWN - 1)) as u32,
            };
            let object = upper(word(item, 4));
            let numbers = Numbers { kernel: stacks as u32, user: upper(stacks), object };
            Item::Switch { switch, numbers }
        }
        ACCOUNT => {
            let (pid_stolen, interrupts) = (word(item, 2), word(item, 3));
            let times = [interrupts as u32, upper(interrupts), upper(pid_stolen)].map(u64::from);
            Item::Account {
                thread: Thread { pid: pid_stolen as u32, tid: upper(first) },
                time_ns: word(item, 1),
                account: CpuAccount::new((first >> 8 & 0xff) as u32, times),
            }
        }
        READY => {
            let (pid_object, time_ns) = (word(item, 2), word(item, 1));
            let thread = Thread { pid: pid_object as u32, tid: upper(first) };
            Item::Ready { thread, time_ns, object: upper(pid_object) }
        }
        _ => Item::Came {
            thread: Thread { pid: word(item, 2) as u32, tid: upper(first) },
            time_ns: word(item, 1),
        },
    };
    Some((item, tail))
}
