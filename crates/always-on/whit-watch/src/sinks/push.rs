//! Windows to receivers over HTTP, by way of spools in the folder (`whit_push`).

use super::Sink;
use crate::log::Log;
use crate::window::Window;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use whit_export::{Content, Delivery};
use whit_push::{Pusher, Settings};
use whit_sys::system::uname;

/// The part of the folder that has spools.
const SPOOL: &str = "spool";
/// Time for windows that wait when the service ends. Those that stay are sent after the next start.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The pusher of a destination. Sinks of new settings have that of the old ones: a spool has one user at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedPusher(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    pusher: Option<Pusher>,
    /// Settings and folder of the pusher.
    of: Option<(Settings, PathBuf)>,
    /// Sinks that were made for the destination: the last one counts.
    sinks: u64,
    /// After the end.
    last: Value,
}

impl SharedPusher {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Ends the pusher; its status stays.
    fn stop(&mut self, grace: Duration) {
        self.of = None;
        if let Some(pusher) = self.pusher.take() {
            self.last = flat(pusher.stop(grace));
        }
    }

    fn start(&mut self, name: &str, wanted: (Settings, PathBuf)) -> Result<(), String> {
        let one = BTreeMap::from([(name.to_owned(), wanted.0.clone())]);
        let started = Pusher::start(&one, &wanted.1).map_err(|error| error.to_string())?;
        (self.pusher, self.of) = (Some(started), Some(wanted));
        Ok(())
    }

    fn status(&self) -> Value {
        self.pusher.as_ref().map_or(self.last.clone(), |pusher| flat(pusher.status()))
    }
}

/// Sends windows to one destination.
pub(crate) struct Push {
    name: String,
    settings: Settings,
    spool: PathBuf,
    shared: SharedPusher,
    /// Its place among the sinks that were made for the destination.
    number: u64,
    log: Log,
    said: Mutex<Option<String>>,
}

impl Push {
    /// Where the destination has no pusher yet, it is started, so that windows of an earlier process go at once. One
    /// with other settings goes on until this sink has a thread.
    pub(crate) fn new(
        (name, settings): (&str, &Settings),
        folder: &Path,
        shared: SharedPusher,
        log: &Log,
    ) -> Result<Push, String> {
        let spool = folder.join(SPOOL);
        whit_push::check(name, settings).map_err(|error| error.to_string())?;
        let mut slot = shared.lock();
        if slot.pusher.is_none() {
            slot.start(name, (settings.clone(), spool.clone()))?;
        }
        slot.sinks += 1;
        let number = slot.sinks;
        drop(slot);
        let (name, settings, log) = (name.to_owned(), settings.clone(), log.clone());
        Ok(Push { name, settings, spool, shared, number, log, said: Mutex::default() })
    }

    /// The slot with a pusher of these settings, unless a later sink has brought others.
    fn slot(&self) -> MutexGuard<'_, Slot> {
        let mut slot = self.shared.lock();
        let wanted = (self.settings.clone(), self.spool.clone());
        if slot.sinks == self.number && slot.of.as_ref() != Some(&wanted) {
            slot.stop(Duration::ZERO);
            if let Err(reason) = slot.start(&self.name, wanted) {
                self.log.say(reason);
            }
        }
        slot
    }

    /// Says a new error, and the end of errors.
    fn say_errors(&self, status: &Value) {
        let error = status["last_error"].as_str().map(str::to_owned);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if *said != error {
            let name = self.name();
            match &error {
                Some(error) => self.log.say(format_args!("{name}: {error}")),
                None => self.log.say(format_args!("{name}: the receiver takes windows again")),
            }
            *said = error;
        }
    }
}

impl Sink for Push {
    fn name(&self) -> String {
        format!("push.{}", self.name)
    }

    fn accept(&self, window: &Window) -> Result<(), String> {
        let profile = window.profile()?;
        let recording = window.recording().map_err(|error| error.to_string())?;
        let content = Content::new(&recording, &profile, None);
        let status = {
            let slot = self.slot();
            let pusher = slot.pusher.as_ref().ok_or("its spool cannot be used")?;
            pusher.accept(&content, &delivery(window));
            slot.status()
        };
        self.say_errors(&status);
        Ok(())
    }

    fn idle(&self) -> Option<Duration> {
        drop(self.slot());
        None
    }

    fn finish(&self) {
        let mut slot = self.shared.lock();
        if slot.sinks == self.number {
            slot.stop(END_TIMEOUT);
        }
    }

    fn status(&self) -> Value {
        self.shared.lock().status()
    }
}

fn delivery(window: &Window) -> Delivery {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let length = since(window.end).saturating_sub(since(window.start));
    Delivery {
        start_unix_ns: nanoseconds(since(window.start)),
        duration_ns: nanoseconds(length),
        host: Some(uname().hostname),
        ..Delivery::default()
    }
}

/// The status of the one destination, with the names of inner values behind those of outer ones.
fn flat(mut all: Vec<whit_push::Status>) -> Value {
    let status = all.pop().and_then(|status| serde_json::to_value(status).ok());
    let mut out = Map::new();
    flatten("", status.unwrap_or_default(), &mut out);
    Value::Object(out)
}

fn flatten(name: &str, value: Value, out: &mut Map<String, Value>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                let key = if name.is_empty() { key } else { format!("{name}_{key}") };
                flatten(&key, value, out);
            }
        }
        other => drop(out.insert(name.to_owned(), other)),
    }
}

#[cfg(test)]
mod tests;
