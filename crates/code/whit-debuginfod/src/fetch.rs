//! One binary: what the cache lacks of it is asked of the servers, in their order.

use std::collections::HashMap;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::SystemTime;

use whit_companion::{
    Cache, DEBUG_SECTIONS, News, Parts, Request, SUPPLEMENT_SECTIONS, SYMBOL_SECTIONS,
};
use whit_sys::process_files::open_regular;
use whit_types::BuildId;

use crate::answer_check::{check_file, check_section};
use crate::cleaning;
use crate::client::{Client, GetError};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::store;

/// Largest section whose contents are looked at. A larger one is kept by its length alone.
const MAX_CHECKED_BYTES: u64 = 256 << 20;
/// Longest path of a shared file, with a build id behind it.
const MAX_LINK_BYTES: u64 = 8192;

/// Why there is nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("no server has it: {0}")]
    NotFound(String),
    #[error("asked a short while ago, and no server had it (remove {0} to ask again)")]
    Missed(String),
    #[error("{0}")]
    Failed(String),
    #[error("stopped")]
    Stopped,
    #[error("the cache cannot be written: {0} (DEBUGINFOD_CACHE_PATH names another place)")]
    Cache(#[from] std::io::Error),
}

struct Server {
    url: String,
    /// As messages name it: without a password.
    name: String,
    serves_sections: bool,
    /// Why it is asked no more.
    trouble: Option<String>,
}

/// How a file came.
enum Got {
    Cached,
    Fetched(u64),
    /// No server has it.
    Nowhere,
}

/// Fetches.
pub(crate) struct Fetcher {
    cache: Cache,
    client: Client,
    servers: Vec<Server>,
    /// The server that had something of a build id: further parts are asked of it alone.
    had: HashMap<BuildId, usize>,
    /// Whether a server was asked for the present request.
    has_asked: bool,
    stop: Stop,
}

impl Fetcher {
    pub(crate) fn new(settings: Settings, stop: Stop) -> Result<Fetcher, FetchError> {
        let client = Client::new(&settings, stop.clone());
        cleaning::clean(&settings.cache, SystemTime::now())?;
        let server = |url: String| {
            let name = whit_companion::shown_url(&url);
            Server { url, name, serves_sections: true, trouble: None }
        };
        let servers = settings.urls.into_iter().map(server).collect();
        Ok(Fetcher {
            cache: settings.cache,
            client,
            servers,
            had: HashMap::new(),
            has_asked: false,
            stop,
        })
    }

