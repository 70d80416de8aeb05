//! The largest pieces of the critical path of the command, or of its slowest request.

use super::parts::List;
use super::{MAX_SENTENCE, shortened};
use crate::hists::percent;
use crate::why::{explained, name_text, what};
use serde::Serialize;
use whit_types::OutsideText;
use whit_why::Why;

/// Pieces that are shown.
const PIECES: usize = 3;

/// An interval, and where its time went.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CriticalPath {
    /// The request or the thread.
    pub(super) of: String,
    pub(super) duration_ns: u64,
    /// Added up by threads, activity and place, the longest first.
    pub(super) pieces: List<Piece>,
}

/// Pieces of one kind.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Piece {
    pub(super) percent: f64,
    pub(super) duration_ns: u64,
    /// Threads, their activity, and the wait that it explains.
    pub(super) what: String,
}

/// The path of an interval. `request` is the name of the request that it is.
pub(super) fn facts(why: &Why, request: Option<&str>) -> Option<CriticalPath> {
    let [interval] = &why.intervals[..] else { return None };
    let is_goroutine = why.thread_name(interval.thread).is_goroutine;
    let thread = name_text(&why.thread_name(interval.thread));
    let key = interval.key.as_ref().map_or_else(String::new, |key| format!(" {key}"));
    let of = match request {
        Some(name) => format!("the slowest request, {}{key}, in {thread}", OutsideText::from(name)),
        None if is_goroutine => thread,
        None => format!("thread {thread}"),
    };
    let duration_ns = interval.duration_ns();
    let pieces = why.groups.iter().take(PIECES).map(|group| {
        let explained = explained(why, group).map_or_else(String::new, |it| format!(" {it}"));
        Piece {
            percent: percent(group.duration_ns, duration_ns),
            duration_ns: group.duration_ns,
            what: shortened(&(what(why, group) + &explained), MAX_SENTENCE),
        }
    });
    let mut pieces = List::of(pieces.collect());
    pieces.count = why.groups.len();
    Some(CriticalPath { of: shortened(&of, MAX_SENTENCE), duration_ns, pieces })
}
