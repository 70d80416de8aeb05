//! The output of `report --stats`.

use std::collections::BTreeMap;

/// Numbers of records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// By type, `TOTAL` included.
    pub by_type: BTreeMap<String, u64>,
    /// Key: the event's name as the report prints it.
    pub samples_by_event: BTreeMap<String, u64>,
    /// Samples that the kernel lost, by event, where it lost any.
    pub lost_by_event: BTreeMap<String, u64>,
}

impl Stats {
    /// Reads `Aggregated stats:` and `EVENT stats:` sections of `  TYPE events:  N` lines.
    pub fn parse(text: &str) -> Stats {
        let mut stats = Stats::default();
        let mut event = None;
        for line in text.lines() {
            if let Some(title) = line.strip_suffix(" stats:") {
                event = Some(title.trim().to_owned()).filter(|title| title != "Aggregated");
            } else if let Some((name, rest)) = line.split_once(" events:") {
                let number = rest.split_whitespace().next().unwrap_or_default();
                let number = number.parse().unwrap_or_else(|_| panic!("no number in {line:?}"));
                let (table, key) = match (&event, name.trim()) {
                    (None, name) => (&mut stats.by_type, name.to_owned()),
                    (Some(event), "SAMPLE") => (&mut stats.samples_by_event, event.clone()),
                    (Some(event), "LOST_SAMPLES") => (&mut stats.lost_by_event, event.clone()),
                    (Some(_), _) => panic!("of one event: {line:?}"),
                };
                table.insert(key, number);
            }
        }
        assert!(stats.by_type.contains_key("TOTAL"), "these are no statistics:\n{text}");
        stats
    }

    /// Samples of all events.
    pub fn samples(&self) -> u64 {
        self.by_type.get("SAMPLE").copied().unwrap_or(0)
    }
}

#[test]
fn reads_statistics() {
    let text = "
Aggregated stats:
           TOTAL events:         47
          SAMPLE events:         37  (78.7%)
           MMAP2 events:         10  (21.3%)
cpu-clock:pppH stats:
          SAMPLE events:         30
page-faults stats:
          SAMPLE events:          7
    LOST_SAMPLES events:          3
";
    let stats = Stats::parse(text);
    assert_eq!(stats.samples(), 37);
    assert_eq!(stats.by_type["MMAP2"], 10);
    assert_eq!(stats.samples_by_event["cpu-clock:pppH"], 30);
    assert_eq!(stats.samples_by_event["page-faults"], 7);
    assert_eq!(stats.lost_by_event["page-faults"], 3);
}
