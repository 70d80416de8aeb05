//! The time that a CPU spent besides a thread that it ran: in interrupts, and stolen by the hypervisor.
//!
//! The BPF engine writes it in front of the switch that ends a run. An account is a BPF_EVENT record of a type that the
//! kernel has not, as those of [functions](crate::interpreted) are: readers of perf.data pass over it. The sample id has
//! the thread, the CPU and the time. `docs/format.md` has the layout.

use crate::bytes::Cursor;

/// In the place of the kernel's 1 for a program that is loaded, and 2 for one that goes.
pub(crate) const RECORD_TYPE: u16 = 0x6678;
/// Version of the layout.
const VERSION: u16 = 1;
/// Flags: parts that are recorded.
pub(crate) const HAS_INTERRUPTS: u32 = 1;
pub(crate) const HAS_STOLEN: u32 = 2;

/// Time in nanoseconds since the account before of the same CPU, or since recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAccount {
    /// In handlers of interrupts; absent where it is not recorded.
    pub interrupts: Option<InterruptTimes>,
    /// Stolen by the hypervisor; absent where it is not recorded.
    pub stolen_ns: Option<u64>,
}

/// Time in handlers of interrupts, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptTimes {
    /// In those of hardware.
    pub irq_ns: u64,
    /// In softirqs, without interrupts within these.
    pub softirq_ns: u64,
}

impl CpuAccount {
    /// From its times. Those of absent parts mean nothing.
    pub(crate) fn new(parts: u32, [irq_ns, softirq_ns, stolen_ns]: [u64; 3]) -> CpuAccount {
        let has = |part: u32| parts & part != 0;
        CpuAccount {
            interrupts: has(HAS_INTERRUPTS).then_some(InterruptTimes { irq_ns, softirq_ns }),
            stolen_ns: has(HAS_STOLEN).then_some(stolen_ns),
        }
    }

    /// The parts that are recorded.
    pub(crate) fn parts(&self) -> u32 {
        let interrupts = self.interrupts.map_or(0, |_| HAS_INTERRUPTS);
        interrupts | self.stolen_ns.map_or(0, |_| HAS_STOLEN)
    }

    /// Interrupts, softirqs, stolen time; zeros where they are not recorded.
    pub(crate) fn times_ns(&self) -> [u64; 3] {
        let InterruptTimes { irq_ns, softirq_ns } = self.interrupts.unwrap_or_default();
        [irq_ns, softirq_ns, self.stolen_ns.unwrap_or_default()]
    }

    /// The body of the record without the sample id.
    pub(crate) fn body(&self) -> impl Iterator<Item = u8> {
        let head =
            u64::from(RECORD_TYPE) | u64::from(VERSION) << 16 | u64::from(self.parts()) << 32;
        [head].into_iter().chain(self.times_ns()).flat_map(u64::to_le_bytes)
    }

    /// From the body of a BPF_EVENT record; `None` for those of other types and versions, and where it is cut.
    pub(crate) fn parse(body: &[u8]) -> Option<CpuAccount> {
        let mut c = Cursor::new(body);
        if (c.u16()?, c.u16()?) != (RECORD_TYPE, VERSION) {
            return None;
        }
        let parts = c.u32()?;
        Some(CpuAccount::new(parts, [c.u64()?, c.u64()?, c.u64()?]))
    }
}

/// Whether the body of a BPF_EVENT record is that of an account.
#[inline]
pub(crate) fn is_account(body: &[u8]) -> bool {
    body.starts_with(&RECORD_TYPE.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, AttrFlags, SampleType};
    use crate::encode::RecordEncoder;
    use crate::record::{RawRecord, SideBand};
    use crate::sample::{SampleId, SampleLayout};
    use whit_types::{Pid, Tid, TimestampNs};

    #[test]
    fn accounts_are_read_as_they_were_written() {
        let sample_type = SampleType::TID | SampleType::TIME | SampleType::IDENTIFIER;
        let flags = AttrFlags::SAMPLE_ID_ALL;
        let layout = SampleLayout::new(&Attr { sample_type, flags, ..Attr::default() });
        let pid_tid = Some((Pid(3), Tid(4)));
        let id = SampleId { pid_tid, time: Some(TimestampNs(77)), id: Some(9), cpu: None };
        let interrupts = Some(InterruptTimes { irq_ns: 1 << 40, softirq_ns: 2 });
        for account in [
            CpuAccount { interrupts, stolen_ns: Some(u64::MAX) },
            CpuAccount { interrupts: None, stolen_ns: Some(0) },
            CpuAccount { interrupts, stolen_ns: None },
        ] {
            let mut out = Vec::new();
            RecordEncoder::new(layout).cpu_account(&mut out, &account, id);
            let (record, rest) = RawRecord::split(&out).unwrap();
            assert!(rest.is_empty() && record.is_about_switch());
            assert_eq!(SideBand::parse(record), Some(SideBand::CpuAccount(account)));
            let read = layout.parse_id_trailer(record.body).unwrap();
            assert_eq!((read.pid_tid, read.time, read.id), (pid_tid, id.time, id.id));
            let (_, body) = out.split_at_mut(8);
            body[0] ^= 4;
            let (record, _) = RawRecord::split(&out).unwrap();
            assert!(!record.is_about_switch());
            assert_ne!(SideBand::parse(record), Some(SideBand::CpuAccount(account)));
        }
    }
}
