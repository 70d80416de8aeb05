//! Names, sources and instructions as samply's server gives them, for Firefox Profiler.
//!
//! The requests and answers are those of samply-api 0.24 (its `request_json` and `response_json`). As there, a request
//! that cannot be answered gets `{"error": …}`. Addresses are offsets from the lowest loaded address of a library.

mod instructions;
mod source;
mod symbolicate;

use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use whit_annotate::Code;
use whit_profile::CodeFinder;
use whit_profile::model::DsoId;
use whit_types::Svma;

/// The binaries of a recording.
pub trait Binaries: Code {
    /// The lowest loaded address of a library; `None` where its file is not at hand.
    fn base(&self, dso: DsoId) -> Option<Svma>;
    /// Frees parsed tables that are quickly read again.
    fn release(&self, dso: DsoId);
}

impl Binaries for CodeFinder {
    fn base(&self, dso: DsoId) -> Option<Svma> {
        CodeFinder::base(self, dso)
    }

    fn release(&self, dso: DsoId) {
        CodeFinder::release(self, dso);
    }
}

/// A binary as Firefox Profiler names it.
#[derive(Clone, Debug)]
pub struct Library {
    /// Where it stands in the profile.
    pub dso: DsoId,
    /// File name.
    pub debug_name: String,
    /// Build id in the form of a GUID with an age.
    pub debug_id: String,
}

/// Reads the binaries of a recording.
pub type Load<'a, C> = Box<dyn Fn() -> Result<(Vec<Library>, C), String> + Send + Sync + 'a>;

/// Answers about the code of a recording, which is read when the first request wants it.
pub struct Symbols<'a, C> {
    load: Load<'a, C>,
    /// One request at a time: the parsed debug information of one is freed before that of the next is made.
    loaded: Mutex<Option<Loaded<C>>>,
}

/// The binaries that were read.
struct Loaded<C> {
    libraries: BTreeMap<(String, String), DsoId>,
    code: C,
}

/// The answer to a request that has none.
type Refused = String;

impl<'a, C: Binaries> Symbols<'a, C> {
    /// The first of several libraries with the same name and build id counts.
    pub fn new(load: Load<'a, C>) -> Symbols<'a, C> {
        Symbols { load, loaded: Mutex::new(None) }
    }

    /// The answer to one of the requests, in JSON.
    fn answer<R: DeserializeOwned, A: Serialize>(
        &self,
        body: &[u8],
        answer: impl FnOnce(&Loaded<C>, R) -> Result<A, Refused>,
    ) -> String {
        let answer = parsed(body).and_then(|request| {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            if loaded.is_none() {
                *loaded = Some(Loaded::new((self.load)()?));
            }
            loaded.as_ref().map_or(Err("the binaries were not read".to_owned()), |loaded| {
                answer(loaded, request)
            })
        });
        let text = answer
            .and_then(|answer| serde_json::to_string(&answer).map_err(|error| error.to_string()));
        text.unwrap_or_else(|error| serde_json::json!({ "error": error }).to_string())
    }
}

impl<C: Binaries> Loaded<C> {
    fn new((libraries, code): (Vec<Library>, C)) -> Loaded<C> {
        let mut known = BTreeMap::new();
        for library in libraries {
            known.entry((library.debug_name, library.debug_id)).or_insert(library.dso);
        }
        Loaded { libraries: known, code }
    }

    fn library(&self, name: &str, id: &str) -> Result<DsoId, Refused> {
        let found = self.libraries.get(&(name.to_owned(), id.to_owned())).copied();
        found.ok_or_else(|| format!("the recording has no library {name} with the id {id}"))
    }
}

/// The place of a library's code in its file.
fn base_of(code: &impl Binaries, dso: DsoId, name: &str) -> Result<Svma, Refused> {
    code.base(dso).ok_or_else(|| format!("the file of {name} that was recorded is not at hand"))
}

fn parsed<R: DeserializeOwned>(body: &[u8]) -> Result<R, Refused> {
    serde_json::from_slice(body).map_err(|error| format!("the request cannot be read: {error}"))
}

/// A number such as "0x12ab".
fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let digits = text
        .strip_prefix("0x")
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| D::Error::custom("addresses and sizes are text such as \"0x12ab\""))
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}
