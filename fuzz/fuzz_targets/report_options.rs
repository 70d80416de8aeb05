//! The small languages of `whit report` and `whit script`: fields, sort keys, call chains, time.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_profile::time_filter::TimeFilter;
use whit_types::TimestampNs;
use whit_view::hists::{ChainOptions, SortKey};
use whit_view::script::{EventKind, EventTraits, FieldSpec, Fields};

fn fields(text: &str) -> bool {
    let specs: Result<Vec<_>, _> = text.split(' ').map(FieldSpec::parse).collect();
    let specs = match specs {
        Ok(specs) => specs,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let kinds = [EventKind::Hardware, EventKind::Software, EventKind::Tracepoint, EventKind::Other];
    for kind in kinds {
        for recorded in [Fields::NONE, Fields::IP | Fields::TID | Fields::TIME] {
            for has_callchain in [false, true] {
                let event = EventTraits { name: "fuzzed", kind, recorded, has_callchain };
                if let Err(error) = FieldSpec::resolve(&specs, &event) {
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
    true
}

fn time(text: &str) -> bool {
    let Ok(filter) = TimeFilter::parse(text) else { return false };
    for (first, last) in [(0, 0), (5, 1_000_000_007), (0, u64::MAX), (u64::MAX, u64::MAX)] {
        let ranges: Vec<_> = filter.resolve(TimestampNs(first), TimestampNs(last)).iter().collect();
        assert!(ranges.iter().all(|range| range.from <= range.to), "{text}: {ranges:?}");
        assert!(ranges.is_sorted_by(|one, next| one.to < next.from), "{text}: {ranges:?}");
    }
    true
}

fuzz_target!(|data| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = [
        fields(text),
        time(text),
        SortKey::parse_list(text).is_ok(),
        ChainOptions::parse(text).is_ok(),
    ];
});
