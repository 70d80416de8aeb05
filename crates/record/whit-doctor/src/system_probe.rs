//! The real kernel.

use std::time::Instant;

use whit_bpf::BpfError;
use whit_bpf::stacks::{
    CgroupHierarchy, ChosenBy, FIND_VMA, StackOptions, Stacks, TABLE_MEMORY_MAX_BYTES,
};
use whit_host::open::{EventTarget, Tasks};
use whit_perfdata::attr::Attr;
use whit_sys::{Errno, PerfEventFd, Ring};

use crate::probe::{Count, EngineTrial, Probe, Target};
use crate::work::{spin, spin_briefly, work};

/// Data pages of the ring that a sampling probe maps: small enough for any user's allowance.
const RING_PAGES: usize = 16;
/// `PERF_RECORD_SAMPLE`
const RECORD_SAMPLE: u32 = 9;
/// `struct perf_event_header`: type, misc, size.
const HEADER_SIZE_BYTES: usize = 8;

/// Asks the kernel that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemProbe;

impl Probe for SystemProbe {
    fn count(&mut self, attr: &Attr) -> Result<Count, Errno> {
        let event = open(attr, Target::ThisThread)?;
        event.enable()?;
        work();
        event.disable()?;
        read_count(&event)
    }

    fn sample(&mut self, attr: &Attr) -> Result<u64, Errno> {
        let event = open(attr, Target::ThisThread)?;
        let mut ring = Ring::map(&event, RING_PAGES)?;
        event.enable()?;
        work();
        event.disable()?;
        Ok(ring.drain(|slices| count_samples(&slices.concat())).unwrap_or(0))
    }

    fn open(&mut self, attr: &Attr, target: Target) -> Result<(), Errno> {
        open(attr, target).map(drop)
    }

    fn run(&mut self, attr: &Attr, target: Target) -> Result<Count, Errno> {
        let event = open(attr, target)?;
        event.enable()?;
        spin_briefly();
        event.disable()?;
        read_count(&event)
    }

    fn time_reads(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno> {
        let event = open(attr, Target::ThisThread)?;
        event.enable()?;
        let mut words = [0; 3];
        (0..rounds).map(|_| timed(|| event.read(&mut words).map(drop))).collect()
    }

    fn time_opens(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno> {
        // The first of its kind pays for setting the PMU up.
        open(attr, Target::ThisThread)?;
        (0..rounds).map(|_| timed(|| open(attr, Target::ThisThread).map(drop))).collect()
    }

    fn time_interrupts(&mut self, attr: &Attr, rounds: usize) -> Result<Vec<u64>, Errno> {
        let event = open(attr, Target::ThisThread)?;
        let mut ring = Ring::map(&event, RING_PAGES)?;
        let mut times = Vec::with_capacity(rounds);
        // Between two measurements without the event, so that a drift of the clock frequency
        // falls out.
        let mut before = spin_ns();
        for _ in 0..rounds {
            event.enable()?;
            let with = spin_ns();
            event.disable()?;
            let after = spin_ns();
            let samples = ring.drain(|slices| count_samples(&slices.concat())).unwrap_or(0);
            if samples > 0 {
                // A negative difference becomes zero.
                times.push(((with - (before + after) / 2.0) / samples as f64) as u64);
            }
            before = after;
        }
        Ok(times)
    }

    fn load_bpf(&mut self) -> Result<(), Errno> {
        whit_sys::bpf::try_load()
    }

    fn load_engine(&mut self) -> EngineTrial {
        let options = StackOptions {
            is_system_wide: false,
            by_thread: true,
            pid_namespace: None,
            chosen: ChosenBy::default(),
            sampled_cgroups: CgroupHierarchy::V2,
            kernel_stacks: true,
            user_stacks: true,
            memo: true,
            perf_samples: false,
            traces: true,
            probes: true,
            wakes: true,
            sockets: false,
            times_sends: false,
            cpus: 1,
            off_cpu_period_ns: 0,
            table_bytes: TABLE_MEMORY_MAX_BYTES,
            channel_bytes: 1 << 16,
        };
        match Stacks::load(&options) {
            Ok(stacks) => {
                let programs = stacks.verified_instructions().unwrap_or_default();
                EngineTrial::Runs {
                    instructions: programs.iter().filter_map(|program| program.1).max(),
                    without: (!stacks.finds_mappings()).then(|| FIND_VMA.to_string()),
                }
            }
            Err(BpfError::Lacking { needs, .. }) => {
                EngineTrial::Lacks(needs.iter().map(ToString::to_string).collect())
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let text =
                    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
                // The rest of libbpf's message is for programmers.
                EngineTrial::Refused(text.lines().next().unwrap_or_default().to_owned())
            }
        }
    }
}

/// Reads an event that was opened with its times.
fn read_count(event: &PerfEventFd) -> Result<Count, Errno> {
    let mut words = [0; 3];
    event.read(&mut words)?;
    let [value, enabled_ns, running_ns] = words;
    Ok(Count { value, enabled_ns, running_ns })
}

/// Nanoseconds of the spinning.
fn spin_ns() -> f64 {
    let start = Instant::now();
    spin();
    start.elapsed().as_nanos() as f64
}

fn timed(operation: impl FnOnce() -> Result<(), Errno>) -> Result<u64, Errno> {
    let start = Instant::now();
    operation()?;
    Ok(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

fn open(attr: &Attr, target: Target) -> Result<PerfEventFd, Errno> {
    let (tasks, cpu) = match target {
        Target::ThisThread => (Tasks::Own, None),
        Target::Process(pid) => (Tasks::Thread(pid.main_thread()), None),
        Target::Cpu(cpu) => (Tasks::All, Some(cpu)),
    };
    whit_host::open::open(&attr.to_bytes(), EventTarget { cpu, tasks }, None)
}

/// Counts the samples among whole records.
fn count_samples(mut records: &[u8]) -> u64 {
    let mut samples = 0;
    while let Some(header) = records.first_chunk::<HEADER_SIZE_BYTES>() {
        let [t0, t1, t2, t3, _, _, s0, s1] = *header;
        samples += u64::from(u32::from_ne_bytes([t0, t1, t2, t3]) == RECORD_SAMPLE);
        let size = usize::from(u16::from_ne_bytes([s0, s1])).max(HEADER_SIZE_BYTES);
        records = records.get(size..).unwrap_or_default();
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_differ_from_other_records() {
        let record = |kind: u32, size: u16| {
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend([0, 0]);
            bytes.extend(size.to_ne_bytes());
            bytes.resize(usize::from(size.max(8)), 0);
            bytes
        };
        let records = [record(9, 16), record(2, 24), record(9, 8), record(1, 0)].concat();
        assert_eq!(count_samples(&records), 2);
        assert_eq!(count_samples(&records[..10]), 1);
    }
}
