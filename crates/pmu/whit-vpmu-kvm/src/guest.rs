//! A VM for the small guest that samples with `whit-pmu` (`guest/` in whit's repository).

mod machine;
mod report;

use std::time::{Duration, Instant};

use kvm_ioctls::VcpuExit;
use whit_vpmu::host::{HostCalls, HostPerf, OverflowSignal};
use whit_vpmu::{Statistics, Vpmu, VpmuConfig};

use crate::{Error, KvmVpmu, Line, call, interrupt_on_overflow};
use machine::Machine;
use report::Words;
pub use report::{Report, TaskReport, TasksReport};

/// The port that the guest reports to.
const REPORT_PORT: u16 = 0x510;

/// Work of the guest.
#[derive(Copy, Clone, Debug)]
pub struct Work {
    /// Samples to take, up to 4096.
    pub samples: u64,
    /// Events between two samples.
    pub period: u64,
    /// The event's code: select and unit mask.
    pub code: u64,
    /// A guest that takes longer is stopped.
    pub limit: Duration,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Run<R = Report> {
    /// The guest's report.
    pub report: R,
    /// The device's counts.
    pub statistics: Statistics,
    /// System calls for counters.
    pub calls: HostCalls,
    /// Exits for the PMU's registers.
    pub msr_exits: u64,
    /// Exits by the host events' signal.
    pub signals: u64,
    /// NMIs injected.
    pub nmis: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Rate of the guest's time stamp counter; `None` where KVM does not say.
    pub tsc_khz: Option<u32>,
}

/// Boots the guest with a PMU and runs it until it halts.
///
/// # Errors
/// Where there is no KVM, or the guest fails.
pub fn run(
    config: VpmuConfig,
    host: HostPerf,
    work: &Work,
    signal: &OverflowSignal,
) -> Result<Run, Error> {
    boot(machine::GUEST, Words::report, config, host, work, signal)
}

/// Boots the toy kernel (`guest/kernel.rs`), whose two tasks sample an event each, and runs it until it halts.
///
/// # Errors
/// As [`run`].
pub fn run_kernel(
    config: VpmuConfig,
    host: HostPerf,
    work: &Work,
    signal: &OverflowSignal,
) -> Result<Run<TasksReport>, Error> {
    boot(machine::KERNEL, Words::tasks, config, host, work, signal)
}

fn boot<R>(
    image: &[u8],
    read: fn(&Words) -> Result<R, &'static str>,
    config: VpmuConfig,
    host: HostPerf,
    work: &Work,
    signal: &OverflowSignal,
) -> Result<Run<R>, Error> {
    let model = config.model;
    let vpmu = Vpmu::new(config, host, Line::default());
    let mut machine = Machine::new(&model, &vpmu.cpuid_leaves(), work, image)?;
    let mut pmu = KvmVpmu::new(vpmu, false);
    interrupt_on_overflow(&machine.vcpu, signal)?;
    let mut words = Words::default();
    let (mut msr_exits, mut signals) = (0, 0);
    let start = Instant::now();
    loop {
        if start.elapsed() > work.limit {
            return Err(Error::Guest(format!("did not halt within {:?}", work.limit)));
        }
        pmu.vpmu_mut().on_tick(start.elapsed().as_nanos() as u64);
        pmu.enter(&machine.vcpu)?;
        match machine.vcpu.run() {
            Ok(VcpuExit::X86Rdmsr(exit)) => {
                msr_exits += 1;
                if pmu.owns(exit.index) {
                    pmu.rdmsr(exit);
                } else {
                    *exit.error = 1;
                }
            }
            Ok(VcpuExit::X86Wrmsr(exit)) => {
                msr_exits += 1;
                if pmu.owns(exit.index) {
                    pmu.wrmsr(exit);
                } else {
                    *exit.error = 1;
                }
            }
            Ok(VcpuExit::IoOut(REPORT_PORT, bytes)) => words.push(bytes),
            Ok(VcpuExit::Hlt) => break,
            Ok(VcpuExit::Intr) => {}
            Ok(exit) => return Err(Error::Guest(format!("stopped with {exit:?}"))),
            Err(error) if error.errno() == libc::EINTR => {
                signals += 1;
                if signal.take().unwrap_or(false) {
                    pmu.vpmu_mut().poll_overflows();
                }
            }
            Err(error) if error.errno() == libc::EAGAIN => {}
            Err(error) => return Err(call("KVM_RUN")(error)),
        }
    }
    let report = read(&words).map_err(|reason| Error::Guest(reason.to_owned()))?;
    Ok(Run {
        report,
        statistics: *pmu.vpmu().statistics(),
        calls: *pmu.vpmu().source().calls(),
        msr_exits,
        signals,
        nmis: pmu.nmis(),
        elapsed: start.elapsed(),
        tsc_khz: machine.vcpu.get_tsc_khz().ok(),
    })
}
