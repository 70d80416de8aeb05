//! Intel's classic protocol: stop everything, handle, start everything.
//!
//! Source: `intel_pmu_handle_irq` of Linux; the order of LVTPC there (`late_ack`, `mid_ack`).

use super::{PmiSink, ROUNDS_MAX};
use crate::bits::{global_status, lvtpc};
use crate::bus::PmuBus;
use crate::driver::Driver;
use crate::model::AckOrder;
use crate::msr;

impl Driver {
    pub(super) fn intel_classic<B: PmuBus + ?Sized, S: PmiSink<B> + ?Sized>(
        &mut self,
        bus: &mut B,
        sink: &mut S,
    ) -> u32 {
        if self.model.ack == AckOrder::Early {
            bus.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
        }
        let mut was_enabled = core::mem::replace(&mut self.enabled, false);
        self.pause(bus);
        let mut handled = self.stop_trace_store(bus, sink);
        let mut status = bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS);
        let mut rounds = 0;
        loop {
            while status != 0 {
                rounds += 1;
                if rounds > ROUNDS_MAX {
                    self.reset(bus);
                    was_enabled = false;
                    break;
                }
                // Before the acknowledgement, which lets the hardware record again.
                self.read_branches(bus);
                bus.wrmsr(msr::IA32_PERF_GLOBAL_STATUS_RESET, status);
                handled = handled.saturating_add(self.service(bus, status, sink));
                status = bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS);
            }
            if self.model.ack == AckOrder::Mid {
                bus.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
            }
            self.record_branches_again(bus);
            if was_enabled {
                self.resume(bus);
            }
            if self.model.ack != AckOrder::Late {
                break;
            }
            bus.wrmsr(msr::X2APIC_LVTPC, lvtpc::DELIVER_NMI);
            status = self.missed(bus, was_enabled);
            if status == 0 {
                break;
            }
            self.pause(bus);
        }
        self.pause_trace_store(bus, false);
        self.enabled = was_enabled;
        handled
    }

    fn pause(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        self.write_global_control(bus, 0);
        if self.pebs_enabled != 0 {
            bus.wrmsr(msr::IA32_PEBS_ENABLE, 0);
        }
    }

    /// Counters that overflowed between the PMU's start and a late unmasking, where their interrupt
    /// may be lost.
    fn missed(&mut self, bus: &mut (impl PmuBus + ?Sized), was_enabled: bool) -> u64 {
        if self.model.verify_after_late_ack && was_enabled {
            bus.rdmsr(msr::IA32_PERF_GLOBAL_STATUS) & !global_status::STATES
        } else {
            0
        }
    }

    /// Before version 4 the freeze of branch records is the end of recording.
    fn record_branches_again(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        if self.model.version < 4 && self.branch_users > 0 {
            bus.wrmsr(msr::IA32_DEBUGCTL, self.debug_control);
        }
    }

    /// The status does not become 0: everything off, and it is for the caller to start events anew.
    pub(super) fn reset(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        self.statistics.stuck += 1;
        self.quiesce(bus);
    }
}
