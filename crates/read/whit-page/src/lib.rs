//! The profile as one self-contained HTML page.
//!
//! The page holds its own style, script and data, loads nothing and sends nothing: it opens from
//! `file://`, as an attachment or from a build's artifacts, and works the same in five years. The
//! page computes each view from the sample rows, so that one file serves every event, process and
//! thread.
//!
//! ```
//! use whit_page::{HtmlOptions, write_html};
//! use whit_profile::model::*;
//! use whit_types::{Pid, Svma, Tid};
//!
//! let mut profile = Profile::default();
//! profile.events.push(EventInfo { name: "cycles".into(), ..EventInfo::default() });
//! profile.comms.push("server".into());
//! profile.threads.push(ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) });
//! let (path, short_name) = ("/usr/bin/server".into(), "server".into());
//! profile.dsos.push(DsoInfo { path, short_name, build_id: None, kind: DsoKind::Elf });
//! profile.functions.push(FunctionInfo { name: "serve<T>".into(), dso: DsoId(0), known: true });
//! let (function, address) = (FunctionId(0), Svma(0x1000));
//! profile.frames.push(Frame { function, address, source: None, inlined: false, kernel: false });
//! profile.nodes.push(CallNode { parent: NodeId::NONE, frame: FrameId(0) });
//! let (event, thread, comm) = (EventId(0), ThreadId(0), CommId(0));
//! let (facets, node) = (FacetsId(0), NodeId(0));
//! profile.rows.push(SampleRow { event, thread, comm, facets, node, samples: 2, period: 7 });
//!
//! let mut page = Vec::new();
//! let summary = write_html(&profile, &HtmlOptions::default(), &mut page)?;
//! assert_eq!((summary.nodes, summary.rows), (1, 1));
//! assert!(!String::from_utf8(page)?.contains("serve<T>"), "names are escaped");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - No name from the recording can become markup or script. All names stand inside one JSON block
//!   in which `<`, `>` and `&` are escaped. The page's script only ever writes text nodes, and its
//!   content security policy admits the page's own script by hash alone.
//! - No name can hide characters or turn the direction of the text around it: the script escapes every text
//!   of the data block where it decodes it, as text faces do.
//! - The sums of samples and periods per event equal those of the profile, with or without folded
//!   nodes.
//! - Everything embedded is bounded ([`HtmlOptions`]); what a bound took is said on the page.

mod check;
mod code;
#[cfg(test)]
mod code_tests;
mod columns;
mod compare;
mod data;
mod escape;
mod fold;
mod merge;
mod moments;
mod page;
mod ranges;
mod requests;
mod switches;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod unplaced;
mod wall;

pub use code::{
    HotCode, MAX_CODE_BYTES, MAX_CODE_FUNCTION_BYTES, MAX_CODE_FUNCTIONS, MIN_CODE_PERCENT,
};

pub use compare::{Comparison, MAX_COMPARED};
pub use ranges::Ranges;
pub use requests::{
    CallRow, MAX_LISTED_CALLS, MAX_PATHS, PathData, PathPiece, PathRow, RequestTable,
    RequestTables, Split, TailRow,
};

use std::io::{self, Write};

use whit_profile::model::Profile;
use whit_profile::switches::{Switches, TimelineSpan};
use whit_view::brief::Headline;

/// Call tree nodes that a page holds at most; above it, small subtrees are folded.
pub const MAX_NODES: usize = 200_000;
/// Sample rows that a page holds at most; above it, small subtrees are folded.
pub const MAX_ROWS: usize = 1_000_000;
/// Threads that a page tells apart at most; the lightest beyond it are merged into one.
pub const MAX_THREADS: usize = 20_000;
/// Entries of time, row and CPU that a page holds at most; above it, the buckets of time become longer.
pub const MAX_ENTRIES: usize = 2_000_000;
/// Longest function, file, binary or command name embedded, in bytes; longer ones end in `…`.
pub const MAX_NAME_BYTES: usize = 4096;
/// Warnings that a page lists at most.
pub const MAX_WARNINGS: usize = 1000;

/// Stretches of the threads' time line that a page holds at most; above it, short ones are joined. The
/// value for [`SwitchOptions::max_spans`](whit_profile::switches::SwitchOptions).
pub const MAX_SPANS: usize = 100_000;

/// How to write a page.
#[derive(Clone, Debug)]
pub struct HtmlOptions {
    /// Title of the page; the recording's path where empty.
    pub title: String,
    /// Bound on call tree nodes, [`MAX_NODES`] by default.
    pub max_nodes: usize,
    /// Bound on sample rows, [`MAX_ROWS`] by default.
    pub max_rows: usize,
    /// Bound on threads, [`MAX_THREADS`] by default.
    pub max_threads: usize,
    /// Bound on entries of time, [`MAX_ENTRIES`] by default.
    pub max_entries: usize,
    /// Opens with the context switches, where there are any.
    pub begins_with_switches: bool,
}

impl Default for HtmlOptions {
    fn default() -> Self {
        HtmlOptions {
            title: String::new(),
            max_nodes: MAX_NODES,
            max_rows: MAX_ROWS,
            max_threads: MAX_THREADS,
            max_entries: MAX_ENTRIES,
            begins_with_switches: false,
        }
    }
}

