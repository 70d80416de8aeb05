//! The whole page: the embedded data equals the profile.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use proptest::prelude::*;
use serde_json::Value;
use whit_perfdata::ledger::{Ledger, PmiLedger, PmiMeasurement};
use whit_profile::model::*;
use whit_profile::warning::Warning;
use whit_types::{CpuId, Pid, Svma, Tid, TimestampNs, is_escaped};

use super::columns::decode;
use super::*;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--\u{2028}\x1b[2J\u{9b}\u{202e}";

fn page(profile: &Profile, options: &HtmlOptions) -> (String, PageSummary) {
    let mut out = Vec::new();
    let summary = write_html(profile, options, &mut out).expect("a page is written");
    (String::from_utf8(out).expect("a page is UTF-8"), summary)
}

/// The JSON block, found as a browser finds it: up to the first `</script`.
fn data(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"profile\">";
    let rest = page.split_once(start).expect("the page has a data block").1;
    serde_json::from_str(rest.split_once("</script").expect("the block ends").0).expect("JSON")
}

fn column(data: &Value, table: &str, name: &str) -> Vec<u64> {
    decode::plain(data[table][name].as_str().expect("a column"))
}

fn delta_column(data: &Value, table: &str, name: &str) -> Vec<u32> {
    decode::deltas(data[table][name].as_str().expect("a column"))
}

/// Event, process, thread, comm and stack (name, binary, source, inlined, kernel; root first).
type StackKey = (String, i32, i32, String, Vec<(String, String, String, bool, bool)>);

fn stacks_of_profile(p: &Profile) -> BTreeMap<StackKey, (u64, u64)> {
    let mut stacks = BTreeMap::new();
    for row in &p.rows {
        let mut stack = Vec::new();
        let mut node = row.node;
        while node != NodeId::NONE {
            let frame = &p.frames[p.nodes[node.index()].frame.index()];
            let function = &p.functions[frame.function.index()];
            let source =
                frame.source.map(|(f, line)| format!("{}:{line}", p.files[f.index()].exact()));
            let dso = p.dsos[function.dso.index()].path.exact().to_owned();
            let source = source.unwrap_or_default();
            stack.push((
                function.name.exact().to_owned(),
                dso,
                source,
                frame.inlined,
                frame.kernel,
            ));
            node = p.nodes[node.index()].parent;
        }
        stack.reverse();
        let thread = &p.threads[row.thread.index()];
        let event = p.events[row.event.index()].name.exact().to_owned();
        let comm = p.comms[row.comm.index()].exact().to_owned();
        let sum = stacks.entry((event, thread.pid.0, thread.tid.0, comm, stack)).or_insert((0, 0));
        *sum = (sum.0 + row.samples, sum.1 + row.period);
    }
    stacks
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn stacks_of_page(data: &Value) -> BTreeMap<StackKey, (u64, u64)> {
    let function = delta_column(data, "frames", "function");
    let file = column(data, "frames", "file");
    let line = column(data, "frames", "line");
    let flags = column(data, "frames", "flags");
    let dso = column(data, "functions", "dso");
    let frame = |index: usize| {
        let f = function[index] as usize;
        let source = match file[index] {
            0 => String::new(),
            file => format!("{}:{}", text(&data["files"][file as usize - 1]), line[index]),
        };
        let dso = text(&data["dsos"][dso[f] as usize][0]);
        let name = text(&data["functions"]["names"][f]);
        (name, dso, source, flags[index] & 1 != 0, flags[index] & 2 != 0)
    };
    let (up, frames) = (column(data, "nodes", "up"), delta_column(data, "nodes", "frame"));
    let rows: Vec<Vec<u32>> =
        ["event", "thread", "comm", "node"].map(|name| delta_column(data, "rows", name)).into();
    let (samples, period) = (column(data, "rows", "samples"), column(data, "rows", "period"));
    let mut stacks = BTreeMap::new();
    for row in 0..samples.len() {
        let mut stack = Vec::new();
        let mut node = rows[3][row] as usize;
        while node != 0 {
            stack.push(frame(frames[node - 1] as usize));
            let distance = up[node - 1] as usize;
            node = if distance == 0 { 0 } else { node - distance };
        }
        stack.reverse();
        let event = text(&data["events"][rows[0][row] as usize]["name"]);
        let thread = &data["threads"][rows[1][row] as usize];
        let id = |i: usize| thread[i].as_i64().expect("an id") as i32;
        let comm = text(&data["comms"][rows[2][row] as usize]);
        let before = stacks.insert((event, id(0), id(1), comm, stack), (samples[row], period[row]));
        assert_eq!(before, None, "rows of a page are unique");
    }
    stacks
}

/// The columns of time: bucket, row, CPU, samples and period of each entry.
fn entries(page: &str, count: usize) -> Vec<[u64; 5]> {
    let start = "<script type=\"application/octet-stream\" id=\"moments\">";
    let rest = page.split_once(start).expect("the page has columns of time").1;
    let block = rest.split_once("</script").expect("the block ends").0;
    let compressed = STANDARD.decode(block).expect("base64");
    let mut bytes = Vec::new();
    ZlibDecoder::new(&compressed[..]).read_to_end(&mut bytes).expect("zlib");
    let numbers = decode::plain(&STANDARD.encode(bytes));
    assert_eq!(numbers.len(), 5 * count);
    let mut columns: Vec<Vec<u64>> = numbers.chunks(count.max(1)).map(<[u64]>::to_vec).collect();
    for column in columns.iter_mut().take(2) {
        let mut before = 0i64;
        for value in column {
            before += (*value >> 1) as i64 ^ -((*value & 1) as i64);
            *value = before as u64;
        }
    }
    (0..count).map(|i| [0, 1, 2, 3, 4].map(|column| columns[column][i])).collect()
}

/// A random profile whose samples have times: `seeds` are as those of `profile_of`.
fn timed_profile(seeds: &[(u32, u64, u64)]) -> Profile {
    let mut profile = profile_of(seeds);
    let mut samples = Vec::new();
    for (row, (index, &(seed, ..))) in profile.rows.iter_mut().zip(seeds.iter().enumerate()) {
        row.samples = row.samples % 4 + 1;
        row.period = 10 * row.samples;
        for number in 0..row.samples {
            let time = TimestampNs(u64::from(seed) * 1_000 + number * 1_000_000_000_000);
            let cpu = (seed % 3 > 0).then_some(CpuId(seed % 3));
            samples.push(SingleSample { time, row: index as u32, cpu, period: 10 });
        }
    }
    samples.sort_unstable();
    profile.singles = Some(Singles { samples, ..Singles::default() });
    profile
}

#[test]
fn a_profile_without_times_has_no_columns_of_time() {
    let (page, _) = page(&profile_of(&[(1, 1, 1)]), &HtmlOptions::default());
    assert_eq!(data(&page)["moments"], Value::Null);
    assert!(page.contains("id=\"moments\"></script>"));
}

#[test]
fn more_entries_than_the_bound_make_longer_buckets_and_the_page_says_so() {
    let seeds: Vec<_> = (0..3000u32).map(|i| (i.wrapping_mul(2_654_435_761), 3, 1)).collect();
    let options = HtmlOptions { max_entries: 4_000, ..HtmlOptions::default() };
    let (page, _) = page(&timed_profile(&seeds), &options);
    let facts = &data(&page)["moments"];
    let ns = |name: &str| facts[name].as_u64().expect("a number");
    assert!(ns("count") <= 4_000 && ns("bucketNs") > ns("wantedBucketNs"), "{facts}");
    assert_eq!(ns("maxEntries"), 4_000);
}

/// A profile out of random numbers; hostile names included.
fn profile_of(seeds: &[(u32, u64, u64)]) -> Profile {
    let name = |i: u32| match i % 7 {
        0 => HOSTILE.to_owned(),
        n => format!("std::vector<int>::f{n}<&>{i}"),
    };
    let nodes = seeds.iter().enumerate().map(|(i, &(seed, ..))| {
        let root = i == 0 || seed % 11 == 0;
        let parent = if root { NodeId::NONE } else { NodeId(seed / 16 % i as u32) };
        CallNode { parent, frame: FrameId(seed % 24) }
    });
    let rows = seeds.iter().enumerate().map(|(i, &(seed, samples, period))| SampleRow {
        event: EventId(seed % 2),
        thread: ThreadId(seed / 3 % 4),
        comm: CommId(seed / 5 % 2),
        facets: FacetsId(0),
        node: if seed % 13 == 0 { NodeId::NONE } else { NodeId(i as u32) },
        samples,
        period,
    });
    let dso = |kind, path: &str| DsoInfo {
        path: path.into(),
        short_name: path.into(),
        build_id: None,
        kind,
    };
    Profile {
        events: ["cycles", "cpu-clock"]
            .map(|name| EventInfo { name: name.into(), ..EventInfo::default() })
            .into(),
        comms: vec!["server".into(), HOSTILE.into()],
        threads: (0..4)
            .map(|i| ThreadInfo { pid: Pid(i / 2), tid: Tid(i), comm: CommId(0) })
            .collect(),
        dsos: vec![dso(DsoKind::Elf, "/bin/a"), dso(DsoKind::Kernel, "[kernel.kallsyms]")],
        functions: (0..12)
            .map(|i| FunctionInfo { name: name(i).into(), dso: DsoId(i % 2), known: true })
            .collect(),
        files: vec!["a.cc".into(), HOSTILE.into()],
        frames: (0..24)
            .map(|i| Frame {
                function: FunctionId(i / 2),
                address: Svma(u64::from(i) * 64),
                source: (i % 3 > 0).then_some((FileId(i % 2), i / 6)),
                inlined: i % 5 == 0,
                kernel: i / 2 % 2 == 1,
            })
            .collect(),
        nodes: nodes.collect(),
        rows: rows.collect(),
        ..Profile::default()
    }
}

#[test]
fn an_empty_profile_makes_a_page() {
    let (page, summary) = page(&Profile::default(), &HtmlOptions::default());
    assert_eq!(summary, PageSummary::default());
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert_eq!(data(&page)["rows"]["node"], "");
    assert_eq!(data(&page)["ledger"], Value::Null);
}

#[test]
fn hostile_names_stay_text() {
    let mut profile = profile_of(&[(0, 1, 1), (24, 1, 1)]);
    profile.recording.path = HOSTILE.into();
    profile.recording.cmdline = vec![HOSTILE.into()];
    profile.recording.hostname = HOSTILE.into();
    profile.events[0].name = HOSTILE.into();
    profile.warnings = vec![Warning::UnknownFields { tracepoint: HOSTILE.into() }];
    let (page, _) = page(&profile, &HtmlOptions::default());
    assert!(
        !page.contains("<img")
            && !page.contains("alert(1)><!--")
            && !page.contains(|c| is_escaped(c) && c != '\n')
    );
    assert_eq!(page.matches("</script>").count(), 3, "the page's own three blocks");
    let data = data(&page);
    assert!(data["warnings"][0].as_str().is_some_and(|text| text.starts_with(HOSTILE)));
    assert_eq!(data["recording"]["cmdline"][0], HOSTILE);
    assert_eq!(data["functions"]["names"][0], HOSTILE);
    let escaped = "<title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&lt;!--\\u{2028}\\x1b[2J\\u{9b}\\u{202e}";
    assert!(page.contains(escaped), "the title is escaped as HTML");
}

#[test]
fn the_page_admits_its_own_script_alone() {
    let (page, _) = page(&Profile::default(), &HtmlOptions::default());
    let policy = page.split_once("Content-Security-Policy\" content=\"").expect("a policy").1;
    let policy = policy.split_once('"').expect("the attribute ends").0;
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(policy.matches("'sha256-").count(), 2, "script and style by hash");
}

#[test]
fn recording_losses_and_ledger_are_embedded() {
    let profile = Profile {
        recording: RecordingInfo {
            path: "perf.data".into(),
            nr_cpus: Some((4, 8)),
            first_sample: Some(TimestampNs(u64::MAX - 5)),
            last_sample: Some(TimestampNs(u64::MAX)),
            ..RecordingInfo::default()
        },
        losses: LossReport {
            lost_records: 3,
            paused_ns: 1,
            elapsed_ns: 4,
            truncated_bytes: 17,
            ..LossReport::default()
        },
        ledger: Some(Ledger {
            wakeups: 99,
            pmi: PmiLedger {
                measurement: PmiMeasurement::PerfHandlers,
                count: 7,
                ..PmiLedger::default()
            },
            ..Ledger::default()
        }),
        stats: RecordStats { by_type: vec![("SAMPLE".into(), 5)], ..RecordStats::default() },
        warnings: vec![Warning::PeriodOverflow; MAX_WARNINGS + 2],
        ..Profile::default()
    };
    let (page, _) = page(&profile, &HtmlOptions::default());
    let data = data(&page);
    assert_eq!(data["losses"]["lostRecords"], 3);
    assert_eq!(data["losses"]["dataLoss"], 0.25);
    assert_eq!(data["losses"]["truncatedBytes"], 17);
    assert_eq!(data["ledger"]["wakeups"], 99);
    assert_eq!(data["ledger"]["pmi"]["reason"], Value::Null);
    assert_eq!(data["ledger"]["pmi"]["measurement"], "perf_handlers");
    assert_eq!(data["ledger"]["pmi"]["count"], 7);
    assert!(data["ledger"]["bpf"]["reason"].is_string());
    assert_eq!(data["recording"]["spanNs"], 5);
    assert_eq!(data["recording"]["cpusOnline"], 4);
    assert_eq!(data["records"][0][0], "SAMPLE");
    assert_eq!(data["warnings"].as_array().map(Vec::len), Some(MAX_WARNINGS));
    assert_eq!(data["warningsLeftOff"], 2);
    assert_eq!(data["title"], "perf.data");
}

#[test]
fn too_many_nodes_are_folded_and_the_page_says_so() {
    let seeds: Vec<_> =
        (0..3000).map(|i| (i * 7 + 1, if i < 5 { 1_000_000 } else { 1 }, 1)).collect();
    let profile = profile_of(&seeds);
    let options = HtmlOptions { max_nodes: 40, ..HtmlOptions::default() };
    let (page, summary) = page(&profile, &options);
    let data = data(&page);
    assert!(summary.nodes <= 40 && summary.nodes_before > 40, "{summary:?}");
    assert_eq!(data["bounds"]["foldThreshold"].as_f64(), summary.fold_threshold);
    assert!(summary.fold_threshold.is_some());
    let names = data["functions"]["names"].as_array().expect("names");
    assert!(names.iter().any(|name| name == tables::FOLDED_FUNCTION));
    let samples: u64 = column(&data, "rows", "samples").iter().sum();
    assert_eq!(samples, profile.rows.iter().map(|r| r.samples).sum::<u64>());
}

#[test]
fn too_many_threads_become_one_at_the_end() {
    let seeds: Vec<_> = (0..40).map(|i| (i * 3 + 1, u64::from(i / 10) + 1, 1)).collect();
    let profile = profile_of(&seeds);
    let options = HtmlOptions { max_threads: 2, ..HtmlOptions::default() };
    let (page, summary) = page(&profile, &options);
    let data = data(&page);
    assert_eq!(summary.threads_merged, 3);
    assert_eq!(data["threads"].as_array().map(Vec::len), Some(2));
    assert_eq!(data["threads"][1][0], -1);
    assert_eq!(data["comms"][2], "(3 other threads)");
    let samples: u64 = column(&data, "rows", "samples").iter().sum();
    assert_eq!(samples, profile.rows.iter().map(|r| r.samples).sum::<u64>());
}

#[test]
fn long_names_are_cut_at_a_character() {
    let mut profile = profile_of(&[(1, 1, 1)]);
    profile.functions.iter_mut().for_each(|f| f.name = "é".repeat(MAX_NAME_BYTES).into());
    let (page, _) = page(&profile, &HtmlOptions::default());
    let name = text(&data(&page)["functions"]["names"][0]);
    assert_eq!(name.len(), MAX_NAME_BYTES + "…".len());
    assert!(name.ends_with("é…"));
}

#[test]
fn an_index_out_of_range_is_an_error_that_names_it() {
    let mut profile = profile_of(&[(1, 1, 1), (2, 1, 1)]);
    profile.nodes[1].parent = NodeId(1);
    let error = write_html(&profile, &HtmlOptions::default(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("nodes[1] refers to earlier nodes 1"), "{error}");
    let mut profile = profile_of(&[(1, 1, 1)]);
    profile.rows[0].node = NodeId(7);
    let error = write_html(&profile, &HtmlOptions::default(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("rows[0] refers to nodes"), "{error}");
}

#[test]
fn an_output_that_fails_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = write_html(&Profile::default(), &HtmlOptions::default(), &mut Full).unwrap_err();
    assert!(matches!(error, HtmlError::Write(_)), "{error}");
}

#[test]
fn two_hundred_thousand_nodes_stay_small() {
    let seeds: Vec<_> =
        (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761), 1, 999_937)).collect();
    let (page, summary) = page(&profile_of(&seeds), &HtmlOptions::default());
    assert_eq!(summary.fold_threshold, None);
    let bytes_per_node = page.len() / summary.nodes.max(1);
    assert!(bytes_per_node < 32, "{bytes_per_node} bytes for each of {} nodes", summary.nodes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn columns_of_time_add_up_to_the_rows(
        seeds in prop::collection::vec((any::<u32>(), 1u64..1 << 20, 0u64..1 << 50), 1..300),
        max_nodes in 5usize..400,
        max_threads in 1usize..6,
    ) {
        let profile = timed_profile(&seeds);
        let options = HtmlOptions { max_nodes, max_threads, ..HtmlOptions::default() };
        let (page, _) = page(&profile, &options);
        let data = data(&page);
        let facts = &data["moments"];
        let count = facts["count"].as_u64().expect("a count") as usize;
        let (samples, period) = (column(&data, "rows", "samples"), column(&data, "rows", "period"));
        let mut sums = vec![(0, 0); samples.len()];
        let last_bucket = facts["spanNs"].as_u64().expect("ns") / facts["bucketNs"].as_u64().expect("ns");
        for [bucket, row, cpu, samples, period] in entries(&page, count) {
            prop_assert!(bucket <= last_bucket && cpu <= 3);
            let sum = &mut sums[row as usize];
            *sum = (sum.0 + samples, sum.1 + period);
        }
        prop_assert_eq!(sums, samples.into_iter().zip(period).collect::<Vec<_>>());
    }

    #[test]
    fn embedded_stacks_are_those_of_the_profile(
        seeds in prop::collection::vec((any::<u32>(), 1u64..1 << 20, 0u64..1 << 50), 0..300),
    ) {
        let profile = profile_of(&seeds);
        let (page, summary) = page(&profile, &HtmlOptions::default());
        prop_assert_eq!(summary.fold_threshold, None);
        prop_assert_eq!(stacks_of_page(&data(&page)), stacks_of_profile(&profile));
    }
}

#[test]
fn a_served_page_asks_its_server_alone_and_the_ranges_are_exact() {
    use whit_profile::model::{SingleSample, Singles};
    let mut profile = Profile::default();
    profile.events.push(EventInfo { name: "cycles".into(), ..EventInfo::default() });
    profile.comms.push("server".into());
    profile.threads.push(ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) });
    let row = SampleRow {
        event: EventId(0),
        thread: ThreadId(0),
        comm: CommId(0),
        facets: FacetsId(0),
        node: NodeId::NONE,
        samples: 3,
        period: 111,
    };
    profile.rows.push(row);
    let single = |time, period| SingleSample { time: TimestampNs(time), row: 0, cpu: None, period };
    // In any order.
    let samples = vec![single(1030, 100), single(1000, 1), single(1020, 10)];
    profile.singles = Some(Singles { samples, ..Singles::default() });
    let mut page = Vec::new();
    let (_, ranges) =
        write_served(&profile, &Content::default(), &HtmlOptions::default(), &mut page).unwrap();
    let text = String::from_utf8(page).unwrap();
    assert!(
        text.contains("connect-src 'self'; default-src 'none'")
            && text.contains("\"isServed\":true")
    );
    assert_eq!((ranges.begin_ns(), ranges.len()), (1000, 3));
    let sums = |range: std::ops::Range<u64>| ranges.sums(range);
    assert_eq!(sums(0..31), [(0, 3, 111)]);
    assert_eq!(sums(0..30), [(0, 2, 11)], "the end is not in the range");
    assert_eq!(sums(20..30), [(0, 1, 10)]);
    assert_eq!(sums(21..30), []);
    #[expect(clippy::reversed_empty_ranges)]
    let reversed = sums(30..0);
    assert_eq!(reversed, []);
    assert_eq!(ranges.columns(0..30), [1, 0, 2, 11]);
    let mut page = Vec::new();
    write_html(&profile, &HtmlOptions::default(), &mut page).unwrap();
    assert!(
        !String::from_utf8(page).unwrap().contains("connect-src"),
        "a page in a file asks nobody"
    );
}
