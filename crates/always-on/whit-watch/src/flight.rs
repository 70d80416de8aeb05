//! The flight recorder: the last seconds of the stream go into a file when a trigger comes.
//!
//! It has a thread of its own, since the service may be busy with the end of a window at that moment.

mod dump;
mod recorder;
mod requests;
#[cfg(test)]
mod tests;

use crate::folder::{Folder, FolderError};
use crate::log::Log;
use crate::recorder::LiveStream;
use crate::retention::Limits;
use crate::settings::Settings;
use crate::triggers::{Event, Keeper};
use recorder::{Recorder, Shared};
use requests::RequestWatch;
use serde::Serialize;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use whit_host::roots::Roots;
use whit_live::Bounds;
use whit_sys::scheduling::hurry;
use whit_trigger::{Kind, StartError, SuppressedCounts, Trigger, Triggers};

/// Dumps go into this folder of the service's folder.
const FOLDER: &str = "dumps";
/// Records come in pieces of this length: so much more is kept.
const PIECE: Duration = Duration::from_secs(1);

/// A flight recorder that cannot be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlightError {
    #[error("cannot keep dumps in {0} (--folder names another place)")]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Triggers(#[from] StartError),
    #[error("cannot start a thread that writes dumps: {0}")]
    Thread(io::Error),
}

/// The part of the settings that it is made of.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    root: PathBuf,
    length: Duration,
    bytes: u64,
    limits: Limits,
    trigger: whit_trigger::Settings,
}

impl Plan {
    /// `None` where no seconds are to be kept.
    pub(crate) fn of(settings: &Settings) -> Option<Plan> {
        let plan = Plan {
            root: settings.folder.join(FOLDER),
            length: settings.flight.0,
            bytes: settings.flight_bytes.0.0,
            limits: Limits { age: settings.dump_age.0, bytes: settings.dump_bytes.0.0 },
            trigger: settings.trigger.clone(),
        };
        (!plan.length.is_zero()).then_some(plan)
    }

    /// The part of the stream that it needs.
    pub(crate) fn bounds(&self) -> Bounds {
        let keep_ns = (self.length + PIECE).as_nanos();
        Bounds {
            keep_ns: u64::try_from(keep_ns).unwrap_or(u64::MAX),
            bytes_max: usize::try_from(self.bytes).unwrap_or(usize::MAX),
        }
    }
}

/// Counters and the last dump, for `whit watch status`.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct DumpStatus {
    folder: String,
    /// Seconds before an event that a dump is to have.
    seconds: f64,
    dumps: u64,
    bytes: u64,
    /// Dumps that have less: `flight-bytes` took the rest, or the recorder is younger.
    short_dumps: u64,
    /// Dumps that lack the newest records: the recorder did not empty its rings in time.
    without_newest: u64,
    /// Events that came when no recorder ran.
    without_recorder: u64,
    /// Requests that a trigger waits for, of unknown duration: records were lost meanwhile.
    uncertain_requests: u64,
    /// Events whose dump could not be written.
    failed: u64,
    last_error: Option<String>,
    last_file: Option<String>,
    /// From the event until the file had its name.
    last_ms: f64,
    max_ms: f64,
    /// Events without a dump, by the bound.
    suppressed: SuppressedCounts,
    /// Files in the folder.
    files: usize,
    files_bytes: u64,
    removed_by_age_or_bytes: u64,
}

/// The status with that of the triggers.
#[derive(Serialize)]
struct FlightStatus {
    #[serde(flatten)]
    dumps: DumpStatus,
    triggers: Option<whit_trigger::Status>,
}

/// A flight recorder, which works until it is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Flight {
    plan: Plan,
    log: Log,
    shared: Arc<Shared>,
    work: Mutex<Option<Work>>,
}

#[derive(Debug)]
struct Work {
    triggers: Arc<Triggers>,
    thread: JoinHandle<()>,
}

impl Flight {
    /// Waits for triggers.
    pub(crate) fn start(plan: Plan, log: &Log) -> Result<Flight, FlightError> {
        let (log, shared, work) = (log.clone(), Arc::default(), Mutex::default());
        let flight = Flight { plan, log, shared, work };
        flight.resume()?;
        Ok(flight)
    }

    /// Waits for triggers again.
    pub(crate) fn resume(&self) -> Result<(), FlightError> {
        let folder = Folder::open(&self.plan.root)?;
        let (triggers, receiver) = whit_trigger::start(&self.plan.trigger, Roots::default())?;
        let (plan, log) = (self.plan.clone(), self.log.clone());
        let mut recorder = Recorder::new(plan, folder, self.shared.clone(), log);
        let thread = std::thread::Builder::new().name("whit-flight".into());
        let work = move || {
            // An event is often one of busy CPUs.
            hurry();
            receiver.into_iter().for_each(|trigger| recorder.take(&trigger));
        };
        let thread = thread.spawn(work).map_err(FlightError::Thread)?;
        let triggers = Arc::new(triggers);
        self.shared.set_triggers(&triggers);
        *self.work() = Some(Work { triggers, thread });
        Ok(())
    }

    /// Gives its folder and its socket back: another one may need them.
    pub(crate) fn stop(&self) {
        let Some(Work { triggers, thread }) = self.work().take() else { return };
        // The thread ends with the last sender.
        drop(triggers);
        let _ = thread.join();
    }

    fn work(&self) -> MutexGuard<'_, Option<Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these settings would make the same.
    pub(crate) fn is_of(&self, plan: &Plan) -> bool {
        self.plan == *plan
    }
}

impl Keeper for Flight {
    fn follow(&self, stream: &LiveStream) {
        self.shared.follow(stream);
        let watch = RequestWatch::of(&self.plan.trigger, &self.shared);
        stream.with_window(|window, _| window.observe(watch));
    }

    /// The service has signals of its own.
    fn keep(&self, event: &Event) {
        if let Some(work) = &*self.work() {
            let trigger = Trigger::now(Kind::Signal, event.reason.clone());
            work.triggers.send(Trigger { at: event.at, ..trigger });
        }
    }

    fn status(&self) -> serde_json::Value {
        let triggers = self.work().as_ref().map(|work| work.triggers.status());
        let status = FlightStatus { dumps: self.shared.status(), triggers };
        serde_json::to_value(status).unwrap_or_default()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.stop();
    }
}
