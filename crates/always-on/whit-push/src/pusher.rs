//! All destinations together.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use whit_export::{Content, Delivery};

use crate::client::{Client, ClientError};
use crate::protocol;
use crate::sender::{self, Destination, now};
use crate::settings::{Settings, SettingsError};
use crate::spool::{Spool, SpoolError};
use crate::status::Status;

/// Why destinations could not be started.
#[derive(Debug, thiserror::Error)]
#[error("push.{name}: {reason}")]
pub struct StartError {
    /// The destination.
    pub name: String,
    /// The setting, file or spool at fault.
    #[source]
    pub reason: StartReason,
}

/// A fault of a destination.
#[derive(Debug, thiserror::Error)]
pub enum StartReason {
    /// A setting.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file that a setting names.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Another process has the directory, or it cannot be written.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// Sends windows to receivers, each on its own.
pub struct Pusher {
    destinations: Vec<(Settings, Arc<Destination>)>,
}

impl fmt::Debug for Pusher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.status()).finish()
    }
}

impl Pusher {
    /// Takes up the spools in `folder`, one directory for each destination, and starts to send.
    ///
    /// # Errors
    /// A setting that cannot work, or a spool that cannot be used. A receiver that does not answer is no error.
    pub fn start(
        settings: &BTreeMap<String, Settings>,
        folder: &Path,
    ) -> Result<Pusher, StartError> {
        let mut pusher = Pusher { destinations: Vec::new() };
        for (name, settings) in settings {
            match start_one(name, settings, folder) {
                Ok(destination) => pusher.destinations.push((settings.clone(), destination)),
                Err(reason) => {
                    pusher.stop(Duration::ZERO);
                    return Err(StartError { name: name.clone(), reason });
                }
            }
        }
        Ok(pusher)
    }

    /// Puts a window into the spool of each destination. It waits for disks, never for a receiver.
    pub fn accept(&self, content: &Content<'_>, window: &Delivery) {
        for (settings, destination) in &self.destinations {
            // Writing into memory fails only where a value has no form there.
            destination.accept(protocol::parcel(settings, content, window).ok());
        }
    }

    /// The state of each destination, by its name.
    pub fn status(&self) -> Vec<Status> {
        self.destinations.iter().map(|(_, destination)| destination.status()).collect()
    }

    /// Sends what waits, for at most `grace`, and gives the spools up. Windows that were not sent are there at the next start.
    pub fn stop(self, grace: Duration) -> Vec<Status> {
        let until = Instant::now() + grace;
        self.destinations.iter().for_each(|(_, destination)| destination.end());
        self.destinations.iter().map(|(_, destination)| destination.close(until)).collect()
    }
}

/// Refuses settings that cannot work, and files that they name, before a destination is started with them.
///
/// # Errors
/// The first setting that is wrong.
pub fn check(name: &str, settings: &Settings) -> Result<(), StartError> {
    let checked = settings.validate(name).map_err(StartReason::from);
    let checked = checked.and_then(|()| Ok(Client::new(settings).map(drop)?));
    checked.map_err(|reason| StartError { name: name.to_owned(), reason })
}

fn start_one(
    name: &str,
    settings: &Settings,
    folder: &Path,
) -> Result<Arc<Destination>, StartReason> {
    settings.validate(name)?;
    let client = Client::new(settings)?;
    let begun = Instant::now();
    let spool = Spool::open(&folder.join(name), settings.kind, settings.spool.clone(), now(begun))?;
    let destination = Arc::new(Destination::new(name, settings, begun, spool));
    let of_thread = destination.clone();
    std::thread::Builder::new()
        .name(format!("push {name}").chars().take(15).collect())
        .spawn(move || sender::run(&of_thread, &client))?;
    Ok(destination)
}
