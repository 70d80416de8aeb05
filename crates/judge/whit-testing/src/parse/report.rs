//! The output of `report --stdio --no-children -g none --sort dso,symbol`.

use std::collections::BTreeMap;

/// One line of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Share of the event's total.
    pub percent: f64,
    /// Binary.
    pub dso: String,
    /// Function, or the address where there is no symbol.
    pub symbol: String,
}

/// The tables by event, largest share first.
pub fn parse(text: &str) -> BTreeMap<String, Vec<Row>> {
    let mut tables: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut event = None;
    for line in text.lines() {
        if let Some((_, name)) = line.split_once(" of event '") {
            let name = name.trim_end_matches('\'').to_owned();
            tables.entry(name.clone()).or_default();
            event = Some(name);
        } else if let Some(row) = row(line) {
            let event = event.as_ref().unwrap_or_else(|| panic!("a row before its event: {line}"));
            tables.get_mut(event).expect("made at its title").push(row);
        }
    }
    tables
}

/// ` 54.05% libc.so.6 [.] memmove - - `: two blanks begin another column.
fn row(line: &str) -> Option<Row> {
    let (percent, rest) = line.trim_start().split_once('%')?;
    let percent = percent.parse().ok()?;
    let mark = ["[.] ", "[k] "].into_iter().find_map(|mark| rest.split_once(mark));
    let (dso, symbol) = mark?;
    let symbol = symbol.split("  ").next().unwrap_or(symbol).trim();
    Some(Row { percent, dso: file_of_dso(dso.trim()), symbol: symbol.to_owned() })
}

/// perf has a name of its own for the code that /tmp/perf-PID.map describes.
fn file_of_dso(name: &str) -> String {
    match name.strip_prefix("[JIT] tid ") {
        Some(pid) => format!("perf-{pid}.map"),
        None => name.to_owned(),
    }
}

/// Panics unless the `count` largest rows of `expected` stand in `actual` with the same shares, and
/// the other way round. Equal shares may stand in any order.
///
/// Where `expected` has addresses without a name, `actual` may have named them: that much, and in
/// the same binary, it may have more. The shares of two binaries with the same name are added up,
/// as perf does for equal addresses.
pub fn assert_same_top(actual: &[Row], expected: &[Row], count: usize) {
    let (ours, theirs) = (Shares::of(actual), Shares::of(expected));
    let context = || format!("expected {expected:#?}\nactual {actual:#?}");
    for (key, share) in theirs.top(count).chain(ours.top(count)) {
        let (our, their) = (ours.share(key), theirs.share(key));
        let surplus = theirs.unnamed.get(&key.0).copied().unwrap_or(0.0);
        let same = our > their - ROUNDING && our < their + surplus + ROUNDING;
        assert!(
            same,
            "{key:?} has {our} % instead of {their} % ({share} is among the largest)\n{}",
            context()
        );
    }
}

/// Both print two decimals; a sum of two rows may be off twice.
const ROUNDING: f64 = 0.021;

/// Binary and function.
type Key = (String, String);

/// An address, or `_init`: perf takes the plt of a static program, which follows it, for that
/// function.
fn is_nameless(symbol: &str) -> bool {
    symbol.starts_with("0x") || symbol == "_init" || symbol.ends_with("@plt")
}

struct Shares {
    named: BTreeMap<Key, f64>,
    /// Share of addresses without a name, by binary.
    unnamed: BTreeMap<String, f64>,
}

impl Shares {
    fn of(rows: &[Row]) -> Shares {
        let mut shares = Shares { named: BTreeMap::new(), unnamed: BTreeMap::new() };
        for row in rows {
            let sum = if is_nameless(&row.symbol) {
                shares.unnamed.entry(row.dso.clone()).or_default()
            } else {
                shares.named.entry((row.dso.clone(), row.symbol.clone())).or_default()
            };
            *sum += row.percent;
        }
        shares
    }

    fn share(&self, key: &Key) -> f64 {
        self.named.get(key).copied().unwrap_or(0.0)
    }

    /// The largest. Which of equal ones come last does not matter: each is compared on both sides.
    fn top(&self, count: usize) -> impl Iterator<Item = (&Key, f64)> {
        let mut rows: Vec<_> = self.named.iter().map(|(key, share)| (key, *share)).collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows.truncate(count);
        rows.into_iter()
    }
}

#[test]
fn reads_tables() {
    let text = "
# Samples: 37  of event 'cpu-clock:pppH'
# Overhead  Shared Object      Symbol                        IPC   [IPC Coverage]
    54.05%  deep-fp            [.] _ZN7kernels10hash_blockEm    -      -
     2.70%  [kernel.kallsyms]  [k] mas_topiary_replace          -      -
# Samples: 1K of event 'page-faults'
    75.00%  deep-go  [.] main.(*T).run
    25.00%  [JIT] tid 12  [.] jit_inner
";
    let tables = parse(text);
    let row = |percent, dso: &str, symbol: &str| Row {
        percent,
        dso: dso.to_owned(),
        symbol: symbol.to_owned(),
    };
    let clock = vec![
        row(54.05, "deep-fp", "_ZN7kernels10hash_blockEm"),
        row(2.7, "[kernel.kallsyms]", "mas_topiary_replace"),
    ];
    assert_eq!(tables["cpu-clock:pppH"], clock);
    let faults = [row(75.0, "deep-go", "main.(*T).run"), row(25.0, "perf-12.map", "jit_inner")];
    assert_eq!(tables["page-faults"], faults);
}

#[cfg(test)]
fn differs(actual: &[Row], expected: &[Row]) -> bool {
    let (actual, expected) = (actual.to_vec(), expected.to_vec());
    std::panic::catch_unwind(move || assert_same_top(&actual, &expected, 20)).is_err()
}

#[test]
fn notices_differences() {
    let row = |percent, symbol: &str| Row { percent, dso: "d".into(), symbol: symbol.into() };
    let expected = [row(60.0, "a"), row(20.0, "b"), row(20.0, "c")];
    assert_same_top(&[row(60.0, "a"), row(20.0, "c"), row(20.0, "b")], &expected, 20);
    assert_same_top(
        &[row(30.0, "a"), row(30.0, "a"), row(20.0, "c"), row(20.0, "b")],
        &expected,
        20,
    );
    assert!(differs(&[row(60.0, "a"), row(20.0, "b")], &expected), "one is missing");
    assert!(differs(&[row(59.0, "a"), row(21.0, "b"), row(20.0, "c")], &expected), "shares");
    let larger = [row(70.0, "x"), row(60.0, "a"), row(20.0, "c"), row(20.0, "b")];
    assert!(differs(&larger, &expected), "another one is larger");
}

#[test]
fn names_where_perf_has_none_are_no_difference() {
    let row =
        |percent, dso: &str, symbol: &str| Row { percent, dso: dso.into(), symbol: symbol.into() };
    let expected = [row(60.0, "d", "a"), row(40.0, "d", "0x12")];
    assert_same_top(&[row(60.0, "d", "a"), row(40.0, "d", "x")], &expected, 20);
    assert_same_top(&[row(100.0, "d", "a")], &expected, 20);
    assert!(differs(&[row(60.0, "d", "a"), row(40.0, "other", "x")], &expected));
    assert!(differs(&[row(60.0, "d", "0x12"), row(40.0, "d", "x")], &expected));
}
