//! AMD's protocols. Delivery does not mask LVTPC, so nothing is unmasked.
//!
//! Source: `amd_pmu_v2_handle_irq` and `x86_pmu_handle_irq` of Linux.

use super::PmiSink;
use crate::bus::PmuBus;
use crate::driver::Driver;
use crate::msr;

impl Driver {
    /// PerfMonV2: stop everything, look once, start everything.
    pub(super) fn amd_v2<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        sink: &mut S,
    ) -> u32 {
        let was_enabled = core::mem::replace(&mut self.enabled, false);
        self.write_global_control(bus, 0);
        let status = bus.rdmsr(msr::PERF_CNTR_GLOBAL_STATUS);
        let mut handled = 0;
        if status != 0 {
            self.read_branches(bus);
            handled = self.service(bus, status, sink);
            // All of it: microcode is known that sets reserved bits.
            bus.wrmsr(msr::PERF_CNTR_GLOBAL_STATUS_CLR, status);
        }
        if was_enabled {
            self.resume(bus);
        }
        self.enabled = was_enabled;
        handled
    }

    /// Before PerfMonV2: counters run on, and each tells by its top bit whether it overflowed.
    pub(super) fn amd<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        sink: &mut S,
    ) -> u32 {
        let mut handled = 0;
        for counter in self.active.iter() {
            self.update(bus, counter);
            let raw = self.slots[counter.index()].map(|slot| slot.raw);
            if raw.is_some_and(|raw| self.has_overflowed(counter, raw)) {
                handled += 1;
                self.overflow(bus, counter, sink);
            }
        }
        handled
    }
}