/// Size and omissions of a written page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageSummary {
    /// Call tree nodes embedded.
    pub nodes: usize,
    /// Nodes of the merged call tree before folding.
    pub nodes_before: usize,
    /// Share of an event below which subtrees were folded (0.0001 is 0.01 %); `None` where all
    /// are embedded.
    pub fold_threshold: Option<f64>,
    /// Threads that were merged into one for being too many.
    pub threads_merged: usize,
    /// Sample rows embedded.
    pub rows: usize,
}

/// Why no page was written.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The output refused bytes.
    #[error("writing the HTML page: {0}")]
    Write(#[from] io::Error),
    /// A table of the profile points outside of another one.
    #[error(
        "the profile contradicts itself: {table}[{index}] refers to {target} {value}, of which \
         there are {len}; this is a defect of the reader, not of the recording"
    )]
    Inconsistent {
        /// Table that holds the reference.
        table: &'static str,
        /// Entry of that table.
        index: usize,
        /// Table referred to.
        target: &'static str,
        /// The reference.
        value: u32,
        /// Entries of the table referred to.
        len: usize,
    },
}

/// Writes `profile` as one HTML page (UTF-8) to `out`.
///
/// `out` receives many small writes; give it a buffer. Counts above 2^53 lose their last digits in
/// the page, because JavaScript's numbers are doubles.
///
/// # Errors
/// [`HtmlError::Write`] where `out` fails, [`HtmlError::Inconsistent`] where an index of the
/// profile is out of range.
pub fn write_html(
    profile: &Profile,
    options: &HtmlOptions,
    out: &mut dyn Write,
) -> Result<PageSummary, HtmlError> {
    write_content(profile, &Content::default(), options, out)
}

/// Parts of a page that only some have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Content<'a> {
    /// The context switches that were loaded with the profile.
    pub switches: Option<&'a Switches>,
    /// Code of its hottest functions.
    pub code: Option<&'a HotCode>,
    /// Those of the whole recording.
    pub requests: Option<&'a RequestTables>,
    /// The comparison that the profile was made for.
    pub comparison: Option<&'a Comparison<'a>>,
}

/// As [`write_html`], with further parts.
///
/// # Errors
/// As [`write_html`].
pub fn write_content(
    profile: &Profile,
    content: &Content<'_>,
    options: &HtmlOptions,
    out: &mut dyn Write,
) -> Result<PageSummary, HtmlError> {
    write_page(profile, content, options, None, out)
}

/// Writes a page that asks its server for ranges of time; gives the ranges to answer with.
///
/// # Errors
/// As [`write_html`].
pub fn write_served(
    profile: &Profile,
    content: &Content<'_>,
    options: &HtmlOptions,
    out: &mut dyn Write,
) -> Result<(PageSummary, Ranges), HtmlError> {
    let mut ranges = Ranges::default();
    let summary = write_page(profile, content, options, Some(&mut ranges), out)?;
    Ok((summary, ranges))
}

fn write_page(
    profile: &Profile,
    content: &Content<'_>,
    options: &HtmlOptions,
    mut ranges: Option<&mut Ranges>,
    out: &mut dyn Write,
) -> Result<PageSummary, HtmlError> {
    let switches = content.switches;
    check::check_indices(profile)?;
    if let Some(switches) = switches {
        check::check_switches(profile, switches)?;
    }
    let headline = content.comparison.is_none().then(|| Headline::new(profile, switches));
    let with_waits = switches.and_then(|switches| wall::with_waits(profile, switches));
    let profile = with_waits.as_ref().map_or(profile, |waits| &waits.profile);
    let tables = tables::build(profile, options);
    let (entries, facts) = moments::build(profile, switches, &tables, options.max_entries).unzip();
    if let Some(ranges) = &mut ranges {
        **ranges = ranges::build(profile, switches, &tables);
    }
    let node_of = |span: &TimelineSpan| {
        let node = with_waits.as_ref().and_then(|waits| waits.node_of(span))?;
        Some(tables.node_of[node.index()]).filter(|node| *node != merge::NO_NODE)
    };
    let switches = switches.map(|switches| switches::block(profile, switches, &node_of));
    let start_view = switches.is_some() && options.begins_with_switches;
    let start_view = start_view.then_some("switches");
    let code = content.code.map(|code| code::block(code, &tables));
    let begin = facts.as_ref().map(|facts| facts.begin);
    let requests = content.requests.map(|requests| requests::block(requests, begin));
    let compare = content.comparison.map(|it| compare::block(it, profile, &tables)).transpose()?;
    let start_view = if compare.is_some() { Some("compare") } else { start_view };
    let is_served = ranges.is_some();
    let moments = facts;
    let more =
        data::More { switches, code, requests, compare, start_view, moments, headline, is_served };
    let title = page_title(profile, options);
    page::write(&title, is_served, out, |name, out| match name {
        "moments" => Ok(entries.iter().try_for_each(|entries| entries.write(out))?),
        _ => data::write(profile, &tables, &more, &title, out),
    })?;
    Ok(tables.summary())
}

fn page_title(profile: &Profile, options: &HtmlOptions) -> String {
    let title = [&options.title, profile.recording.path.exact(), "profile"];
    let title = title.into_iter().find(|title| !title.is_empty()).unwrap_or_default();
    tables::bounded_name(&title.into()).into_owned()
}
