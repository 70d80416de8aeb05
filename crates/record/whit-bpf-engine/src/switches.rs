//! From a CPU's channel to samples of switches, among the records of the CPU's ring.

use whit_bpf::stacks::StopReason;
use whit_bpf::stacks::channel::{
    Account, Channel, DictionarySlot, Loss, PLACES, Record, Switch, SwitchObject, Thread,
};
use whit_engine_api::DecodeCounts;
use whit_engine_api::ring_slices::{RecordRef, RingSlices};
use whit_perfdata::attr::Attr;
use whit_perfdata::cpu_account::{CpuAccount, InterruptTimes};
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::packed::{self, CHAIN_WORDS_MAX, Chains, Numbers, Ordinary, Origin, Packer};
use whit_perfdata::sample::{SampleId, SampleLayout, context};
use whit_perfdata::wait_object;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

use super::record_layout::Layout;
use super::schedule::{SchedulerSymbol, SchedulerSymbols};
use super::task_state;

/// The stacks and objects from the channel, by place. Each CPU has its own, so empty places take no memory, and chains no
/// spare room.
#[derive(Debug)]
struct Dictionary {
    /// Marker and addresses, as words in bytes.
    chains: Vec<Option<Box<[u8]>>>,
    /// The number of each among those that the stream defines; 0 for none yet.
    numbers: Vec<u32>,
    ends: Vec<StopReason>,
}

impl Dictionary {
    fn new() -> Dictionary {
        Dictionary {
            chains: vec![None; PLACES],
            numbers: vec![0; PLACES],
            ends: vec![StopReason::Kernel; PLACES],
        }
    }

    fn forget_numbers(&mut self) {
        self.numbers.fill(0);
    }

    fn chain(&self, place: usize) -> Option<&[u8]> {
        self.chains.get(place)?.as_deref()
    }

    /// Puts a stack in place of an earlier one.
    fn learn(&mut self, place: usize, end: StopReason, marker: &[u64], frames: &[u64]) {
        let Some(known) = self.chains.get_mut(place) else { return };
        let words = marker.iter().chain(frames).take(CHAIN_WORDS_MAX);
        let mut chain = Vec::with_capacity(size_of::<u64>() * (marker.len() + frames.len()));
        words.for_each(|word| chain.extend(word.to_le_bytes()));
        *known = Some(chain.into_boxed_slice());
        self.numbers[place] = 0;
        self.ends[place] = end;
    }

    fn number(&mut self, place: usize, packer: &mut Packer) -> u32 {
        let Some(chain) = self.chains.get(place).and_then(Option::as_deref) else { return 0 };
        let number = &mut self.numbers[place];
        if *number == 0 {
            *number = packer.define(chain);
        }
        *number
    }
}

/// The targets of switches, and their form in the recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelConfig {
    /// The id by which they go.
    pub(crate) id: u64,
    /// The CPU whose channel it is.
    pub(crate) cpu: u32,
    /// Records by which the reader is woken have this id.
    pub(crate) wakeup_event: Option<u64>,
    /// Switches of all threads: each names the thread that the CPU goes to, or comes from.
    pub(crate) is_cpu_wide: bool,
    /// They go packed.
    pub(crate) is_packed: bool,
}

impl ChannelConfig {
    fn origin(self, layout: Layout) -> Origin {
        let ChannelConfig { id, cpu, is_cpu_wide, .. } = self;
        Origin { id, cpu, has_cpu: layout.has_cpu(), is_cpu_wide }
    }
}

/// How switches are written.
#[derive(Debug)]
enum Form {
    Ordinary(Ordinary),
    Packed(Box<Packer>),
}

/// Expands the records of one channel.
#[derive(Debug)]
pub(crate) struct Switches {
    channel: Channel,
    layout: Layout,
    encoder: RecordEncoder,
    config: ChannelConfig,
    form: Form,
    /// Where the scheduler is.
    scheduler_symbols: SchedulerSymbols,
    dictionary: Dictionary,
    /// Time of the last record of ring or channel, and its value before this round: readers may
    /// have sorted older records already.
    last_time: u64,
    settled: u64,
    /// Time of the last record of the channel.
    last_switch: u64,
    /// The loss that was written before the channel reported it.
    lost_early: Option<Loss>,
    /// The running thread, as far as the switches of all threads are recorded.
    running: Option<packed::Thread>,
}

impl Switches {
    /// For the channel of a CPU. `bpf_output` describes the records of that CPU's ring, and of those that
    /// come out, by the id.
    pub(crate) fn new(
        channel: Channel,
        bpf_output: &Attr,
        config: ChannelConfig,
        scheduler_symbols: SchedulerSymbols,
    ) -> Switches {
        let layout = Layout::new(bpf_output);
        let origin = config.origin(layout);
        let form = match config.is_packed {
            true => Form::Packed(Box::new(Packer::new(origin))),
            false => Form::Ordinary(Ordinary::new(origin)),
        };
        Switches {
            channel,
            layout,
            encoder: RecordEncoder::new(SampleLayout::new(bpf_output)),
            config,
            form,
            scheduler_symbols,
            dictionary: Dictionary::new(),
            last_time: 0,
            settled: 0,
            last_switch: 0,
            lost_early: None,
            running: None,
        }
    }

