//! CPU time by call stack.
//!
//! As over recordings: the time of a run belongs to its samples in equal shares, and that of runs without a sample to the
//! next sample of the thread.

use super::Reader;
use rusqlite::{Result, Rows, params};
use whit_perfdata::blocked::BLOCKED_NAME;
use whit_perfdata::off_cpu::OFF_CPU_NAME;
use whit_profile::switches::MAX_RUN_SAMPLES;
use whit_types::{SoftwareEvent, TimestampNs};

/// Time of a thread at a call site.
pub(super) struct CpuTime {
    /// `thread.utid`.
    pub(super) thread: i64,
    /// `callsite.id`; `None` where no sample has one.
    pub(super) callsite: Option<i64>,
    /// A moment of it.
    pub(super) at: TimestampNs,
    /// Nanoseconds.
    pub(super) ns: u64,
    /// No loss may hide a switch in it.
    pub(super) is_certain: bool,
}

/// A moment at which a call site was seen.
#[derive(Clone, Copy)]
struct Seen {
    at: u64,
    callsite: Option<i64>,
}

/// Time of a thread that waits for a sample.
#[derive(Clone, Copy)]
struct Unsampled {
    thread: i64,
    ns: u64,
    until: u64,
}

/// Samples in the order of threads and times.
struct Samples<'r> {
    rows: Rows<'r>,
    next: Option<(i64, Seen)>,
}

impl Samples<'_> {
    fn advance(&mut self) -> Result<()> {
        self.next = match self.rows.next()? {
            Some(row) => {
                let at = row.get::<_, i64>(1)?.max(0) as u64;
                Some((row.get(0)?, Seen { at, callsite: row.get(2)? }))
            }
            None => None,
        };
        Ok(())
    }

    /// The next sample of a thread in a time; earlier ones are in no run.
    fn take(&mut self, thread: i64, from: u64, to: u64) -> Result<Option<Seen>> {
        while let Some((of, seen)) = self.next {
            if (of, seen.at) > (thread, to) {
                break;
            }
            self.advance()?;
            if (of, seen.at) >= (thread, from) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }
}

/// Distributes the time of runs.
struct Distribution<'t> {
    take: &'t mut dyn FnMut(CpuTime),
    unsampled: Option<Unsampled>,
}

impl Distribution<'_> {
    /// Equal shares for all samples; the remainder belongs to the first ones.
    fn distribute(&mut self, thread: i64, samples: &[Seen], ns: u64, is_certain: bool) {
        let count = samples.len() as u64;
        for (number, seen) in (0..).zip(samples) {
            let ns = ns / count + u64::from(number < ns % count);
            let (callsite, at) = (seen.callsite, TimestampNs(seen.at));
            (self.take)(CpuTime { thread, callsite, at, ns, is_certain });
        }
    }

    fn run(&mut self, thread: i64, samples: &[Seen], (from, to): (u64, u64), is_certain: bool) {
        let ns = to - from;
        if !is_certain {
            let nowhere = [Seen { at: to, callsite: None }];
            let samples = if samples.is_empty() { &nowhere } else { samples };
            return self.distribute(thread, samples, ns, false);
        }
        let before = self.unsampled.take_if(|it| it.thread == thread).map_or(0, |it| it.ns);
        self.end();
        let ns = before.saturating_add(ns);
        match samples.is_empty() {
            true => self.unsampled = Some(Unsampled { thread, ns, until: to }),
            false => self.distribute(thread, samples, ns, true),
        }
    }

    /// Time without a sample is the thread's, at no call site.
    fn end(&mut self) {
        if let Some(Unsampled { thread, ns: ns @ 1.., until }) = self.unsampled.take() {
            self.distribute(thread, &[Seen { at: until, callsite: None }], ns, true);
        }
    }
}

