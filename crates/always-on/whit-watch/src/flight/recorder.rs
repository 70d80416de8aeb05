//! One trigger becomes one file.

use super::dump::{DRAIN_PATIENCE, Taken};
use super::{DumpStatus, Plan};
use crate::folder::{Folder, Line, seconds};
use crate::log::Log;
use crate::recorder::LiveStream;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use whit_perfdata::dump_cause::DumpCause;
use whit_perfdata::feature::Features;
use whit_trigger::{Limiter, RecordedRequest, Trigger, Triggers};
use whit_types::ByteSize;

const DAY: Duration = Duration::from_secs(86_400);

/// Shared by the thread and the service. Nobody waits for a disk here.
#[derive(Debug, Default)]
pub(super) struct Shared {
    stream: Mutex<Option<LiveStream>>,
    status: Mutex<DumpStatus>,
    triggers: Mutex<Weak<Triggers>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn follow(&self, stream: &LiveStream) {
        *lock(&self.stream) = Some(stream.clone());
    }

    pub(super) fn set_triggers(&self, triggers: &Arc<Triggers>) {
        *lock(&self.triggers) = Arc::downgrade(triggers);
    }

    /// Hands a request on, where a trigger waits for events.
    pub(super) fn report(&self, request: RecordedRequest) {
        let triggers = lock(&self.triggers).upgrade();
        if let Some(triggers) = triggers {
            triggers.report(request);
        }
    }

    pub(super) fn count_uncertain_requests(&self, more: u64) {
        if more > 0 {
            lock(&self.status).uncertain_requests += more;
        }
    }

    pub(super) fn status(&self) -> DumpStatus {
        lock(&self.status).clone()
    }
}

/// Writes dumps.
pub(super) struct Recorder {
    plan: Plan,
    folder: Folder,
    limiter: Limiter,
    begun: Instant,
    shared: Arc<Shared>,
    log: Log,
}

/// Why an event has no dump.
enum Without {
    Recorder,
    Bound(whit_trigger::Suppressed),
    File(String),
}

/// The facts about a dump that its header states.
#[derive(Clone, Copy)]
struct HeaderFacts {
    covered: Duration,
    has_newest: bool,
}

impl Recorder {
    pub(super) fn new(plan: Plan, folder: Folder, shared: Arc<Shared>, log: Log) -> Recorder {
        let mut limiter = Limiter::new(&plan.trigger);
        // A service that is started again and again has the same bounds.
        for entry in folder.kept().entries() {
            let age = SystemTime::now().duration_since(entry.end).unwrap_or_default();
            if let Some(at) = DAY.checked_sub(age) {
                limiter.wrote(at, entry.bytes);
            }
        }
        let recorder = Recorder { plan, folder, limiter, begun: Instant::now(), shared, log };
        recorder.publish(|_| ());
        recorder
    }

    /// The limiter's clock: dumps of the day before have times of their own.
    fn now(&self) -> Duration {
        DAY + self.begun.elapsed()
    }

    fn publish(&self, change: impl FnOnce(&mut DumpStatus)) {
        let mut status = lock(&self.shared.status);
        status.folder = self.plan.root.display().to_string();
        status.seconds = self.plan.length.as_secs_f64();
        status.suppressed = self.limiter.counts();
        status.files = self.folder.kept().len();
        status.files_bytes = self.folder.kept().bytes();
        change(&mut status);
    }

    /// Writes a dump for the trigger, or counts why there is none.
    pub(super) fn take(&mut self, trigger: &Trigger) {
        match self.dump(trigger) {
            Ok(line) => self.log.say_always(line),
            Err(Without::Recorder) => {
                self.log.say(format_args!("{}: no recorder runs, no dump", trigger.kind.name()));
                self.publish(|status| status.without_recorder += 1);
            }
            Err(Without::Bound(bound)) => {
                self.log.say(format_args!("{}: no dump: {bound}", trigger.kind.name()));
                self.publish(|_| ());
            }
            Err(Without::File(reason)) => {
                self.log.say(format_args!("a dump is lost: {reason}"));
                self.publish(|status| {
                    status.failed += 1;
                    status.last_error = Some(reason);
                });
            }
        }
    }

    fn dump(&mut self, trigger: &Trigger) -> Result<String, Without> {
        self.limiter.admit(self.now(), 0).map_err(Without::Bound)?;
        let stream = lock(&self.shared.stream).clone().ok_or(Without::Recorder)?;
        let taken = Taken::of(&stream, self.plan.length).ok_or(Without::Recorder)?;
        self.limiter.admit(self.now(), taken.bytes()).map_err(Without::Bound)?;
        let begin = trigger.wall.checked_sub(taken.covered).unwrap_or(trigger.wall);
        let line =
            Line { start_s: seconds(begin), end_s: seconds(trigger.wall), ..Line::default() };
        let Recorder { plan, folder, limiter, begun, .. } = self;
        let mut facts = HeaderFacts { covered: Duration::ZERO, has_newest: false };
        let mut bound = None;
        let added = folder.add_at_once(line, |file| {
            let written = taken.write(file)?;
            facts = HeaderFacts { covered: written.covered, has_newest: written.has_newest };
            // The newest records may be too many.
            let admitted = limiter.admit(DAY + begun.elapsed(), written.bytes());
            bound = admitted.err();
            admitted.map_err(io::Error::other)?;
            let mut features = Features::default();
            features.set_dump_cause(&cause(plan, trigger, facts));
            written.finish(&features)
        });
        let took = trigger.at.elapsed();
        let (path, written) = added.map_err(|error| match bound {
            Some(bound) => Without::Bound(bound),
            None => Without::File(error.to_string()),
        })?;
        let HeaderFacts { covered, has_newest } = facts;
        let is_short = covered < self.plan.length;
        self.limiter.wrote(self.now(), written);
        let removed = self.folder.retain(self.plan.limits, SystemTime::now());
        let removed = removed.unwrap_or_else(|error| {
            self.log.say(format_args!("cannot remove old dumps: {error}"));
            0
        });
        let ms = took.as_secs_f64() * 1e3;
        self.publish(|status| {
            status.dumps += 1;
            status.bytes += written;
            status.short_dumps += u64::from(is_short);
            status.without_newest += u64::from(!has_newest);
            status.last_file = Some(path.display().to_string());
            (status.last_ms, status.max_ms) = (ms, ms.max(status.max_ms));
            status.removed_by_age_or_bytes += removed;
        });
        let seconds = covered.as_secs_f64();
        let (path, size) = (path.display(), ByteSize(written));
        Ok(format!("{path} has the last {seconds:.1} s ({size}, {ms:.0} ms after {trigger})"))
    }
}

/// The event, as the header of the file has it.
fn cause(plan: &Plan, trigger: &Trigger, facts: HeaderFacts) -> DumpCause {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut detail = trigger.detail.exact().to_owned();
    if !facts.has_newest {
        let ms = DRAIN_PATIENCE.as_millis();
        detail.push_str(&format!(
            " (the newest records are missing: the recorder did not empty its rings within {ms} ms)"
        ));
    }
    DumpCause {
        kind: trigger.kind.name().to_owned(),
        detail,
        wall_clock_ns: ns(trigger.wall.duration_since(UNIX_EPOCH).unwrap_or_default()),
        wanted_ns: ns(plan.length),
        covered_ns: ns(facts.covered),
    }
}
