//! Comparisons of profiles made by hand.

use whit_profile::model::{DsoInfo, Profile};
use whit_profile::warning::Warning;
use whit_types::BuildId;

use super::*;
use crate::builder::{Builder, Who, at, with_blocks};

const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: Some(0) };
const BLOCKS: usize = 32;
const SAMPLES: u64 = 100;

/// Chains of functions of `app`, each with its weight in a block. The weights scatter by a tenth, in a pattern
/// that differs from chain to chain.
fn profile(chains: &[(&[&str], u64)]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for (chain, _) in chains {
        let frame = |name: &&str| at(name, "/bin/app", name.bytes().map(u64::from).sum());
        let frames: Vec<_> = chain.iter().map(frame).collect();
        (0..SAMPLES).for_each(|_| builder.sample(event, MAIN, &frames, 1));
    }
    builder.profile.recording.has_callchains = true;
    builder.profile.recording.path = "some.data".into();
    with_blocks(builder.profile, BLOCKS, |row, block| {
        let weight = chains[row].1;
        let scatter = (block * (2 * row + 3) * 7919) % 21;
        weight * 9 / 10 + weight * scatter as u64 / 100
    })
}

fn run(profile: Profile) -> Run {
    Run::of(profile, &DiffOptions::default()).unwrap()
}

fn compared(before: Profile, after: Profile) -> Diff {
    diff(&[run(before)], &[run(after)], &Per::Share).unwrap()
}

fn row<'d>(diff: &'d Diff, name: &str) -> &'d Row {
    diff.events[0].rows.iter().find(|row| row.name.function == *name).unwrap()
}

fn text(diff: &Diff) -> String {
    let mut out = Vec::new();
    let options = DiffTextOptions { percent_limit: 0.0, quiet: false };
    write_text(&mut out, diff, &options).unwrap();
    String::from_utf8(out).unwrap()
}

const BASE: [(&[&str], u64); 3] =
    [(&["main", "parse"], 1000), (&["main", "render"], 8000), (&["main", "log"], 1000)];

#[test]
fn a_slower_function_is_found_and_the_others_are_not() {
    let after = [BASE[0], BASE[1], (&["main", "log"][..], 3000)];
    let diff = compared(profile(&BASE), profile(&after));
    let rows = &diff.events[0].rows;
    assert_eq!(
        (&*rows[0].name.function.to_string(), rows[0].own.verdict),
        ("log", Verdict::Slower)
    );
    assert_eq!(row(&diff, "main").own.verdict, Verdict::Undecided);
    assert_eq!(diff.slower_by(2.0), ["log"]);
    assert!(diff.slower_by(50.0).is_empty());
    let text = text(&diff);
    assert!(text.contains("Shares cannot show that everything became slower"), "{text}");
    assert!(text.contains("  slower  ") && text.contains("log (app)"), "{text}");
}

#[test]
fn the_same_twice_differs_nowhere() {
    let diff = compared(profile(&BASE), profile(&BASE));
    for row in &diff.events[0].rows {
        assert_eq!(row.own.verdict, Verdict::Undecided);
        assert_eq!(row.own.difference.change, 0.0);
    }
    let smallest = row(&diff, "log").own.smallest;
    assert!(smallest > 0.1 && smallest < 2.0, "{smallest}");
}

#[test]
fn a_cost_that_moved_into_the_caller_shows_the_callers_total() {
    let after: [(&[&str], u64); 3] =
        [(&["main", "parse"], 1000), (&["main", "render"], 8000), (&["main"], 1000)];
    let diff = compared(profile(&BASE), profile(&after));
    let log = row(&diff, "log");
    assert_eq!((log.own.verdict, log.matched), (Verdict::Faster, Match::Alone));
    let caller = log.caller.as_ref().unwrap();
    assert_eq!(caller.name.function, *"main");
    assert_eq!(caller.total.verdict, Verdict::Undecided);
    assert_eq!(row(&diff, "main").own.verdict, Verdict::Slower);
    assert!(text(&diff).contains("caller: main"));
}