impl Reader<'_> {
    /// The event that CPU time is distributed over. A clock comes before others, these by name.
    pub(super) fn cpu_time_event(&self) -> Result<Option<String>> {
        let sql = "SELECT DISTINCT event FROM sample WHERE recording_id = ?1 AND event IS NOT NULL ORDER BY 1";
        let mut statement = self.connection.prepare(sql)?;
        let names = statement.query_map([self.id], |row| row.get(0))?;
        let names: Vec<String> = names.collect::<Result<_>>()?;
        let of_time = names.into_iter().filter(|name| counts_cpu_time(name));
        Ok(of_time.min_by_key(|name| !is_clock(event_of(name))))
    }

    /// CPU time of all threads in the selected time.
    pub(super) fn cpu_time(
        &self,
        event: Option<&str>,
        take: &mut dyn FnMut(CpuTime),
    ) -> Result<()> {
        let sql = "SELECT utid, ts, callsite_id FROM sample WHERE recording_id = ?1 AND event = ?2 ORDER BY 1, 2";
        let mut samples = self.connection.prepare(sql)?;
        let rows = samples.query(params![self.id, event])?;
        let mut samples = Samples { rows, next: None };
        samples.advance()?;
        let sql = "SELECT utid, ts, dur, certain FROM sched WHERE recording_id = ?1 ORDER BY 1, 2";
        let mut runs = self.connection.prepare(sql)?;
        let mut runs = runs.query([self.id])?;
        let mut time = Distribution { take, unsampled: None };
        let mut held = Vec::new();
        while let Some(row) = runs.next()? {
            let (thread, begin, dur): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let is_certain = row.get::<_, i64>(3)? != 0;
            let span = (begin, begin.saturating_add(dur.max(0)));
            let Some(range) = self.clock.part_of(span) else { continue };
            let (mut from, to) = (range.from.0, range.to.0);
            held.clear();
            while let Some(seen) = samples.take(thread, from, to)? {
                held.push(seen);
                if held.len() == MAX_RUN_SAMPLES {
                    time.run(thread, &held, (from, seen.at), is_certain);
                    held.clear();
                    from = seen.at;
                }
            }
            time.run(thread, &held, (from, to), is_certain);
        }
        time.end();
        Ok(())
    }
}

/// The name without its modifiers. That of a tracepoint, a probe or a breakpoint keeps a colon.
fn event_of(name: &str) -> &str {
    const MODIFIERS: &str = "ukhIGHpPSDWebR";
    match name.rsplit_once(':') {
        Some((event, letters)) if letters.chars().all(|of| MODIFIERS.contains(of)) => event,
        _ => name,
    }
}

fn is_clock(event: &str) -> bool {
    let event = SoftwareEvent::from_name(event);
    matches!(event, Some(SoftwareEvent::CpuClock | SoftwareEvent::TaskClock))
}

/// Clocks and the counters of CPUs do; software events, tracepoints and breakpoints do not.
fn counts_cpu_time(name: &str) -> bool {
    let event = event_of(name);
    let is_other = event.contains(':')
        || SoftwareEvent::from_name(event).is_some()
        || event.starts_with(SoftwareEvent::Dummy.name())
        || [OFF_CPU_NAME, BLOCKED_NAME].contains(&event);
    is_clock(event) || !is_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_counters_of_cpus_count_cpu_time() {
        for name in [
            "cpu-clock",
            "task-clock:u",
            "cycles:P",
            "cpu_core/cycles/",
            "r01c4",
            "L1-dcache-load-misses",
        ] {
            assert!(counts_cpu_time(name), "{name}");
        }
        for name in [
            "page-faults:u",
            "cs",
            "context-switches",
            "dummy:HG",
            "sched:sched_switch",
            "probe_server:handle",
            "mem:0x4005f0:x",
            "offcpu-time",
            "whit-blocked",
        ] {
            assert!(!counts_cpu_time(name), "{name}");
        }
    }

    /// A run of a thread: its samples, and whether it is certain.
    type Run<'a> = (i64, &'a [(u64, i64)], (u64, u64), bool);

    fn distributed(runs: &[Run<'_>]) -> Vec<(i64, Option<i64>, u64, bool)> {
        let mut found = Vec::new();
        let mut take = |it: CpuTime| found.push((it.thread, it.callsite, it.ns, it.is_certain));
        let mut time = Distribution { take: &mut take, unsampled: None };
        for (thread, samples, span, is_certain) in runs {
            let samples = samples.iter().map(|(at, id)| Seen { at: *at, callsite: Some(*id) });
            time.run(*thread, &samples.collect::<Vec<_>>(), *span, *is_certain);
        }
        time.end();
        found
    }

    #[test]
    fn time_without_a_sample_belongs_to_the_next_sample_of_the_thread() {
        let found = distributed(&[
            (1, &[], (0, 10), true),
            (1, &[(12, 7), (13, 8)], (12, 25), true),
            (1, &[], (30, 34), true),
            (2, &[(41, 9)], (40, 50), true),
        ]);
        let expected = [
            (1, Some(7), 12, true),
            (1, Some(8), 11, true),
            (1, None, 4, true),
            (2, Some(9), 10, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn uncertain_time_is_not_handed_on() {
        let found = distributed(&[
            (1, &[], (0, 10), true),
            (1, &[], (20, 23), false),
            (1, &[(31, 7)], (30, 35), false),
            (1, &[(41, 8)], (40, 41), true),
        ]);
        let expected = [(1, None, 3, false), (1, Some(7), 5, false), (1, Some(8), 11, true)];
        assert_eq!(found, expected);
    }
}
