//! The frozen protocol: the hardware has stopped the counters, and the acknowledgement starts them.
//!
//! Source: "Use counter freezing with Arch Perfmon v4" (Andi Kleen, 2015) and `intel_pmu_handle_irq_v4` of Linux 4.20 to 5.10.

use super::{PmiSink, ROUNDS_MAX};
use crate::bits::{global_status, lvtpc};
use crate::bus::PmuBus;
use crate::driver::Driver;
use crate::msr;

impl Driver {
    pub(super) fn intel_frozen<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        sink: &mut S,
    ) -> u32 {
        let was_enabled = core::mem::replace(&mut self.enabled, false);
        let mut handled = self.stop_trace_store(bus, sink);
        let mut status = bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS);
        let mut rounds = 0;
        loop {
            if status != 0 && status & global_status::CTR_FRZ == 0 {
                // This overflow was before freezing began: counters run, and only a loop that stops
                // them sees the end of it.
                self.enabled = was_enabled;
                return handled.saturating_add(self.intel_classic(bus, sink));
            }
            if status != 0 {
                rounds += 1;
                if rounds > ROUNDS_MAX {
                    self.reset(bus);
                    bus.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
                    return handled;
                }
                self.read_branches(bus);
                handled = handled.saturating_add(self.service(bus, status, sink));
                self.meet_gap(bus);
            }
            bus.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
            if status != 0 {
                // Bits 58 and 59 among them: this thaws, so it comes last.
                bus.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_RESET, status);
                break;
            }
            // Nothing was frozen, so an overflow since the first look may have met a masked entry.
            status = bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS);
            if status == 0 {
                break;
            }
        }
        self.pause_trace_store(bus, false);
        self.enabled = was_enabled;
        handled
    }
}