#[test]
fn an_inlined_function_is_the_same_function() {
    let mut inlined = profile(&BASE);
    inlined.frames.iter_mut().filter(|frame| frame.address.0 % 2 == 1).for_each(|frame| {
        frame.inlined = true;
    });
    let diff = compared(profile(&BASE), inlined);
    assert!(diff.events[0].rows.iter().all(|row| row.matched == Match::Name));
}

fn build(mut profile: Profile, id: u8) -> Profile {
    profile.dsos[0].build_id = BuildId::new(&[id; 20]);
    profile
}

fn nameless(mut profile: Profile, from: &str, to: &str) -> Profile {
    let function = profile.functions.iter_mut().find(|it| it.name == *from).unwrap();
    (function.name, function.known) = (to.into(), false);
    profile
}

#[test]
fn functions_without_names_are_matched_by_address_in_the_same_build_alone() {
    let before = || nameless(profile(&BASE), "log", "0x0000000000000142");
    let same = compared(build(before(), 1), build(profile(&BASE), 1));
    let found = row(&same, "0x0000000000000142");
    assert_eq!(found.matched, Match::Address);
    assert_eq!(found.renamed.as_ref().unwrap().function, *"log");
    let other = compared(build(before(), 1), build(before(), 2));
    let alone = other.events[0].rows.iter().filter(|row| row.matched == Match::Alone).count();
    assert_eq!(alone, 2);
}

#[test]
fn similar_names_are_guesses_and_are_marked() {
    let after: [(&[&str], u64); 3] = [BASE[0], BASE[1], (&["main", "log.constprop.0"], 1000)];
    let diff = compared(profile(&BASE), profile(&after));
    assert_eq!(row(&diff, "log").matched, Match::Similar);
    assert!(text(&diff).contains("log (app; after: perhaps log.constprop.0 (app))"));
}

#[test]
fn possible_losses_are_no_difference() {
    let after = [BASE[0], BASE[1], (&["main", "log"][..], 2000)];
    let mut lossy = profile(&after);
    assert_eq!(row(&compared(profile(&BASE), lossy.clone()), "log").own.verdict, Verdict::Slower);
    // As many as were recorded: they may all have been elsewhere.
    lossy.losses.lost_records = 300;
    let diff = compared(profile(&BASE), lossy);
    assert_eq!(row(&diff, "log").own.verdict, Verdict::Undecided);
    assert!(row(&diff, "log").own.smallest > 10.0);
    assert!(text(&diff).contains("300 records lost, which widen the intervals"));
}

/// The base, each weight times a factor that scatters from run to run.
fn runs(percent: u64) -> Vec<Run> {
    let one = |run: u64| {
        let weights = BASE.map(|(chain, weight)| (chain, weight * (percent + run % 3) / 100));
        crate::diff::tests::run(profile(&weights))
    };
    (0..6).map(one).collect()
}

#[test]
fn everything_slower_shows_per_unit_of_work_alone() {
    let (before, after) = (runs(100), runs(120));
    let shares = diff(&before, &after, &Per::Share).unwrap();
    assert!(shares.slower_by(0.0).is_empty() && shares.events[0].whole.is_none());
    let per_unit = diff(&before, &after, &Per::Units(100.0, 100.0)).unwrap();
    let whole = per_unit.events[0].whole.unwrap();
    assert_eq!(whole.verdict, Verdict::Slower);
    assert!((whole.after / whole.before - 1.198).abs() < 0.01, "{whole:?}");
    assert_eq!(per_unit.slower_by(10.0)[0], *"cycles");
    assert!(text(&per_unit).contains("[all samples]"));
    // Twice the work, and so it is faster.
    let twice = diff(&before, &after, &Per::Units(100.0, 200.0)).unwrap();
    assert_eq!(twice.events[0].whole.unwrap().verdict, Verdict::Faster);
    let one = diff(&before[..1], &after[..1], &Per::Units(1.0, 1.0));
    assert!(matches!(one, Err(DiffError::OneRun)));
}

