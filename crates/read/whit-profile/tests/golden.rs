//! Each golden recording as this crate loads it: the profile, its samples, its context switches.
//!
//! `WHIT_BLESS=1` writes `profile.txt` beside each recording anew. Names replace ids, and tables are sorted,
//! because their order may change.

use std::num::NonZeroU64;

use whit_perfdata::reader::Recording;
use whit_profile::model::{FrameId, NodeId, Profile, RecordingInfo};
use whit_profile::script::{Format, RecordStart, Script, ScriptedFrame, ScriptedSample};
use whit_profile::switches::{self, SamplesAndSwitches, SwitchOptions, Switches};
use whit_profile::time_filter::TimeFilter;
use whit_profile::{ReadOptions, Reading, Samples, WantedFacets};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::{Golden, Lines};
use whit_types::{Avma, CpuId};

/// Symbols of the kept programs and of no others.
fn options(threads: usize) -> ReadOptions {
    let folder = Golden::folder();
    let dirs = DebugDirs { symfs: Some(folder.join("root")), ..DebugDirs::none() };
    let mut symbols = SymbolizerConfig::new(dirs);
    symbols.kernel.kallsyms = Some(folder.join("kallsyms"));
    symbols.perf_map_dirs.clear();
    ReadOptions::new(threads, symbols)
}

#[test]
fn profiles_samples_and_switches() {
    for golden in Golden::all() {
        let mut lines = Lines::default();
        if let Ok(recording) = Recording::open(&golden.path) {
            write(&recording, &mut lines);
        }
        golden.assert_kept("profile.txt", &lines);
    }
}

fn write(recording: &Recording, lines: &mut Lines) {
    match Reading::open(recording, &options(1)).answer(Samples::default()) {
        Ok(profile) => write_profile(&profile, lines),
        Err(error) => lines.push(&format!("refused: {error}")),
    }
    write_parts(recording, lines);
    write_filtered(recording, lines);
    write_samples(recording, lines);
    write_switches(recording, lines);
}

fn write_profile(profile: &Profile, lines: &mut Lines) {
    lines.push("== profile");
    // A recording without the wall clock's time has that of its file, which is the time of the checkout.
    lines.debug("recording", &RecordingInfo { captured_on_s: None, ..profile.recording.clone() });
    profile.events.iter().for_each(|event| lines.debug("event", event));
    lines.sorted(profile.comms.iter().map(|comm| format!("comm {comm:?}")).collect());
    lines.sorted(profile.dsos.iter().map(|dso| format!("{dso:?}")).collect());
    lines.sorted(profile.functions.iter().map(|function| format!("{function:?}")).collect());
    lines.debug("losses", &profile.losses);
    lines.debug("data loss", &profile.losses.data_loss().percent());
    lines.debug("stats", &profile.stats);
    lines.debug("ledger", &profile.ledger);
    profile.warnings.iter().for_each(|warning| lines.debug("warning", warning));
    write_rows(profile, lines);
}

fn write_rows(profile: &Profile, lines: &mut Lines) {
    let row = |row: &whit_profile::model::SampleRow| {
        let thread = &profile.threads[row.thread.index()];
        let comm = &profile.comms[row.comm.index()];
        let event = &profile.events[row.event.index()].name;
        let facets = profile.facets_of(row);
        let (pid, tid) = (thread.pid, thread.tid);
        let chain = chain(profile, row.node);
        let last_comm = &profile.comms[thread.comm.index()];
        format!(
            "{event} {comm:?} of {last_comm:?} {pid:?}/{tid:?} {facets:?} {} samples, {}: {chain}",
            row.samples, row.period
        )
    };
    lines.sorted(profile.rows.iter().map(row).collect());
}

/// The frames of a call chain, from the leaf to the root.
fn chain(profile: &Profile, mut node: NodeId) -> String {
    let mut frames = Vec::new();
    while node != NodeId::NONE {
        frames.push(frame(profile, profile.nodes[node.index()].frame));
        node = profile.nodes[node.index()].parent;
    }
    frames.join(" < ")
}

fn frame(profile: &Profile, id: FrameId) -> String {
    let frame = &profile.frames[id.index()];
    let function = &profile.functions[frame.function.index()];
    let dso = &profile.dsos[function.dso.index()].short_name;
    let side = if frame.kernel { "k" } else { "u" };
    let inlined = if frame.inlined { " inlined" } else { "" };
    let source = frame.source.map(|(file, line)| (&profile.files[file.index()], line));
    let address = frame.address.0;
    format!("{}@{address:x} {dso} {side}{inlined} {source:?}", function.name.exact())
}

/// Rows by all facets and blocks of time, loaded by several threads.
fn write_parts(recording: &Recording, lines: &mut Lines) {
    lines.push("== by CPU, cgroup, time and weight");
    let time_quantum_ns = NonZeroU64::new(1_000_000);
    let facets = WantedFacets {
        cpu: true,
        cgroup: true,
        time_quantum_ns,
        weight: true,
        ..WantedFacets::default()
    };
    let samples = Samples { facets, blocks: true, ..Samples::default() };
    let Ok(profile) = Reading::open(recording, &options(3)).answer(samples) else { return };
    lines.sorted(profile.cgroups.iter().map(|cgroup| format!("{cgroup:?}")).collect());
    write_rows(&profile, lines);
    let Some(blocks) = &profile.blocks else { return };
    lines.push(&format!("blocks of {} ns", blocks.length_ns));
    for weights in &blocks.weights {
        let weight = |weight: &whit_profile::model::BlockWeight| {
            let context = &blocks.contexts[weight.context as usize];
            let tid = profile.threads[context.thread.index()].tid;
            let facets = profile.facets.get(context.facets.index());
            let chain = chain(&profile, weight.node);
            format!("  {:?} {tid:?} {facets:?} {}: {chain}", context.event, weight.period)
        };
        lines.push("block");
        lines.sorted(weights.iter().map(weight).collect());
    }
}

