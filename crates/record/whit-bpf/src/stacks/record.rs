//! Records of the programs: the raw data of bpf-output events.

use super::{FRAMES_MAX, StopReason};

/// Kinds of records: their first byte.
const STACK: u8 = 1;
const SAMPLE: u8 = 2;
const TRACE: u8 = 4;
const WAKE: u8 = 5;
/// Bytes in front of a stack's frames.
const STACK_HEAD_BYTES: usize = 16;

/// Flag of a wake-up: the waker's name stands behind it.
const HAS_NAME: u8 = 1;
const HAS_SOCKET: u8 = 2;

/// The hash by which records name a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StackHash(pub u64);

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputRecord<'a> {
    /// A stack that later records of the same CPU may name.
    Stack(StackRecord<'a>),
    /// A sample of the thread that the perf record names.
    Sample(SampleRecord),
    /// The stacks of a tracepoint's hit; perf's sample follows.
    Trace(TraceRecord),
    /// The thread that the perf record names woke another.
    Wake(WakeRecord),
}

/// The frames of a user or kernel stack; later records name it by its hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackRecord<'a> {
    /// Its name from here on.
    pub hash: StackHash,
    /// Why it ends where it does.
    pub reason: StopReason,
    /// Addresses, innermost first: eight bytes each, of this machine's byte order.
    frames: &'a [u8],
}

impl StackRecord<'_> {
    /// Addresses, innermost first.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.frames.as_chunks::<8>().0.iter().map(|frame| u64::from_ne_bytes(*frame))
    }
}

/// An overflow of a perf event; perf's own fields stand around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleRecord {
    /// Whether the thread was in user mode.
    pub is_user: bool,
    /// Events since the sample before.
    pub period: u64,
    /// Its stack in user mode.
    pub user_stack: Option<StackHash>,
    /// Its stack in kernel mode, if kernel stacks are recorded.
    pub kernel_stack: Option<StackHash>,
    /// perf's id of the event that it is of; 0 where the kernel did not show it.
    pub event_id: u64,
    /// The thread's cgroup of version 1, where it is in the root of version 2.
    pub cgroup: Option<u64>,
    /// Nanoseconds since the thread came, if no record says so. 0: a record does, or switches are not
    /// recorded.
    pub unseen_for_ns: u32,
}

/// The stacks of a tracepoint's hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceRecord {
    /// The kernel's number of the tracepoint.
    pub tracepoint: u32,
    /// The thread's stack in user mode,
    pub user_stack: Option<StackHash>,
    /// Its stack in kernel mode, if kernel stacks are recorded.
    pub kernel_stack: Option<StackHash>,
    /// As in a sample.
    pub cgroup: Option<u64>,
}

/// A wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeRecord {
    /// The thread that was woken.
    pub wakee_tid: i32,
    /// Its priority, as the kernel counts.
    pub prio: i16,
    /// The CPU that it is to run on.
    pub target_cpu: u32,
    /// Its name, up to a zero byte.
    pub comm: [u8; COMM_BYTES],
    /// The name of the one that woke, where it is not recorded.
    pub waker_comm: Option<[u8; COMM_BYTES]>,
    /// The stack of the one that woke, in user mode,
    pub user_stack: Option<StackHash>,
    /// Its stack in kernel mode, if kernel stacks are recorded.
    pub kernel_stack: Option<StackHash>,
    /// Where it is a softirq within a call of a thread for a socket of the internet: this socket, as words.
    pub socket: Option<[u64; SOCKET_WORDS]>,
}

/// Words that describe a socket of the internet: `bpf/wait_object.h`.
pub const SOCKET_WORDS: usize = 7;
/// Where a wake-up has these.
const WAKE_SOCKET_AT: usize = 64;
/// Bytes of a thread's name.
pub const COMM_BYTES: usize = 16;

