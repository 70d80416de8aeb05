//! Recordings of any bytes, from the file to every view: no panic, no raw control character in text and
//! JSON, the same with one thread and with three, and as many samples one by one as in sum.
#![no_main]

use std::io::sink;
use std::num::NonZeroU64;
use std::path::Path;

use whit_fuzz::{fuzz_target, with_file};
use whit_page::{HtmlOptions, write_html};
use whit_perfdata::reader::Recording;
use whit_profile::model::{EventId, Profile};
use whit_profile::parallelism::ParallelismOf;
use whit_profile::script::{self, Script};
use whit_profile::switches::{SamplesAndSwitches, SwitchOptions, SwitchSums, Switches};
use whit_profile::{ReadOptions, Reading, Samples, WantedFacets};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_types::is_escaped;
use whit_view::diff::{DiffOptions, DiffTextOptions, Per, Run, diff, write_json, write_text};
use whit_view::folded::{FoldedOptions, write_folded};
use whit_view::hists::{self, HistsOptions, SortKey, WeightColumns};
use whit_view::stdio::{self, StdioOptions};
use whit_view::switches::{SwitchViewOptions, View};

/// Text of samples: their times alone, with chains made and thrown away.
struct Times;

impl script::Format for Times {
    fn wants_chain(&self, _event: usize) -> bool {
        true
    }

