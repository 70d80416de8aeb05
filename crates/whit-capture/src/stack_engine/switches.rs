//! From a CPU's channel to samples of switches, among the records of the CPU's ring.

use whit_bpf::stacks::StopReason;
use whit_bpf::stacks::channel::{Channel, PLACES, Place, Record, Switch, Thread};
use whit_perfdata::attr::Attr;
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::sample::context;

use super::expand::{ExpandCounts, Layout};
use super::schedule::{Landmark, Landmarks};
use super::task_state;
use crate::loss::TimeLayout;
use crate::pieces::{Pieces, Seen};

/// The kernel's own clock event tells of a switch as one.
const SWITCH_PERIOD: u64 = 1;
/// Bytes of a record's header, and where its size is in it.
const HEADER_BYTES: usize = 8;

/// A stack, as it stands in a sample.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Its first address.
    ip: u64,
    /// Marker and addresses.
    chain: Vec<u8>,
}

/// Whose switches these are, and how they go in the recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose {
    /// The id by which they go.
    pub(crate) id: u64,
    /// The CPU.
    pub(crate) cpu: u32,
    /// Records by which the reader is woken have this id.
    pub(crate) bell: Option<u64>,
    /// Everybody's: each says whom the CPU goes to, or comes from.
    pub(crate) is_cpu_wide: bool,
}

/// Expands what one channel carries.
#[derive(Debug)]
pub(crate) struct Switches {
    channel: Channel,
    layout: Layout,
    times: TimeLayout,
    whose: Whose,
    /// Where the scheduler is.
    landmarks: Landmarks,
    dictionary: Vec<Known>,
    /// Time of the last record of ring or channel, and what it was before this round: readers may
    /// have sorted, and done with, what is older.
    last_time: u64,
    settled: u64,
    /// Losses that were written before the channel told of them.
    lost_early: u64,
}

impl Switches {
    /// For the channel of a CPU. `carrier` describes the records of that CPU's ring, and of those that
    /// come out, by the id.
    pub(crate) fn new(
        channel: Channel,
        carrier: &Attr,
        whose: Whose,
        landmarks: Landmarks,
    ) -> Switches {
        Switches {
            channel,
            layout: Layout::new(carrier),
            times: TimeLayout::new(carrier),
            whose,
            landmarks,
            dictionary: vec![Known::default(); PLACES],
            last_time: 0,
            settled: 0,
            lost_early: 0,
        }
    }

    /// Whether a record of the ring has only woken the reader.
    pub(crate) fn is_bell(&self, id: u64) -> bool {
        self.whose.bell == Some(id)
    }

    /// Bytes that wait in the channel.
    pub(crate) fn available_bytes(&self) -> usize {
        self.channel.available_bytes()
    }

    /// Takes what is there now to be expanded.
    pub(crate) fn look(&mut self) {
        self.channel.look();
        self.settled = self.last_time;
    }

    /// Appends the switches before a record of the ring.
    pub(crate) fn before(
        &mut self,
        pieces: &Pieces<'_>,
        seen: Seen,
        counts: &mut ExpandCounts,
        out: &mut Vec<u8>,
    ) {
        if let Some(time) = self.times.time(pieces, seen) {
            while self.next(time.0, counts, out) {}
            self.last_time = self.last_time.max(time.0);
        }
    }

    /// Appends that a thread came, maybe a while ago.
    pub(crate) fn came(&self, thread: Thread, time: u64, out: &mut Vec<u8>) {
        let idle = Thread { pid: 0, tid: 0 };
        self.record(thread, Some(idle), time.max(self.settled), 0, out);
    }

    /// Appends the switches behind all records of the ring, until these are `enough_bytes`. Whether there are
    /// more.
    pub(crate) fn rest(
        &mut self,
        enough_bytes: usize,
        counts: &mut ExpandCounts,
        out: &mut Vec<u8>,
    ) -> bool {
        while self.next(u64::MAX, counts, out) {
            if out.len() >= enough_bytes {
                self.channel.release();
                return true;
            }
        }
        self.channel.release();
        let lost = self.channel.lost_at_end();
        if lost > self.lost_early {
            self.lost(self.last_time, lost - self.lost_early, out);
            self.lost_early = lost;
        }
        false
    }

