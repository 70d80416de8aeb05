//! The JSON block of a page. `web/src/decode.js` reads what this writes; change them together.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;
use whit_perfdata::ledger::{GROUPS, Ledger, Line};
use whit_profile::model::{Profile, RecordingInfo};
use whit_profile::warning::Warning;
use whit_types::OutsideText;

use super::code::CodeBlock;
use super::compare::CompareBlock;
use super::merge::NO_NODE;
use super::moments::MomentFacts;
use super::requests::RequestBlock;
use super::switches::SwitchBlock;
use super::tables::{Tables, bounded_name};
use super::{HtmlError, MAX_WARNINGS, columns};
use whit_view::brief::Headline;
use whit_view::json_strings;
use whit_view::ledger_json::{LedgerJson, Names};
use whit_view::warning::warning_text;

/// Version of the block's layout.
const LAYOUT: u32 = 2;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    layout: u32,
    title: &'a str,
    generator: &'static str,
    recording: Recording<'a>,
    events: Vec<Event<'a>>,
    comms: &'a [Cow<'a, str>],
    /// Process, thread, comm.
    threads: Vec<(i32, i32, u32)>,
    /// Path, short name, build id, kind.
    dsos: Vec<(&'a str, &'a str, Option<&'a str>, &'static str)>,
    functions: Functions<'a>,
    files: &'a [Cow<'a, str>],
    frames: Frames,
    nodes: Nodes,
    rows: Rows,
    cgroups: Vec<Cow<'a, str>>,
    losses: Losses,
    ledger: Option<PageLedger<'a>>,
    records: &'a [(String, u64)],
    warnings: Vec<String>,
    warnings_left_off: usize,
    bounds: Bounds,
    #[serde(flatten)]
    more: &'a More<'a>,
}

/// Data that only some pages have.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct More<'a> {
    pub(crate) switches: Option<SwitchBlock>,
    /// Code of the hottest functions.
    pub(crate) code: Option<CodeBlock>,
    pub(crate) requests: Option<RequestBlock<'a>>,
    /// Verdicts on the two sides of a comparison.
    pub(crate) compare: Option<CompareBlock>,
    /// The view that the page opens with, where it is not the graph.
    pub(crate) start_view: Option<&'static str>,
    /// When samples were taken; the columns are in a block of their own.
    pub(crate) moments: Option<MomentFacts>,
    /// The line above all views; none for two sides.
    pub(crate) headline: Option<Headline>,
    /// The page's server has ranges of time.
    pub(crate) is_served: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recording<'a> {
    path: &'a str,
    size_bytes: u64,
    hostname: &'a str,
    os_release: &'a str,
    version: &'a str,
    arch: &'a str,
    cpus_online: Option<u32>,
    cpus_available: Option<u32>,
    cpu_desc: &'a str,
    cpuid: &'a str,
    total_mem_kib: Option<u64>,
    cmdline: Vec<&'a str>,
    /// From the first to the last sample; time stamps themselves do not fit a double.
    span_ns: Option<u64>,
    captured_on_s: Option<u64>,
    has_callchains: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    name: &'a str,
    samples: u64,
    period: u64,
    lost_samples: u64,
}

#[derive(Serialize)]
struct Functions<'a> {
    names: Vec<&'a str>,
    dso: String,
    known: String,
}

/// Columns, see [`columns`]: `function` as differences, the others plain; `file` 0 is none.
#[derive(Serialize)]
struct Frames {
    function: String,
    file: String,
    line: String,
    flags: String,
}

/// `up` is the distance to the parent, 0 for a root; `frame` as differences.
#[derive(Serialize)]
struct Nodes {
    up: String,
    frame: String,
}

/// `event`, `thread`, `comm` and `node` as differences; `node` 0 is none, others are one more.
#[derive(Serialize)]
struct Rows {
    event: String,
    thread: String,
    comm: String,
    /// One more than the cgroup's index, 0 is none; empty where no row has one.
    cgroup: String,
    node: String,
    samples: String,
    period: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Losses {
    lost_records: u64,
    lost_chunks: u64,
    lost_samples: u64,
    paused_ns: u64,
    elapsed_ns: u64,
    data_loss: Option<f64>,
    truncated_bytes: u64,
}

/// All fields of the ledger, and those that the page lists.
#[derive(Serialize)]
struct PageLedger<'a> {
    #[serde(flatten)]
    fields: LedgerJson<'a>,
    #[serde(rename = "recordedNs")]
    recorded_ns: u64,
    /// CPU time of recording without setting up; null where older versions did not measure that.
    #[serde(rename = "recordingCpuNs")]
    recording_cpu_ns: Option<u64>,
    /// Title, unit and figure.
    lines: Vec<(&'static str, &'static str, u64)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bounds {
    nodes_before: usize,
    fold_threshold: Option<f64>,
    threads_merged: usize,
}

/// Writes the block, safe to stand in a `<script type="application/json">`.
pub(crate) fn write(
    profile: &Profile,
    tables: &Tables<'_>,
    more: &More,
    title: &str,
    out: &mut dyn Write,
) -> Result<(), HtmlError> {
    Ok(json_strings::write_for_script(out, &page(profile, tables, more, title))?)
}

fn page<'a>(
    profile: &'a Profile,
    tables: &'a Tables<'_>,
    more: &'a More,
    title: &'a str,
) -> Page<'a> {
    let dso = |d: &'a super::tables::PageDso<'_>| {
        (&*d.path, &*d.short_name, d.build_id.as_deref(), d.kind)
    };
    let summary = tables.summary();
    Page {
        layout: LAYOUT,
        title,
        generator: concat!("whit ", env!("CARGO_PKG_VERSION")),
        recording: recording(&profile.recording),
        events: events(profile),
        comms: &tables.comms,
        threads: tables.threads.iter().map(|t| (t.pid, t.tid, t.comm)).collect(),
        dsos: tables.dsos.iter().map(dso).collect(),
        functions: functions(tables),
        files: &tables.files,
        frames: frames(tables),
        nodes: nodes(tables),
        rows: rows(tables),
        cgroups: profile.cgroups.iter().map(|cgroup| bounded_name(&cgroup.path)).collect(),
        losses: losses(profile),
        ledger: profile.ledger.as_ref().map(page_ledger),
        records: &profile.stats.by_type,
        warnings: profile.warnings.iter().take(MAX_WARNINGS).map(warning).collect(),
        warnings_left_off: profile.warnings.len().saturating_sub(MAX_WARNINGS),
        bounds: Bounds {
            nodes_before: summary.nodes_before,
            fold_threshold: summary.fold_threshold,
            threads_merged: summary.threads_merged,
        },
        more,
    }
}

