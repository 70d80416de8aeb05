//! A VMM's loop around the device, with a simulated host and a guest that is a list of exits.
//!
//! `cargo run -p whit-vpmu --features sim --example vmm_loop`

use whit_vpmu::{
    Delivery, DeliveryMode, IntelPmu, Interrupt, Lvtpc, PmuModel, Simulated, Vpmu, VpmuConfig,
};

/// The local APIC, as far as the PMU sees it.
struct Apic {
    lvtpc: Lvtpc,
    nmi_pending: bool,
}

impl Interrupt for Apic {
    fn pmi(&mut self, mask: bool) -> Delivery {
        match self.lvtpc.take(mask) {
            Some(mode) => {
                self.nmi_pending = mode == DeliveryMode::Nmi;
                Delivery::Delivered
            }
            None => Delivery::Masked,
        }
    }
}

/// Why the vCPU left the guest.
enum Exit {
    Wrmsr(u32, u64),
    Rdmsr(u32),
    /// Instructions ran until the host gave notice, or so many.
    Ran(u64),
}

const INSTRUCTIONS: u64 = 0xc0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = PmuModel::intel(IntelPmu::default())?;
    let mut apic = Apic { lvtpc: Lvtpc::new(), nmi_pending: false };
    apic.lvtpc.write(0x400);
    let mut vpmu = Vpmu::new(VpmuConfig::new(model), Simulated::new(), apic);
    for leaf in vpmu.cpuid_leaves() {
        println!("CPUID {:#x}: {:x?}", leaf.function, leaf.value);
    }

    // The guest samples every 1000 instructions.
    let period = (1 << 48) - 1000;
    let mut guest = vec![Exit::Wrmsr(0x4c1, period), Exit::Wrmsr(0x186, INSTRUCTIONS | 0x53_0000)];
    for _ in 0..3 {
        guest.push(Exit::Ran(1000));
        // Its handler: stop, look, acknowledge, reload, unmask (below), start.
        guest.extend([Exit::Wrmsr(0x38f, 0), Exit::Rdmsr(0x38e), Exit::Wrmsr(0x390, 1)]);
        guest.extend([Exit::Wrmsr(0x4c1, period), Exit::Wrmsr(0x38f, 0xf)]);
    }
    for exit in guest {
        vpmu.on_vcpu_enter();
        if std::mem::take(&mut vpmu.interrupt_mut().nmi_pending) {
            println!("NMI");
            vpmu.interrupt_mut().lvtpc.write(0x400);
        }
        match exit {
            Exit::Wrmsr(msr, value) => vpmu.wrmsr(msr, value)?,
            Exit::Rdmsr(msr) => println!("RDMSR {msr:#x} = {:#x}", vpmu.rdmsr(msr)?),
            Exit::Ran(instructions) => {
                vpmu.source_mut().occur(INSTRUCTIONS, true, instructions);
                while let Some(token) = vpmu.source_mut().take_notice() {
                    vpmu.on_overflow(token);
                }
            }
        }
    }
    let statistics = vpmu.statistics();
    println!(
        "{} overflows, {} interrupts, {} host event opened, used {} times again",
        statistics.overflows, statistics.pmis, statistics.opens, statistics.opens_avoided
    );
    Ok(())
}
