//! Profiles as the agents wrote them, stacks that are whole or not, and the tables.

use std::path::Path;

use whit_export::{Content, Format};
use whit_perfdata::reader::Recording;
use whit_profile::{ReadOptions, Reading};
use whit_symbolize::{DebugDirs, SymbolizerConfig};

use super::pprof::{Stack, Stacks, read};
use super::run::{Samples, judge};
use super::*;
use crate::bench::{Figures, page};

/// `deep` for some seconds at 19 Hz, alone.
const LIGHTSWITCH: &[u8] = include_bytes!("recorded/lightswitch.pb.gz");
const PROFILE_BEE: &[u8] = include_bytes!("recorded/profile-bee.pb.gz");

fn stack(frames: &[&str]) -> Stack {
    let frames = frames.iter().map(|frame| (*frame).to_owned()).collect();
    Stack { samples: 1, frames, process: Some("deep".to_owned()) }
}

/// As the C++ program calls: `levels` of its recursion below all stages from 31 down to `last`.
fn chain(last: usize, levels: usize, kernel: bool) -> Vec<String> {
    let stages =
        (last..32).rev().map(|at| format!("pipeline::Pipeline<{at}>::stage(unsigned long)"));
    let mut frames: Vec<String> =
        ["_start", "main", "drive(Limits const&)"].map(str::to_owned).into();
    frames.extend(stages);
    frames.extend((0..levels).map(|_| "pipeline::descend(unsigned long, int)".to_owned()));
    frames.extend(kernel.then(|| "pipeline::dispatch(unsigned long)".to_owned()));
    frames
}

fn cpp(frames: Vec<String>) -> bool {
    let stack = Stack { samples: 1, frames, process: None };
    Load::Cpp.is_complete(&stack).unwrap()
}

#[test]
fn profiles_of_lightswitch_are_read_packed_or_not() {
    let stacks = read(LIGHTSWITCH).unwrap();
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(LIGHTSWITCH), &mut plain).unwrap();
    assert_eq!(read(&plain).unwrap(), stacks);
    let samples = judge(&stacks, Load::Cpp, 114.0);
    assert_eq!((samples.all, samples.of_load), (109, 109));
    assert_eq!(samples.complete, Some(109));
    assert_eq!(judge(&stacks, Load::Go, 114.0).of_load, 0);
    assert!(stacks.comments.contains(&"lightswitch.version=0.7.0".to_owned()));
}

#[test]
fn profiles_of_profile_bee_have_the_process_at_the_root() {
    let stacks = read(PROFILE_BEE).unwrap();
    assert!(stacks.stacks.iter().all(|stack| stack.process.is_none()));
    let samples = judge(&stacks, Load::Cpp, 57.0);
    assert_eq!((samples.all, samples.of_load), (50, 50));
    assert_eq!(samples.complete, Some(50));
}

#[test]
fn profiles_of_whit_say_what_was_lost() {
    let golden = Path::new("../../../tests/recordings/golden");
    let lost_of = |name: &str| {
        let recording = Recording::open(&golden.join(name).join("recording.data")).unwrap();
        let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
        let options = ReadOptions::new(1, SymbolizerConfig::new(dirs));
        let profile =
            Reading::open(&recording, &options).answer(whit_profile::Samples::default()).unwrap();
        let mut bytes = Vec::new();
        let content = Content::new(&recording, &profile, None);
        whit_export::write(Format::Pprof, &content, &mut bytes).unwrap();
        let stacks = read(&bytes).unwrap();
        let all: u64 = stacks.stacks.iter().map(|stack| stack.samples).sum();
        // The first one of several events.
        assert_eq!(all, profile.events[0].samples);
        Agent::WhitWatch.reported_losses("", &stacks.comments)
    };
    assert_eq!(lost_of("perf-fp"), Some(0));
    assert!(lost_of("losses").unwrap() > 0);
}

#[test]
fn other_bytes_are_no_profile() {
    for bytes in [&b""[..], b"<html>", &[0x1f, 0x8b, 8, 0], &LIGHTSWITCH[..900]] {
        assert!(read(bytes).is_err());
    }
}

#[test]
fn losses_are_reported_or_unknown() {
    let log = "ERROR lost 12 samples on cpu 0\nINFO well\nERROR lost 30 samples on cpu 1\n";
    assert_eq!(Agent::Lightswitch.reported_losses(log, &[]), Some(42));
    assert_eq!(Agent::Lightswitch.reported_losses("", &[]), Some(0));
    assert_eq!(Agent::ProfileBee.reported_losses(log, &[]), None);
    assert_eq!(Agent::WhitRecord.reported_losses(log, &[]), None);
}

#[test]
fn a_cpp_stack_is_whole_from_main_to_the_leaf() {
    assert!(cpp(chain(0, 8, true)) && cpp(chain(0, 3, false)));
    assert!(cpp(chain(20, 0, false)), "a sample in the middle of the stages");
    let without = |name: &str| {
        let all = chain(0, 8, true);
        all.into_iter().filter(|frame| !frame.contains(name)).collect::<Vec<_>>()
    };
    assert!(!cpp(without("main")) && !cpp(without("drive")) && !cpp(without("Pipeline<17>")));
    assert!(!cpp(chain(1, 8, true)), "the last stage is missing");
    let gap = |frame: &String| !frame.contains("Pipeline<25>");
    assert!(!cpp(chain(20, 0, false).into_iter().filter(gap).collect()), "a stage is missing");
    assert!(!cpp(chain(0, 7, true)), "a level is missing");
    assert!(!cpp(vec!["deep (12)".to_owned()]) && !cpp(Vec::new()));
    let mangled = chain(0, 8, true).into_iter().map(|frame| match frame.split_once("Pipeline<") {
        Some((_, rest)) => format!("_ZN8pipeline8PipelineILi{}E", rest.split('>').next().unwrap()),
        None => frame,
    });
    assert!(cpp(mangled.collect()));
}

