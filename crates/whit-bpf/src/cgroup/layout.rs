//! The maps' values, byte by byte: the structs of `bpf/cgroup_count.bpf.c`.

use super::How;
use super::counts::Count;

/// Events that one program counts: a bit of a word for each.
pub const EVENTS_MAX: usize = 64;
/// Accounts that a memo can tell apart.
pub(crate) const ACCOUNTS_MAX: usize = 1 << 16;

/// A cache line: no two accounts share one.
const LINE_WORDS: usize = 8;
/// `VALUE`, `ENABLED` and `WAITED` of a timed event.
const TIMED_WORDS: usize = 3;
/// `struct seen`.
const SEEN_WORDS: usize = 7;
/// `struct cpu` without `seen`.
const CPU_HEADER_WORDS: usize = 10;

/// Where events stand in a `struct account`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountLayout {
    /// The first word of each event.
    words: Vec<usize>,
    size: usize,
}

impl AccountLayout {
    pub(crate) fn of(events: &[How]) -> AccountLayout {
        let mut size = 0;
        let place = |how: &How| {
            let word = size;
            // The first one has times whatever it is: others may ask for them.
            size += if how.is_timed || word == 0 { TIMED_WORDS } else { 1 };
            word
        };
        let words = events.iter().map(place).collect();
        AccountLayout { words, size: size.max(1).next_multiple_of(LINE_WORDS) }
    }

    /// The first word of each event.
    pub(crate) fn words(&self) -> &[usize] {
        &self.words
    }

    /// Words of an account.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// An event of the account whose words these are, with the times of the event that it is timed by.
    pub(crate) fn count(
        &self,
        word: impl Fn(usize) -> u64,
        event: usize,
        timed_by: usize,
    ) -> Count {
        let times = self.words[timed_by];
        let (enabled_ns, waited_ns) = (word(times + 1), word(times + 2));
        let running_ns = enabled_ns.wrapping_sub(waited_ns);
        Count { value: word(self.words[event]), enabled_ns, running_ns }
    }
}

/// Size of `struct cpu` with so many events.
pub(crate) const fn cpu_bytes(events: usize) -> usize {
    (CPU_HEADER_WORDS + events * SEEN_WORDS) * 8
}

/// A word of a value; 0 where the value is too short for it.
fn word(bytes: &[u8], index: usize) -> u64 {
    let word = bytes.as_chunks::<8>().0.get(index);
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

/// A `struct cpu`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuState {
    pub(crate) account: u32,
    pub(crate) present: u64,
    pub(crate) changes: u64,
    pub(crate) failed_reads: u64,
    pub(crate) unseen: u64,
    pub(crate) too_deep: u64,
    /// What each event showed when it was read last.
    pub(crate) last: Vec<Count>,
}

impl CpuState {
    pub(crate) fn decode(bytes: &[u8], events: usize) -> CpuState {
        let first = word(bytes, 0).to_ne_bytes();
        let last = |event: usize| {
            let at = CPU_HEADER_WORDS + event * SEEN_WORDS;
            Count {
                value: word(bytes, at),
                enabled_ns: word(bytes, at + 1),
                running_ns: word(bytes, at + 2),
            }
        };
        CpuState {
            account: u32::from_ne_bytes([first[0], first[1], first[2], first[3]]),
            present: word(bytes, 3),
            changes: word(bytes, 4),
            failed_reads: word(bytes, 7),
            unseen: word(bytes, 8),
            too_deep: word(bytes, 9),
            last: (0..events).map(last).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn accounts_tell_how_long_events_ran() {
        let layout = AccountLayout::of(&[How::TIMED, How::UNTIMED, How::TIMED, How::CLOCK]);
        assert_eq!((layout.words(), layout.size()), (&[0, 3, 4, 7][..], 8));
        let words = [5, 100, 0, 7, 9, 100, 60, 40];
        let count = |event, timed_by| layout.count(|word| words[word], event, timed_by);
        assert_eq!(count(0, 0), Count { value: 5, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(1, 0), Count { value: 7, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(3, 2), Count { value: 40, enabled_ns: 100, running_ns: 40 });
    }

    #[test]
    fn accounts_fill_whole_lines() {
        assert_eq!(AccountLayout::of(&[]).size(), 8);
        assert_eq!(AccountLayout::of(&[How::TIMED; 3]).size(), 16);
        assert_eq!(AccountLayout::of(&[How::TIMED; EVENTS_MAX]).size(), 192);
    }

    #[test]
    fn cpus_are_read_as_the_program_writes_them() {
        let account = u64::from_ne_bytes([7, 0, 0, 0, 1, 0, 0, 0]);
        let header = [account, 0, 1, 2, 3, 0, 0, 4, 9, 5];
        let cpu = bytes(&[&header[..], &[6, 7, 8, 0, 0, 0, 0]].concat());
        assert_eq!(cpu.len(), cpu_bytes(1));
        let state = CpuState::decode(&cpu, 1);
        let last = vec![Count { value: 6, enabled_ns: 7, running_ns: 8 }];
        let (present, changes, failed_reads, unseen, too_deep) = (2, 3, 4, 9, 5);
        let wanted = CpuState {
            account: u32::from_ne_bytes([7, 0, 0, 0]),
            present,
            changes,
            failed_reads,
            unseen,
            too_deep,
            last,
        };
        assert_eq!(state, wanted);
    }
}
