//! The events of a recording as text, as `perf evlist` has them.

use whit_engine_api::open_event::OpenEvent;
use whit_host::control::Listing;
use whit_perfdata::attr::{Attr, AttrFlags};

/// One line per event, or per group.
pub(super) fn list(events: &[OpenEvent], how: Listing) -> String {
    let mut out = String::new();
    let mut index = 0;
    while index < events.len() {
        let leader = events[index].event.spec.leader;
        let group = match leader {
            Some(_) => events[index..].iter().take_while(|e| e.event.spec.leader == leader).count(),
            None => 1,
        };
        if how.groups && group > 1 {
            let names = events[index..index + group].iter().map(|e| e.event.spec.name());
            out.push_str(&format!("{{{}}}\n", names.collect::<Vec<_>>().join(",")));
            index += group;
            continue;
        }
        let event = &events[index].event;
        out.push_str(event.spec.name());
        out.push_str(&fields(&event.attr, how));
        out.push('\n');
        index += 1;
    }
    out
}

fn fields(attr: &Attr, how: Listing) -> String {
    let rate = attr.sample_period_or_freq;
    let is_frequency = attr.has(AttrFlags::FREQ);
    if how.verbose {
        return format!(
            ": type: {}, size: {}, config: {:#x}, {{ sample_period, sample_freq }}: {rate}, \
             sample_type: {}, read_format: {}, flags: {}, precise_ip: {}, \
             branch_sample_type: {:#x}",
            attr.pmu_type,
            attr.to_bytes().len(),
            attr.config,
            bits(&attr.sample_type),
            bits(&attr.read_format),
            bits(&attr.flags),
            attr.precise_ip(),
            attr.branch_sample_type,
        );
    }
    match (how.rate, is_frequency) {
        (false, _) => String::new(),
        (true, true) => format!(": sample_freq={rate}"),
        (true, false) => format!(": sample_period={rate}"),
    }
}

/// The names of set bits without that of their set.
fn bits(set: &dyn std::fmt::Debug) -> String {
    let text = format!("{set:?}");
    let inside = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::SampleType;

    #[test]
    fn bits_are_listed_by_name() {
        assert_eq!(bits(&(SampleType::IP | SampleType::TID)), "IP|TID");
    }

    #[test]
    fn rates_are_shown_as_they_were_asked_for() {
        let attr = Attr { sample_period_or_freq: 99, flags: AttrFlags::FREQ, ..Attr::default() };
        let how = Listing { rate: true, ..Listing::default() };
        assert_eq!(fields(&attr, how), ": sample_freq=99");
        assert_eq!(
            fields(&Attr { flags: AttrFlags(0), ..attr.clone() }, how),
            ": sample_period=99"
        );
        assert_eq!(fields(&attr, Listing::default()), "");
        let all = fields(&attr, Listing { verbose: true, ..how });
        assert!(all.contains("flags: FREQ,"), "{all}");
    }
}
