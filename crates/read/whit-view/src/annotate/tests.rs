//! Tables of a function made by hand.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use whit_annotate::{AnnotatedFunction, Code, Syntax, Wanted, Weights, annotate};
use whit_profile::model::{DsoId, Profile, RecordedGroup};
use whit_profile::{CodeBytes, NoCode, SourceLine, SourceOf};
use whit_types::{InstructionSet, Svma};

use super::*;
use crate::builder::{Builder, Who, at, with_blocks};

const WHO: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: Some(0) };

/// One function at 0x1000; with names that nobody should obey.
struct Made {
    is_missing: bool,
}

const HERE: Made = Made { is_missing: false };

fn line(line: u32) -> SourceLine {
    SourceLine { file: "/src/a\x1b.c".into(), line }
}

impl Code for Made {
    fn function_at(&self, _: DsoId, _: Svma) -> Option<Range<Svma>> {
        Some(Svma(0x1000)..Svma(0x100c))
    }

    fn name_at(&self, _: DsoId, address: Svma) -> Option<(Arc<str>, u64)> {
        Some(("evil\x1b[2J".into(), address.0 & 0xf))
    }

    fn bytes(&self, _: DsoId, _: Range<Svma>) -> Result<CodeBytes, NoCode> {
        if self.is_missing {
            return Err(NoCode::NamedOnly);
        }
        // xor; add; cmp; jne to the add; jmp far away
        let bytes = vec![0x31, 0xc0, 0xff, 0xc0, 0x39, 0xc8, 0x75, 0xfa, 0xe9, 0x22, 0x11, 0, 0];
        Ok(CodeBytes { bytes, instruction_set: InstructionSet::X86_64 })
    }

    fn source_of(&self, _: DsoId, address: Svma) -> SourceOf {
        let step: (Arc<str>, _) = ("step<std::vector<int>>".into(), Some(line(4)));
        let deeper: (Arc<str>, _) = ("deeper\x07".into(), Some(line(2)));
        match address.0 {
            0x1000 => SourceOf { line: Some(line(3)), inlined: Vec::new() },
            0x1002 => SourceOf { line: Some(line(1)), inlined: vec![step, deeper] },
            0x1004 => SourceOf { line: Some(line(2)), inlined: vec![step] },
            0x1006 => SourceOf { line: Some(line(3)), inlined: Vec::new() },
            _ => SourceOf::default(),
        }
    }
}

fn profile() -> Profile {
    let mut builder = Builder::default();
    let (cycles, faults) = (builder.event("cycles"), builder.event("faults"));
    let f = |address| at("f", "/bin/app", address);
    for _ in 0..3 {
        builder.sample(cycles, WHO, &[f(0x1002)], 10);
    }
    builder.sample(cycles, WHO, &[f(0x1006)], 10);
    builder.sample(cycles, WHO, &[at("other", "/bin/app", 0x9000)], 40);
    builder.sample(faults, WHO, &[f(0x1000)], 1);
    builder.profile
}

fn functions(profile: &Profile, code: &Made) -> Vec<AnnotatedFunction> {
    let found = Weights::new(profile).find("f", &Wanted::default(), code);
    found.into_iter().map(|one| annotate(one, code, Syntax::Att)).collect()
}

fn text(profile: &Profile, code: &Made, options: &AnnotateOptions) -> String {
    let (weights, functions) = (Weights::new(profile), functions(profile, code));
    let annotated = Annotated { profile, weights: &weights, functions: &functions };
    let mut line_text =
        |line: &SourceLine| (line.line < 4).then(|| format!("\tcode {}\x1b;", line.line));
    let mut out = Vec::new();
    write_text(&mut out, &annotated, options, &mut line_text).unwrap();
    String::from_utf8(out).unwrap()
}

