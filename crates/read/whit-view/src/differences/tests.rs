//! Comparisons of recordings made by hand.

use super::*;
use crate::diff::{Scatter, Verdict};
use whit_why::Call;

const BLOCKS: usize = 48;

/// A number between 0 and 1 that looks drawn (Steele's splitmix64).
fn unit(key: u64) -> f64 {
    let mut z = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as f64 / f64::from(u32::MAX)
}

/// Quantities of waits by hand: waiting, waits, spinning.
fn recorded(path: &str, rows: &[(&str, [f64; 3])], seed: usize) -> Recorded {
    let seconds = vec![0.25; BLOCKS];
    let quantities = quantities(Kind::Locks);
    let cells = |at: usize, [waiting, waits, spinning]: &[f64; 3]| -> Vec<Cell> {
        let length = waiting / f64::max(*waits, 1.0);
        let cell = |(quantity, value): (usize, &f64)| {
            let scatter = |block: usize| {
                let key = [at, quantity, seed, block].iter().fold(1, |key, it| key * 64 + it);
                value * (0.95 + 0.1 * unit(key as u64))
            };
            let sums = (0..BLOCKS).map(|block| (0.25, scatter(block) / 4.0));
            let events = if *value > 0.0 { 1000 } else { 0 };
            Cell { values: Values::Sums(Series::new(sums)), events }
        };
        [waiting, waits, &length, spinning].into_iter().enumerate().map(cell).collect()
    };
    let rows = rows.iter().enumerate();
    Recorded {
        path: path.into(),
        kind: Kind::Locks,
        machine: vec![("CPU", "one".into())],
        what: vec![("engine", "bpf".into()), ("wake-ups", "recorded".into())],
        notes: Vec::new(),
        keys: vec!["call site"],
        missing: vec![0.0; quantities.len()],
        quantities,
        rows: rows.map(|(at, (name, of))| (vec![(*name).into()], cells(at, of))).collect(),
        whole: None,
        seconds,
    }
}

const BASE: [(&str, [f64; 3]); 3] =
    [("slow", [5e8, 400.0, 0.0]), ("fast", [2e8, 900.0, 0.0]), ("rare", [1e6, 5.0, 0.0])];

fn text(of: &Differences) -> String {
    let mut out = Vec::new();
    write_text(&mut out, of, &TextOptions { percent_limit: 0.0, quiet: false }).unwrap();
    String::from_utf8(out).unwrap()
}

fn verdict(of: &Differences, name: &str) -> String {
    of.words(of.rows.iter().find(|row| row.name[0] == *name).unwrap())
}

#[test]
fn a_longer_wait_is_found_and_the_others_are_not() {
    let mut after = BASE;
    after[1].1[0] *= 1.05;
    let (before, after) = (recorded("a", &BASE, 0), recorded("b", &after, 5));
    let found = compare(std::slice::from_ref(&before), &[after], None).unwrap();
    assert_eq!(
        (found.row_name(&found.rows[0]), found.words(&found.rows[0])),
        ("fast".into(), "waits more, waits are longer".into())
    );
    assert_eq!((verdict(&found, "slow"), found.rows.len()), ("cannot be told".into(), 3));
    assert_eq!(found.worse_by(2.0), ["fast"]);
    assert!(found.worse_by(6.0).is_empty());
    assert!(matches!(found.scatter[0], Scatter::Blocks(BLOCKS, 250_000_000)));
    let text = text(&found);
    assert!(text.contains("waiting ms/s") && text.contains("cannot be told ("), "{text}");
    // The same twice.
    let same = compare(std::slice::from_ref(&before), &[recorded("b", &BASE, 5)], None).unwrap();
    assert!(same.rows.iter().all(|row| !row.differs()), "{same:?}");
}

#[test]
fn a_mutex_that_became_a_spin_lock_waits_less_and_spins_more() {
    let mut after = BASE;
    after[0].1 = [0.0, 0.0, 6e8];
    let found = compare(&[recorded("a", &BASE, 0)], &[recorded("b", &after, 5)], None).unwrap();
    assert_eq!(
        verdict(&found, "slow"),
        "waits less, waits less often, waits are shorter, spins more"
    );
    // Waiting is less, and spinning is a cost as well.
    assert_eq!(found.worse_by(2.0), ["slow"]);
}