    fn frame(&self, _event: usize, _frame: &script::ScriptedFrame<'_>, _out: &mut Vec<u8>) {}

    fn sample(&self, sample: &script::ScriptedSample<'_>, out: &mut Vec<u8>) {
        out.extend(sample.start.time.0.to_le_bytes());
    }
}

/// Streams that decompress to more are left to the target of the reader.
const MAX_COMPRESSED_BYTES: usize = 4 << 10;

fn options(threads: usize) -> ReadOptions {
    // No file of this machine is looked into.
    let nowhere = Path::new("/nonexistent/whit-fuzz");
    let mut symbols =
        SymbolizerConfig::new(DebugDirs { symfs: Some(nowhere.into()), ..DebugDirs::none() });
    symbols.kernel.kallsyms = Some(nowhere.join("kallsyms"));
    symbols.perf_map_dirs.clear();
    ReadOptions::new(threads, symbols)
}

/// Several threads tell rows apart by more.
fn question(threads: usize) -> Samples {
    let facets = WantedFacets {
        cpu: threads > 1,
        cgroup: threads > 1,
        time_quantum_ns: NonZeroU64::new(1_000_000).filter(|_| threads > 1),
        weight: threads > 1,
        ..WantedFacets::default()
    };
    Samples { facets, blocks: threads > 1, ..Samples::default() }
}

/// Nothing in it makes a terminal do anything but begin a line.
fn assert_plain(out: &[u8]) {
    let text = std::str::from_utf8(out).expect("text is UTF-8");
    let raw = text.find(|c| is_escaped(c) && c != '\n');
    assert_eq!(raw, None, "{:?}", text.lines().find(|line| line.contains(is_escaped)));
}

fn show(profile: &Profile, with_page: bool) {
    let written = "into memory";
    let mut out = Vec::new();
    stdio::write_header(&mut out, profile).expect(written);
    stdio::write_stats(&mut out, profile).expect(written);
    stdio::write_report(&mut out, profile, &StdioOptions::default()).expect(written);
    whit_view::json::write_json(&mut out, profile, &HistsOptions::default()).expect(written);
    assert_plain(&out);
    for event in 0..profile.events.len() as u32 {
        let options = FoldedOptions::default();
        write_folded(&mut sink(), profile, EventId(event), &options).expect(written);
    }
    if with_page {
        write_html(profile, &HtmlOptions::default(), &mut sink()).expect(written);
    }
}

/// A report with intervals, and a comparison of the recording with itself, which finds nothing.
fn show_blocks(profile: Profile) {
    let written = "into memory";
    let mut out = Vec::new();
    let hists = HistsOptions { intervals: true, ..HistsOptions::default() };
    whit_view::json::write_json(&mut out, &profile, &hists).expect(written);
    stdio::write_report(&mut out, &profile, &StdioOptions { hists, ..StdioOptions::default() })
        .expect(written);
    if let Ok(run) = Run::of(profile, &DiffOptions::default())
        && let Ok(diff) = diff(std::slice::from_ref(&run), std::slice::from_ref(&run), &Per::Share)
    {
        assert!(diff.slower_by(0.0).is_empty(), "a recording differs from itself");
        let options = DiffTextOptions { percent_limit: 0.0, quiet: false };
        write_text(&mut out, &diff, &options).expect(written);
        write_json(&mut out, &diff).expect(written);
    }
    assert_plain(&out);
}

/// All views of the context switches, and their sums.
fn show_switches(profile: &Profile, switches: &Switches) -> SwitchSums {
    let written = "into memory";
    let options = SwitchViewOptions::default();
    let views = [View::Tree, View::Flat, View::Threads, View::Worst, View::Wakers];
    let mut out = Vec::new();
    whit_view::switches::write_text(&mut out, profile, switches, &views, &options).expect(written);
    whit_view::switches::write_json(&mut out, profile, switches, &options).expect(written);
    assert_plain(&out);
    let mut total = SwitchSums::default();
    switches.rows.iter().for_each(|row| total.add(&row.sums));
    total
}

/// Rows by latency, with one thread and with three: the same sums.
fn show_latency(recording: &Recording, expected: u64) {
    for of in [ParallelismOf::All, ParallelismOf::Process, ParallelismOf::Cgroup] {
        let latencies = [1, 3].map(|threads| {
            let mut question = question(threads);
            (question.parallelism, question.facets.parallelism) = (Some(of), true);
            let profile = Reading::open(recording, &options(threads)).answer(question);
            let profile = profile.expect("nothing changes the file");
            assert_eq!(samples(&profile), expected);
            let hists = HistsOptions {
                shares: WeightColumns::LatencyAndOverhead,
                sort: vec![SortKey::Parallelism, SortKey::Symbol],
                ..HistsOptions::default()
            };
            let mut out = Vec::new();
            whit_view::json::write_json(&mut out, &profile, &hists).expect("into memory");
            let text = StdioOptions { hists: hists.clone(), ..StdioOptions::default() };
            stdio::write_report(&mut out, &profile, &text).expect("into memory");
            assert_plain(&out);
            let ids = (0..profile.events.len() as u32).map(EventId);
            let latency = ids.map(|id| hists::hists(&profile, id, &hists).total_latency);
            (latency.collect::<Vec<_>>(), profile.parallelism, profile.rows.len() as u64)
        });
        let [(one, info, rows), (three, info_of_three, rows_of_three)] = &latencies;
        assert_eq!(info, info_of_three);
        assert_eq!(one.len(), three.len());
        // Each row is rounded, and the number of threads may divide samples into other rows.
        let most = rows + rows_of_three;
        assert!(one.iter().zip(three).all(|(a, b)| a.abs_diff(*b) <= most), "{latencies:?}");
    }
}

fn samples(profile: &Profile) -> u64 {
    profile.events.iter().map(|event| event.samples).sum()
}

fuzz_target!(|data| {
    let compressed = data.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]);
    if compressed && data.len() > MAX_COMPRESSED_BYTES {
        return;
    }
    with_file(data, |file| {
        let Ok(recording) = Recording::from_file(Path::new("fuzz.data"), file) else {
            return;
        };
        let unchanged = "nothing changes the file";
        let profile = Reading::open(&recording, &options(1)).answer(question(1)).expect(unchanged);
        // A page costs as much as the rest together many times over.
        let sum = data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        show(&profile, sum.is_multiple_of(64));
        if sum.is_multiple_of(16) {
            let parallel = Reading::open(&recording, &options(3)).answer(question(3));
            let parallel = parallel.expect(unchanged);
            assert_eq!(samples(&profile), samples(&parallel));
            show_blocks(parallel);
        }
        if sum.is_multiple_of(8) {
            show_latency(&recording, samples(&profile));
        }
        let wanted = SwitchOptions { max_worst: 5, max_spans: 20, ..SwitchOptions::default() };
        let switches = |threads| {
            let (samples_wanted, switches) = (question(threads), wanted.clone());
            let question = SamplesAndSwitches { samples: samples_wanted, switches };
            let answer = Reading::open(&recording, &options(threads)).answer(question);
            let (profile, switches) = answer.expect(unchanged);
            assert!(switches.timeline.spans.len() <= 20.max(profile.threads.len()));
            (samples(&profile), show_switches(&profile, &switches))
        };
        let (with_switches, total) = switches(1);
        assert_eq!(with_switches, samples(&profile));
        if sum.is_multiple_of(16) {
            assert_eq!(switches(3), (with_switches, total));
        }
        let mut times = Vec::new();
        let script = Script { format: &Times, out: &mut times };
        let summary = Reading::open(&recording, &options(1)).answer(script).expect(unchanged);
        assert_eq!(summary.samples, samples(&profile));
        let times = times.as_chunks::<8>().0.iter().map(|time| u64::from_le_bytes(*time));
        assert!(times.is_sorted(), "samples out of order");
    })
});
