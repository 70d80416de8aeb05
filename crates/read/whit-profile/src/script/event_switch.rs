//! Samples between two events: `--switch-on` and `--switch-off`.

use crate::first_pass::prepare::Prepared;
use crate::in_order::ordered::Batch;
use whit_perfdata::record::record_type;

/// Events, by their numbers, between which samples are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EventSwitches {
    /// Nothing is printed before a sample of this event.
    pub on: Option<usize>,
    /// Nothing is printed behind a sample of this event, until one of the other.
    pub off: Option<usize>,
    /// Print the samples of these two events, too.
    pub shows_both: bool,
}

/// Where the printing of samples stands.
pub(super) struct SwitchState {
    switches: EventSwitches,
    is_off: bool,
}

impl SwitchState {
    pub(super) fn new(switches: EventSwitches) -> SwitchState {
        SwitchState { switches, is_off: switches.on.is_some() }
    }

    /// Keeps the samples to print.
    pub(super) fn retain(&mut self, prepared: &Prepared, samples: &mut Batch) {
        if self.switches.on.is_none() && self.switches.off.is_none() {
            return;
        }
        samples.retain(|sample| {
            let is_sample = sample.header.kind == record_type::SAMPLE;
            !is_sample || self.shows(prepared.events.event_of_sample(sample.record().body))
        });
    }

    /// A sample that switches is shown with `shows_both` alone.
    fn shows(&mut self, event: Option<usize>) -> bool {
        let EventSwitches { on, off, shows_both } = self.switches;
        if on.is_some() && self.is_off {
            self.is_off = event != on;
            return !self.is_off && shows_both;
        }
        if off.is_some() && !self.is_off && event == off {
            // Without the other event, perf goes on behind this one.
            self.is_off = true;
            return shows_both;
        }
        !self.is_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(switches: EventSwitches, events: &[usize]) -> Vec<usize> {
        let mut state = SwitchState::new(switches);
        let places = 0..events.len();
        places.filter(|place| state.shows(Some(events[*place]))).collect()
    }

    #[test]
    fn samples_are_shown_between_the_two_events() {
        let events = [0, 1, 0, 0, 2, 0, 1, 0];
        let both = EventSwitches { on: Some(1), off: Some(2), shows_both: false };
        assert_eq!(shown(both, &events), [2, 3, 7]);
        assert_eq!(shown(EventSwitches { shows_both: true, ..both }, &events), [1, 2, 3, 4, 6, 7]);
        assert_eq!(shown(EventSwitches { on: None, ..both }, &events), [0, 1, 2, 3]);
        assert_eq!(shown(EventSwitches { off: None, ..both }, &events), [2, 3, 4, 5, 6, 7]);
        assert_eq!(shown(EventSwitches::default(), &events).len(), events.len());
    }
}
