use super::*;
use crate::builder::{At, Builder, Who, at};
use proptest::prelude::*;
use whit_perfdata::reader::Recording;
use whit_profile::handle;
use whit_profile::model::Profile;
use whit_profile::warning::Warning;
use whit_profile::{ReadOptions, Reading};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_testing::golden::Golden;
use whit_why::{ChosenRequests, Interval, WhichRequests};

const WHO: Who<'_> = Who { comm: "app", pid: 10, tid: 11, cpu: None };

/// Two threads, twenty functions, a loss and a warning.
fn profile() -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for n in 0..20 {
        let leaf = at(&format!("leaf{n}"), "app", 100 + n);
        let chain = [at("main", "app", 1), at("run", "app", 2), leaf];
        builder.sample(event, WHO, &chain, 10 * (n + 1));
    }
    let other = Who { tid: 12, comm: "helper", ..WHO };
    builder.sample(event, other, &[at("start", "lib.so", 5)], 100);
    let mut profile = builder.profile;
    profile.recording.path = "perf.data".into();
    profile.recording.cmdline = ["perf", "record", "-g", "./app", "a b"].map(Into::into).to_vec();
    profile.losses.lost_records = 7;
    profile.losses.lost_chunks = 1;
    profile.warnings.push(Warning::PeriodOverflow);
    profile
}

fn brief(profile: &Profile) -> Brief {
    Brief::new(profile, Ok(None))
}

fn text(profile: &Profile, budget: usize) -> String {
    let mut out = Vec::new();
    write_text(&mut out, &brief(profile), budget).unwrap().unwrap();
    String::from_utf8(out).unwrap()
}

fn json(profile: &Profile, budget: usize) -> Result<String, BudgetTooSmall> {
    let mut out = Vec::new();
    write_json(&mut out, &brief(profile), budget).unwrap()?;
    Ok(String::from_utf8(out).unwrap())
}

/// With a name that no terminal and no budget likes.
fn hostile() -> Profile {
    let name = format!("\x1b[2J\u{202e}\n<b>{}", "Vec<".repeat(2500));
    let mut builder = Builder::default();
    let event = builder.event(&name);
    let who = Who { comm: &name, ..WHO };
    builder.sample(event, who, &[at(&name, &name, 1), at("x", "app", 2)], 1);
    builder.sample(event, WHO, &[at(&name, &name, 1)], 2);
    let mut profile = builder.profile;
    profile.recording.cmdline = ["perf", "record", &name].map(Into::into).to_vec();
    profile.recording.path = name.as_str().into();
    profile
}

#[test]
fn facts_have_their_values() {
    let all = text(&profile(), 100_000);
    let handle = handle::of_name("leaf19", "app");
    for fact in [
        "command: perf record -g ./app 'a b'".to_owned(),
        "samples: 21 of cycles (period 2200;".to_owned(),
        "lost: 7 records in 1 chunk, time unknown".to_owned(),
        "warning: the periods of an event".to_owned(),
        format!("  {handle} self 9.09%, total 9.09% leaf19 (app)"),
        format!("  {} total 95.45%, self 0.00% main (app)", handle::of_name("main", "app")),
        "hottest path, 9.09% (the innermost 3 of 3 functions, caller first):".to_owned(),
        "  t-11 95.45% app of process 10".to_owned(),
        "  t-12 4.55% helper of process 10".to_owned(),
        "  waits were not recorded: whit record --engine=bpf --wakeups -g ./app 'a b'".to_owned(),
        format!("  whit report -i perf.data --callers {handle}"),
    ] {
        assert!(all.contains(&fact), "{fact} is not in:\n{all}");
    }
    assert!(!all.contains("processes") && !all.contains("cgroups ("), "{all}");
}

#[test]
fn the_path_ends_where_most_samples_end() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let [main, a, b]: [At; 3] = ["main", "a", "b"].map(|name| at(name, "app", 1));
    builder.sample(event, WHO, &[main.clone(), a.clone()], 60);
    builder.sample(event, WHO, &[main.clone(), a, b.clone()], 20);
    builder.sample(event, WHO, &[main, b], 20);
    let text = text(&builder.profile, 100_000);
    assert!(text.contains("hottest path, 80.00% (the innermost 2 of 2 functions"), "{text}");
}

#[test]
fn the_path_ends_where_it_is_one_of_many() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for callee in 0..40 {
        let [main, work, one] =
            ["main", "work", &format!("callee{callee}")].map(|name| at(name, "app", 1));
        builder.sample(event, WHO, &[main, work, one], 10);
    }
    let text = text(&builder.profile, 100_000);
    assert!(text.contains("hottest path, 100.00% (the innermost 2 of 2 functions"), "{text}");
}

#[test]
fn recursion_is_one_step_of_the_path() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let [main, again, leaf]: [At; 3] = ["main", "again", "leaf"].map(|name| at(name, "app", 1));
    let chain = [vec![main], vec![again; 30], vec![leaf]].concat();
    builder.sample(event, WHO, &chain, 1);
    let text = text(&builder.profile, 100_000);
    assert!(text.contains("(the innermost 32 of 32 functions"), "{text}");
    assert!(text.contains("100.00% again (app) 30 times\n"), "{text}");
}

