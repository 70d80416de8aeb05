//! The parts that the settings ask for.

use crate::flight::{Flight, Plan};
use crate::folder::Folder;
use crate::log::Log;
use crate::retention::Limits;
use crate::service::{KeeperParts, Maker};
use crate::settings::Settings;
use crate::sinks::{Push, Recordings, SharedFolder, SharedPusher, Sink};
use crate::triggers::{Fire, Trigger};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes all that this program has.
#[derive(Debug)]
pub(crate) struct Standard {
    log: Log,
    /// The folder that is open: the sink of new settings may have that of the old ones.
    folder: Mutex<Option<(std::path::PathBuf, SharedFolder)>>,
    /// Pushers by the names of destinations, for the same reason.
    pushers: Mutex<BTreeMap<String, SharedPusher>>,
    /// The flight recorder of the present settings.
    flight: Mutex<Option<Arc<Flight>>>,
}

impl Standard {
    pub(crate) fn new(log: &Log) -> Standard {
        Standard {
            log: log.clone(),
            folder: Mutex::default(),
            flight: Mutex::default(),
            pushers: Mutex::default(),
        }
    }

    fn folder(&self, root: &Path) -> Result<SharedFolder, String> {
        let mut open = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, folder)) = open.as_ref().filter(|(path, _)| path == root) {
            return Ok(folder.clone());
        }
        let folder = Folder::open(root).map_err(|error| {
            format!("cannot keep files in {}: {error} (--folder names another one)", root.display())
        })?;
        let folder = Arc::new(Mutex::new(folder));
        *open = Some((root.to_owned(), folder.clone()));
        Ok(folder)
    }

    fn pusher(&self, name: &str) -> SharedPusher {
        let mut pushers = self.pushers.lock().unwrap_or_else(PoisonError::into_inner);
        pushers.entry(name.to_owned()).or_default().clone()
    }
}

impl Maker for Standard {
    fn sinks(&self, settings: &Settings) -> Result<Vec<Arc<dyn Sink>>, String> {
        let mut sinks: Vec<Arc<dyn Sink>> = Vec::new();
        if settings.format == "recording" {
            let folder = self.folder(&settings.folder)?;
            let limits = Limits { age: settings.keep_age.0, bytes: settings.keep_bytes.0.0 };
            sinks.push(Arc::new(Recordings::new(&settings.folder, limits, folder, &self.log)));
        }
        for (name, destination) in &settings.push {
            let pusher = self.pusher(name);
            let push = Push::new((name, destination), &settings.folder, pusher, &self.log)?;
            sinks.push(Arc::new(push));
        }
        Ok(sinks)
    }

    fn triggers(&self, _: &Settings, _: &Fire) -> Result<Vec<Arc<dyn Trigger>>, String> {
        Ok(Vec::new())
    }

    fn keeper(&self, settings: &Settings) -> Result<Option<KeeperParts>, String> {
        let mut kept = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        let old = kept.take();
        let Some(plan) = Plan::of(settings) else {
            old.iter().for_each(|old| old.stop());
            return Ok(None);
        };
        let bounds = plan.bounds();
        if let Some(old) = old.iter().find(|old| old.is_of(&plan)) {
            return Ok(Some((kept.insert(old.clone()).clone(), bounds)));
        }
        old.iter().for_each(|old| old.stop());
        match Flight::start(plan, &self.log) {
            Ok(flight) => Ok(Some((kept.insert(Arc::new(flight)).clone(), bounds))),
            Err(error) => {
                let again = old.iter().try_for_each(|old| old.go_on());
                *kept = old;
                again.map_err(|error| error.to_string())?;
                Err(error.to_string())
            }
        }
    }
}