    /// Bytes that came over the network. All that servers have is in the cache then.
    pub(crate) fn fetch(
        &mut self,
        request: Request,
        report: &dyn Fn(News),
    ) -> Result<u64, FetchError> {
        let id = request.id;
        self.has_asked = false;
        if self.stop.is_stopped() {
            return Err(FetchError::Stopped);
        }
        if is_there(&self.cache.whole(id)) {
            return Ok(0);
        }
        let Parts::Sections { symbols, debug_info } = request.parts else {
            return self.whole(id, report);
        };
        let mut fetched_bytes = 0;
        let mut found = false;
        let wanted = [(symbols, &SYMBOL_SECTIONS[..]), (debug_info, &DEBUG_SECTIONS[..])];
        for (_, names) in wanted.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            match self.sections(id, names, report)? {
                Some(bytes) => {
                    fetched_bytes += bytes;
                    found = true;
                }
                None if !self.servers.iter().any(|server| server.serves_sections) => {
                    return Ok(fetched_bytes + self.whole(id, report)?);
                }
                None => {}
            }
        }
        if found && debug_info {
            fetched_bytes += self.supplement(id, report)?;
        }
        // Servers that have none may have the whole file.
        let others = self.servers.iter().any(|server| !server.serves_sections);
        match found {
            true => Ok(fetched_bytes),
            false if others => self.whole(id, report),
            false => Err(self.not_found(&self.cache.folder(id))),
        }
    }

    /// `None` where no server has the first of them.
    fn sections(
        &mut self,
        id: BuildId,
        names: &[&str],
        report: &dyn Fn(News),
    ) -> Result<Option<u64>, FetchError> {
        let mut fetched_bytes = 0;
        for (number, name) in names.iter().enumerate() {
            let path = format!("buildid/{id}/section/{name}");
            let file = self.cache.section(id, name);
            match self.file(id, &path, &file, Some(name), report)? {
                Got::Fetched(bytes) => fetched_bytes += bytes,
                Got::Cached => {}
                Got::Nowhere if number == 0 => return Ok(None),
                Got::Nowhere => {}
            }
        }
        Ok(Some(fetched_bytes))
    }

    /// The parts that several binaries share.
    fn supplement(&mut self, id: BuildId, report: &dyn Fn(News)) -> Result<u64, FetchError> {
        let link = link_of(&self.cache.section(id, ".gnu_debugaltlink"));
        let name_size = link.iter().position(|byte| *byte == 0);
        let shared = name_size.and_then(|size| BuildId::new(link.get(size + 1..)?));
        let Some(shared) = shared.filter(|it| *it != id && !is_there(&self.cache.whole(*it)))
        else {
            return Ok(0);
        };
        Ok(self.sections(shared, &SUPPLEMENT_SECTIONS, report)?.unwrap_or(0))
    }

    fn whole(&mut self, id: BuildId, report: &dyn Fn(News)) -> Result<u64, FetchError> {
        let (path, file) = (format!("buildid/{id}/debuginfo"), self.cache.whole(id));
        match self.file(id, &path, &file, None, report)? {
            Got::Fetched(bytes) => Ok(bytes),
            Got::Cached => Ok(0),
            Got::Nowhere => Err(self.not_found(&file)),
        }
    }

    fn not_found(&self, place: &Path) -> FetchError {
        let names: Vec<_> = self.servers.iter().map(|server| server.name.as_str()).collect();
        match self.has_asked {
            true => FetchError::NotFound(names.join(", ")),
            false => FetchError::Missed(place.display().to_string()),
        }
    }

    /// Brings one file into the cache.
    fn file(
        &mut self,
        id: BuildId,
        path: &str,
        file: &Path,
        section: Option<&str>,
        report: &dyn Fn(News),
    ) -> Result<Got, FetchError> {
        if is_there(file) {
            return Ok(Got::Cached);
        }
        if self.cache.is_missed(file, SystemTime::now()) {
            return Ok(Got::Nowhere);
        }
        let only = self.had.get(&id).copied();
        let mut failures = Vec::new();
        for number in 0..self.servers.len() {
            let server = &self.servers[number];
            let skips = section.is_some() && !server.serves_sections;
            if skips || only.is_some_and(|only| only != number) {
                continue;
            }
            if let Some(trouble) = &server.trouble {
                failures.push(format!("{} {trouble}", server.name));
                continue;
            }
            let url = format!("{}/{path}", server.url);
            self.has_asked = true;
            match self.get(&url, id, file, section, report) {
                Ok(bytes) => {
                    self.had.insert(id, number);
                    return Ok(Got::Fetched(bytes));
                }
                Err(error) => self.note(number, error, section, &mut failures)?,
            }
        }
        if !failures.is_empty() {
            return Err(FetchError::Failed(failures.join("; ")));
        }
        let asked = |server: &Server| section.is_none() || server.serves_sections;
        if self.servers.iter().any(asked) {
            store::note_miss(file)?;
        }
        Ok(Got::Nowhere)
    }

    /// Remembers what a server cannot do.
    fn note(
        &mut self,
        number: usize,
        error: GetError,
        section: Option<&str>,
        failures: &mut Vec<String>,
    ) -> Result<(), FetchError> {
        let server = &mut self.servers[number];
        match error {
            GetError::NotFound => {}
            GetError::NoSections if section.is_some() => server.serves_sections = false,
            GetError::NoSections => failures.push(format!("{} refused the request", server.name)),
            GetError::Unreachable(reason) => {
                failures.push(format!("{} {reason}", server.name));
                server.trouble = Some(reason);
            }
            GetError::Refused(reason) => failures.push(format!("{} {reason}", server.name)),
            GetError::Stopped => return Err(FetchError::Stopped),
            GetError::Kept(error) => return Err(FetchError::Cache(error)),
        }
        Ok(())
    }

    fn get(
        &self,
        url: &str,
        id: BuildId,
        file: &Path,
        section: Option<&str>,
        report: &dyn Fn(News),
    ) -> Result<u64, GetError> {
        let mut new = store::begin(file).map_err(GetError::Kept)?;
        let progress = |done_bytes, total_bytes| report(News::Progress { done_bytes, total_bytes });
        let bytes = self.client.get(url, &mut new, &progress)?;
        new.flush().and_then(|()| new.rewind()).map_err(GetError::Kept)?;
        let is_right = match section {
            None => check_file(new.path(), id),
            Some(_) if bytes > MAX_CHECKED_BYTES => Ok(()),
            Some(name) => {
                let contents = std::fs::read(new.path()).map_err(GetError::Kept)?;
                check_section(name, &contents)
            }
        };
        is_right.map_err(|wrong| GetError::Refused(format!("{wrong}; it was not kept")))?;
        store::keep(new, file).map_err(GetError::Kept)?;
        Ok(bytes)
    }
}

/// A path and a build id. A pipe or a device in the cache would block or never end.
fn link_of(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = |file: std::fs::File| file.take(MAX_LINK_BYTES).read_to_end(&mut bytes);
    match open_regular(file).map(read) {
        Ok(Ok(_)) => bytes,
        _ => Vec::new(),
    }
}

fn is_there(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() > 0)
}