#[test]
fn recordings_that_scatter_too_little_by_chance_have_the_error_of_their_blocks() {
    let side = |log: u64| {
        let mut profile = profile(&[BASE[0], BASE[1], (&["main", "log"], log)]);
        // So many samples that the error of a single one is nothing.
        profile.rows.iter_mut().for_each(|row| row.samples *= 1000);
        profile.events[0].samples *= 1000;
        [run(profile.clone()), run(profile.clone()), run(profile)]
    };
    let diff = diff(&side(1000), &side(1010), &Per::Share).unwrap();
    let own = row(&diff, "log").own;
    let half = (own.difference.interval.1 - own.difference.interval.0) / 2.0;
    assert!(own.verdict == Verdict::Undecided && half > 0.1 && half < 1.0, "{own:?}");
}

#[test]
fn another_event_can_be_the_divisor() {
    let with_instructions = |factor: u64| {
        let mut builder = Builder::default();
        let cycles = builder.event("cycles:u");
        let instructions = builder.event("instructions:u");
        let main = [at("main", "/bin/app", 1)];
        for event in [cycles, instructions] {
            (0..SAMPLES).for_each(|_| builder.sample(event, MAIN, &main, 1));
        }
        builder.profile.recording.has_callchains = true;
        with_blocks(builder.profile, BLOCKS, |row, block| match row {
            0 => factor * (1000 + 10 * (block as u64 % 7)),
            _ => 1000,
        })
    };
    let options =
        DiffOptions { per: Per::Event("instructions".to_owned()), ..DiffOptions::default() };
    let run = |factor| Run::of(with_instructions(factor), &options).unwrap();
    let diff = diff(&[run(2)], &[run(3)], &options.per).unwrap();
    assert_eq!(diff.events.len(), 1);
    let main = row(&diff, "main").own;
    assert_eq!(main.verdict, Verdict::Slower);
    assert!((main.before - 2.06).abs() < 0.01 && (main.after - 3.09).abs() < 0.01, "{main:?}");
    let missing = DiffOptions { per: Per::Event("branches".to_owned()), ..DiffOptions::default() };
    let error = Run::of(with_instructions(1), &missing).unwrap_err().to_string();
    assert!(
        error.contains("no samples of branches to divide by, only of cycles:u, instr"),
        "{error}"
    );
}

#[test]
fn recordings_that_cannot_be_compared_say_why() {
    let nothing = Run::of(Profile::default(), &DiffOptions::default());
    assert!(matches!(nothing, Err(DiffError::NoSamples(_))));
    let mut short = profile(&BASE);
    short.blocks.as_mut().unwrap().weights.truncate(1);
    let error = diff(&[run(short)], &[run(profile(&BASE))], &Per::Share).unwrap_err();
    assert!(error.to_string().contains("some.data is too short"), "{error}");
    let mut other = profile(&BASE);
    other.events[0].name = "instructions".into();
    let error = diff(&[run(profile(&BASE))], &[run(other)], &Per::Share).unwrap_err();
    assert!(error.to_string().contains("before has cycles, after has instructions"), "{error}");
}

#[test]
fn other_machines_and_warnings_are_noted() {
    let mut other = profile(&BASE);
    other.recording.cpu_desc = "Another CPU".into();
    other.warnings.push(Warning::MoreWithoutSymbols { binaries: 3 });
    let diff = compared(profile(&BASE), other);
    assert!(diff.notes[0].exact().contains("different machines: CPU `` and `Another CPU`"));
    assert_eq!(diff.notes[1], *"some.data: no symbols for 3 more binaries");
}

#[test]
fn the_first_by_name_is_the_caller_where_two_are_equally_heavy() {
    for callers in [["first", "second"], ["second", "first"]] {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        for caller in callers {
            let frames = [caller, "log"].map(|name| at(name, "/bin/app", 0x10));
            builder.sample(event, MAIN, &frames, 1);
        }
        builder.profile.recording.path = "some.data".into();
        let run = run(builder.profile);
        let functions = &run.events[0].functions;
        let log = functions.iter().find(|it| it.name.function == *"log").unwrap();
        assert_eq!(log.caller.as_ref().unwrap().function, *"first", "{callers:?}");
    }
}

fn in_binary(mut profile: Profile, name: &str, mapped: &[&str]) -> Profile {
    let app = profile.dsos.iter().position(|dso| dso.short_name == *"app").unwrap();
    profile.dsos[app].short_name = name.into();
    for name in mapped {
        let other = DsoInfo { short_name: (*name).into(), ..profile.dsos[app].clone() };
        profile.dsos.push(other);
    }
    profile.mapped_bytes = vec![None; profile.dsos.len()];
    profile
}

