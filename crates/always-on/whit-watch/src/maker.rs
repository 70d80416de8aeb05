//! The parts that the settings ask for.

use crate::dataset_folder::DatasetFolder;
use crate::flight::{Flight, Plan};
use crate::folder::Folder;
use crate::log::Log;
use crate::retention::Limits;
use crate::service::{KeeperParts, Maker};
use crate::settings::Settings;
use crate::sinks::{Push, Recordings, SharedPusher, SharedStore, Sink};
use crate::store::Store;
use crate::triggers::{Fire, Trigger};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A dataset goes into this folder of the service's folder.
const DATASET: &str = "dataset";

/// Makes all that this program has.
#[derive(Debug)]
pub(crate) struct Standard {
    log: Log,
    /// The folder that is open: the sink of new settings may have that of the old ones.
    store: Mutex<Option<(std::path::PathBuf, SharedStore)>>,
    /// Pushers by the names of destinations, for the same reason.
    pushers: Mutex<BTreeMap<String, SharedPusher>>,
    /// The flight recorder of the present settings.
    flight: Mutex<Option<Arc<Flight>>>,
}

impl Standard {
    pub(crate) fn new(log: &Log) -> Standard {
        Standard {
            log: log.clone(),
            store: Mutex::default(),
            flight: Mutex::default(),
            pushers: Mutex::default(),
        }
    }

    /// The open folder, where it is this one.
    fn store<S: Store + 'static, E: std::fmt::Display>(
        &self,
        root: &Path,
        open: impl FnOnce(&Path) -> Result<S, E>,
    ) -> Result<SharedStore, String> {
        let mut kept = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, store)) = kept.as_ref().filter(|(path, _)| path == root) {
            return Ok(store.clone());
        }
        let store = open(root).map_err(|error| {
            format!("cannot keep files in {}: {error} (--folder names another one)", root.display())
        })?;
        let store: SharedStore = Arc::new(Mutex::new(store));
        *kept = Some((root.to_owned(), store.clone()));
        Ok(store)
    }

    /// The sink that keeps windows on disk.
    fn kept(&self, settings: &Settings) -> Result<Option<Recordings>, String> {
        let limits = Limits { age: settings.keep_age.0, bytes: settings.keep_bytes.0.0 };
        let (name, root, store) = match settings.format.as_str() {
            "recording" => {
                let root = settings.folder.clone();
                ("recordings", root.clone(), self.store(&root, Folder::open)?)
            }
            "parquet" => {
                let root = settings.folder.join(DATASET);
                ("dataset", root.clone(), self.store(&root, DatasetFolder::open)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(Recordings::new(name, &root, limits, store, &self.log)))
    }

    fn pusher(&self, name: &str) -> SharedPusher {
        let mut pushers = self.pushers.lock().unwrap_or_else(PoisonError::into_inner);
        pushers.entry(name.to_owned()).or_default().clone()
    }
}

impl Maker for Standard {
    fn sinks(&self, settings: &Settings) -> Result<Vec<Arc<dyn Sink>>, String> {
        let mut sinks: Vec<Arc<dyn Sink>> = Vec::new();
        if let Some(kept) = self.kept(settings)? {
            sinks.push(Arc::new(kept));
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
                let again = old.iter().try_for_each(|old| old.resume());
                *kept = old;
                again.map_err(|error| error.to_string())?;
                Err(error.to_string())
            }
        }
    }
}
