//! How much is not counted because counters freeze on overflow.
//!
//! APERF counts cycles like a counter of unhalted core cycles does, but no freeze stops it. Its
//! lead over such a counter is the loss by freezing: from the overflow over the interrupt's skid
//! and delivery to the acknowledgement that thaws.

use super::Driver;
use crate::bits::evtsel;
use crate::bus::PmuBus;
use crate::counter::CounterIndex;
use crate::msr;

/// Cycles that were not counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct FreezeGap {
    /// Interrupts that were measured.
    pub interrupts: u64,
    /// Cycles that were not counted from the first measured interrupt to the last.
    pub cycles: u64,
    /// Most cycles between two measurements, which are [`FreezeGap::every`] interrupts apart.
    pub cycles_max: u64,
    /// Cycles that were counted meanwhile.
    pub counted: u64,
    /// Interrupts from one measurement to the next.
    pub every: u32,
}

impl FreezeGap {
    /// Part of all cycles that was not counted, in thousandths.
    #[must_use]
    pub const fn lost_permille(&self) -> u64 {
        let all = self.cycles.saturating_add(self.counted);
        match self.cycles.saturating_mul(1000).checked_div(all) {
            Some(permille) => permille,
            None => 0,
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct GapMeter {
    counter: CounterIndex,
    until_next: u32,
    /// APERF and the counter's count at the last measurement.
    last: Option<(u64, u64)>,
    gap: FreezeGap,
}

impl GapMeter {
    /// The difference of two measurements is no longer freezing alone.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

impl Driver {
    /// Measures the gap with the event on `counter`, which must count core cycles in both
    /// privileges, at every `every`-th interrupt: one RDMSR and one RDPMC then, between the
    /// handling of overflows and the thaw. The mean over all interrupts is exact for any `every`,
    /// but for the interval in which freezing was switched or the PMU disabled.
    ///
    /// False, and no measurement, where the counter has no such event.
    pub fn measure_gap(&mut self, counter: CounterIndex, every: u32) -> bool {
        let both = evtsel::USR | evtsel::OS;
        let fits = self.slots[counter.index()].is_some_and(|slot| {
            let select = slot.event.config.select;
            select & evtsel::EVENT_CODE == 0x3c && select & both == both
        });
        let every = every.max(1);
        let gap = FreezeGap { every, ..FreezeGap::default() };
        self.gap = fits.then_some(GapMeter { counter, until_next: 1, last: None, gap });
        fits
    }

    /// Measurements so far.
    #[must_use]
    pub fn freeze_gap(&self) -> Option<FreezeGap> {
        self.gap.map(|meter| meter.gap)
    }

    /// An interrupt is about to thaw the counters.
    pub(crate) fn meet_gap(&mut self, bus: &mut (impl PmuBus + ?Sized)) {
        let Some(mut meter) = self.gap else { return };
        meter.until_next -= 1;
        if meter.until_next == 0 {
            meter.until_next = meter.gap.every;
            let aperf = bus.rdmsr(msr::IA32_APERF);
            if let Some(count) = self.read(bus, meter.counter) {
                meter.measure(aperf, count);
            }
        }
        self.gap = Some(meter);
    }
}

impl GapMeter {
    fn measure(&mut self, aperf: u64, count: u64) {
        if let Some((last_aperf, last_count)) = self.last.replace((aperf, count)) {
            let counted = count.wrapping_sub(last_count);
            let lost = aperf.wrapping_sub(last_aperf).saturating_sub(counted);
            self.gap.interrupts += u64::from(self.gap.every);
            self.gap.cycles += lost;
            self.gap.cycles_max = self.gap.cycles_max.max(lost);
            self.gap.counted += counted;
        }
    }
}
