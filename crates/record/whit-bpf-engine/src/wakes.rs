//! Wake-ups, as samples of the tracepoint that shows them elsewhere.

use std::collections::HashSet;

use whit_bpf::stacks::record::WakeRecord;
use whit_engine_api::event_plan::WAKING;
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::sample::{SampleId, SampleLayout};
use whit_perfdata::tracing_data::TraceEvent;
use whit_perfdata::wait_object;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

use super::record_layout::Layout;
use super::schedule::Context;

/// Id of the samples. The kernel counts its own from 1.
pub(super) const WAKE_ID: u64 = 1 << 63;
/// Names that are remembered to have been written; beyond, they are written again.
const NAMED_MAX: usize = 4096;

/// `TRACE_FLAG_*` of the field `common_flags`.
const FLAG_HARDIRQ: u8 = 0x08;
const FLAG_SOFTIRQ: u8 = 0x10;

/// Where the tracepoint has which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WakeFormat {
    id: u64,
    size_bytes: usize,
    /// Offset and size; size 0 where this kernel does not have it.
    kind: (usize, usize),
    flags: (usize, usize),
    waker: (usize, usize),
    comm: (usize, usize),
    wakee: (usize, usize),
    prio: (usize, usize),
    success: (usize, usize),
    target_cpu: (usize, usize),
}

impl WakeFormat {
    pub(crate) fn new(event: &TraceEvent) -> WakeFormat {
        let place = |name: &str| event.field(name).map_or((0, 0), |f| (f.offset, f.size_bytes));
        WakeFormat {
            id: event.id,
            size_bytes: wait_object::at_wake_up(event),
            kind: place("common_type"),
            flags: place("common_flags"),
            waker: place("common_pid"),
            comm: place("comm"),
            wakee: place("pid"),
            prio: place("prio"),
            success: place("success"),
            target_cpu: place("target_cpu"),
        }
    }

    /// The event that the samples are described by.
    pub(crate) fn describe(&self, layout: Layout, bpf_output: &Attr) -> EventDesc {
        let attr = Attr {
            pmu_type: pmu_type::TRACEPOINT,
            config: self.id,
            sample_type: layout.raw_sample_type(),
            flags: AttrFlags::SAMPLE_ID_ALL
                .with(AttrFlags::USE_CLOCKID, bpf_output.flags.contains(AttrFlags::USE_CLOCKID)),
            ..bpf_output.clone()
        };
        EventDesc { attr, ids: vec![WAKE_ID], name: WAKING.to_owned() }
    }