#[test]
fn small_budgets_say_that_facts_are_left_out() {
    let profile = profile();
    let whole = text(&profile, 100_000);
    assert!(!whole.contains("left out"), "{whole}");
    let less = text(&profile, 1200);
    assert!(less.contains("left out: ") && less.contains("--brief=BYTES"), "{less}");
    assert!(less.contains("lost: 7 records"), "losses come before functions: {less}");
    let heaviest = text(&profile, 600);
    assert!(heaviest.starts_with("in short: hot: leaf19 9%, leaf18 "), "{heaviest}");
    assert!(heaviest.contains("\nsamples: 21 of cycles"), "{heaviest}");
    assert!(heaviest.contains("lost: 7 records"), "{heaviest}");
    assert!(heaviest.matches(" self ").count() >= 3, "the heaviest functions: {heaviest}");
    let least = text(&profile, MIN_BUDGET);
    assert!(least.starts_with("in short: hot: leaf19 9%, "), "{least}");
    assert!(least.contains("\nsamples: 21 of cycles\n"), "{least}");
    assert!(least.contains("budget too small; left out: "), "{least}");
    let refused = write_text(&mut Vec::new(), &brief(&profile), MIN_BUDGET - 1).unwrap();
    assert!(refused.unwrap_err().to_string().contains("--brief=160"));
}

#[test]
fn recordings_with_little_in_them_answer() {
    let empty = text(&Profile::default(), 4096);
    assert!(
        empty.contains("samples: none\n") && empty.contains("0 samples are too few"),
        "{empty}"
    );
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, WHO, &[at("0x1234", "app", 1).unknown()], 1);
    let one = text(&builder.profile, 4096);
    assert!(one.contains("self 100.00%, total 100.00% 0x1234 (app)"), "{one}");
    assert!(one.contains("call chains were not recorded: whit record -g -- COMMAND"), "{one}");
    assert!(one.contains("100.0% of the samples are in code of programs without names"), "{one}");
    let by_cpu = Brief::new(&builder.profile, Err(ChosenByCpu));
    let mut out = Vec::new();
    write_text(&mut out, &by_cpu, 4096).unwrap().unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("waits were not recorded"));
}

#[test]
fn names_of_others_are_escaped_and_shortened() {
    let text = text(&hostile(), 8192);
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
    assert!(text.contains("\\x1b[2J") && text.contains('…'), "{text}");
    assert!(text.lines().all(|line| line.len() < 1500), "{text}");
}

#[test]
fn a_budget_that_no_document_fits_is_refused_with_the_least_one() {
    let error = json(&profile(), 300).unwrap_err();
    assert_eq!(error.budget, 300);
    let least = json(&profile(), error.needed).unwrap();
    assert_eq!(least.len(), error.needed);
    assert!(json(&profile(), error.needed - 1).is_err());
}

proptest! {
    #[test]
    fn no_output_exceeds_its_budget(budget in MIN_BUDGET..9000) {
        for profile in [profile(), hostile(), Profile::default()] {
            let text = text(&profile, budget);
            prop_assert!(text.len() <= budget && text.ends_with('\n'), "{}", text);
            let whole = super::text::of(&brief(&profile).at_level(MAX_LIST));
            // Heads of lists and the last line count entries.
            let entries = text.lines().filter(|line| line.starts_with("  "));
            for line in entries {
                prop_assert!(whole.lines().any(|known| known == line), "{} is cut", line);
            }
            if let Ok(json) = json(&profile, budget) {
                prop_assert!(json.len() <= budget);
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
            }
        }
    }
}

/// With the critical path of a recorded request.
fn with_path() -> Brief {
    let path = Golden::folder().join("../requests/requests.data");
    let options = ReadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
    let recording = Recording::open(&path).unwrap();
    let (name, which) = ("call".to_owned(), WhichRequests::Rank(1));
    let requests = Some(ChosenRequests { name, key: None, which });
    let interval = Interval { requests, ..Interval::default() };
    let why = Reading::open(&recording, &options).answer(interval).unwrap();
    brief(&profile()).with_path(&why, Some("call"))
}

#[test]
fn the_critical_path_of_the_slowest_request_is_a_fact() {
    let brief = with_path();
    let mut out = Vec::new();
    write_text(&mut out, &brief, DEFAULT_BUDGET).unwrap().unwrap();
    let text = String::from_utf8(out).unwrap();
    let at = text.find("critical path of ").expect("a path");
    let path = text[at..].lines().take(3).collect::<Vec<_>>().join("\n");
    assert_eq!(
        path,
        "critical path of the slowest request, call 23, in server (10150), 21.7 ms (3 of 7):\n  \
         92.32% 20.1 ms server (10150) waits: sleep in handle for 20ms\n  \
         4.84% 1.1 ms holder (10149) waits: sleep in hold for 1ms while server (10150) waits: lock in handle for futex \
         lock in server"
    );
    assert!(text.contains("whit why -i perf.data --request call\n"), "{text}");
    for budget in MIN_BUDGET..DEFAULT_BUDGET {
        let mut out = Vec::new();
        write_text(&mut out, &brief, budget).unwrap().unwrap();
        assert!(out.len() <= budget, "{budget}");
    }
}
