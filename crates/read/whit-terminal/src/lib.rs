//! The interactive interface of a terminal: tables, flame graphs, waits and time of a profile, with perf's keys.
//!
//! The state ([`State`]) is pure: keys and answers go in, requests come out, and drawing looks at it. [`run`] connects
//! it with a terminal and with a [`Source`], which loads more of a recording when it is asked for.
//!
//! ```
//! use whit_profile::model::*;
//! use whit_terminal::{Begin, Input, Key, State};
//! use whit_view::stdio::StdioOptions;
//!
//! let mut profile = Profile::default();
//! profile.events.push(EventInfo { name: "cycles".into(), ..EventInfo::default() });
//! let mut state = State::new(Begin::report(profile, StdioOptions::default()));
//! assert!(state.handle(Input::Key(Key::Char('?'))).is_none());
//! assert!(state.handle(Input::Key(Key::Char('q'))).is_none(), "closes the help");
//! assert_eq!(state.handle(Input::Key(Key::Char('q'))), Some(whit_terminal::Request::Quit));
//! ```
//!
//! Invariants: rows, trees and texts are those of `whit-view`; no recording is opened here; no name of others reaches
//! the terminal unescaped; nothing is written but the screen, and the file that the user names.
#![forbid(unsafe_code)]

mod cursor;
mod draw;
mod flame_view;
mod hang_up;
mod help;
mod input;
mod live;
mod prompt;
mod session;
mod source;
mod state;
mod strip_view;
mod table_view;
mod text_view;
mod waits_view;

#[cfg(test)]
mod tests;

pub use input::{Input, Key};
pub use live::{Feed, News, Status};
pub use session::{TerminalError, run, run_live};
pub use source::{CodeText, Explain, Function, Progress, RequestsText, Source, Span, Waits};
pub use state::{Begin, Request, State, View};
