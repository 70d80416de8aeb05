//! Tables in text, read back.

use super::support::Skip;
use whit_testing::measure::assert_median_at_most;

/// A row of a table in text: count, event, cgroup.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) count: f64,
    pub(crate) event: String,
    pub(crate) cgroup: String,
}

/// The rows of a table in text.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let counts = line.split('#').next().unwrap_or_default();
        let mut words = counts.split_whitespace().filter(|word| *word != "msec");
        let count: f64 = words.next()?.replace(',', "").parse().ok()?;
        let event = words.next().filter(|event| *event != "seconds")?.to_owned();
        Some(Row { count, event, cgroup: words.next().unwrap_or_default().to_owned() })
    };
    text.lines().filter_map(row).collect()
}

/// A cgroup's count of an event.
pub(crate) fn count(rows: &[Row], event: &str, cgroup: &str) -> f64 {
    let found = rows.iter().find(|row| row.event == event && row.cgroup == cgroup);
    found.unwrap_or_else(|| panic!("{event} of '{cgroup}' in {rows:?}")).count
}

/// How many switches the kernel did not show.
pub(crate) fn unseen(text: &str) -> f64 {
    let line = text.lines().find(|line| line.contains("did not show"));
    let number = |line: &str| line.split_whitespace().find_map(|word| word.parse().ok());
    line.and_then(number).unwrap_or(0.0)
}

/// How far two counts of the same work may be apart: a fault more or less is the kernel's affair.
const SAME_WORK: f64 = 0.15;

/// Whether two counts of the same work are about the same, by the median of some: a switch that the
/// kernel does not show brings another's faults to a cgroup.
pub(crate) fn assert_same_work(
    mut measure: impl FnMut() -> Result<[f64; 2], Skip>,
) -> Result<(), Skip> {
    assert_median_at_most("counts of the same work differ by a share", SAME_WORK, || {
        measure().map(|[a, b]| (a - b).abs() / a.max(b))
    })
}

/// Whether two counts are the same but for this share of the larger one, and some more.
pub(crate) fn assert_close(what: &str, [a, b]: [f64; 2], share: f64, slack: f64) {
    let allowed = a.max(b) * share + slack;
    assert!((a - b).abs() <= allowed, "{what}: {a} and {b} differ by more than {allowed}");
}
