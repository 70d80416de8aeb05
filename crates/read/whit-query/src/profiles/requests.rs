//! The requests of a recording.

use super::places::Places;
use super::{Reader, Recording};
use rusqlite::{Result, params};
use std::collections::BTreeMap;
use whit_profile::model::RecordingInfo;
use whit_profile::time_filter::TimeRange;
use whit_types::TimestampNs;
use whit_why::Call;

/// The requests of one recording.
#[derive(Clone, Debug)]
pub struct RecordedRequests {
    /// The recording.
    pub info: RecordingInfo,
    /// The selected part of the recorded time.
    pub span: TimeRange,
    /// Those that are within no other one of their name.
    pub names: BTreeMap<String, RequestsOfName>,
}

/// The requests of one name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RequestsOfName {
    /// In the order of their durations.
    pub calls: Vec<Call>,
    /// Requests whose duration is not known, since records were lost.
    pub uncertain: u64,
}

impl Reader<'_> {
    /// `None` where no request is selected.
    pub(super) fn requests(&self, recording: Recording) -> Result<Option<RecordedRequests>> {
        let Recording { mut profile, span, .. } = recording;
        let Some(span) = span.and_then(|span| self.clock.part_of(span)) else { return Ok(None) };
        if !self.has_build()? {
            return Ok(None);
        }
        let places = match self.selection.build {
            Some(_) => self.places(&mut profile)?,
            None => Places::default(),
        };
        let threads = self.threads(&mut profile, &places)?;
        let mut names: BTreeMap<String, RequestsOfName> = BTreeMap::new();
        let sql = "SELECT ts, dur, name, certain, utid FROM request WHERE recording_id = ?1 AND depth = 0";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(params![self.id])?;
        while let Some(row) = rows.next()? {
            let is_of = threads.number(row.get(4)?).is_some();
            let time = |at: usize| -> Result<u64> {
                Ok(row.get::<_, Option<i64>>(at)?.unwrap_or(0).max(0) as u64)
            };
            let from = time(0)?;
            let to = from.saturating_add(time(1)?);
            // A request belongs to the time in which it ended.
            if !is_of || !self.clock.has(i64::try_from(to).unwrap_or(i64::MAX)) {
                continue;
            }
            let of_name = names.entry(row.get(2)?).or_default();
            if row.get::<_, i64>(3)? == 0 {
                of_name.uncertain += 1;
                continue;
            }
            let (from, to) = (TimestampNs(from), TimestampNs(to));
            of_name.calls.push(Call { thread: 0, goroutine: None, from, to, depth: 0, key: None });
        }
        if names.is_empty() {
            return Ok(None);
        }
        names.values_mut().for_each(|of| of.calls.sort_by_key(Call::duration_ns));
        Ok(Some(RecordedRequests { info: profile.recording, span, names }))
    }
}
