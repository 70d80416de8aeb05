//! The maps' values, byte by byte: the structs of `bpf/cgroup_maps.h`.

use super::counts::Count;
use super::{How, Of};

/// Events that one program counts: a bit of a word for each.
pub const EVENTS_MAX: usize = 64;
/// Accounts that a memo can tell apart.
pub(crate) const ACCOUNTS_MAX: usize = 1 << 16;

/// A cache line: no two CPUs share one.
const LINE_WORDS: usize = 8;
/// Memos for an account: few are in each other's way then, also where most cgroups are not watched; and
/// they are on few pages, which is what counts where cgroups are many.
const MEMOS_PER_ACCOUNT: usize = 8;
const MEMOS_MIN: usize = 1 << 13;
/// `struct seen`.
const SEEN_WORDS: usize = 7;
/// `struct cpu` without `seen`.
const CPU_HEADER_WORDS: usize = 10;

/// Where events stand in a `struct account`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountLayout {
    events: Vec<EventWords>,
    size: usize,
}

/// Offsets of one event's words within an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventWords {
    /// `ENABLED`, and `WAITED` if there is one; for an event without times, the offset at which they
    /// would stand.
    pub(crate) times: usize,
    /// The value; the same as `times` where there is none, since these tell it.
    pub(crate) value: usize,
    waits: bool,
    is_time: bool,
}

impl AccountLayout {
    pub(crate) fn of(events: &[How]) -> AccountLayout {
        let mut size = 0;
        let place = |how: &How| {
            // The first one always has times: others may use them.
            let is_timed = how.is_timed || size == 0;
            let waits = is_timed && !how.is_software;
            let is_time = how.of == Of::Time;
            let times = size;
            size += usize::from(is_timed) + usize::from(waits);
            let value = if is_time { times } else { size };
            size += usize::from(!is_time);
            EventWords { times, value, waits, is_time }
        };
        let events = events.iter().map(place).collect();
        AccountLayout { events, size: size.max(1) }
    }

    /// One entry for each event.
    pub(crate) fn places(&self) -> &[EventWords] {
        &self.events
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
        let EventWords { times, waits, .. } = self.events[timed_by];
        let enabled_ns = word(times);
        let waited_ns = if waits { word(times + 1) } else { 0 };
        let running_ns = enabled_ns.wrapping_sub(waited_ns);
        let EventWords { value, is_time, .. } = self.events[event];
        Count { value: if is_time { running_ns } else { word(value) }, enabled_ns, running_ns }
    }
}

/// How many accounts a CPU has room for, so that all of them together are whole lines.
pub(crate) const fn accounts_stride(accounts: usize) -> usize {
    accounts.next_multiple_of(LINE_WORDS)
}

/// How many memos there are for so many accounts.
pub(crate) fn memos(accounts: usize) -> usize {
    (accounts * MEMOS_PER_ACCOUNT).next_power_of_two().max(MEMOS_MIN)
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
    /// The value of each event at its last read.
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
    fn accounts_have_the_time_that_events_ran() {
        let layout = AccountLayout::of(&[How::TIMED, How::UNTIMED, How::TIMED, How::CLOCK]);
        let places: Vec<_> = layout.places().iter().map(|at| (at.times, at.value)).collect();
        assert_eq!(places, [(0, 2), (3, 3), (4, 6), (7, 7)]);
        assert_eq!(layout.size(), 7);
        let words = [100, 0, 5, 7, 100, 60, 9];
        let count = |event, timed_by| layout.count(|word| words[word], event, timed_by);
        assert_eq!(count(0, 0), Count { value: 5, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(1, 0), Count { value: 7, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(3, 2), Count { value: 40, enabled_ns: 100, running_ns: 40 });
    }

    #[test]
    fn only_needed_words_are_kept() {
        let clock = How { is_timed: true, ..How::CLOCK }.in_software();
        let faults = How::UNTIMED.in_software();
        let layout = AccountLayout::of(&[clock, How::CLOCK, faults, clock]);
        let places: Vec<_> = layout.places().iter().map(|at| (at.times, at.value)).collect();
        assert_eq!(places, [(0, 0), (1, 1), (1, 1), (2, 2)]);
        assert_eq!(layout.size(), 3);
        let words = [100, 7, 90];
        let count = |event, timed_by| layout.count(|word| words[word], event, timed_by);
        assert_eq!(count(0, 0), Count { value: 100, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(1, 0), count(0, 0));
        assert_eq!(count(2, 0), Count { value: 7, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(3, 3), Count { value: 90, enabled_ns: 90, running_ns: 90 });
    }

    #[test]
    fn the_accounts_of_a_cpu_fill_whole_lines() {
        for (accounts, size) in [(1, 1), (8, 3), (9, 2), (601, 5)] {
            let words = accounts_stride(accounts) * size;
            assert_eq!((words % LINE_WORDS, words / size / 8), (0, accounts.div_ceil(8)));
        }
        assert_eq!(AccountLayout::of(&[]).size(), 1);
        assert_eq!(AccountLayout::of(&[How::TIMED; EVENTS_MAX]).size(), 192);
    }

    #[test]
    fn memos_are_as_many_as_the_program_can_forget() {
        let counts = [1, 601, ACCOUNTS_MAX].map(memos);
        assert_eq!(counts, [MEMOS_MIN, MEMOS_MIN, 1 << 19]);
        assert_eq!(memos(2000), 1 << 14);
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
