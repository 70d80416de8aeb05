//! The time of a call, taken apart.

use std::collections::BTreeMap;
use whit_profile::tables::TableSource;

use super::call::Call;
use crate::histories::Histories;
use crate::path::{Activity, own_time};
use crate::place::{Place, Places};

/// One kind of time: what the thread did, and for a wait the place and the object of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Part {
    /// Running, waiting, or why it is unknown.
    pub activity: Activity,
    /// The function and the object of the wait.
    pub place: Place,
}

/// Nanoseconds by part. They add up to the duration of the call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parts(pub BTreeMap<Part, u64>);

impl Parts {
    /// Those of a call.
    pub(crate) fn of(
        source: &TableSource,
        places: &mut Places,
        histories: &Histories,
        call: &Call,
    ) -> Parts {
        let mut parts = Parts::default();
        let caller = histories.number(call.goroutine, call.thread);
        for piece in own_time(&histories.all, caller, call.from, call.to) {
            let place = match piece.activity {
                // A thread is taken off anywhere.
                Activity::Running
                | Activity::RunQueue(_)
                | Activity::Throttled
                | Activity::Runnable => Place::default(),
                _ => places.of(source, piece.site),
            };
            let part = Part { activity: piece.activity, place };
            *parts.0.entry(part).or_default() += piece.duration_ns();
        }
        parts
    }

    /// The sum, which is the duration.
    pub fn total_ns(&self) -> u64 {
        self.0.values().sum()
    }

    /// Those of activities that the test takes.
    pub fn sum_ns(&self, is_wanted: impl Fn(Activity) -> bool) -> u64 {
        self.0.iter().filter(|(part, _)| is_wanted(part.activity)).map(|(_, ns)| ns).sum()
    }
}