impl<'a> OutputRecord<'a> {
    /// Reads the raw data of a record, with or without bytes behind the end; `None` for all other
    /// data.
    pub fn parse(raw: &'a [u8]) -> Option<OutputRecord<'a>> {
        let [kind, first, low, high, ..] = *raw else { return None };
        let short = u16::from_ne_bytes([low, high]);
        let word = |at: usize| Some(u64::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u32::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let stack = |at: usize| Some(word(at)?).map(|hash| (hash != 0).then_some(StackHash(hash)));
        let cgroup = |at: usize| word(at).filter(|id| *id != 0);
        Some(match kind {
            STACK => {
                let count = usize::from(short);
                let end = STACK_HEAD_BYTES + count * 8;
                let frames = raw.get(STACK_HEAD_BYTES..end).filter(|_| count <= FRAMES_MAX)?;
                let reason = StopReason::from_number(first)?;
                OutputRecord::Stack(StackRecord { hash: StackHash(word(8)?), reason, frames })
            }
            SAMPLE => OutputRecord::Sample(SampleRecord {
                is_user: first != 0,
                period: word(8)?,
                user_stack: stack(16)?,
                kernel_stack: stack(24)?,
                event_id: word(32)?,
                cgroup: cgroup(40),
                unseen_for_ns: half(4)?,
            }),
            TRACE => OutputRecord::Trace(TraceRecord {
                tracepoint: half(4)?,
                user_stack: stack(8)?,
                kernel_stack: stack(16)?,
                cgroup: cgroup(24),
            }),
            WAKE => {
                let comm = |at: usize| Some(*raw.get(at..)?.first_chunk()?);
                let words = |at: usize| {
                    let words: &[_; SOCKET_WORDS] =
                        raw.get(at..)?.as_chunks::<8>().0.first_chunk()?;
                    Some(words.map(u64::from_ne_bytes))
                };
                OutputRecord::Wake(WakeRecord {
                    wakee_tid: half(4)? as i32,
                    prio: short as i16,
                    target_cpu: half(40)?,
                    comm: comm(24)?,
                    waker_comm: if first & HAS_NAME != 0 { Some(comm(44)?) } else { None },
                    user_stack: stack(8)?,
                    kernel_stack: stack(16)?,
                    socket: match first & HAS_SOCKET {
                        0 => None,
                        _ => Some(words(WAKE_SOCKET_AT)?),
                    },
                })
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let mut stack = vec![1, 1, 2, 0, 0, 0, 0, 0];
        [9u64, 10, 11].iter().for_each(|word| stack.extend(word.to_ne_bytes()));
        stack.extend([0; 4]);
        let Some(OutputRecord::Stack(parsed)) = OutputRecord::parse(&stack) else { panic!() };
        assert_eq!((parsed.hash, parsed.reason), (StackHash(9), StopReason::EndOfStack));
        assert_eq!(parsed.frames().collect::<Vec<_>>(), [10, 11]);
        assert_eq!(OutputRecord::parse(&stack[..31]), None);

        let mut sample = vec![2, 1, 0, 0, 5, 1, 0, 0];
        [200_000u64, 0, 7, 88].iter().for_each(|word| sample.extend(word.to_ne_bytes()));
        let wanted = SampleRecord {
            is_user: true,
            period: 200_000,
            user_stack: None,
            kernel_stack: Some(StackHash(7)),
            event_id: 88,
            cgroup: None,
            unseen_for_ns: 261,
        };
        assert_eq!(OutputRecord::parse(&sample), Some(OutputRecord::Sample(wanted)));
        sample.extend([0; 4]);
        assert_eq!(OutputRecord::parse(&sample), Some(OutputRecord::Sample(wanted)));
        sample.truncate(40);
        sample.extend(0x1_0000_0009u64.to_ne_bytes());
        let wanted = SampleRecord { cgroup: Some(0x1_0000_0009), ..wanted };
        assert_eq!(OutputRecord::parse(&sample), Some(OutputRecord::Sample(wanted)));

        let mut trace = vec![4, 0, 0, 0, 0x77, 1, 0, 0];
        [6u64, 0].iter().for_each(|word| trace.extend(word.to_ne_bytes()));
        let user_stack = Some(StackHash(6));
        let wanted =
            TraceRecord { tracepoint: 0x177, user_stack, kernel_stack: None, cgroup: None };
        assert_eq!(OutputRecord::parse(&trace), Some(OutputRecord::Trace(wanted)));
        trace.extend(12u64.to_ne_bytes());
        let wanted = TraceRecord { cgroup: Some(12), ..wanted };
        assert_eq!(OutputRecord::parse(&trace), Some(OutputRecord::Trace(wanted)));

        let mut wake = vec![5, 1, 120, 0, 0x77, 1, 0, 0];
        [6u64, 7].iter().for_each(|word| wake.extend(word.to_ne_bytes()));
        wake.extend(*b"woken\0\0\0\0\0\0\0\0\0\0\0\x03\0\0\0ksoftirqd/0\0\0\0\0\0");
        let wanted = WakeRecord {
            wakee_tid: 0x177,
            prio: 120,
            target_cpu: 3,
            comm: *b"woken\0\0\0\0\0\0\0\0\0\0\0",
            waker_comm: Some(*b"ksoftirqd/0\0\0\0\0\0"),
            user_stack: Some(StackHash(6)),
            kernel_stack: Some(StackHash(7)),
            socket: None,
        };
        assert_eq!(OutputRecord::parse(&wake), Some(OutputRecord::Wake(wanted)));
        assert_eq!(OutputRecord::parse(&wake[..59]), None);

        wake[1] = 2;
        wake.resize(WAKE_SOCKET_AT, 0);
        let words = [5u64, 1, 2, 3, 4, 5, 6];
        words.iter().for_each(|word| wake.extend(word.to_ne_bytes()));
        let wanted = WakeRecord { waker_comm: None, socket: Some(words), ..wanted };
        assert_eq!(OutputRecord::parse(&wake), Some(OutputRecord::Wake(wanted)));
        assert_eq!(OutputRecord::parse(&wake[..wake.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(OutputRecord::Stack(stack)) = OutputRecord::parse(&bytes) {
                prop_assert!(stack.frames().len() <= FRAMES_MAX);
            }
        }
    }
}
