//! Events of the kernel's that the programs of switches need on each CPU. None of them is in the recording.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Duration;

use whit_bpf::stacks::{ProgramKind, Stacks};
use whit_engine_api::error::EngineError;
use whit_engine_api::event::software;
use whit_engine_api::lost_counts;
use whit_engine_api::open_event::{Instance, OpenEvent};
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat, SampleType, pmu_type};
use whit_sys::{Errno, OpenFlags, PerfEventFd};

/// How long to wait for the tracepoint to show a switch out of the idle thread. This thread's sleep
/// causes one, unless others keep the CPU.
const IDLE_TRIES: u32 = 3;
const IDLE_SLEEP: Duration = Duration::from_millis(1);

/// Events that are open as long as switches are recorded.
#[derive(Debug, Default)]
pub(super) struct SwitchEvents {
    /// Their records wake the reader of the CPU's ring.
    wakeup_events: Vec<PerfEventFd>,
    /// The form of their counts.
    wakeup_format: ReadFormat,
    /// They run the program for threads that come after hidden ones.
    comings: Vec<PerfEventFd>,
    cpus: Vec<u32>,
    /// Whether the tracepoint hides switches out of the idle thread, once that was looked for.
    hides_idle: Option<bool>,
}

impl SwitchEvents {
    /// Opens what wakes the readers of the rings that the bpf-output event writes into. Gives the ids by CPU.
    pub(super) fn open_wakeup_events(
        &mut self,
        bpf_output: &OpenEvent,
        stacks: &Stacks,
    ) -> Result<BTreeMap<u32, u64>, EngineError> {
        // The bpf-output event itself must not wake at every record.
        let mut attr = bpf_output.event.attr.clone();
        attr.flags = attr.flags.with(AttrFlags::WATERMARK, false).with(AttrFlags::DISABLED, false);
        attr.wakeup = 1;
        self.wakeup_format = attr.read_format;
        let attr = attr.to_bytes();
        let mut ids = BTreeMap::new();
        for Instance { fd, cpu, .. } in &bpf_output.instances {
            let cpu = cpu.map_or(0, |cpu| cpu.0);
            let Some(wakeup_event) = open(&attr, cpu)? else { continue };
            wakeup_event
                .set_output(fd)
                .map_err(EngineError::system("share a ring between events"))?;
            let id =
                wakeup_event.id().map_err(EngineError::system("ask for the id of an event"))?;
            stacks.set_wakeup_event(cpu, wakeup_event.as_fd()).map_err(EngineError::own)?;
            ids.insert(cpu, id);
            self.wakeup_events.push(wakeup_event);
            self.cpus.push(cpu);
        }
        Ok(ids)
    }

    /// By CPU, how many of the records that only wake readers were lost.
    pub(super) fn lost_wakeup_events(&self) -> BTreeMap<u32, u64> {
        let lost = |wakeup_event| {
            lost_counts::read_one(wakeup_event, self.wakeup_format)
                .iter()
                .map(|(_, lost)| lost)
                .sum()
        };
        self.cpus.iter().copied().zip(self.wakeup_events.iter().map(lost)).collect()
    }

    /// To be called when the recording of switches begins: has the kernel count switches where the
    /// tracepoint does not show all.
    pub(super) fn open_comings(&mut self, stacks: &Stacks) -> Result<(), EngineError> {
        if !*self.hides_idle.get_or_insert_with(|| hides_idle(stacks)) {
            return Ok(());
        }
        let attr = Attr {
            pmu_type: pmu_type::SOFTWARE,
            config: software::CONTEXT_SWITCHES,
            sample_period_or_freq: 1,
            // No fields: the kernel passes those that it fills for the program on to other events of the same switch
            // (6.18), and samples of other recorders would have the id of this event.
            sample_type: SampleType::default(),
            ..Attr::default()
        };
        let attr = attr.to_bytes();
        for cpu in &self.cpus {
            let Some(event) = open(&attr, *cpu)? else { continue };
            let attached = stacks.with_switch_ins(|program| event.set_bpf(program));
            attached.map_err(EngineError::system("have an event run a BPF program"))?;
            self.comings.push(event);
        }
        Ok(())
    }

    /// To be called when the recording of switches ends.
    pub(super) fn close_comings(&mut self) {
        self.comings.clear();
    }
}

/// Whether the tracepoint has shown no switch out of the idle thread.
fn hides_idle(stacks: &Stacks) -> bool {
    (0..IDLE_TRIES).all(|_| {
        std::thread::sleep(IDLE_SLEEP);
        stacks.counts(ProgramKind::Switches).is_ok_and(|counts| counts.from_idle == 0)
    })
}

/// An event of a CPU; `None` where it has gone offline.
fn open(attr: &[u8], cpu: u32) -> Result<Option<PerfEventFd>, EngineError> {
    match PerfEventFd::open(attr, -1, cpu as i32, None, OpenFlags::default()) {
        Ok(event) => Ok(Some(event)),
        Err(Errno::NODEV) => Ok(None),
        Err(errno) => Err(EngineError::system("open an event for context switches")(errno)),
    }
}
