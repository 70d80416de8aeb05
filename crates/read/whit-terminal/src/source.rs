//! More of a recording, loaded when it is asked for.

use std::path::Path;
use std::sync::Arc;
use whit_profile::model::{EventId, Profile};
use whit_profile::switches::Switches;
use whit_types::{Tid, TimestampNs};
use whit_view::stdio::StdioOptions;

/// Gets the bytes done and the bytes in total; from any thread.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Switches, and the profile that their ids belong to.
#[derive(Debug)]
pub struct Waits {
    /// Names and call stacks.
    pub profile: Arc<Profile>,
    /// Switches and waits.
    pub switches: Switches,
}

/// A range of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first moment in it.
    pub from: TimestampNs,
    /// The last moment in it.
    pub to: TimestampNs,
}

impl Span {
    /// In seconds, as the axis of time has them.
    pub(crate) fn words(self) -> String {
        format!("{}\u{2013}{} s", seconds(self.from), seconds(self.to))
    }
}

/// A moment to the microsecond.
pub(crate) fn seconds(time: TimestampNs) -> String {
    format!("{}.{:06}", time.0 / 1_000_000_000, time.0 / 1000 % 1_000_000)
}

/// A function whose code is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its exact name.
    pub name: String,
    /// Exact path of its binary.
    pub dso: String,
    /// The event whose samples count.
    pub event: EventId,
}

/// Instructions and source lines as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodeText {
    /// Lines, escaped.
    pub lines: Vec<String>,
    /// The line with the largest share.
    pub hottest: usize,
}

/// A critical path explains one of these.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Explain {
    /// A request: its name, and its rank, 1 for the slowest.
    Request(String, usize),
    /// The time of a thread; without one, of the first thread of the recorded command.
    Thread(Option<Tid>),
}

/// A list of requests, with the lines that can be explained.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestsText {
    /// Lines, escaped.
    pub lines: Vec<String>,
    /// Numbers of lines that are one request each, in their order.
    pub requests: Vec<(usize, Explain)>,
}

/// Loads from a recording. Errors are worded for people.
pub trait Source: Sync {
    /// The samples of a range of time, with all that the first view has.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn samples_of(&self, span: Span, progress: Progress<'_>) -> Result<Profile, String>;

    /// Context switches, with the profile that was loaded with them.
    ///
    /// # Errors
    /// The recording has none, or cannot be read.
    fn waits(&self, span: Option<Span>, progress: Progress<'_>) -> Result<Waits, String>;

    /// A profile with the time of samples, of all times.
    ///
    /// # Errors
    /// The recording cannot be read.
    fn times(&self, progress: Progress<'_>) -> Result<Profile, String>;

    /// The code of a function.
    ///
    /// # Errors
    /// It is not at hand.
    fn code(
        &self,
        function: &Function,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<CodeText, String>;

    /// The requests of the whole recording.
    ///
    /// # Errors
    /// The recording has none, or cannot be read.
    fn requests(&self, progress: Progress<'_>) -> Result<RequestsText, String>;

    /// A critical path as text, escaped: of a request, or of a thread in a range of time.
    ///
    /// # Errors
    /// The recording has no wake-ups, or cannot be read.
    fn why(
        &self,
        what: &Explain,
        span: Option<Span>,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, String>;

    /// Writes the report as text; the file must not exist.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    fn save(&self, path: &Path, profile: &Profile, options: &StdioOptions) -> Result<(), String>;
}