    /// Appends the size and the fields, as the kernel has them, and the socket of the waker's call.
    fn push(&self, wake: &WakeRecord, context: Context, waker: i32, out: &mut Vec<u8>) {
        let socket = wake.socket.as_ref().map_or(&[][..], |words| words);
        out.extend(((self.size_bytes + size_of_val(socket)) as u32).to_le_bytes());
        let start = out.len();
        out.resize(start + self.size_bytes, 0);
        let data = &mut out[start..];
        let mut put = |(offset, size): (usize, usize), bytes: &[u8]| {
            let bytes = &bytes[..size.min(bytes.len())];
            data[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        let flags = match context {
            Context::Thread => 0,
            Context::Interrupt => FLAG_HARDIRQ,
            Context::Softirq => FLAG_SOFTIRQ,
        };
        put(self.kind, &self.id.to_le_bytes());
        put(self.flags, &[flags]);
        put(self.waker, &waker.to_le_bytes());
        put(self.comm, &wake.comm);
        put(self.wakee, &wake.wakee_tid.to_le_bytes());
        put(self.prio, &i32::from(wake.prio).to_le_bytes());
        put(self.success, &1u32.to_le_bytes());
        put(self.target_cpu, &wake.target_cpu.to_le_bytes());
        socket.iter().for_each(|word| out.extend(word.to_le_bytes()));
    }
}

/// Converts the wake-ups of a ring.
#[derive(Clone, Debug)]
pub(super) struct Wakes {
    format: WakeFormat,
    names: RecordEncoder,
    named: HashSet<(u64, [u8; 16])>,
}

impl Wakes {
    pub(super) fn new(format: WakeFormat, layout: Layout) -> Wakes {
        let attr = Attr {
            sample_type: layout.raw_sample_type(),
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        let names = RecordEncoder::new(SampleLayout::new(&attr));
        Wakes { format, names, named: HashSet::new() }
    }

    /// The raw data of a sample.
    pub(super) fn push_raw(
        &self,
        wake: &WakeRecord,
        context: Context,
        pid_tid: u64,
        out: &mut Vec<u8>,
    ) {
        self.format.push(wake, context, tid(pid_tid), out);
    }

    /// The name of a waker that no other record names, unless it has been written.
    pub(super) fn push_name(
        &mut self,
        wake: &WakeRecord,
        (pid_tid, time, cpu): (u64, u64, u64),
        out: &mut Vec<u8>,
    ) {
        let Some(name) = wake.waker_comm.filter(|_| tid(pid_tid) > 0) else { return };
        if self.named.len() >= NAMED_MAX {
            self.named.clear();
        }
        if !self.named.insert((pid_tid, name)) {
            return;
        }
        let (pid, tid) = (Pid(pid_tid as i32), Tid(tid(pid_tid)));
        let id = SampleId {
            pid_tid: Some((pid, tid)),
            time: Some(TimestampNs(time)),
            id: Some(WAKE_ID),
            cpu: Some(CpuId(cpu as u32)),
        };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        self.names.comm(out, pid, tid, &name[..end], false, id);
    }
}

fn tid(pid_tid: u64) -> i32 {
    (pid_tid >> 32) as i32
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use whit_perfdata::record::{RawRecord, SideBand};

    /// Linux 6.18's.
    const FORMAT: &str = "name: sched_waking
ID: 375
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;

print fmt: \"\"
";

    pub(crate) fn format() -> WakeFormat {
        WakeFormat::new(&TraceEvent::parse("sched", FORMAT, 8).unwrap())
    }

    fn wake() -> WakeRecord {
        WakeRecord {
            wakee_tid: 0x0102,
            prio: -1,
            target_cpu: 3,
            comm: *b"worker\0\0\0\0\0\0\0\0\0\0",
            waker_comm: Some(*b"ksoftirqd/0\0\0\0\0\0"),
            user_stack: None,
            kernel_stack: None,
            socket: None,
        }
    }

    #[test]
    fn fields_are_where_the_kernel_has_them() {
        let mut raw = Vec::new();
        format().push(&wake(), Context::Interrupt, 0x0a0b, &mut raw);
        assert_eq!(raw.len() % 8, 0);
        assert_eq!(raw[..4], 36u32.to_le_bytes());
        let mut wanted = vec![0x77, 1, FLAG_HARDIRQ, 0, 0x0b, 0x0a, 0, 0];
        wanted.extend(b"worker\0\0\0\0\0\0\0\0\0\0");
        wanted.extend([2, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0]);
        assert_eq!(raw[4..], wanted);

        let mut raw = Vec::new();
        let wake = WakeRecord { socket: Some([5, 1, 2, 3, 4, 5, 6]), ..wake() };
        format().push(&wake, Context::Interrupt, 0x0a0b, &mut raw);
        assert_eq!(raw[..4], 92u32.to_le_bytes());
        assert_eq!(raw[4..40], wanted);
        assert_eq!(raw[40..48], 5u64.to_le_bytes());
        assert_eq!(raw.len(), 96);
    }

    #[test]
    fn wakers_that_are_not_recorded_are_named_once() {
        let layout = Layout::new(&Attr::default());
        let mut wakes = Wakes::new(format(), layout);
        let (mut out, waker) = (Vec::new(), 21 << 32 | 20);
        wakes.push_name(&wake(), (waker, 100, 0), &mut out);
        let (record, rest) = RawRecord::split(&out).unwrap();
        let named = SideBand::parse(record).unwrap();
        let SideBand::Comm { pid, tid, name, .. } = named else { panic!("{named:?}") };
        assert_eq!((pid, tid, name, rest.len()), (Pid(20), Tid(21), &b"ksoftirqd/0"[..], 0));
        let size = out.len();
        wakes.push_name(&wake(), (waker, 200, 0), &mut out);
        // The idle thread has its name, and who is recorded tells it himself.
        wakes.push_name(&wake(), (0, 200, 0), &mut out);
        let recorded = WakeRecord { waker_comm: None, ..wake() };
        wakes.push_name(&recorded, (9 << 32 | 9, 200, 0), &mut out);
        assert_eq!(out.len(), size);
    }
}
