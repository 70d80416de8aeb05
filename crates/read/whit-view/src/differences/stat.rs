//! Rows of counts: files of `whit stat -j`.

use super::{Cell, Divisor, Kind, Quantity, Recorded, RowName, Unit, Values};
use std::collections::{BTreeMap, BTreeSet};
use whit_estimate::Series;
use whit_types::OutsideText;

/// Why a file has no counts to compare.
#[derive(Debug, thiserror::Error)]
pub enum StatError {
    /// It is something else.
    #[error("{path}, line {line}: no counts as JSON: write them with whit stat -j -o FILE")]
    NotJson {
        /// The file.
        path: OutsideText,
        /// From 1 on.
        line: usize,
    },
    /// Runs are added up.
    #[error(
        "{0} has the mean of several runs (-r), which does not say how the runs differ: write one file for each run, and \
         give several on each side of `--`"
    )]
    Repeats(OutsideText),
    /// Nothing in it was counted.
    #[error("{path} has no counts{}", reason(absent))]
    Nothing {
        /// The file.
        path: OutsideText,
        /// Events in it that its machine does not have, in order.
        absent: Vec<OutsideText>,
    },
}

/// Why there are no counts, as far as the file says it.
fn reason(absent: &[OutsideText]) -> String {
    if absent.is_empty() { String::new() } else { format!(": {}", not_supported(absent)) }
}

fn not_supported(absent: &[OutsideText]) -> OutsideText {
    let names = absent.iter().map(OutsideText::exact).collect::<Vec<_>>().join(", ");
    format!("its machine does not have {names}").into()
}

const fn counted(per: Divisor) -> Quantity {
    let words = ["counts less", "counts more"];
    Quantity { name: "count", unit: Unit::Count, per, words, is_cost: true }
}

/// The places that lines of `whit stat -j` may have.
const PLACES: [&str; 8] = ["cpu", "core", "cache", "die", "socket", "node", "thread", "cgroup"];

/// One count.
struct Count {
    name: RowName,
    /// End of its interval, as written; empty without intervals.
    interval: String,
    /// Absent where it was not counted.
    value: Option<f64>,
    is_part: bool,
}

/// Reduces a file of counts.
///
/// # Errors
/// It has none, or those of several runs in one.
pub fn of_stat(path: &str, text: &str) -> Result<Recorded, StatError> {
    let (mut counts, mut absent) = (Vec::new(), BTreeSet::new());
    for (number, line) in text.lines().enumerate() {
        let line_of = || StatError::NotJson { path: path.into(), line: number + 1 };
        let is_comment = line.trim().is_empty() || line.starts_with('#');
        if is_comment {
            continue;
        }
        let json: serde_json::Value = serde_json::from_str(line).map_err(|_| line_of())?;
        let object = json.as_object().ok_or_else(line_of)?;
        if object.contains_key("variance") {
            return Err(StatError::Repeats(path.into()));
        }
        if object.get("counter-value").is_some_and(|value| value == "<not supported>") {
            absent
                .extend(object.get("event").and_then(serde_json::Value::as_str).map(str::to_owned));
        } else {
            counts.extend(count(object));
        }
    }
    let absent: Vec<OutsideText> = absent.into_iter().map(OutsideText::from).collect();
    if !counts.iter().any(|count| count.value.is_some()) {
        return Err(StatError::Nothing { path: path.into(), absent });
    }
    let mut recorded = recorded(path, &counts);
    recorded.notes.extend((!absent.is_empty()).then(|| not_supported(&absent)));
    Ok(recorded)
}

/// `None` for further metrics.
fn count(object: &serde_json::Map<String, serde_json::Value>) -> Option<Count> {
    let text = |key: &str| object.get(key).and_then(serde_json::Value::as_str);
    let (event, value) = (text("event")?, text("counter-value")?);
    let unit = text("unit").filter(|unit| !unit.is_empty());
    let event = unit.map_or_else(|| event.to_owned(), |unit| format!("{event} ({unit})"));
    let places = PLACES.iter().filter_map(|place| text(place)).filter(|place| !place.is_empty());
    let mut name: RowName = vec![event.into()];
    name.extend(places.map(OutsideText::from));
    let share = object.get("pcnt-running").and_then(serde_json::Value::as_f64);
    Some(Count {
        name,
        interval: object.get("interval").map(ToString::to_string).unwrap_or_default(),
        value: value.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0),
        is_part: share.is_some_and(|share| share < 100.0),
    })
}

fn recorded(path: &str, counts: &[Count]) -> Recorded {
    let ends: BTreeSet<&str> = counts.iter().map(|count| &*count.interval).collect();
    let mut ends: Vec<(f64, &str)> =
        ends.iter().map(|end| (end.parse().unwrap_or_default(), *end)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let has_intervals = ends.first().is_some_and(|(_, text)| !text.is_empty());
    let begins = std::iter::once(0.0).chain(ends.iter().map(|end| end.0));
    let seconds: Vec<f64> = match has_intervals {
        true => ends.iter().zip(begins).map(|(end, begin)| end.0 - begin).collect(),
        // One run is one unit of its own.
        false => vec![1.0],
    };
    let mut sums: BTreeMap<RowName, (Vec<(f64, f64)>, u64)> = BTreeMap::new();
    for count in counts {
        let block = ends.iter().position(|(_, text)| *text == count.interval);
        let (Some(block), Some(value)) = (block, count.value) else { continue };
        let (parts, events) = sums.entry(count.name.clone()).or_default();
        parts.push((seconds[block], value));
        *events = events.saturating_add(value as u64);
    }
    let row = |(name, (parts, events)): (RowName, (Vec<_>, u64))| {
        (name, vec![Cell { values: Values::Sums(Series::new(parts)), events }])
    };
    let names: BTreeSet<String> =
        counts.iter().map(|count| count.name[0].exact().to_owned()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let mut notes = Vec::new();
    if counts.iter().any(|count| count.is_part) {
        notes.push("some events counted a part of the time (they shared counters)".into());
    }
    if counts.iter().any(|count| count.value.is_none()) {
        notes.push("some events were not counted in some intervals, which are left out".into());
    }
    let per = if has_intervals { Divisor::Time } else { Divisor::Run };
    let intervals = if has_intervals { "recorded (-I)" } else { "not recorded" };
    Recorded {
        path: path.into(),
        kind: Kind::Stat,
        machine: Vec::new(),
        what: vec![("intervals", intervals.to_owned()), ("events", names)],
        notes,
        keys: vec!["event", "of"],
        quantities: vec![counted(per)],
        missing: vec![0.0],
        rows: sums.into_iter().map(row).collect(),
        whole: None,
        seconds,
    }
}