#[test]
fn functions_of_another_program_have_no_verdict() {
    let (before, after) = (profile(&BASE), profile(&[(&["serve", "answer"], 10_000)]));
    let both = |mapped: &[&str]| {
        compared(
            in_binary(before.clone(), "one", mapped),
            in_binary(after.clone(), "other", mapped),
        )
    };
    let apart = both(&[]);
    assert_eq!(row(&apart, "render").own.verdict, Verdict::OnlyBefore);
    let new = row(&apart, "answer");
    assert_eq!(
        (new.own.verdict, new.total.unwrap().verdict),
        (Verdict::OnlyAfter, Verdict::OnlyAfter)
    );
    assert_eq!(apart.events[0].tests, 0, "nothing is compared");
    assert_eq!(apart.slower_by(2.0), ["answer", "serve"], "new code counts");
    assert!(text(&apart).contains("  only before  "), "{}", text(&apart));
    // Both map both programs: a function without samples became faster.
    let together = both(&["one", "other"]);
    assert_eq!(row(&together, "render").own.verdict, Verdict::Faster);
    assert_eq!(row(&together, "answer").own.verdict, Verdict::Slower);
}

/// Chains of functions, each function with its binary.
fn of_binaries(chains: &[&[(&str, &str)]]) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for chain in chains {
        let frame = |(function, binary): &(&str, &str)| {
            at(function, &format!("/bin/{binary}"), function.bytes().map(u64::from).sum())
        };
        let frames: Vec<_> = chain.iter().map(frame).collect();
        (0..SAMPLES).for_each(|_| builder.sample(event, MAIN, &frames, 1));
    }
    builder.profile.recording.has_callchains = true;
    with_blocks(builder.profile, BLOCKS, |row, block| 1000 + ((block * (2 * row + 3)) % 21) as u64)
}

#[test]
fn names_that_many_binaries_have_are_matched_by_binary_and_callers() {
    // The code that a process compiled is in a binary of its number, and `(reg1)` in two such.
    let side = |pids: [u32; 2], hash: &str| {
        let maps = pids.map(|pid| format!("perf-{pid}.map"));
        let tool = format!("tool-{hash}");
        of_binaries(&[
            &[("_start", "node"), ("serve", "node"), ("(reg1)", &maps[0])],
            &[("_start", "node"), ("serve", "node"), ("(reg1)", &maps[1])],
            &[("_start", &tool), ("main", &tool), ("main::{lambda}", &tool)],
            &[("_start", "cc1"), ("main", "cc1")],
        ])
    };
    let (before, after) = (side([12, 13], "0123456789abcdef"), side([99, 98], "fedcba9876543210"));
    let diff = compared(before, after);
    for row in &diff.events[0].rows {
        assert_ne!(row.matched, Match::Alone, "{row:?}");
        let largest =
            row.total.unwrap().difference.change.abs().max(row.own.difference.change.abs());
        assert!(largest < 1.0, "{row:?}");
    }
    let of_tool = diff.events[0].rows.iter().filter(|row| row.matched == Match::Similar);
    assert_eq!(of_tool.count(), 3, "the functions of the binary with a hash");
    let compiled = row(&diff, "(reg1)");
    assert_eq!((compiled.matched, &*compiled.name.binary.to_string()), (Match::Name, "perf-….map"));
}

#[test]
fn a_common_name_in_another_binary_is_another_function() {
    let side = |one: &str, other: &str| {
        of_binaries(&[
            &[("_start", one), ("main", one), ("parse", one), ("step", one)],
            &[("_start", other), ("main", other), ("render", other), ("step", other)],
        ])
    };
    let diff = compared(side("a", "b"), side("c", "d"));
    let by = |name: &str| -> Vec<Match> {
        let rows = diff.events[0].rows.iter().filter(|row| row.name.function == *name);
        rows.map(|row| row.matched).collect()
    };
    assert_eq!(by("parse"), [Match::Similar]);
    // Their callers tell which is which; `main` has none that does.
    assert_eq!(by("step"), [Match::Similar; 2]);
    assert_eq!(by("main"), [Match::Alone; 4]);
}