    /// Whether a record of the ring has only woken the reader.
    pub(crate) fn is_wakeup_event(&self, id: u64) -> bool {
        self.config.wakeup_event == Some(id)
    }

    /// Bytes that wait in the channel.
    pub(crate) fn available_bytes(&self) -> usize {
        self.channel.available_bytes()
    }

    /// Later records go into another stream.
    pub(crate) fn start_stream(&mut self) {
        if let Form::Packed(packer) = &mut self.form {
            packer.forget();
            self.dictionary.forget_numbers();
        }
    }

    /// Takes the records that are in the channel now.
    pub(crate) fn look(&mut self) {
        self.channel.look();
        self.settled = self.last_time;
    }

    /// Appends the switches before a record of the ring.
    pub(crate) fn before(
        &mut self,
        ring_slices: &RingSlices<'_>,
        seen: RecordRef,
        counts: &mut DecodeCounts,
        out: &mut Vec<u8>,
    ) {
        if let Some(time) = self.layout.times().time(ring_slices, seen) {
            while self.next(time.0, counts, out) {}
            self.close(out);
            self.last_time = self.last_time.max(time.0);
        }
    }

    /// Time of the channel's last switch.
    pub(crate) fn last_switch(&self) -> u64 {
        self.last_switch
    }

    /// Appends that a thread came, maybe a while ago, and no earlier than `since`. Until it is said to have come,
    /// it seems to wait.
    pub(crate) fn came(&mut self, thread: Thread, since: u64, time: u64, out: &mut Vec<u8>) {
        let (thread, time) = (of_recording(thread), time.max(self.settled));
        if since < time {
            self.doubt(thread, since, time, out);
        }
        self.end_unseen(thread, since, time, out);
        match &mut self.form {
            Form::Ordinary(ordinary) => ordinary.came(thread, time, out),
            Form::Packed(packer) => packer.came(thread, time),
        }
    }

    /// Appends that a record of the thread is late: its intervals between these times are uncertain. The idle thread has no
    /// such record: it waits for nothing, and its number 0 means all threads to readers.
    fn doubt(&mut self, thread: packed::Thread, since: u64, time: u64, out: &mut Vec<u8>) {
        if thread.tid == 0 {
            return;
        }
        self.close(out);
        let pid_tid = Some((Pid(thread.pid as i32), Tid(thread.tid as i32)));
        let id = SampleId { pid_tid, ..self.sample_id(time) };
        self.encoder.lost_samples(out, 0, Some(TimestampNs(since)), id);
    }

    /// A thread comes, and the one that was there has not gone: there are kernels that hide this, too, of some
    /// threads. Nobody knows since when it is gone; it has not run since `since`.
    fn end_unseen(&mut self, comes: packed::Thread, since: u64, time: u64, out: &mut Vec<u8>) {
        let gone = self.running.replace(comes).filter(|gone| gone.tid != 0 && *gone != comes);
        if let (Some(gone), true) = (gone, self.config.is_cpu_wide) {
            if since < time {
                self.doubt(gone, since, time, out);
            }
            self.close(out);
            Ordinary::new(self.config.origin(self.layout)).went(gone, comes, time, out);
        }
    }

