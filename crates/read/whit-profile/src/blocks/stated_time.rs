//! Times of records.

use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::TimestampNs;

/// The time in a record, if it has one. Synthesized records of processes that existed before have
/// none.
pub(crate) fn stated_time(events: &EventTable, record: RawRecord<'_>) -> Option<TimestampNs> {
    if record.header.kind == record_type::SAMPLE {
        let event = events.event_of_sample(record.body)?;
        return events.layout(event)?.sample_time(record.body);
    }
    let in_body = || match SideBand::parse(record)? {
        SideBand::Fork(task) | SideBand::Exit(task) => Some(TimestampNs(task.time)),
        _ => None,
    };
    let time = events.trailer_time(record).or_else(in_body)?;
    (time.0 > 0).then_some(time)
}
