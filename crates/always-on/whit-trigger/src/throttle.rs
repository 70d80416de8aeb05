//! Cgroups that use their quota of CPU time up: `cpu.stat` of both versions.

use crate::parse::time_text;
use crate::rule::{Throttle, ThrottleLimit};
use crate::sliding::Sliding;
use std::time::Duration;

/// Counters of `cpu.stat`: periods, throttled periods, throttled time in ns.
type Totals = [u64; 3];

/// A share of periods counts when so much of the window was seen.
const SEEN_PERCENT: u64 = 90;

/// Adds throttled periods and time up.
#[derive(Clone, Debug)]
pub(crate) struct ThrottleMeter {
    rule: Throttle,
    sliding: Sliding<3>,
}

impl ThrottleMeter {
    pub(crate) fn new(rule: &Throttle) -> ThrottleMeter {
        let window_ns = u64::try_from(rule.window.as_nanos()).unwrap_or(u64::MAX);
        ThrottleMeter { rule: rule.clone(), sliding: Sliding::new(window_ns) }
    }

    pub(crate) fn window(&self) -> Duration {
        self.rule.window
    }

    pub(crate) fn restart(&mut self) {
        self.sliding.restart();
    }

    /// Takes the file's text. Gives the throttling of the window where it is too much.
    pub(crate) fn see(&mut self, text: &str, now_ns: u64) -> Result<Option<String>, &'static str> {
        let totals = totals(text).ok_or("counts of throttled periods: set a quota of CPU time")?;
        let growth = self.sliding.add(now_ns, totals);
        let [periods, throttled, time_ns] = growth.by;
        let window_ns = u64::try_from(self.rule.window.as_nanos()).unwrap_or(u64::MAX);
        let is_event = match self.rule.limit {
            ThrottleLimit::Time(longest) => Duration::from_nanos(time_ns) >= longest,
            ThrottleLimit::PeriodsPercent(percent) => {
                growth.within_ns >= window_ns / 100 * SEEN_PERCENT
                    && periods > 0
                    && throttled.saturating_mul(100) >= periods.saturating_mul(percent.into())
            }
        };
        let time = time_text(Duration::from_millis(time_ns / 1_000_000));
        Ok(is_event.then(|| format!("throttled in {throttled} of {periods} periods, {time}")))
    }
}

/// Version 1 has `throttled_time` in ns, version 2 `throttled_usec`. Without a quota, version 2 has neither.
fn totals(text: &str) -> Option<Totals> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
    };
    let time_ns = value("throttled_time")
        .or_else(|| value("throttled_usec").map(|us| us.saturating_mul(1000)))?;
    Some([value("nr_periods")?, value("nr_throttled")?, time_ns])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;
    use proptest::prelude::*;

    fn meter(text: &str) -> ThrottleMeter {
        match text.parse().unwrap() {
            Rule::Throttle(rule) => ThrottleMeter::new(&rule),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_versions_count() {
        let old = "nr_periods 10\nnr_throttled 4\nthrottled_time 2000\n";
        let new = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2\n";
        assert_eq!((totals(old), totals(new)), (Some([10, 4, 2000]), Some([10, 4, 2000])));
        // Version 2 without a quota.
        assert_eq!(totals("usage_usec 9\nuser_usec 5\nsystem_usec 4\n"), None);
    }

    #[test]
    fn a_share_of_periods_needs_a_window_of_them() {
        let mut it = meter("throttle:20%/1s@web");
        let mut at = |ms: u64, periods: u64, throttled: u64| {
            let text = format!(
                "nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time {}",
                throttled * 5_000_000
            );
            it.see(&text, ms * 1_000_000).unwrap()
        };
        assert_eq!(at(0, 100, 100), None);
        assert_eq!(at(100, 101, 101), None, "one period is no share");
        assert_eq!(at(900, 109, 102), Some("throttled in 2 of 9 periods, 10ms".to_owned()));
        assert_eq!(at(2000, 120, 103), None);
        // A cgroup that does nothing has no periods.
        assert_eq!(at(4000, 120, 103), None);
    }

    #[test]
    fn throttled_time_counts_at_once() {
        let mut it = meter("throttle:50ms/1s@web");
        let text = |ms: u64| format!("nr_periods 1\nnr_throttled 1\nthrottled_usec {}", ms * 1000);
        assert_eq!(it.see(&text(1000), 0), Ok(None));
        assert_eq!(it.see(&text(1049), 10), Ok(None));
        assert!(it.see(&text(1050), 20).unwrap().is_some());
        assert!(it.see("usage_usec 1", 30).unwrap_err().contains("quota"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_bad(text in "(nr_periods |nr_throttled |throttled_usec |[0-9]{1,25}|\n| ){0,20}") {
            let _ = totals(&text);
        }
    }
}
