//! A small HTTP server for one profile: the page, sums of ranges of time, and names, sources and instructions for
//! Firefox Profiler.
//!
//! ```no_run
//! # fn site() -> whit_serve::Site<'static, whit_profile::CodeFinder> { unimplemented!() }
//! use whit_serve::{Bounds, Server, Token};
//!
//! let server = Server::bind(([127, 0, 0, 1], 0).into(), Token::random()?, Bounds::default())?;
//! println!("{}/", server.url());
//! // Ends when the other side of the pipe is written to or closed.
//! let (stop, _end) = std::io::pipe()?;
//! server.run(&site(), &stop)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Built on `httparse`, the parser of `hyper`. `hyper` itself needs an asynchronous runtime, a dozen crates more.
//! `tiny_http` has neither time limits nor a bound on connections; these two are most of this crate.
//!
//! Invariants:
//! - A well-formed request without the token gets status 404, without a detail.
//! - A request whose `Host` is a name, or whose `Origin` is another one, reads nothing. Firefox Profiler's origin reads
//!   its profile, names, sources and instructions, with the token.
//! - Connections, sizes and times are bounded ([`Bounds`]). A connection has one request.
//! - A source file is served only where the debug information of the asked address names its path.
//! - No recording is opened here, and nothing is written.
#![forbid(unsafe_code)]

mod bounds;
mod guard;
mod request;
mod response;
mod server;
mod site;
mod symbols;
mod token;

pub use bounds::Bounds;
pub use guard::FIREFOX_PROFILER;
pub use server::Server;
pub use site::{Lanes, Ranges, Site, firefox_profiler_url};
pub use symbols::{Binaries, Library, Load, Symbols};
pub use token::Token;
