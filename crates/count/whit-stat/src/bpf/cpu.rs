//! The open events of one CPU.

use whit_types::CpuId;

use crate::perf::{OpenGroup, Opened};

/// Events that are open for a CPU. Their slots are the distinct events.
#[derive(Debug)]
pub(super) struct CpuEvents {
    pub(super) cpu: CpuId,
    pub(super) groups: Vec<OpenGroup>,
    /// How long the first event had been enabled when counts were read last.
    pub(super) enabled_ns: u64,
}

/// Sorts the opened events by CPU.
pub(super) fn by_cpu(opened: Opened) -> Vec<CpuEvents> {
    let Opened { slots, groups, .. } = opened;
    let mut cpus: Vec<CpuEvents> = Vec::new();
    for mut group in groups {
        let first = group.events.iter().find_map(|event| event.slot);
        let Some(cpu) = first.and_then(|slot| slots[slot].cpu) else { continue };
        for event in &mut group.events {
            event.slot = event.slot.map(|slot| slots[slot].counter);
        }
        match cpus.iter_mut().find(|known| known.cpu == cpu) {
            Some(known) => known.groups.push(group),
            None => cpus.push(CpuEvents { cpu, groups: vec![group], enabled_ns: 0 }),
        }
    }
    cpus
}

impl CpuEvents {
    /// Whether the kernel has taken the events off their CPU, as it does when that goes offline: time
    /// goes on between two reads of an event that is enabled.
    pub(super) fn are_dead(&self) -> bool {
        let enabled = || {
            let readings = self.groups.first().map(OpenGroup::read_apart).unwrap_or_default();
            readings.first().copied().flatten().map(|reading| reading.enabled_ns)
        };
        enabled() == enabled()
    }
}