/// Counts samples behind each filter, and nodes of the call tree.
fn write_filtered(recording: &Recording, lines: &mut Lines) {
    lines.push("== filtered");
    let mut count = |name: &str, change: &dyn Fn(&mut ReadOptions)| {
        let mut options = options(1);
        change(&mut options);
        let Ok(profile) = Reading::open(recording, &options).answer(Samples::default()) else {
            return;
        };
        let samples: Vec<u64> = profile.events.iter().map(|event| event.samples).collect();
        lines.debug(name, &(samples, profile.nodes.len()));
    };
    count("first half", &|options| options.selection.time = TimeFilter::parse("0%-50%").ok());
    count("last half", &|options| options.selection.time = TimeFilter::parse("50%-100%").ok());
    count("CPU 0", &|options| options.selection.cpus = vec![CpuId(0)]);
    count("CPU 1", &|options| options.selection.cpus = vec![CpuId(1)]);
    count("root cgroup", &|options| options.selection.cgroups = vec!["/".into()]);
    count("short chains", &|options| options.max_stack = 2);
    let options = self::options(1);
    let Ok(profile) = Reading::open(recording, &options).answer(Samples::default()) else { return };
    let Some(thread) = profile.threads.iter().max_by_key(|thread| (thread.pid, thread.tid)) else {
        return;
    };
    count("last process", &|options| options.selection.pids = vec![thread.pid]);
    count("last thread", &|options| options.selection.tids = vec![thread.tid]);
}

/// Formats all properties of a sample.
struct Everything;

impl Format for Everything {
    fn wants_chain(&self, _event: usize) -> bool {
        true
    }

    fn frame(&self, _event: usize, frame: &ScriptedFrame<'_>, out: &mut Vec<u8>) {
        out.extend(format!("  {frame:?}\n").into_bytes());
    }

    fn sample(&self, sample: &ScriptedSample<'_>, out: &mut Vec<u8>) {
        let ScriptedSample { event, period, lookup, .. } = sample;
        let RecordStart { comm, pid, tid, time, .. } = sample.start;
        let name = &sample.event_desc.name;
        out.extend(
            format!("{event} {name} {comm:?} {pid:?}/{tid:?} {time:?} {period}\n").into_bytes(),
        );
        sample.chain.append(out);
        let ip = sample.sample.ip.unwrap_or(Avma(0));
        let addr = sample.sample.addr.map(|addr| lookup.data_at(Avma(addr)));
        let cgroup = sample.sample.cgroup.and_then(|number| lookup.cgroup(number));
        let kernel = lookup.kernel_function_at(ip.0);
        let code = lookup.code_at(ip);
        out.extend(format!("  at {code:?} {addr:?} {cgroup:?} {kernel:?}\n").into_bytes());
    }
}

fn write_samples(recording: &Recording, lines: &mut Lines) {
    lines.push("== samples");
    for threads in [1, 3] {
        let mut text = Vec::new();
        let question = Script { format: &Everything, out: &mut text };
        let summary = Reading::open(recording, &options(threads)).answer(question);
        let text = String::from_utf8_lossy(&text);
        if threads == 1 {
            text.lines().for_each(|line| lines.push(line));
        }
        lines.push(&format!("{threads} threads: {} lines", text.lines().count()));
        lines.debug("summary", &summary);
    }
}

fn write_switches(recording: &Recording, lines: &mut Lines) {
    if !switches::may_show(recording) {
        return;
    }
    lines.push("== context switches");
    for max_spans in [1000, 2] {
        let wanted = SwitchOptions { max_worst: 20, max_spans, ..SwitchOptions::default() };
        let question = SamplesAndSwitches { samples: Samples::default(), switches: wanted };
        let Ok((profile, switches)) = Reading::open(recording, &options(1)).answer(question) else {
            return lines.push("refused");
        };
        let Switches { rows, wakers, worst, timeline, .. } = &switches;
        rows.iter().for_each(|row| lines.debug(&chain(&profile, row.node), row));
        wakers.iter().for_each(|waker| lines.debug("waker", waker));
        worst.iter().for_each(|wait| lines.debug("wait", wait));
        timeline.spans.iter().for_each(|span| lines.debug("span", span));
        lines.debug("grain and bound", &(timeline.grain_ns, timeline.max_spans));
        lines.debug("sources", &switches.sources);
        lines.debug("left off", &switches.wakers_left_off);
        lines.debug("inconsistencies", &switches.inconsistencies);
        lines.debug("losses", &switches.loss_windows);
        lines.debug("span", &(switches.span, switches.recorded_ns));
        profile.warnings.iter().for_each(|warning| lines.debug("warning", warning));
    }
}
