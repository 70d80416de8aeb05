//! Values that are measured again and again.

/// Time after which a fall is believed.
const FALL_S: f64 = 1.0;
/// Time in which the cost of one sample or switch follows its measurements.
const UNIT_S: f64 = 2.0;
/// Fewer switches than this in a reading say nothing about the cost of one.
const COUNT_MIN: f64 = 100.0;

/// A value that follows a rise at once, and a fall with time: too much is what the budget forbids.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak(f64);

impl Peak {
    pub(crate) fn observe(&mut self, value: f64, seconds: f64) {
        if value >= self.0 {
            self.0 = value;
        } else {
            self.0 += (value - self.0) * share(seconds, FALL_S);
        }
    }

    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

/// The cost of one thing, as measured over the last while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitCost {
    ns: f64,
    is_measured: bool,
}

impl UnitCost {
    /// Before it was measured.
    pub(crate) fn assumed(ns: f64) -> UnitCost {
        UnitCost { ns, is_measured: false }
    }

    pub(crate) fn observe(&mut self, total_ns: f64, count: f64, seconds: f64) {
        if count < COUNT_MIN {
            return;
        }
        let measured = total_ns / count;
        if self.is_measured {
            self.ns += (measured - self.ns) * share(seconds, UNIT_S);
        } else {
            *self = UnitCost { ns: measured, is_measured: true };
        }
    }

    pub(crate) fn ns(self) -> f64 {
        self.ns
    }
}

fn share(seconds: f64, of: f64) -> f64 {
    (seconds / of).clamp(0.0, 1.0)
}
