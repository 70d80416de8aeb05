//! The maps' values, byte by byte: the structs of `bpf/cgroup_count.bpf.c`.

use super::counts::Count;

/// Events that one program counts: a bit of a word for each.
pub const EVENTS_MAX: usize = 64;
/// Accounts that a memo can tell apart.
pub(crate) const ACCOUNTS_MAX: usize = 1 << 16;

/// `struct bpf_perf_event_value`, `struct count`.
const COUNT_BYTES: usize = 24;
/// `struct cpu` without `last`.
const CPU_HEADER_BYTES: usize = 72;

/// Size of `struct account` with so many events.
pub(crate) const fn account_bytes(events: usize) -> usize {
    events * COUNT_BYTES
}

/// Size of `struct cpu` with so many events.
pub(crate) const fn cpu_bytes(events: usize) -> usize {
    CPU_HEADER_BYTES + events * COUNT_BYTES
}

/// Words of `struct account` with so many events.
pub(crate) const fn account_words(events: usize) -> usize {
    account_bytes(events) / 8
}

/// A word of a value; 0 where the value is too short for it.
fn word(bytes: &[u8], index: usize) -> u64 {
    let word = bytes.as_chunks::<8>().0.get(index);
    word.map_or(0, |word| u64::from_ne_bytes(*word))
}

/// One event of the `struct account` whose words these are, with the times of the event that it is
/// timed by.
pub(crate) fn count(word: impl Fn(usize) -> u64, event: usize, timed_by: usize) -> Count {
    let of = |event: usize, field: usize| word(event * COUNT_BYTES / 8 + field);
    let (enabled_ns, waited_ns) = (of(timed_by, 1), of(timed_by, 2));
    Count { value: of(event, 0), enabled_ns, running_ns: enabled_ns.wrapping_sub(waited_ns) }
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
            let at = (CPU_HEADER_BYTES + event * COUNT_BYTES) / 8;
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
            failed_reads: word(bytes, 5),
            unseen: word(bytes, 6),
            too_deep: word(bytes, 7),
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
        let words = [5, 100, 0, 7, 100, 60, 9, 0, 0];
        assert_eq!(words.len(), account_words(3));
        let count = |event, timed_by| count(|word| words[word], event, timed_by);
        assert_eq!(count(0, 0), Count { value: 5, enabled_ns: 100, running_ns: 100 });
        assert_eq!(count(2, 1), Count { value: 9, enabled_ns: 100, running_ns: 40 });
    }

    #[test]
    fn cpus_are_read_as_the_program_writes_them() {
        let account = u64::from_ne_bytes([7, 0, 0, 0, 1, 0, 0, 0]);
        let cpu = bytes(&[account, 0, 1, 2, 3, 4, 9, 5, 0, 6, 7, 8]);
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
