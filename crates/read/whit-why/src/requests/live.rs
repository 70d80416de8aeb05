//! Requests of a recording that is still being made: those that took longer than a limit.
//!
//! Records come in no order within a round of the recorder. Those that are older than the newest record of the round
//! before have all come at the end of a round, so a request is found up to two rounds after its end.

use super::call::Call;
use super::pair::Pairing;
use std::sync::Arc;
use std::time::Duration;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::{EventDesc, Features};
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_profile::tables::{RequestEvents, RequestMark};
use whit_types::{Arch, Pid, TimestampNs};

/// Hits that wait for the end of a round.
const WAITING_MAX: usize = 1 << 18;

/// Connections of a name that are remembered.
const CONNECTIONS_MAX: usize = 1 << 16;

/// A request that took longer than its limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowRequest {
    /// As `--request` gave it.
    pub name: Arc<str>,
    /// The process that served it.
    pub pid: Pid,
    /// Times, thread and key.
    pub call: Call,
}

/// Finds slow requests in a stream of records. Memory grows with the threads that are in a request.
pub struct SlowRequests {
    marks: RequestEvents,
    table: EventTable,
    /// By number of the requests; none where no limit asks for these.
    kinds: Vec<Option<Kind>>,
    waiting: Vec<(TimestampNs, News)>,
    newest: TimestampNs,
    /// The newest record at the end of the round before.
    whole: TimestampNs,
    /// Losses that the time of the next news lies in.
    losses: usize,
    uncertain: u64,
}

struct Kind {
    name: Arc<str>,
    longest_ns: u64,
    pairing: Pairing,
}

enum News {
    Mark(Pid, RequestMark),
    ThreadEnded(u32),
    LossBegins,
    LossEnds,
}

impl SlowRequests {
    /// For a stream with such events. Its programs run on this machine. `limits` has the longest duration that is no
    /// slow one, by name.
    pub fn new(
        events: &[EventDesc],
        features: &Features,
        limits: &[(&str, Duration)],
    ) -> SlowRequests {
        let marks = RequestEvents::of(events, features);
        let kind = |name: &Arc<str>| {
            let of_name = limits.iter().filter(|(of, _)| **of == **name);
            let longest = of_name.map(|(_, longest)| longest.as_nanos()).min()?;
            let arch = Arch::native().unwrap_or(Arch::X86_64);
            let longest_ns = u64::try_from(longest).unwrap_or(u64::MAX);
            let pairing = Pairing::live(arch, longest_ns, CONNECTIONS_MAX);
            Some(Kind { name: name.clone(), longest_ns, pairing })
        };
        let kinds = marks.names().iter().map(kind).collect();
        SlowRequests {
            marks,
            table: EventTable::new(events),
            kinds,
            waiting: Vec::new(),
            newest: TimestampNs(0),
            whole: TimestampNs(0),
            losses: 0,
            uncertain: 0,
        }
    }

    /// Takes the next record of the stream.
    pub fn take(&mut self, record: RawRecord<'_>, found: &mut dyn FnMut(SlowRequest)) {
        match record.header.kind {
            record_type::SAMPLE => self.take_sample(record),
            record_type::EXIT => {
                if let Some(SideBand::Exit(task)) = SideBand::parse(record) {
                    let time = self.table.trailer_time(record).unwrap_or(TimestampNs(task.time));
                    self.add(time, News::ThreadEnded(task.tid.0 as u32));
                }
            }
            record_type::LOST | record_type::LOST_SAMPLES => self.take_loss(record),
            record_type::FINISHED_ROUND => self.end_round(found),
            _ => {}
        }
    }

    /// Requests with a limit that have no known duration, since records were lost meanwhile.
    pub fn uncertain(&self) -> u64 {
        self.uncertain
    }

    fn take_sample(&mut self, record: RawRecord<'_>) {
        let Some(event) = self.table.event_of_sample(record.body) else { return };
        if !self.marks.is_mark(event) {
            return;
        }
        let sample = self.table.layout(event).and_then(|layout| layout.parse(record.body));
        let Some(sample) = sample else { return };
        let (Some((pid, tid)), Some(time), Some(raw)) = (sample.pid_tid, sample.time, sample.raw)
        else {
            return;
        };
        if let Some(mark) = self.marks.mark(event, (time, tid.0 as u32), raw) {
            self.add(time, News::Mark(pid, mark));
        }
    }

    /// Without a time that it says, a loss may have begun when the last round ended.
    fn take_loss(&mut self, record: RawRecord<'_>) {
        let since = self.table.loss_since(record);
        let is_late_switch = since.is_some()
            && matches!(SideBand::parse(record), Some(SideBand::LostSamples { lost: 0 }));
        let time = self.table.trailer_time(record).filter(|time| time.0 > 0);
        let Some(to) = time.filter(|_| !is_late_switch && !record.states_no_loss()) else { return };
        self.add(since.unwrap_or(self.whole).min(to), News::LossBegins);
        self.add(to, News::LossEnds);
    }

    fn add(&mut self, time: TimestampNs, news: News) {
        self.newest = self.newest.max(time);
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.clear();
            self.losses = 0;
            self.forget();
        }
        self.waiting.push((time, news));
    }

    fn forget(&mut self) {
        let kinds = self.kinds.iter_mut().flatten();
        self.uncertain += kinds.map(|kind| kind.pairing.forget()).sum::<u64>();
    }

    fn end_round(&mut self, found: &mut dyn FnMut(SlowRequest)) {
        // Sorting keeps the order of news of one moment.
        self.waiting.sort_by_key(|(time, _)| *time);
        let whole = self.waiting.partition_point(|(time, _)| *time <= self.whole);
        let later = self.waiting.split_off(whole);
        for (_, news) in std::mem::replace(&mut self.waiting, later) {
            match news {
                News::Mark(pid, mark) => self.pair(pid, mark, found),
                News::ThreadEnded(thread) => {
                    let kinds = self.kinds.iter_mut().flatten();
                    kinds.for_each(|kind| kind.pairing.end_thread(thread));
                }
                News::LossBegins => {
                    self.losses += 1;
                    self.forget();
                }
                News::LossEnds => {
                    self.losses = self.losses.saturating_sub(1);
                    self.forget();
                }
            }
        }
        self.whole = self.newest;
    }

    fn pair(&mut self, pid: Pid, mark: RequestMark, found: &mut dyn FnMut(SlowRequest)) {
        let Some(Some(kind)) = self.kinds.get_mut(mark.kind as usize) else { return };
        kind.pairing.add(pid, mark);
        for call in kind.pairing.calls.drain(..).filter(|call| call.depth == 0) {
            if self.losses > 0 {
                self.uncertain += 1;
            } else if call.duration_ns() > kind.longest_ns {
                found(SlowRequest { name: kind.name.clone(), pid, call });
            }
        }
    }
}

impl std::fmt::Debug for SlowRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlowRequests").field("names", &self.marks.names()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
