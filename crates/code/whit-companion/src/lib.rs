//! Debug companions of servers: where debuginfod's clients keep them, and how whit asks its fetcher for them.
//!
//! The [`Cache`] has the layout of elfutils' client, so that `debuginfod-find`, GDB and whit use one another's files.
//! whit reads the cache. The program `whit-debuginfod` fills it: whit writes a [`Request`] for each binary to its
//! standard input, and reads [`Answer`]s from its standard output.
//!
//! ```
//! use whit_companion::{Answer, Cache, Parts, Request};
//! use whit_types::BuildId;
//!
//! let cache = Cache::standard(&|name| (name == "HOME").then(|| "/home/me".into())).unwrap();
//! let id = BuildId::new(&[0xab, 0xcd]).unwrap();
//! let file = cache.section(id, ".debug_info");
//! assert_eq!(file.to_str(), Some("/home/me/.cache/debuginfod_client/abcd/section-.debug_info"));
//!
//! let request = Request { id, parts: Parts::Sections { symbols: true, debug_info: false } };
//! assert_eq!(Request::parse(&request.to_string()), Some(request));
//! assert_eq!(Answer::parse("failed abcd no server has it").unwrap().id, id);
//! ```
//!
//! Invariants: nothing here uses a network, starts a program or reads the environment; the caller gives variables as
//! values.
#![forbid(unsafe_code)]

mod cache;
mod message;
mod parts;
mod url;

pub use cache::{Cache, MISS_DEFAULT_S};
pub use message::{Answer, End, News, Request};
pub use parts::{DEBUG_SECTIONS, Parts, SUPPLEMENT_SECTIONS, SYMBOL_SECTIONS};
pub use url::shown_url;

/// The program that fetches, which lies beside whit.
pub const PROGRAM: &str = "whit-debuginfod";

/// Names the servers, separated by spaces.
pub const URLS: &str = "DEBUGINFOD_URLS";
