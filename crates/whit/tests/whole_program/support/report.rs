//! What `report --stdio --no-children -g none --sort dso,symbol` prints.

use std::collections::BTreeMap;

/// One line of the table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Row {
    /// Share of the event's total.
    pub(crate) percent: f64,
    /// Binary.
    pub(crate) dso: String,
    /// Function, or the address where there is no symbol.
    pub(crate) symbol: String,
}

/// The tables by event, largest share first.
pub(crate) fn parse(text: &str) -> BTreeMap<String, Vec<Row>> {
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

/// `    54.05%  libc.so.6   [.] memmove     -      -  `: what follows two blanks is another column.
fn row(line: &str) -> Option<Row> {
    let (percent, rest) = line.trim_start().split_once('%')?;
    let percent = percent.parse().ok()?;
    let (dso, rest) = rest.trim_start().split_once(' ')?;
    let rest = rest.trim_start();
    let symbol = rest.strip_prefix('[')?.get(1..)?.strip_prefix("] ")?;
    let symbol = symbol.split("  ").next().unwrap_or(symbol).trim();
    Some(Row { percent, dso: dso.to_owned(), symbol: symbol.to_owned() })
}

/// Panics unless the `count` largest rows of `expected` stand in `actual` with the same shares,
/// and no others are larger. Equal shares may stand in any order.
pub(crate) fn assert_same_top(actual: &[Row], expected: &[Row], count: usize) {
    // Both print two decimals.
    let same = |a: f64, b: f64| (a - b).abs() < 0.011;
    let context = || format!("expected {expected:#?}\nactual {actual:#?}");
    for (position, row) in expected.iter().take(count).enumerate() {
        let found = actual.iter().find(|other| other.symbol == row.symbol && other.dso == row.dso);
        let Some(found) = found else { panic!("{row:?} is missing\n{}", context()) };
        assert!(same(found.percent, row.percent), "{found:?} but {row:?}\n{}", context());
        let ranked = actual.get(position).map(|other| other.percent).unwrap_or_default();
        assert!(same(ranked, row.percent), "rank {}: {ranked}\n{}", position + 1, context());
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
   100.00%  deep-go  [.] main.(*T).run
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
    assert_eq!(tables["page-faults"], [row(100.0, "deep-go", "main.(*T).run")]);
}

#[test]
fn notices_what_differs() {
    let row = |percent, symbol: &str| Row { percent, dso: "d".into(), symbol: symbol.into() };
    let expected = [row(60.0, "a"), row(20.0, "b"), row(20.0, "c")];
    assert_same_top(&[row(60.0, "a"), row(20.0, "c"), row(20.0, "b")], &expected, 20);
    let differs = |actual: &[Row]| {
        let actual = actual.to_vec();
        let expected = expected.clone();
        std::panic::catch_unwind(move || assert_same_top(&actual, &expected, 20)).is_err()
    };
    assert!(differs(&[row(60.0, "a"), row(20.0, "b")]), "one is missing");
    assert!(differs(&[row(59.0, "a"), row(21.0, "b"), row(20.0, "c")]), "other shares");
    let larger = [row(70.0, "x"), row(60.0, "a"), row(20.0, "c"), row(20.0, "b")];
    assert!(differs(&larger), "another one is larger");
}
