//! A counter of the guest that is this thread's task clock on the host: what a vCPU's thread would see.
//!
//! `cargo run -p whit-vpmu --features host --example host_events`

use whit_vpmu::host::{EventMap, HostEvent, HostOptions, HostPerf, OverflowSignal};
use whit_vpmu::{Delivery, IntelPmu, Interrupt, PmuModel, Vpmu, VpmuConfig};

/// A VMM would inject an NMI.
struct Printer;

impl Interrupt for Printer {
    fn pmi(&mut self, _: bool) -> Delivery {
        println!("interrupt");
        Delivery::Delivered
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let signal = OverflowSignal::block()?;
    // On a machine with a PMU: EventMap::Raw and the default options.
    let map = EventMap::Table(vec![(0xc0, HostEvent::TASK_CLOCK)]);
    let mut options = HostOptions::default();
    options.guest_only = false;
    let host = HostPerf::for_this_thread(map, options)?;
    let model = PmuModel::intel(IntelPmu::default())?;
    let mut vpmu = Vpmu::new(VpmuConfig::new(model), host, Printer);

    vpmu.wrmsr(0x4c1, (1 << 48) - 1_000_000)?;
    vpmu.wrmsr(0x186, 0x53_00c0)?;
    vpmu.on_vcpu_enter();
    while vpmu.statistics().pmis == 0 {
        // Here the vCPU would run; the signal ends KVM_RUN.
        if signal.take()? {
            vpmu.poll_overflows();
        }
        vpmu.on_vcpu_enter();
    }
    println!("{} ns after the overflow; {:?}", vpmu.rdmsr(0xc1)?, vpmu.source().calls());
    Ok(())
}
