//! Threads that are on no CPU when recording begins or ends, with their stacks.
//!
//! A thread that is blocked through a whole recording has no switch in it. So the recorder reads such threads' stacks
//! at both ends, and writes each as a sample of an event of its own ([`BLOCKED_ID`]): they count as no
//! switch. `docs/format.md` has the layout.

use crate::attr::{Attr, SampleType, pmu_type};
use crate::feature::EventDesc;

/// The id of the samples. It stands for the layout of their raw data too.
pub const BLOCKED_ID: u64 = 1 << 63 | 2;
/// The name of their event.
pub const BLOCKED_NAME: &str = "whit-blocked";
/// `PERF_COUNT_SW_DUMMY`: other readers see samples of an event that never happens.
const DUMMY: u64 = 9;
/// Size of the raw data, behind the word that says it.
const RAW_BYTES: usize = 20;
/// The same of a thread that waits at a futex.
const RAW_BYTES_WITH_FUTEX: usize = 28;
const STATE_KNOWN: u32 = 1 << 31;

/// When a thread was found on no CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// When recording began.
    Begin,
    /// When it ended.
    End,
}

/// A thread that is on no CPU, but for its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockedThread {
    /// As `prev_state` of `sched:sched_switch` has it: zero if the thread is runnable.
    pub state: u32,
    /// At which end of the recording.
    pub edge: Edge,
    /// How often the thread has left a CPU in its life.
    pub switches: u64,
    /// The address of the futex that it waits at; 0 for none that is known.
    pub futex: u64,
    /// The thread that holds the futex, if that is glibc's mutex: the word 8 bytes behind it; 0 for none.
    pub owner: u32,
}

impl BlockedThread {
    /// Appends the raw data of a sample, with its size.
    pub fn push(&self, out: &mut Vec<u8>) {
        let size = if self.futex == 0 { RAW_BYTES } else { RAW_BYTES_WITH_FUTEX };
        let words = [size as u32, self.state | STATE_KNOWN, self.edge as u32];
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.extend(self.switches.to_le_bytes());
        if self.futex != 0 {
            out.extend(self.futex.to_le_bytes());
        }
        // With zeros the sample ends on a multiple of eight.
        out.extend(if self.futex == 0 { 0 } else { self.owner }.to_le_bytes());
    }

    /// From the raw data, without its size.
    pub fn parse(raw: &[u8]) -> Option<BlockedThread> {
        let word = |at: usize| Some(u32::from_le_bytes(*raw.get(at..)?.first_chunk()?));
        let state = word(0)?;
        let edge = match word(4)? {
            0 => Edge::Begin,
            1 => Edge::End,
            _ => return None,
        };
        let switches = u64::from_le_bytes(*raw.get(8..)?.first_chunk()?);
        let is_known = state & STATE_KNOWN != 0;
        let (futex, owner) = match raw.get(16..24).and_then(<[u8]>::first_chunk) {
            Some(futex) => (u64::from_le_bytes(*futex), word(24).unwrap_or(0)),
            None => (0, 0),
        };
        let state = state & !STATE_KNOWN;
        is_known.then_some(BlockedThread { state, edge, switches, futex, owner })
    }
}

/// The event of samples with these fields; the clock is that of `carrier`.
pub fn describe(carrier: &Attr, sample_type: SampleType) -> EventDesc {
    let attr = Attr { pmu_type: pmu_type::SOFTWARE, config: DUMMY, sample_type, ..carrier.clone() };
    EventDesc { attr, ids: vec![BLOCKED_ID], name: BLOCKED_NAME.to_owned() }
}

/// Whether an event is that of such samples.
pub fn is_blocked(event: &EventDesc) -> bool {
    event.ids == [BLOCKED_ID]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_sections_are_read_back() {
        for edge in [Edge::Begin, Edge::End] {
            for (futex, owner, size) in [(0, 0, RAW_BYTES), (1 << 46, 77, RAW_BYTES_WITH_FUTEX)] {
                let thread = BlockedThread { state: 2, edge, switches: 1 << 40, futex, owner };
                let mut raw = Vec::new();
                thread.push(&mut raw);
                assert_eq!((raw.len() % 8, raw.len()), (0, 4 + size));
                assert_eq!(raw[..4], (size as u32).to_le_bytes());
                assert_eq!(BlockedThread::parse(&raw[4..]), Some(thread));
                assert_eq!(BlockedThread::parse(&raw[4..19]), None);
            }
        }
        let mut raw = Vec::new();
        let edge = Edge::Begin;
        BlockedThread { state: 0, edge, switches: 0, futex: 0, owner: 0 }.push(&mut raw);
        raw[8] = 7;
        assert_eq!(BlockedThread::parse(&raw[4..]), None);
        // No state is known.
        assert_eq!(BlockedThread::parse(&[0; 16]), None);
    }
}
