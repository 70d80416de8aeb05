//! A recording with the way to read it, and the questions that it answers.

use crate::call_chain::chain::DEFAULT_MAX_STACK;
use crate::name_sources::NameSources;
use crate::progress::Progress;
use crate::selection::Selection;
use std::fmt;
use whit_perfdata::reader::Recording;
use whit_perfdata::stream::Stream;
use whit_symbolize::{DebugDirs, SymbolizerConfig};

/// Frames of a call chain that is not cut: more than a record holds.
pub(crate) const WHOLE_STACK: usize = 1 << 13;

/// Everything of a reading that is not the business of one question.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Which part of the recording is read.
    pub selection: Selection,
    /// Where names come from.
    pub names: NameSources,
    /// Decoding threads; at least one.
    pub threads: usize,
    /// Longest call chain.
    pub max_stack: usize,
}

impl ReadOptions {
    /// The whole recording with perf's bound of call chains, and files by their paths.
    pub fn new(threads: usize, symbols: SymbolizerConfig) -> ReadOptions {
        ReadOptions {
            selection: Selection::default(),
            names: NameSources::new(symbols),
            threads: threads.max(1),
            max_stack: DEFAULT_MAX_STACK,
        }
    }

    /// The whole recording, for questions that name no code.
    pub fn without_names(threads: usize) -> ReadOptions {
        ReadOptions::new(threads, SymbolizerConfig::new(DebugDirs::none()))
    }

    /// The same with a note of each name that any reading asks for, and with whole call chains.
    /// [`NotedNames`](crate::NotedNames) writes the notes.
    #[must_use]
    pub fn with_notes(self) -> ReadOptions {
        ReadOptions { names: self.names.with_notes(), max_stack: WHOLE_STACK, ..self }
    }
}

/// A pass over a recording: the samples, the switches, the tasks, and so on.
///
/// A question carries the options that are its own, and asks for no more of the first pass than it needs; a question that
/// needs no first pass pays for none.
pub trait Question {
    /// The result.
    type Answer;
    /// Why there is none.
    type Error;

    /// Reads the recording.
    ///
    /// # Errors
    /// The recording changed while it was read, or a taker of results failed.
    fn read(self, reading: Reading<'_>) -> Result<Self::Answer, Self::Error>;
}

/// A question with the code that the addresses of its profile lie in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WithCode<Q>(pub Q);

/// A recording with the way to read it. Each answer reads the recording anew.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) options: &'a ReadOptions,
    report_progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl<'a> Reading<'a> {
    /// Reads nothing yet.
    pub fn open(recording: &'a Recording, options: &'a ReadOptions) -> Reading<'a> {
        Reading { recording, options, report_progress: &|_, _| () }
    }

    /// The same, with a taker of the bytes done and the bytes in total. It is called from several threads.
    #[must_use]
    pub fn with_progress(self, report_progress: &'a (dyn Fn(u64, u64) + Sync)) -> Reading<'a> {
        Reading { report_progress, ..self }
    }

    /// As it was opened.
    pub fn recording(self) -> &'a Recording {
        self.recording
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The recording changed while it was read, or a taker of results failed.
    pub fn answer<Q: Question>(self, question: Q) -> Result<Q::Answer, Q::Error> {
        question.read(self)
    }

    /// True where not the whole recording is wanted.
    pub fn is_part(self) -> bool {
        self.options.selection.is_part()
    }

    pub(crate) fn selection(self) -> &'a Selection {
        &self.options.selection
    }

    pub(crate) fn threads(self) -> usize {
        self.options.threads
    }

    /// The progress of so many passes over all streams.
    pub(crate) fn progress(self, passes: u64) -> Progress<'a> {
        let stream_bytes: u64 = self.recording.streams.iter().map(Stream::size_bytes).sum();
        Progress::new(passes * stream_bytes, self.report_progress)
    }
}

impl fmt::Debug for Reading<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("recording", &self.recording.path).finish_non_exhaustive()
    }
}
