//! The samples of a thread in the call tree.

use super::ms;
use super::thread::Tables;
use crate::content::Moment;
use whit_profile::switches::{Activity, TimelineSpan};
use whit_types::TimestampNs;

/// The shortest wait that ends a sample, where nothing says how far samples are apart.
const SHORT_NS: u64 = 1_000_000;

impl<'a> Tables<'_, 'a> {
    pub(super) fn samples(&mut self, moments: &[Moment<'a>], spans: &[TimelineSpan]) {
        let main = self.content.main_event();
        let interval_ns = main.and_then(|event| self.content.interval_ns(event));
        let is_sliced = self.content.slice_ns().is_some();
        let mut idle = (!is_sliced).then_some(Idle { spans, at: 0, interval_ns });
        let mut idle_between =
            |before, next| idle.as_mut().and_then(|idle| idle.between(before, next));
        let mut row = Rows {
            on_cpu: OnCpu { spans, at: 0, before_ns: 0 },
            before_ns: 0,
            taken_ns: 0,
            deltas: Vec::new(),
        };
        let mut last = None;
        for moment in moments {
            if Some(moment.row.event) != main {
                if !self.content.is_shown_by_waits(moment.row.event) {
                    self.sample_marker(moment);
                }
                continue;
            }
            if let Some(since) = idle_between(last, Some(moment.time)) {
                self.push(&mut row, (since, None, 0), 0);
            }
            let stack = self.stack(moment.row.node);
            let unknown_ns = interval_ns.unwrap_or(0).saturating_mul(moment.samples);
            self.push(&mut row, (moment.time, stack, moment.samples), unknown_ns);
            last = Some(moment.time);
        }
        if let Some(since) = idle_between(last, None) {
            self.push(&mut row, (since, None, 0), 0);
        }
        let is_known = !spans.is_empty() || interval_ns.is_some();
        self.thread.samples.thread_cpu_delta = is_known.then_some(row.deltas);
    }

    /// Adds a row: time, call chain and number of samples. `unknown_ns` is its CPU time where no switches say it.
    fn push(
        &mut self,
        row: &mut Rows<'_>,
        (time, stack, weight): (TimestampNs, Option<u32>, u64),
        unknown_ns: u64,
    ) {
        let at_ns = time.since(self.start);
        let samples = &mut self.thread.samples;
        samples.length += 1;
        samples.stack.push(stack);
        samples.time_deltas.push(ms(at_ns.saturating_sub(row.before_ns)));
        samples.weight.push(weight);
        let so_far_ns = row.on_cpu.until(time);
        let cpu_ns = match row.on_cpu.spans.is_empty() {
            true => unknown_ns,
            false => so_far_ns.saturating_sub(row.taken_ns),
        };
        row.deltas.push(cpu_ns / 1000);
        (row.before_ns, row.taken_ns) = (at_ns, so_far_ns);
    }
}

/// Sums over the rows so far.
struct Rows<'s> {
    on_cpu: OnCpu<'s>,
    before_ns: u64,
    taken_ns: u64,
    deltas: Vec<u64>,
}

/// Moments from which on a thread did not run.
///
/// The profiler draws a sample until the next one. So a sample before a long wait needs an end, which is a row
/// without a call chain and without weight.
struct Idle<'s> {
    spans: &'s [TimelineSpan],
    at: usize,
    interval_ns: Option<u64>,
}

impl Idle<'_> {
    /// The first such moment between two samples, asked for in order of time.
    fn between(
        &mut self,
        before: Option<TimestampNs>,
        next: Option<TimestampNs>,
    ) -> Option<TimestampNs> {
        let before = before?;
        if self.spans.is_empty() {
            let interval_ns = self.interval_ns?;
            // Times of samples vary: one that is late by less than an interval has no wait before it.
            let is_idle = next?.since(before) > interval_ns.saturating_mul(2);
            return is_idle.then(|| TimestampNs(before.0.saturating_add(interval_ns)));
        }
        let least_ns = self.interval_ns.unwrap_or(SHORT_NS);
        let is_next = |span: &TimelineSpan| next.is_none_or(|next| span.start < next);
        while let Some(span) = self.spans.get(self.at).filter(|span| is_next(span)) {
            self.at += 1;
            let waits = span.activity != Activity::Running && span.duration_ns >= least_ns;
            if waits && span.start >= before {
                return Some(span.start);
            }
        }
        None
    }
}

/// The time of a thread on the CPU, asked for in order of time.
struct OnCpu<'s> {
    spans: &'s [TimelineSpan],
    at: usize,
    /// In the spans before.
    before_ns: u64,
}

impl OnCpu<'_> {
    fn until(&mut self, time: TimestampNs) -> u64 {
        while let Some(span) = self.spans.get(self.at) {
            if span.start.0.saturating_add(span.duration_ns) > time.0 {
                let part_ns = time.since(span.start).min(span.parts_ns[Activity::Running as usize]);
                return self.before_ns + part_ns;
            }
            self.before_ns += span.parts_ns[Activity::Running as usize];
            self.at += 1;
        }
        self.before_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_profile::model::{NodeId, ThreadId};
    use whit_profile::switches::Trust;

    fn span(start: u64, duration_ns: u64, activity: Activity) -> TimelineSpan {
        TimelineSpan {
            thread: ThreadId(0),
            start: TimestampNs(start),
            duration_ns,
            activity,
            cpu: None,
            node: NodeId::NONE,
            woken: None,
            parts_ns: [0; 3],
            count: 1,
            trust: Trust::Whole,
            brings: Default::default(),
        }
    }

    fn idle(spans: &[TimelineSpan], interval_ns: Option<u64>, samples: &[u64]) -> Vec<Option<u64>> {
        let mut idle = Idle { spans, at: 0, interval_ns };
        let before = [None].into_iter().chain(samples.iter().map(|at| Some(TimestampNs(*at))));
        let next = samples.iter().map(|at| Some(TimestampNs(*at))).chain([None]);
        before.zip(next).map(|(before, next)| idle.between(before, next).map(|at| at.0)).collect()
    }

    #[test]
    fn a_wait_ends_the_sample_before_it() {
        let spans = [
            span(0, 100, Activity::Waiting),
            span(100, 50, Activity::Running),
            span(150, 5, Activity::Preempted),
            span(155, 45, Activity::Running),
            span(200, 100, Activity::Preempted),
            span(300, 20, Activity::Running),
            span(320, 100, Activity::Waiting),
            span(420, 100, Activity::Mixed),
        ];
        // Nothing ends before the first sample, and short waits end nothing.
        assert_eq!(
            idle(&spans, Some(10), &[110, 120, 160, 310]),
            [None, None, None, Some(200), Some(320)]
        );
        assert_eq!(idle(&spans, Some(200), &[110, 310]), [None, None, None]);
        assert_eq!(idle(&spans, None, &[110, 310]), [None, None, None], "1 ms is the shortest");
    }

    #[test]
    fn without_switches_a_missing_sample_ends_the_one_before() {
        assert_eq!(idle(&[], Some(10), &[5, 15, 34, 55]), [None, None, None, Some(44), None]);
        assert_eq!(idle(&[], None, &[5, 500]), [None, None, None]);
    }
}
