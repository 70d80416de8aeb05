//! Firefox Profiler: the processed profile format, thread by thread.
//!
//! Version 55 of the format, which the profiler brings up to date by itself. Its tables are columns; each thread has its
//! own, so that each writing thread has the tables of one in memory. The crate `fxprof-processed-profile` writes neither inlined functions
//! nor lines.

mod format;
mod markers;
mod samples;
mod thread;

use crate::ExportError;
use crate::content::Content;
use crate::parts::write_parts;
use format::{Category, Library, Meta, SampleUnits};
use markers::SCHEMAS;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufWriter, Write};
use thread::{Part, Samples, Threads};
use whit_profile::model::{DsoInfo, DsoKind};

/// Version of the processed profile format.
const VERSION: u32 = 55;

/// Bytes of JSON that go to the output at once.
const BUFFER_BYTES: usize = 1 << 16;

/// The breakpad id of a library without a build id.
const NO_BREAKPAD_ID: &str = "000000000000000000000000000000000";

/// Writes the profile.
pub(crate) fn write(content: &Content<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let threads = Threads::new(content);
    out.write_all(b"{\"meta\":")?;
    put(out, &meta(content, &threads))?;
    out.write_all(b",\"libs\":")?;
    put(out, &libraries(content))?;
    out.write_all(b",\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\"threads\":[")?;
    let samples = Samples::by_thread(content);
    let numbered: Vec<_> = threads.order.iter().copied().enumerate().collect();
    let write = |&(position, part): &(usize, Part), out: &mut dyn Write| {
        if position > 0 {
            out.write_all(b",")?;
        }
        put(out, &thread::build(content, part, &threads, &samples, position == 0))
    };
    write_parts(content.threads, &numbered, write, out)?;
    if threads.order.is_empty() {
        put(out, &thread::nothing(content))?;
    }
    out.write_all(b"]}")?;
    Ok(())
}

fn put(out: &mut dyn Write, value: &impl Serialize) -> Result<(), ExportError> {
    // JSON comes in parts of a few bytes, too small for a call through a pointer each.
    let mut buffered = BufWriter::with_capacity(BUFFER_BYTES, out);
    serde_json::to_writer(&mut buffered, value)?;
    buffered.into_inner().map_err(|error| error.into_error())?;
    Ok(())
}

fn meta<'a>(content: &Content<'a>, threads: &Threads) -> Meta<'a> {
    let info = &content.profile.recording;
    let (first, last) = content.span();
    let main = content.main_event();
    let interval_ns = main.and_then(|event| content.interval_ns(event));
    let title = main.map_or("whit", |event| content.event_name(event));
    let program = threads.order.first().map(|part| &content.profile.threads[part.thread.index()]);
    let program = program.map_or("nothing", |thread| content.process_name(thread.pid));
    let notes = content.notes();
    Meta {
        product: format!("{program} ({title})"),
        interval: interval_ns.map_or(1.0, ms),
        start_time: content.unix_ns(first).0 as f64 / 1e6,
        end_time: content.unix_ns(last).0 as f64 / 1e6,
        version: 24,
        preprocessed_profile_version: VERSION,
        process_type: 0,
        symbolicated: true,
        debug: false,
        uses_only_one_stack_type: true,
        source_code_is_not_on_searchfox: true,
        marker_schema: serde_json::from_str(SCHEMAS).unwrap_or(Value::Null),
        categories: Category::ALL,
        sample_units: SampleUnits::default(),
        oscpu: format!("Linux {} {}", info.os_release.exact(), info.arch.exact()),
        platform: "Linux",
        cpu_name: info.cpu_desc.exact(),
        logical_cpus: info.nr_cpus.map(|(online, _)| online),
        arguments: info.cmdline.iter().map(|word| word.exact()).collect::<Vec<_>>().join(" "),
        importer: format!("whit {}", env!("CARGO_PKG_VERSION")),
        initial_selected_threads: vec![threads.hottest as u32],
        extra: vec![format::ExtraSection {
            label: "Recording by whit",
            entries: notes
                .into_iter()
                .map(|note| format::ExtraEntry {
                    label: note.key,
                    format: "string",
                    value: note.text,
                })
                .collect(),
        }],
    }
}

fn libraries(content: &Content<'_>) -> Vec<Library> {
    let arch = content.profile.recording.arch.exact();
    let library = |dso: &DsoInfo| {
        let (name, path) = (dso.short_name.exact().to_owned(), dso.path.exact().to_owned());
        Library {
            arch: arch.to_owned(),
            debug_name: name.clone(),
            debug_path: path.clone(),
            name,
            path,
            breakpad_id: debug_id(dso),
            code_id: dso.build_id.map(|id| id.to_string()),
        }
    };
    content.profile.dsos.iter().map(library).collect()
}

/// The id by which Firefox Profiler asks for the symbols of a binary.
pub fn debug_id(dso: &DsoInfo) -> String {
    dso.build_id.map_or_else(|| NO_BREAKPAD_ID.to_owned(), |id| breakpad_id(id.as_bytes()))
}

/// The first 16 bytes of a build id as a GUID, whose first three parts are little-endian, and an age of 0.
fn breakpad_id(build_id: &[u8]) -> String {
    let mut guid = [0u8; 16];
    let len = build_id.len().min(guid.len());
    guid[..len].copy_from_slice(&build_id[..len]);
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    let hex: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{hex}0")
}

/// The category of code.
fn category(kind: DsoKind, kernel: bool) -> Category {
    match kind {
        _ if kernel => Category::Kernel,
        DsoKind::Kernel | DsoKind::KernelModule => Category::Kernel,
        DsoKind::Jit => Category::Jit,
        DsoKind::Elf | DsoKind::Vdso => Category::User,
        DsoKind::Unknown => Category::Other,
    }
}

/// Nanoseconds as milliseconds, the format's unit of time.
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_a_guid_with_an_age() {
        let id: Vec<u8> = (1..=20).collect();
        assert_eq!(breakpad_id(&id), "0403020106050807090A0B0C0D0E0F100");
    }
}