fn json(profile: &Profile, code: &Made, options: &AnnotateOptions) -> Value {
    let (weights, functions) = (Weights::new(profile), functions(profile, code));
    let annotated = Annotated { profile, weights: &weights, functions: &functions };
    let mut out = Vec::new();
    write_json(&mut out, &annotated, options, &mut |_| None).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn with_source() -> AnnotateOptions {
    AnnotateOptions { source: true, inline: true, ..AnnotateOptions::default() }
}

#[test]
fn a_table_has_instructions_lines_jumps_and_inlined_functions() {
    insta::assert_snapshot!(text(&profile(), &HERE, &with_source()));
}

#[test]
fn no_name_and_no_source_line_is_obeyed() {
    let all = text(&profile(), &HERE, &AnnotateOptions { summary: true, ..with_source() });
    assert!(
        all.contains(r"a\x1b.c:1") && all.contains(r"evil\x1b[2J") && all.contains(r"deeper\x07")
    );
    assert!(!all.contains(['\x1b', '\x07']), "{all:?}");
}

#[test]
fn percentages_are_of_the_unit_and_the_whole_that_was_asked_for() {
    let cell = |percent_type| {
        let options = AnnotateOptions { percent_type, quiet: true, ..AnnotateOptions::default() };
        let all = text(&profile(), &HERE, &options);
        let row = all.lines().find(|line| line.contains("1002:")).unwrap();
        row.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(cell(PercentType::LocalPeriod), "75.00");
    assert_eq!(cell(PercentType::GlobalPeriod), "37.50");
    assert_eq!(cell(PercentType::LocalHits), "75.00");
    assert_eq!(cell(PercentType::GlobalHits), "60.00");
}

#[test]
fn events_of_a_group_have_adjacent_columns() {
    let mut profile = profile();
    let events = (0..2).map(EventId).collect();
    profile.groups = vec![RecordedGroup { name: None, events }];
    let options = AnnotateOptions {
        grouping: Grouping::AsRecorded,
        show_samples: true,
        show_period: true,
        quiet: true,
        ..AnnotateOptions::default()
    };
    let all = text(&profile, &HERE, &options);
    let row = |address| {
        let row = all.lines().find(|line| line.contains(address)).unwrap();
        row.split(" : ").next().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row(" 1002:"), ["75.00", "3", "30", "0.00", "0", "0"]);
    assert_eq!(row(" 1000:"), ["0.00", "0", "0", "100.00", "1", "1"]);
    assert!(all.contains("for anon group { cycles, faults } (5 samples, percent: local period)"));
    // Apart, each has a table.
    let apart = text(&profile, &HERE, &AnnotateOptions::default());
    assert_eq!(apart.matches(" Percent |").count(), 2);
    let one = AnnotateOptions { event: Some(EventId(1)), ..AnnotateOptions::default() };
    assert_eq!(text(&profile, &HERE, &one).matches(" Percent |").count(), 1);
}

#[test]
fn samples_without_code_have_addresses_and_the_reason() {
    let missing = Made { is_missing: true };
    let all = text(&profile(), &missing, &AnnotateOptions::default());
    assert!(all.contains("# no instructions of f, only addresses: a JIT compiler"), "{all}");
    assert!(all.contains("   75.00 :     1002:\n"), "{all}");
    let skipping = AnnotateOptions { skip_missing: true, ..AnnotateOptions::default() };
    assert_eq!(text(&profile(), &missing, &skipping), "");
    let json = json(&profile(), &missing, &AnnotateOptions::default());
    let function = &json["functions"][0];
    assert!(function["problem"].as_str().unwrap().contains("jitdump"));
    assert_eq!(function["instructions"][1]["weights"][0]["samples"], 3);
    assert_eq!(function["instructions"][1]["text"], Value::Null);
}

#[test]
fn bytes_are_printed_where_they_were_asked_for() {
    let raw = AnnotateOptions { raw: true, ..AnnotateOptions::default() };
    let all = text(&profile(), &HERE, &raw);
    assert!(all.contains("31 c0                xor    %eax,%eax\n"), "{all}");
}

#[test]
fn intervals_of_parts_come_from_blocks_of_time() {
    // Rows: the add, the jump, another function, a fault. The share of the add swings from block to block.
    let periods = [[40, 20], [10, 10], [50, 70], [1, 1]];
    let profile = with_blocks(profile(), 20, |row, block| periods[row][block % 2]);
    let options = AnnotateOptions { intervals: true, ..AnnotateOptions::default() };
    let json = json(&profile, &HERE, &options);
    let function = &json["functions"][0];
    let number = |share: &Value, member: &str| share[member].as_f64().unwrap();
    let own = &function["weights"][0];
    assert!(number(own, "low_percent") < 40.0 && number(own, "high_percent") > 40.0);
    let add = &function["instructions"][1]["weights"][0];
    assert_eq!(number(add, "percent"), 30.0);
    assert_eq!(number(add, "function_percent"), 75.0);
    let (low, high) = (number(add, "function_low_percent"), number(add, "function_high_percent"));
    assert!(65.0 < low && low < 75.0 && 75.0 < high && high < 85.0, "{low} {high}");
    let line = &function["lines"][0];
    assert_eq!((&line["line"]["line"], &line["weights"][0]), (&1.into(), add));
    let all = text(&profile, &HERE, &options);
    let row = all.lines().find(|line| line.contains(" 1002:")).unwrap();
    let half = format!("{:.2}", (high - low) / 2.0);
    assert!(row.starts_with(&format!("   75.00{half:>6} :")), "{row}");
    assert!(all.contains(" ± ") && all.contains("from 20 blocks"), "{all}");
}

#[test]
fn lost_samples_widen_the_intervals() {
    let periods = [[40, 20], [10, 10], [50, 70], [1, 1]];
    let mut profile = with_blocks(profile(), 20, |row, block| periods[row][block % 2]);
    let options = AnnotateOptions { intervals: true, ..AnnotateOptions::default() };
    let high = |profile: &Profile| {
        let json = json(profile, &HERE, &options);
        let share = &json["functions"][0]["instructions"][1]["weights"][0];
        share["function_high_percent"].as_f64().unwrap()
    };
    let before = high(&profile);
    profile.losses.lost_samples = 1;
    profile.losses.lost_records = 1;
    assert!(high(&profile) > before + 5.0);
}

#[test]
fn json_has_exact_names_targets_and_inlined_functions() {
    let json = json(&profile(), &HERE, &with_source());
    assert_eq!((&json["format"], &json["version"]), (&"whit-annotate".into(), &1.into()));
    let rows = json["functions"][0]["instructions"].as_array().unwrap();
    let jump =
        serde_json::json!({ "kind": "jump", "address": 0x1002, "name": null, "offset": null });
    assert_eq!(rows[3]["target"], jump);
    assert_eq!(rows[4]["target"]["name"], "evil\x1b[2J");
    assert_eq!(rows[1]["inlined"][1]["name"], "deeper\x07");
    assert_eq!(rows[1]["inlined"][1]["call_site"]["line"], 2);
    assert_eq!(rows[0]["bytes"], "31c0");
}

#[test]
fn types_of_percentages_have_perfs_names() {
    let parsed = |name| PercentType::parse(name);
    assert_eq!(parsed("hits-global"), Some(PercentType::GlobalHits));
    assert_eq!(parsed("local-period"), Some(PercentType::LocalPeriod));
    assert_eq!(parsed("local"), None);
}