#[test]
fn what_may_be_missing_takes_certainty_away() {
    let mut more = BASE;
    more[1].1[0] *= 1.05;
    let mut lossy = recorded("b", &more, 5);
    // 12 seconds with 12 ms missing: 1 ms/s of 200.
    lossy.missing[0] = 12e6;
    let clear = compare(&[recorded("a", &BASE, 0)], &[lossy.clone()], None).unwrap();
    assert_eq!(verdict(&clear, "fast"), "waits more, waits are longer");
    let mut before = recorded("a", &BASE, 0);
    before.missing[0] = 12.0 * 11e6;
    let unclear = compare(&[before], &[lossy], None).unwrap();
    assert_eq!(verdict(&unclear, "fast"), "waits are longer");
    assert!(unclear.is_widened[0] && text(&unclear).contains("losses and waits of uncertain"));
    let of_fast = |of: &Differences| {
        let row = of.rows.iter().find(|row| row.name[0] == *"fast").unwrap();
        row.verdicts[0].judged.smallest
    };
    assert!(of_fast(&unclear) > of_fast(&clear) + 9e6);
}

#[test]
fn recordings_that_differ_in_what_was_recorded_are_refused() {
    let (one, mut other) = (recorded("a", &BASE, 0), recorded("b", &BASE, 1));
    other.what[1].1 = "not recorded".into();
    let error = compare(&[one], &[other], None).unwrap_err().to_string();
    assert!(error.contains("wake-ups: recorded in a, not recorded in b"), "{error}");
}

#[test]
fn several_recordings_have_the_error_between_them() {
    // Runs differ by 10 percent as a whole, which no block of theirs shows.
    let run = |number: usize, factor: f64| {
        let rows = BASE.map(|(name, of)| (name, of.map(|value| value * factor)));
        recorded("run", &rows, number % 64)
    };
    let side = |factors: [f64; 3]| factors.map(|factor| run((factor * 100.0) as usize, factor));
    let (before, after) = (side([1.0, 1.1, 0.9]), side([1.12, 1.02, 0.95]));
    let single = compare(&before[..1], &after[..1], None).unwrap();
    assert_eq!(verdict(&single, "slow"), "waits more, waits more often", "one run knows no better");
    let several = compare(&before, &after, None).unwrap();
    assert!(several.rows.iter().all(|row| !row.differs()));
    assert_eq!(several.scatter, [Scatter::Runs(3); 2]);
    let units = compare(&before, &after, Some([100.0, 200.0])).unwrap();
    let row = units.rows.iter().find(|row| row.name[0] == *"slow").unwrap();
    // 12 seconds of 500 ms in 100 units.
    assert!((row.verdicts[0].judged.before / 6e7 - 1.0).abs() < 0.01, "{row:?}");
    assert!(units.words(row).starts_with("waits less, waits less often"), "{row:?}");
    assert!(text(&units).contains("waiting ms/unit"));
    let one = compare(&before[..1], &after, Some([1.0; 2]));
    assert!(matches!(one, Err(DifferencesError::OneRun)));
}

#[test]
fn a_row_of_one_side_alone_has_an_error_too() {
    let mut after = BASE.to_vec();
    after.push(("new", [1e8, 50.0, 0.0]));
    let found = compare(&[recorded("a", &BASE, 0)], &[recorded("b", &after, 5)], None).unwrap();
    assert_eq!(found.row_name(&found.rows[0]), *"new");
    let judged = found.rows[0].verdicts[0].judged;
    assert!(judged.verdict == Verdict::Slower && judged.before == 0.0);
}

#[test]
fn json_has_every_row_and_no_infinite_number() {
    let (before, mut after) = (recorded("a", &BASE, 0), recorded("b", &BASE, 5));
    after.missing[0] = f64::MAX;
    let found = compare(&[before], &[after], None).unwrap();
    let mut out = Vec::new();
    write_json(&mut out, &found).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&json["format"], &json["kind"]), (&"whit-differences".into(), &"locks".into()));
    assert_eq!(json["rows"].as_array().unwrap().len(), 3);
    assert_eq!(json["rows"][0]["values"][0]["high"], serde_json::Value::Null);
    assert!(text(&found).contains(" any  "), "{}", text(&found));
}

