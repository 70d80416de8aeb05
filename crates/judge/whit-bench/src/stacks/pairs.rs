//! Both stacks of each sample, and the new mappings of processes, in the order of time.

use std::collections::HashMap;

use whit_bpf_engine::{COMPARED, SWITCHES};
use whit_perfdata::event_table::EventTable;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::sample::{Sample, context};
use whit_perfdata::stream::{StreamError, StreamReader};
use whit_types::{Arch, TimestampNs};
use whit_unwind::UserRegs;

/// The registers of 64-bit code.
const ABI_64: u64 = 2;

/// A sample with both stacks.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) time: TimestampNs,
    pub(super) pid: i32,
    /// User frames of the program, innermost first.
    pub(super) frames: Vec<u64>,
    pub(super) regs: UserRegs,
    /// The dump, from the stack pointer up.
    pub(super) stack: Vec<u8>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A whole record.
    SideBand { time: TimestampNs, bytes: Vec<u8> },
    /// A sample.
    Pair(Box<Pair>),
}

impl Entry {
    fn time(&self) -> TimestampNs {
        match self {
            Entry::SideBand { time, .. } => *time,
            Entry::Pair(pair) => pair.time,
        }
    }
}

/// Results.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    pub(super) entries: Vec<Entry>,
    /// Samples without their other half.
    pub(super) unpaired: u64,
}

/// Reads all of it. On each CPU perf's sample comes behind that of the program.
pub(super) fn take(recording: &Recording) -> Result<Taken, StreamError> {
    let events = EventTable::new(&recording.events);
    let names = recording.events.iter().map(|event| event.name.as_str());
    let of_program: Vec<bool> = names.map(|name| [COMPARED, SWITCHES].contains(&name)).collect();
    let mut taken = Taken::default();
    // By CPU: the thread, and its frames.
    let mut waiting: HashMap<u32, (i32, Vec<u64>)> = HashMap::new();
    for stream in &recording.streams {
        let (mut reader, mut block) = (StreamReader::new(stream.clone()), Vec::new());
        while reader.next_block(&mut block)?.is_some() {
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                let size = rest.len() - tail.len();
                if record.header.kind != record_type::SAMPLE {
                    let time = events.parse_id_trailer(record).time.unwrap_or_default();
                    taken.entries.push(Entry::SideBand { time, bytes: rest[..size].to_vec() });
                } else if let Some(event) = events.event_of_sample(record.body)
                    && let Some(sample) = events.layout(event).and_then(|l| l.parse(record.body))
                {
                    let of_program = of_program.get(event).copied().unwrap_or(false);
                    taken.sample(&sample, of_program, &mut waiting);
                }
                rest = tail;
            }
        }
    }
    taken.unpaired += waiting.len() as u64;
    taken.entries.sort_by_key(Entry::time);
    Ok(taken)
}

impl Taken {
    fn sample(
        &mut self,
        sample: &Sample<'_>,
        of_program: bool,
        waiting: &mut HashMap<u32, (i32, Vec<u64>)>,
    ) {
        let (Some(cpu), Some((pid, tid)), Some(time)) = (sample.cpu, sample.pid_tid, sample.time)
        else {
            self.unpaired += 1;
            return;
        };
        if of_program {
            let before = waiting.insert(cpu.0, (tid.0, user_frames(sample)));
            self.unpaired += u64::from(before.is_some());
            return;
        }
        let Some((_, frames)) = waiting.remove(&cpu.0).filter(|(other, _)| *other == tid.0) else {
            self.unpaired += 1;
            return;
        };
        // Threads of the kernel have neither.
        let Some(regs) = sample.user_regs.filter(|regs| regs.abi == ABI_64) else { return };
        let regs = UserRegs::from_perf(Arch::X86_64, regs.mask, regs.values());
        let stack = sample.user_stack.to_vec();
        let pair = Pair { time, pid: pid.0, frames, regs, stack };
        self.entries.push(Entry::Pair(Box::new(pair)));
    }
}

/// The part of the chain in user mode.
fn user_frames(sample: &Sample<'_>) -> Vec<u64> {
    let behind = sample.callchain.iter().skip_while(|word| *word != context::USER).skip(1);
    behind.take_while(|word| *word < context::MAX).collect()
}
