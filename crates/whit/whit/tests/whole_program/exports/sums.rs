//! Sums by function, as whit reports them and as other tools read them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::recordings::Example;
use crate::support::tools::text;

/// Sums of the functions of one event: own samples and own periods.
pub(crate) type Sums = BTreeMap<String, (u64, u64)>;

/// whit's report of its main event: the one with the most samples.
pub(crate) fn of_report(example: &Example) -> (String, Sums) {
    let events = events(example);
    let samples = |event: &&Value| event["samples"].as_u64().unwrap();
    let event = events.iter().rev().max_by_key(samples).expect("an event");
    (event["name"].as_str().unwrap().to_owned(), of_event(event))
}

/// All events with samples.
pub(crate) fn events(example: &Example) -> Vec<Value> {
    let mut report = example.whit("report");
    let json = text(report.args(["--json", "--no-intervals", "--percent-limit", "0"]));
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let mut events = json["events"].as_array().unwrap().clone();
    events.retain(|event| event["samples"].as_u64().unwrap() > 0);
    events
}

/// The functions of an event that have samples of their own.
pub(crate) fn of_event(event: &Value) -> Sums {
    let mut sums = Sums::new();
    for row in event["rows"].as_array().unwrap() {
        let number = |field: &str| row["self"][field].as_u64().unwrap();
        let name = row["symbol"]["name"].as_str().unwrap().to_owned();
        let sum = sums.entry(name).or_default();
        sum.0 += number("samples");
        sum.1 += number("period");
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

/// One figure of each function.
pub(crate) fn column(sums: &Sums, which: impl Fn(&(u64, u64)) -> u64) -> BTreeMap<String, u64> {
    sums.iter().map(|(name, sum)| (name.clone(), which(sum))).filter(|(_, sum)| *sum > 0).collect()
}
