//! From a CPU's channel to samples of switches, among the records of the CPU's ring.

use whit_bpf::stacks::StopReason;
use whit_bpf::stacks::channel::{Channel, PLACES, Place, Record, Switch, Thread};
use whit_perfdata::attr::Attr;
use whit_perfdata::encode::push_record;
use whit_perfdata::packed::{self, CHAIN_WORDS_MAX, Ordinary, Origin, Packer};
use whit_perfdata::record::record_type;
use whit_perfdata::sample::context;

use super::expand::{ExpandCounts, Layout};
use super::schedule::{Landmark, Landmarks};
use super::task_state;
use crate::loss::TimeLayout;
use crate::pieces::{Pieces, Seen};

/// A stack that was told of.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Marker and addresses, as words in bytes; empty before it was told.
    chain: Vec<u8>,
    /// Its number among those that the stream defines; 0 for none yet.
    number: u32,
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
    /// They go packed.
    pub(crate) is_packed: bool,
}

impl Whose {
    fn origin(self, layout: Layout) -> Origin {
        let Whose { id, cpu, is_cpu_wide, .. } = self;
        Origin { id, cpu, has_cpu: layout.has_cpu(), is_cpu_wide }
    }
}

/// How switches are written.
#[derive(Debug)]
enum Form {
    Ordinary(Ordinary),
    Packed(Box<Packer>),
}

/// Expands what one channel carries.
#[derive(Debug)]
pub(crate) struct Switches {
    channel: Channel,
    layout: Layout,
    times: TimeLayout,
    whose: Whose,
    form: Form,
    /// Where the scheduler is.
    landmarks: Landmarks,
    dictionary: Vec<Known>,
    /// Time of the last record of ring or channel, and what it was before this round: readers may
    /// have sorted, and done with, what is older.
    last_time: u64,
    settled: u64,
    /// Losses that were written before the channel told of them.
    lost_early: u64,
    /// Who runs, as far as everybody's switches are told of.
    running: Option<packed::Thread>,
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
        let layout = Layout::new(carrier);
        let origin = whose.origin(layout);
        let form = match whose.is_packed {
            true => Form::Packed(Box::new(Packer::new(origin))),
            false => Form::Ordinary(Ordinary::new(origin)),
        };
        Switches {
            channel,
            layout,
            times: TimeLayout::new(carrier),
            whose,
            form,
            landmarks,
            dictionary: vec![Known::default(); PLACES],
            last_time: 0,
            settled: 0,
            lost_early: 0,
            running: None,
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

    /// What follows goes into another stream.
    pub(crate) fn start_stream(&mut self) {
        if let Form::Packed(packer) = &mut self.form {
            packer.forget();
            self.dictionary.iter_mut().for_each(|known| known.number = 0);
        }
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
            self.close(out);
            self.last_time = self.last_time.max(time.0);
        }
    }

    /// Appends that a thread came, maybe a while ago.
    pub(crate) fn came(&mut self, thread: Thread, time: u64, out: &mut Vec<u8>) {
        let (thread, time) = (of_recording(thread), time.max(self.settled));
        self.end_unseen(thread, time, out);
        match &mut self.form {
            Form::Ordinary(ordinary) => ordinary.came(thread, time, out),
            Form::Packed(packer) => packer.came(thread, time),
        }
    }

    /// A thread comes, and the one that was there has not gone: there are kernels that hide this, too, of some
    /// threads. Nobody knows since when it is gone; it has not run since now.
    fn end_unseen(&mut self, comes: packed::Thread, time: u64, out: &mut Vec<u8>) {
        let gone = self.running.replace(comes).filter(|gone| gone.tid != 0 && *gone != comes);
        if let (Some(gone), true) = (gone, self.whose.is_cpu_wide) {
            self.close(out);
            Ordinary::new(self.whose.origin(self.layout)).went(gone, comes, time, out);
        }
    }

    /// Appends what is packed so far: something else follows.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        if let Form::Packed(packer) = &mut self.form {
            packer.finish(out);
        }
    }

    /// Appends the switches behind all records of the ring, until these are `enough_bytes`. Whether there are
    /// more.
    pub(crate) fn rest(
        &mut self,
        enough_bytes: usize,
        counts: &mut ExpandCounts,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut is_more = false;
        while !is_more && self.next(u64::MAX, counts, out) {
            is_more = out.len() >= enough_bytes;
        }
        self.close(out);
        self.channel.release();
        if is_more {
            return true;
        }
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
                    known.number = 0;
                    known.chain.clear();
                    let words = [marker].into_iter().chain(frames.iter().copied());
                    let words = words.take(CHAIN_WORDS_MAX);
                    words.for_each(|word| known.chain.extend(word.to_le_bytes()));
                }
            }
            Some(Record::Switch(switch)) => self.switch(&switch, counts, out),
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
        let told = packed::Switch {
            time_ns: switch.time_ns,
            thread: of_recording(switch.thread),
            next: switch.next.map(of_recording),
            is_preemption: switch.is_preemption,
            state: task_state::word(switch),
        };
        self.running = told.next;
        let mut index = |place: Option<Place>| {
            let index = usize::from(place?.0);
            let is_told = self.dictionary.get(index).is_some_and(|known| !known.chain.is_empty());
            counts.unknown_stacks += u64::from(!is_told);
            is_told.then_some(index)
        };
        let (kernel, user) = (index(switch.kernel_stack), index(switch.user_stack));
        match &mut self.form {
            Form::Ordinary(ordinary) => {
                let chain = |index: Option<usize>| {
                    index.map_or(&[][..], |index| &self.dictionary[index].chain)
                };
                ordinary.switch(&told, chain(kernel), chain(user), out);
            }
            Form::Packed(packer) => {
                packer.finish_if_full(out);
                let mut number = |index: Option<usize>| {
                    let Some(index) = index else { return 0 };
                    let known = &mut self.dictionary[index];
                    if known.number == 0 {
                        known.number = packer.define(&known.chain);
                    }
                    known.number
                };
                let (kernel, user) = (number(kernel), number(user));
                packer.switch(&told, kernel, user);
            }
        }
    }

    /// Says what the channel had no room for, as the kernel says it of a ring.
    fn lost(&mut self, time: u64, count: u64, out: &mut Vec<u8>) {
        self.close(out);
        // Who came meanwhile is lost as well.
        self.running = None;
        let id = self.whose.id;
        let words = [id, count, 0, time].into_iter().chain(self.cpu()).chain([id]);
        let body: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        push_record(out, record_type::LOST, 0, &body);
    }

    /// The CPU, where records have it.
    fn cpu(&self) -> Option<u64> {
        self.layout.has_cpu().then_some(u64::from(self.whose.cpu))
    }
}

fn of_recording(Thread { pid, tid }: Thread) -> packed::Thread {
    packed::Thread { pid, tid }
}

#[cfg(test)]
mod tests;