    /// Appends the next record, if it is not of a later time.
    fn next(&mut self, until: u64, counts: &mut ExpandCounts, out: &mut Vec<u8>) -> bool {
        match self.channel.next_until(until) {
            None => return false,
            Some(Record::Stack { place, reason, frames }) => {
                counts.stacks += 1;
                if let Some(known) = self.dictionary.get_mut(usize::from(place.0)) {
                    let (marker, frames) = match reason {
                        StopReason::Kernel => {
                            (context::KERNEL, self.landmarks.trim(frames, Some(Landmark::Switch)))
                        }
                        _ => (context::USER, frames),
                    };
                    known.ip = frames.first().copied().unwrap_or(0);
                    known.chain.clear();
                    let words = [marker].into_iter().chain(frames.iter().copied());
                    words.for_each(|word| known.chain.extend(word.to_le_bytes()));
                }
            }
            Some(Record::Switch(switch)) => {
                self.switch(&switch, counts, out);
                let Switch { thread, next, time_ns, .. } = switch;
                let preempt = if switch.is_preemption { misc::SWITCH_OUT_PREEMPT } else { 0 };
                self.record(thread, next, time_ns, misc::SWITCH_OUT | preempt, out);
                if let Some(next) = next.filter(|next| next.tid != 0) {
                    self.record(next, Some(thread), time_ns, 0, out);
                }
            }
            Some(Record::Came { time_ns, thread }) => self.came(thread, time_ns, out),
            Some(Record::Lost { time_ns, count }) => {
                let untold = count.saturating_sub(std::mem::take(&mut self.lost_early));
                if untold > 0 {
                    self.lost(time_ns, untold, out);
                }
            }
        }
        true
    }

    fn switch(&mut self, switch: &Switch, counts: &mut ExpandCounts, out: &mut Vec<u8>) {
        self.last_time = self.last_time.max(switch.time_ns);
        counts.records += 1;
        counts.switches += 1;
        counts.preemptions += u64::from(switch.is_preemption);
        let nothing = Known::default();
        let mut chain = |place: Option<Place>| {
            let Some(place) = place else { return &nothing };
            let known = self.dictionary.get(usize::from(place.0));
            known.filter(|known| !known.chain.is_empty()).unwrap_or_else(|| {
                counts.unknown_stacks += 1;
                &nothing
            })
        };
        let (kernel, user) = (chain(switch.kernel_stack), chain(switch.user_stack));
        let ip = if kernel.ip != 0 { kernel.ip } else { user.ip };
        let start = out.len();
        let header = u64::from(record_type::SAMPLE) | u64::from(misc::KERNEL) << 32;
        let pid_tid = pid_tid(switch.thread);
        let mut put = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        [header, self.whose.id, ip, pid_tid, switch.time_ns].into_iter().for_each(&mut put);
        if self.layout.has_cpu() {
            put(u64::from(self.whose.cpu));
        }
        put(SWITCH_PERIOD);
        put(((kernel.chain.len() + user.chain.len()) / 8) as u64);
        out.extend_from_slice(&kernel.chain);
        out.extend_from_slice(&user.chain);
        out.extend_from_slice(&task_state::raw(switch));
        set_size(out, start);
    }

    /// A thread that comes or goes, as the kernel tells of it. `other` is the one on the other side.
    fn record(
        &self,
        thread: Thread,
        other: Option<Thread>,
        time: u64,
        misc: u16,
        out: &mut Vec<u8>,
    ) {
        let (kind, other) = match other.filter(|_| self.whose.is_cpu_wide) {
            Some(other) => (record_type::SWITCH_CPU_WIDE, Some(pid_tid(other))),
            None => (record_type::SWITCH, None),
        };
        let (cpu, end) = (self.cpu(), [self.whose.id]);
        let words = other.into_iter().chain([pid_tid(thread), time]).chain(cpu).chain(end);
        push_words(out, kind, misc, words);
    }

    /// Says what the channel had no room for, as the kernel says it of a ring.
    fn lost(&self, time: u64, count: u64, out: &mut Vec<u8>) {
        let id = self.whose.id;
        let words = [id, count, 0, time].into_iter().chain(self.cpu()).chain([id]);
        push_words(out, record_type::LOST, 0, words);
    }

    /// The CPU, where records have it.
    fn cpu(&self) -> Option<u64> {
        self.layout.has_cpu().then_some(u64::from(self.whose.cpu))
    }
}

fn pid_tid(thread: Thread) -> u64 {
    u64::from(thread.tid) << 32 | u64::from(thread.pid)
}

/// Appends a record of a few words.
fn push_words(out: &mut Vec<u8>, kind: u32, misc: u16, words: impl Iterator<Item = u64>) {
    let start = out.len();
    out.extend_from_slice(&(u64::from(kind) | u64::from(misc) << 32).to_le_bytes());
    words.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    set_size(out, start);
}

/// Writes the size of the record that begins there and ends at the end: a few words, or two stacks of the
/// most frames, which fit.
fn set_size(out: &mut [u8], start: usize) {
    let size = (out.len() - start) as u16;
    out[start + 6..start + HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
}

#[cfg(test)]
mod tests;