fn warning(warning: &Warning) -> String {
    bounded_name(&warning_text(warning)).into_owned()
}

fn recording(info: &RecordingInfo) -> Recording<'_> {
    Recording {
        path: info.path.exact(),
        size_bytes: info.size_bytes,
        hostname: info.hostname.exact(),
        os_release: info.os_release.exact(),
        version: info.version.exact(),
        arch: info.arch.exact(),
        cpus_online: info.nr_cpus.map(|(online, _)| online),
        cpus_available: info.nr_cpus.map(|(_, available)| available),
        cpu_desc: info.cpu_desc.exact(),
        cpuid: info.cpuid.exact(),
        total_mem_kib: info.total_mem_kib,
        cmdline: info.cmdline.iter().map(OutsideText::exact).collect(),
        span_ns: info.first_sample.zip(info.last_sample).map(|(first, last)| last.since(first)),
        captured_on_s: info.captured_on_s,
        has_callchains: info.has_callchains,
    }
}

fn events(profile: &Profile) -> Vec<Event<'_>> {
    let event = |e: &'_ whit_profile::model::EventInfo| (e.samples, e.period, e.lost_samples);
    let named = profile.events.iter().map(|e| (e.name.exact(), event(e)));
    named
        .map(|(name, (samples, period, lost_samples))| Event {
            name,
            samples,
            period,
            lost_samples,
        })
        .collect()
}

fn functions<'a>(tables: &'a Tables<'_>) -> Functions<'a> {
    let functions = &tables.functions;
    Functions {
        names: functions.iter().map(|f| &*f.name).collect(),
        dso: columns::plain(functions.iter().map(|f| u64::from(f.dso))),
        known: columns::plain(functions.iter().map(|f| u64::from(f.known))),
    }
}

fn frames(tables: &Tables<'_>) -> Frames {
    let frames = &tables.frames;
    let line = |f: &super::tables::FrameColumns| f.source.map_or(f.folded, |(_, line)| line);
    Frames {
        function: columns::deltas(frames.iter().map(|f| f.function)),
        file: columns::plain(
            frames.iter().map(|f| f.source.map_or(0, |(file, _)| u64::from(file) + 1)),
        ),
        line: columns::plain(frames.iter().map(|f| u64::from(line(f)))),
        flags: columns::plain(frames.iter().map(|f| f.flags)),
    }
}

fn nodes(tables: &Tables<'_>) -> Nodes {
    let up = tables.nodes.iter().enumerate().map(|(index, node)| match node.parent {
        NO_NODE => 0,
        parent => (index - parent as usize) as u64,
    });
    Nodes { up: columns::plain(up), frame: columns::deltas(tables.nodes.iter().map(|n| n.frame)) }
}

fn rows(tables: &Tables<'_>) -> Rows {
    let rows = &tables.rows;
    Rows {
        event: columns::deltas(rows.iter().map(|r| r.event)),
        thread: columns::deltas(rows.iter().map(|r| r.thread)),
        comm: columns::deltas(rows.iter().map(|r| r.comm)),
        cgroup: if rows.iter().any(|r| r.cgroup > 0) {
            columns::deltas(rows.iter().map(|r| r.cgroup))
        } else {
            String::new()
        },
        // NO_NODE wraps to 0.
        node: columns::deltas(rows.iter().map(|r| r.node.wrapping_add(1))),
        samples: columns::plain(rows.iter().map(|r| r.samples)),
        period: columns::plain(rows.iter().map(|r| r.period)),
    }
}

fn losses(profile: &Profile) -> Losses {
    let losses = &profile.losses;
    Losses {
        lost_records: losses.lost_records,
        lost_chunks: losses.lost_chunks,
        lost_samples: losses.lost_samples,
        paused_ns: losses.paused_ns,
        elapsed_ns: losses.elapsed_ns,
        data_loss: losses.data_loss().share(),
        truncated_bytes: losses.truncated_bytes,
    }
}

/// Fields with a line of their own, and others that are not zero.
fn page_ledger(ledger: &Ledger) -> PageLedger<'_> {
    let mut lines = Vec::new();
    for group in GROUPS.iter().filter(|group| group.is_reported(ledger)) {
        // Those that are measured have a sentence each, which the page makes.
        for field in group.fields.iter().filter(|_| group.measurement(ledger).is_none()) {
            let value = field.value(ledger);
            let is_listed = value > 0 || matches!(field.line, Line::Always(_));
            if field.element.is_none() && is_listed {
                lines.push((field.title, field.unit.name(), value));
            }
        }
    }
    PageLedger {
        fields: LedgerJson { ledger, names: Names::Camel },
        recorded_ns: ledger.recorded_ns(),
        recording_cpu_ns: ledger.recording_cpu_ns(),
        lines,
    }
}
