//! Waits as samples, in perf's form of them: event `offcpu-time`, with the nanoseconds of a wait, or of several
//! at one call chain, as the period.
//!
//! perf's own stand for the same (`tools/perf/util/bpf_off_cpu.c`): a sample for each wait that is long
//! enough, and one for all others of a thread at a call chain, at the end of the recording.

use crate::attr::{Attr, AttrFlags, SampleType, pmu_type};
use crate::encode::push_record;
use crate::feature::EventDesc;
use crate::record::{misc, record_type};
use crate::sample::context;
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// The id of the samples.
pub const OFF_CPU_ID: u64 = 1 << 63 | 3;
/// The name of their event, which perf has too.
pub const OFF_CPU_NAME: &str = "offcpu-time";
/// `PERF_COUNT_SW_BPF_OUTPUT`, as perf has it.
const BPF_OUTPUT: u64 = 10;

/// One wait of a thread, or all shorter ones at a call chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OffCpuSample<'a> {
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// When the wait ended, or the recording.
    pub time: TimestampNs,
    /// The CPU to which the thread came, where known.
    pub cpu: Option<CpuId>,
    /// How long the waits took.
    pub period_ns: u64,
    /// Where the thread left its CPU, innermost first, with [`context`] markers.
    pub chain: &'a [u64],
}

/// The event of such samples. Up to the CPU its fields are those of `carrier`, whose clock it has.
pub fn describe(carrier: &Attr) -> EventDesc {
    let fields = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::PERIOD
        | SampleType::CALLCHAIN;
    let has_cpu = carrier.sample_type.contains(SampleType::CPU);
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        config: BPF_OUTPUT,
        sample_type: fields.with(SampleType::CPU, has_cpu),
        flags: AttrFlags::SAMPLE_ID_ALL
            .with(AttrFlags::USE_CLOCKID, carrier.has(AttrFlags::USE_CLOCKID)),
        ..carrier.clone()
    };
    EventDesc { attr, ids: vec![OFF_CPU_ID], name: OFF_CPU_NAME.to_owned() }
}

/// Whether an event is that of waits, of whit's or of perf's.
pub fn is_off_cpu(event: &EventDesc) -> bool {
    event.ids == [OFF_CPU_ID]
        || (event.name == OFF_CPU_NAME
            && event.attr.pmu_type == pmu_type::SOFTWARE
            && event.attr.config == BPF_OUTPUT)
}

impl OffCpuSample<'_> {
    /// Appends the record of a sample of the event that [`describe`] has made, maybe with the cgroup of samples.
    pub fn push(&self, event: &Attr, out: &mut Vec<u8>) {
        let first = self.chain.iter().position(|word| *word < context::MAX);
        let marker = first.and_then(|at| self.chain[..at].last());
        let mode = if marker == Some(&context::USER) { misc::USER } else { misc::KERNEL };
        let mut body = Vec::with_capacity(64 + 8 * self.chain.len());
        let mut put = |word: u64| body.extend_from_slice(&word.to_le_bytes());
        put(OFF_CPU_ID);
        put(first.map_or(0, |at| self.chain[at]));
        put(u64::from(self.pid.0 as u32) | u64::from(self.tid.0 as u32) << 32);
        put(self.time.0);
        if event.sample_type.contains(SampleType::CPU) {
            put(self.cpu.map_or(0, |cpu| cpu.0.into()));
        }
        put(self.period_ns);
        put(self.chain.len() as u64);
        self.chain.iter().copied().for_each(&mut put);
        if event.sample_type.contains(SampleType::CGROUP) {
            // Where programs sample waits into the same event, these say their cgroup.
            put(0);
        }
        push_record(out, record_type::SAMPLE, mode, &body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RawRecord;
    use crate::sample::SampleLayout;

    #[test]
    fn written_off_cpu_samples_are_read() {
        for with_cpu in [false, true] {
            let carrier = Attr {
                sample_type: SampleType::RAW.with(SampleType::CPU, with_cpu),
                flags: AttrFlags::USE_CLOCKID | AttrFlags::MMAP,
                clockid: 1,
                ..Attr::default()
            };
            let event = describe(&carrier);
            assert!(is_off_cpu(&event));
            assert_eq!(
                (event.attr.flags.contains(AttrFlags::USE_CLOCKID), event.attr.clockid),
                (true, 1)
            );
            for (chain, ip, mode) in [
                (&[context::KERNEL, 7, 8, context::USER, 9][..], 7, misc::KERNEL),
                (&[context::USER, 9], 9, misc::USER),
                (&[], 0, misc::KERNEL),
            ] {
                let cpu = with_cpu.then_some(CpuId(3));
                let (pid, tid, time) = (Pid(1), Tid(2), TimestampNs(5));
                let written = OffCpuSample { pid, tid, time, cpu, period_ns: 1 << 40, chain };
                let mut out = Vec::new();
                written.push(&event.attr, &mut out);
                let (record, rest) = RawRecord::split(&out).unwrap();
                assert!(rest.is_empty());
                assert_eq!(record.header.misc, mode);
                let read = SampleLayout::new(&event.attr).parse(record.body).unwrap();
                assert_eq!((read.id, read.ip.unwrap().0), (Some(OFF_CPU_ID), ip));
                assert_eq!((read.pid_tid, read.time), (Some((pid, tid)), Some(time)));
                assert_eq!((read.cpu, read.period), (cpu, Some(1 << 40)));
                assert_eq!(read.callchain.iter().collect::<Vec<_>>(), chain);
            }
        }
    }

    #[test]
    fn samples_of_an_event_with_cgroups_have_all_of_its_fields() {
        let mut event = describe(&Attr::default());
        event.attr.sample_type |= SampleType::CGROUP;
        let (pid, tid, time) = (Pid(1), Tid(2), TimestampNs(5));
        let chain = &[context::USER, 9];
        let written = OffCpuSample { pid, tid, time, cpu: None, period_ns: 7, chain };
        let mut out = Vec::new();
        written.push(&event.attr, &mut out);
        let (record, _) = RawRecord::split(&out).unwrap();
        let read = SampleLayout::new(&event.attr).parse(record.body).expect("all fields");
        assert_eq!((read.period, read.cgroup), (Some(7), Some(0)));
    }

    #[test]
    fn perfs_own_event_is_known_by_name_and_kind() {
        let attr = Attr { pmu_type: pmu_type::SOFTWARE, config: BPF_OUTPUT, ..Attr::default() };
        let event = |name: &str, attr| EventDesc { attr, ids: vec![17], name: name.to_owned() };
        assert!(is_off_cpu(&event(OFF_CPU_NAME, attr.clone())));
        assert!(!is_off_cpu(&event("bpf-output", attr.clone())));
        assert!(!is_off_cpu(&event(OFF_CPU_NAME, Attr { config: 0, ..attr })));
    }
}
