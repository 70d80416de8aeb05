//! A real guest samples with the device: its samples are as many as periods of the host's count.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::time::Duration;

use whit_testing::{Skip, probe};
use whit_vpmu::host::{EventMap, HostEvent, HostOptions, HostPerf, OverflowSignal};
use whit_vpmu::{Backing, IntelPmu, PmuModel, VpmuConfig};
use whit_vpmu_kvm::Error;
use whit_vpmu_kvm::guest::{Run, Work, run, run_kernel};

/// Instructions, for the guest; the host counts the vCPU thread's task clock, which knows no difference between
/// guest and host.
const CODE: u64 = 0xc0;
/// Nanoseconds.
const PERIOD: u64 = 3_000_000;
const SAMPLES: u64 = 20;

type Boot<R> = fn(VpmuConfig, HostPerf, &Work, &OverflowSignal) -> Result<Run<R>, Error>;

fn boot<R>(name: &str, how: Boot<R>, model: PmuModel, backing: Backing) -> Option<Run<R>> {
    if let Err(Skip(reason)) = probe::kvm() {
        whit_testing::skip(name, &reason);
        return None;
    }
    let signal = OverflowSignal::block().expect("block the signal");
    let mut options = HostOptions::default();
    options.guest_only = false;
    let map = EventMap::Table(vec![(CODE, HostEvent::TASK_CLOCK)]);
    let host = HostPerf::for_this_thread(map, options).expect("the anchor");
    let mut config = VpmuConfig::new(model);
    config.backing = backing;
    let limit = Duration::from_secs(60);
    let work = Work { samples: SAMPLES, period: PERIOD, code: CODE, limit };
    Some(how(config, host, &work, &signal).unwrap_or_else(|error| panic!("{error}")))
}

fn check(run: &Run) {
    let report = &run.report;
    assert!(report.samples >= SAMPLES, "{run:?}");
    assert_eq!((report.not_ours, run.statistics.faults), (0, 0), "{run:?}");
    assert_eq!(report.interrupts, run.nmis, "{run:?}");
    // A sample for each period; the last one is not over. Counts from an overflow until its handler
    // stops the counter (the skid) belong to the next, unless it is more than a whole period.
    let periods = report.count / PERIOD;
    assert!(report.samples <= periods, "{run:?}");
    let overruns = run.statistics.overflows;
    assert_eq!(report.samples, overruns, "each overflow is a sample: {run:?}");
    assert!(run.statistics.pmis >= SAMPLES && run.signals >= SAMPLES, "{run:?}");
}

#[test]
fn an_intel_guest_samples() {
    let model = PmuModel::intel(IntelPmu::default()).expect("a model");
    for backing in [Backing::Reuse, Backing::Recreate] {
        let Some(run) = boot("whit-vpmu-kvm an_intel_guest_samples", run, model, backing) else {
            return;
        };
        check(&run);
        let opened = run.statistics.opens;
        assert!(if backing == Backing::Reuse { opened == 1 } else { opened > SAMPLES }, "{run:?}");
    }
}

#[test]
fn an_amd_guest_samples() {
    let model = PmuModel::amd_v2(6).expect("a model");
    let Some(run) = boot("whit-vpmu-kvm an_amd_guest_samples", run, model, Backing::Reuse) else {
        return;
    };
    check(&run);
}

/// The kernel of the porting guide: each sample is its task's, and each task's samples are the periods of its count.
#[test]
fn a_toy_kernel_samples_its_tasks() {
    let intel = PmuModel::intel(IntelPmu::default()).expect("a model");
    let name = "whit-vpmu-kvm a_toy_kernel_samples_its_tasks";
    for model in [intel, PmuModel::amd_v2(6).expect("a model")] {
        let Some(run) = boot(name, run_kernel, model, Backing::Reuse) else { return };
        let report = &run.report;
        assert_eq!((report.not_ours, run.statistics.faults), (0, 0), "{run:?}");
        let samples: u64 = report.tasks.iter().map(|task| task.samples).sum();
        assert!(samples >= SAMPLES && samples <= run.statistics.overflows, "{run:?}");
        for task in &report.tasks {
            assert!(task.count > 0 && task.samples <= task.count / PERIOD, "{run:?}");
        }
        assert_eq!(run.statistics.opens, 1, "both tasks use one host event: {run:?}");
    }
}