fn counts(instructions: &[u64]) -> String {
    let line = |(at, count): (usize, &u64)| {
        format!(
            "{{\"interval\" : {}.0, \"counter-value\" : \"{count}.000000\", \"unit\" : \"\", \"event\" : \"instructions:u\", \
             \"event-runtime\" : 1, \"pcnt-running\" : 100.00, \"metric-value\" : 0.0, \"metric-unit\" : \"\"}}\n\
             {{\"interval\" : {}.0, \"counter-value\" : \"<not supported>\", \"unit\" : \"\", \"event\" : \"cycles\"}}\n",
            at + 1,
            at + 1
        )
    };
    instructions.iter().enumerate().map(line).collect()
}

#[test]
fn counts_of_intervals_and_of_runs_are_compared() {
    let blocks = |factor: u64| -> Vec<u64> {
        (0..20).map(|at| factor * (1000 + (at * 7919) % 11)).collect()
    };
    let file = |factor| of_stat("c.json", &counts(&blocks(factor))).unwrap();
    let found = compare(&[file(100)], &[file(103)], None).unwrap();
    assert_eq!(found.words(&found.rows[0]), "counts more");
    assert_eq!((found.rows.len(), found.keys[0]), (1, "event"));
    assert_eq!(found.worse_by(2.0), ["instructions:u"]);
    assert!(found.worse_by(5.0).is_empty());
    let total = |count: u64| {
        let line = counts(&[count]).replace("\"interval\" : 1.0, ", "");
        of_stat("t.json", &line).unwrap()
    };
    let sides = [[1000, 1010, 990, 1004], [1100, 1110, 1090, 1104]].map(|side| side.map(total));
    let found = compare(&sides[0], &sides[1], None).unwrap();
    assert_eq!(found.words(&found.rows[0]), "counts more");
    let one = compare(&sides[0][..1], &sides[1][..1], None).unwrap_err().to_string();
    assert!(one.contains("several recordings"), "{one}");
    let mixed = compare(&[file(1)], &sides[0], None).unwrap_err().to_string();
    assert!(mixed.contains("intervals"), "{mixed}");
    let repeats =
        counts(&[5]).replace("\"event-runtime\"", "\"variance\" : 1.0, \"event-runtime\"");
    assert!(matches!(of_stat("r", &repeats), Err(StatError::Repeats(_))));
    assert!(matches!(of_stat("r", "\n1,2,3\n"), Err(StatError::NotJson { line: 2, .. })));
    assert!(matches!(of_stat("r", "# started\n"), Err(StatError::Nothing { .. })));
    assert!(text(&found).contains("its machine does not have cycles"), "{}", text(&found));
    let absent = counts(&[5]).replace("5.000000", "<not supported>");
    let nothing = of_stat("n", &absent).err().unwrap().to_string();
    assert_eq!(nothing, "n has no counts: its machine does not have cycles, instructions:u");
}

#[test]
fn a_part_of_a_wait_belongs_to_the_block_of_a_beginning() {
    let series = compare::of_waits(&[0.0, 2.0, 0.0, 1.0], &[9.0, 5.0, 4.0, 2.0]);
    assert_eq!(series, Series::new([(2.0, 9.0), (1.0, 2.0)]));
}

#[test]
fn requests_without_a_duration_widen_their_count() {
    let ns = whit_types::TimestampNs;
    let call = |at: u64| Call {
        thread: 0,
        goroutine: None,
        from: ns(at * 1_000_000_000),
        to: ns(at * 1_000_000_000 + 5_000_000),
        depth: 0,
        key: None,
    };
    let calls: Vec<Call> = (0..96).map(call).collect();
    let of = |uncertain| {
        let of_name = CallsOfName { name: "query", calls: &calls, uncertain, columns: None };
        of_calls(&[of_name], None, false)
    };
    let (whole, lossy) = (of(0), of(7));
    assert_eq!(whole.notes, Vec::<OutsideText>::new());
    assert!(lossy.notes[0].exact().starts_with("7 requests are in no mean"), "{:?}", lossy.notes);
    let found = compare(&[whole], &[lossy], None).unwrap();
    assert_eq!(found.is_widened, [false, true]);
    let counts =
        found.rows[0].verdicts.iter().find(|it| found.quantities[it.quantity].name == "requests");
    let (low, high) = counts.unwrap().judged.difference.interval;
    // Seven more in 95 seconds, and none fewer.
    assert!(high + low > 0.07, "{low} {high}");
}