    /// Appends the packed switches: other records follow.
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
        counts: &mut DecodeCounts,
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
        // The next record may go into another stream, or never come.
        if let Some(loss) = self.channel.lost_at_end() {
            self.lost(loss, counts, out);
            self.lost_early = Some(loss);
        }
        false
    }

    /// Appends the next record, if it is not of a later time.
    fn next(&mut self, until: u64, counts: &mut DecodeCounts, out: &mut Vec<u8>) -> bool {
        match self.channel.next_until(until) {
            None => return false,
            Some(Record::Stack { place, reason, frames }) => {
                counts.stacks += 1;
                let (marker, frames) = match reason {
                    StopReason::Kernel => (
                        context::KERNEL,
                        self.scheduler_symbols.trim(frames, Some(SchedulerSymbol::Switch)),
                    ),
                    _ => (context::USER, frames),
                };
                self.dictionary.learn(usize::from(place.0), reason, &[marker], frames);
            }
            Some(Record::Object { place, words }) => {
                let (place, marker) = (usize::from(place.0), &wait_object::MARKER);
                self.dictionary.learn(place, StopReason::Kernel, marker, words);
            }
            Some(Record::Switch(switch)) => self.switch(&switch, counts, out),
            Some(Record::Ready { time_ns, thread, place }) => {
                counts.records += 1;
                self.ready(of_recording(thread), time_ns, usize::from(place.0), out);
            }
            Some(Record::Account(account)) => self.account(&account, counts, out),
            Some(Record::SwitchIn { time_ns, thread }) => {
                self.last_switch = self.last_switch.max(time_ns);
                self.came(thread, time_ns, time_ns, out);
            }
            Some(Record::Lost(loss)) => {
                self.lost(loss, counts, out);
                self.lost_early = None;
            }
        }
        true
    }

    fn switch(&mut self, switch: &Switch, counts: &mut DecodeCounts, out: &mut Vec<u8>) {
        self.last_time = self.last_time.max(switch.time_ns);
        self.last_switch = self.last_switch.max(switch.time_ns);
        counts.records += 1;
        counts.switches += 1;
        counts.preemptions += u64::from(switch.is_preemption);
        let ordinary_switch = packed::Switch {
            time_ns: switch.time_ns,
            thread: of_recording(switch.thread),
            next: switch.next.map(of_recording),
            is_preemption: switch.is_preemption,
            state: task_state::word(switch),
        };
        self.running = ordinary_switch.next;
        let mut index = |place: Option<DictionarySlot>| {
            let index = usize::from(place?.0);
            let is_known = self.dictionary.chain(index).is_some();
            counts.unknown_stacks += u64::from(!is_known);
            is_known.then_some(index)
        };
        let (kernel, user) = (index(switch.kernel_stack), index(switch.user_stack));
        if let Some(user) = user {
            counts.user_stacks[self.dictionary.ends[user] as usize] += 1;
        }
        match &mut self.form {
            Form::Ordinary(ordinary) => {
                let chain = |index: Option<usize>| {
                    index.and_then(|index| self.dictionary.chain(index)).unwrap_or_default()
                };
                let futex;
                let object = match switch.object {
                    Some(SwitchObject::Futex(address)) => {
                        futex = wait_object::futex_chain(address);
                        &futex
                    }
                    Some(SwitchObject::Described(place)) => chain(Some(usize::from(place.0))),
                    None => &[],
                };
                let chains = Chains { kernel: chain(kernel), user: chain(user), object };
                ordinary.switch(&ordinary_switch, chains, out);
            }
            Form::Packed(packer) => {
                packer.finish_if_full(out);
                let mut number = |index: Option<usize>| {
                    index.map_or(0, |index| self.dictionary.number(index, packer))
                };
                let (kernel, user) = (number(kernel), number(user));
                let object = match switch.object {
                    Some(SwitchObject::Futex(address)) => packer.define_futex(address),
                    Some(SwitchObject::Described(place)) => {
                        self.dictionary.number(usize::from(place.0), packer)
                    }
                    None => 0,
                };
                packer.switch(&ordinary_switch, Numbers { kernel, user, object });
            }
        }
    }

    /// Appends the first ready file of a thread that comes.
    fn ready(&mut self, thread: packed::Thread, time_ns: u64, place: usize, out: &mut Vec<u8>) {
        self.last_time = self.last_time.max(time_ns);
        match &mut self.form {
            Form::Ordinary(ordinary) => {
                let object = self.dictionary.chain(place).unwrap_or_default();
                ordinary.ready(thread, time_ns, object, out);
            }
            Form::Packed(packer) => {
                packer.finish_if_full(out);
                let object = self.dictionary.number(place, packer);
                packer.ready(thread, time_ns, object);
            }
        }
    }

    /// Appends what the CPU spent besides a thread.
    fn account(&mut self, account: &Account, counts: &mut DecodeCounts, out: &mut Vec<u8>) {
        let &Account { time_ns, thread, interrupts_ns, stolen_ns } = account;
        self.last_time = self.last_time.max(time_ns);
        counts.records += 1;
        let interrupts =
            interrupts_ns.map(|(irq_ns, softirq_ns)| InterruptTimes { irq_ns, softirq_ns });
        let (thread, account) = (of_recording(thread), CpuAccount { interrupts, stolen_ns });
        match &mut self.form {
            Form::Ordinary(ordinary) => ordinary.account(thread, time_ns, &account, out),
            Form::Packed(packer) => {
                packer.finish_if_full(out);
                packer.account(thread, time_ns, &account);
            }
        }
    }

    /// Reports the channel's losses as the kernel reports those of a ring, except losses that were reported
    /// early.
    fn lost(&mut self, loss: Loss, counts: &mut DecodeCounts, out: &mut Vec<u8>) {
        let early = self.lost_early.unwrap_or(Loss { count: 0, from_ns: u64::MAX, to_ns: 0 });
        if loss.count <= early.count && loss.from_ns >= early.from_ns && loss.to_ns <= early.to_ns {
            return;
        }
        self.close(out);
        // The threads that came meanwhile are lost as well.
        self.running = None;
        let count = loss.count.saturating_sub(early.count);
        counts.lost_switches += count;
        let (since, id) = (TimestampNs(loss.from_ns), self.sample_id(loss.to_ns));
        self.encoder.lost(out, self.config.id, count, Some(since), id);
    }

    /// The end of records of this CPU.
    fn sample_id(&self, time: u64) -> SampleId {
        SampleId {
            pid_tid: Some((Pid(0), Tid(0))),
            time: Some(TimestampNs(time)),
            id: Some(self.config.id),
            cpu: Some(CpuId(self.config.cpu)),
        }
    }
}

fn of_recording(Thread { pid, tid }: Thread) -> packed::Thread {
    packed::Thread { pid, tid }
}

#[cfg(test)]
mod tests;