#[test]
fn stacks_of_the_other_loads_are_whole_or_not() {
    let is = |load: Load, frames: &[&str]| load.is_complete(&stack(frames));
    let mut go = vec!["runtime.goexit", "main.main.func1", "main.drive"];
    assert_eq!(is(Load::Go, &go), Some(true));
    go.extend([["main.even", "main.odd"]; 16].concat());
    go.extend(["main.even", "main.hashKernel.run"]);
    assert_eq!(is(Load::Go, &go), Some(true));
    go.remove(5);
    assert_eq!(is(Load::Go, &go), Some(false));
    assert_eq!(is(Load::Go, &["runtime.goexit", "main.main.func1"]), Some(false));

    let mut python = vec!["<module>", "outer"];
    python.extend(["middle"; 24]);
    python.push("leaf");
    assert_eq!(is(Load::Python, &python), Some(true));
    assert_eq!(is(Load::Python, &python[1..]), Some(true));
    assert_eq!(is(Load::Python, &python[2..]), Some(false));
    python.remove(3);
    assert_eq!(is(Load::Python, &python), Some(false));
    assert_eq!(is(Load::Python, &["main", "_PyEval_EvalFrameDefault"]), Some(false));

    let kernel = ["do_syscall_64", "futex_wait"];
    assert_eq!(is(Load::PingPong, &[&["main", "play"], &kernel[..]].concat()), Some(true));
    assert_eq!(is(Load::PingPong, &[&["start_thread", "play"], &kernel[..]].concat()), Some(true));
    assert_eq!(is(Load::PingPong, &[&["play"], &kernel[..]].concat()), Some(false));
    assert_eq!(is(Load::Execs, &["_start", "main", "compute"]), Some(true));
    assert_eq!(is(Load::Execs, &["_start", "_dl_start"]), Some(false));
    assert_eq!(is(Load::Idle, &["main"]), None);
}

#[test]
fn a_sample_is_of_the_load_by_its_label_or_its_root() {
    let mut of_others = stack(&["exe (1234)", "exe"]);
    assert!(Load::Cpp.has(&of_others), "the label goes before the root");
    of_others.process = None;
    assert!(Load::Execs.has(&of_others) && !Load::Cpp.has(&of_others));
    let stacks = Stacks { stacks: vec![of_others, stack(&["main"])], comments: Vec::new() };
    let samples = judge(&stacks, Load::Cpp, 10.0);
    assert_eq!((samples.all, samples.of_load, samples.complete), (2, 1, Some(0)));
}

#[test]
fn an_agent_that_sends_needs_a_collector() {
    let folder = tempfile::tempdir().unwrap();
    let collector = folder.path().join("collector");
    let programs = Programs {
        whit: Path::new("whit"),
        folder: folder.path(),
        collector: &collector,
        frequency_hz: 97,
    };
    let why = || Agent::OpenTelemetry.version(&programs).unwrap_err();
    assert!(why().contains("`make setup-bench`"), "{}", why());
    std::fs::write(folder.path().join("ebpf-profiler"), "").unwrap();
    assert!(why().contains("collector") && why().contains("`make setup-test`"), "{}", why());
    std::fs::write(&collector, "").unwrap();
    assert!(why().contains("cannot run"), "{}", why());
    let address = "127.0.0.1:4317".parse().unwrap();
    let command = Agent::OpenTelemetry.command(&programs, folder.path(), Some(address));
    assert!(command.get_args().any(|it| it == "-collection-agent=127.0.0.1:4317"));
}

fn one_run() -> Run {
    Run {
        cpu_percent: 1.5,
        end_cpu_s: 0.25,
        bpf_percent: Some(0.5),
        resident_bytes: 30 << 20,
        maps_bytes: Some(10 << 20),
        samples: Some(Samples { all: 500, of_load: 400, expected: 800.0, complete: Some(300) }),
        reported_losses: Some(0),
    }
}

#[test]
fn tables_have_figures_or_the_reason_why_not() {
    let row = |agent, runs: Vec<Run>, refused: Option<&str>| Row {
        case: Case { load: Load::Cpp, agent },
        runs,
        refused: refused.map(str::to_owned),
    };
    let silent = Run { reported_losses: None, samples: None, bpf_percent: None, ..one_run() };
    let mut comparison = Comparison {
        versions: vec![(Agent::WhitWatch, "whit 1".to_owned())],
        missing: vec![(Agent::OpenTelemetry, "there is none".to_owned())],
        frequency_hz: 97,
        seconds: 10.0,
        rows: vec![
            row(Agent::WhitWatch, vec![one_run()], None),
            row(Agent::OpenTelemetry, vec![silent], None),
            row(Agent::Lightswitch, Vec::new(), Some("ends by itself")),
        ],
    };
    let text = page(None, &comparison);
    // Two percent of ten seconds for 400 samples.
    for part in [
        " 50.0 |",
        " 75.0 |",
        " 500 |",
        "| lightswitch        | ends by itself",
        "is missing: there is none",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(comparison.succeeded());
    comparison.rows[0].refused = Some("gone".to_owned());
    assert!(!comparison.succeeded());
    comparison.rows.remove(0);
    assert!(comparison.succeeded(), "it was not named");
    comparison.missing.push((Agent::WhitRecord, "cannot run".to_owned()));
    assert!(!comparison.succeeded());
    assert_eq!(one_run().ns_a_sample(10.0), Some(500_000.0));
}
