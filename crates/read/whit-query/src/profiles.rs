//! Recordings of a dataset as profiles: the tables have all functions, call chains, samples and waits of a profile.
//!
//! A sample is read two or three times, a wait once or twice, and none is kept: memory grows with call chains. SQLite sorts
//! samples and runs by thread for CPU time.

mod cpu_time;
mod places;
mod requests;
mod sums;
mod threads;
mod wait_times;
mod waits;

use crate::error::QueryError;
use crate::selection::Selection;
use crate::session::Session;
use places::{PlaceReader, Places};
pub use requests::{RecordedRequests, RequestsOfName};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashSet;
use sums::{Sums, shift};
use whit_profile::model::Profile;
use whit_profile::switches::Switches;
use whit_profile::time_filter::TimeRange;
use whit_types::{OutsideText, TimestampNs};

impl Session {
    /// Makes a profile of each recording that has samples of the selection, one after the other. Gives the number of
    /// recordings that were left out since they do not state the time of day.
    ///
    /// # Errors
    /// The tables cannot be read, a time is no time, or `take` fails.
    pub fn profiles<E: From<QueryError>>(
        &self,
        selection: &Selection,
        take: &mut dyn FnMut(Profile) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.each(selection, |reader, recording| reader.profile(recording), take)
    }

    /// Makes the waits and the CPU time of each recording that has waits of the selection, in blocks of time, as
    /// [`Session::profiles`] does. The profile has their call stacks, and no samples.
    ///
    /// # Errors
    /// The tables cannot be read, a time is no time, or `take` fails.
    pub fn waits<E: From<QueryError>>(
        &self,
        selection: &Selection,
        take: &mut dyn FnMut((Profile, Switches)) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.each(selection, |reader, recording| reader.waits(recording), take)
    }

    /// Gives the requests of each recording that has some of the selection, as [`Session::profiles`] does.
    ///
    /// # Errors
    /// The tables cannot be read, a time is no time, or `take` fails.
    pub fn requests<E: From<QueryError>>(
        &self,
        selection: &Selection,
        take: &mut dyn FnMut(RecordedRequests) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.each(selection, |reader, recording| reader.requests(recording), take)
    }

    /// Reads each recording that the selection may have.
    fn each<T, E: From<QueryError>>(
        &self,
        selection: &Selection,
        read: fn(&Reader<'_>, Recording) -> rusqlite::Result<Option<T>>,
        take: &mut dyn FnMut(T) -> Result<(), E>,
    ) -> Result<usize, E> {
        let from = self.time_ns(selection.from.as_deref())?;
        let range = Range { from, to: self.time_ns(selection.to.as_deref())? };
        let failed = |error: rusqlite::Error| self.error(&error, "");
        let mut without_time = 0;
        for recording in recordings(self.connection(), selection).map_err(failed)? {
            let Some(clock) = range.by_clock(recording.clock_offset_ns) else {
                without_time += 1;
                continue;
            };
            let (connection, id) = (self.connection(), recording.id);
            let reader = Reader { connection, id, clock, selection };
            read(&reader, recording).map_err(failed)?.map_or(Ok(()), &mut *take)?;
        }
        Ok(without_time)
    }

    /// A time of day in nanoseconds since 1970.
    fn time_ns(&self, text: Option<&str>) -> Result<Option<i64>, QueryError> {
        let Some(text) = text else { return Ok(None) };
        let sql = "SELECT CAST(round(1000 * unixepoch(?1, 'subsec')) AS INTEGER)";
        let ms = self.connection().query_row(sql, [text], |row| row.get(0));
        let ms: Option<i64> = ms.map_err(|error| self.error(&error, ""))?;
        let ns = ms.map(|ms| ms.saturating_mul(1_000_000));
        let wrong = || {
            QueryError::Wrong(format!(
                "'{text}' is no time: write a day or a moment in UTC, such as 2026-11-26 or 2026-11-26T02:24:40.250"
            ))
        };
        ns.map(Some).ok_or_else(wrong)
    }
}

/// A recording's row.
struct Recording {
    id: i64,
    clock_offset_ns: Option<i64>,
    /// First and last sample or switch, where there is any.
    span: Option<(i64, i64)>,
    /// Without samples.
    profile: Profile,
}

fn text(row: &Row<'_>, column: &str) -> rusqlite::Result<OutsideText> {
    Ok(row.get::<_, Option<String>>(column)?.unwrap_or_default().into())
}

fn number(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0).max(0) as u64)
}

fn recordings(connection: &Connection, selection: &Selection) -> rusqlite::Result<Vec<Recording>> {
    let sql = "SELECT * FROM recording WHERE ?1 IS NULL OR host = ?1 ORDER BY start_ns, id";
    let recording = |row: &Row<'_>| {
        let mut profile = Profile::default();
        let info = &mut profile.recording;
        info.path = text(row, "path")?;
        info.hostname = text(row, "host")?;
        info.os_release = text(row, "os_release")?;
        info.version = text(row, "version")?;
        info.arch = text(row, "arch")?;
        info.cpu_desc = text(row, "cpu_desc")?;
        info.size_bytes = number(row, "size_bytes")?;
        profile.losses.lost_records = number(row, "lost_records")?;
        profile.losses.lost_samples = number(row, "lost_samples")?;
        profile.losses.truncated_bytes = number(row, "truncated_bytes")?;
        let span = row.get::<_, Option<i64>>("first_ts")?.zip(row.get("last_ts")?);
        Ok(Recording {
            id: row.get("id")?,
            clock_offset_ns: row.get("clock_offset_ns")?,
            span,
            profile,
        })
    };
    connection.prepare(sql)?.query_map([&selection.host], recording)?.collect()
}

/// From one moment up to before another one.
#[derive(Clone, Copy)]
struct Range {
    from: Option<i64>,
    to: Option<i64>,
}

impl Range {
    /// The same by the clock of a recording. `None` where that is not known, and needed.
    fn by_clock(self, offset_ns: Option<i64>) -> Option<Range> {
        if self.from.is_none() && self.to.is_none() {
            return Some(self);
        }
        let offset_ns = offset_ns?;
        let of = |time: Option<i64>| time.map(|time| time.saturating_sub(offset_ns));
        Some(Range { from: of(self.from), to: of(self.to) })
    }

    fn has(self, ts: i64) -> bool {
        self.from.is_none_or(|from| from <= ts) && self.to.is_none_or(|to| ts < to)
    }

    /// The part of a recording in it; `None` where they share nothing.
    fn part_of(self, (first, last): (i64, i64)) -> Option<TimeRange> {
        let from = self.from.map_or(first, |from| from.max(first));
        let to = self.to.map_or(last, |to| last.min(to.saturating_sub(1)));
        let time = |ts: i64| TimestampNs(ts.max(0) as u64);
        (from < to).then(|| TimeRange { from: time(from), to: time(to) })
    }
}

/// Reads one recording.
struct Reader<'s> {
    connection: &'s Connection,
    id: i64,
    clock: Range,
    selection: &'s Selection,
}

/// A sample of the selection.
struct Sample<'r> {
    ts: i64,
    event: &'r str,
    comm: &'r str,
    weight: u64,
    callsite: Option<i64>,
    process: Option<i64>,
}

impl Reader<'_> {
    /// `None` where no sample is selected.
    fn profile(&self, recording: Recording) -> rusqlite::Result<Option<Profile>> {
        let Recording { mut profile, .. } = recording;
        if !self.has_build()? {
            return Ok(None);
        }
        let mut places = self.places(&mut profile)?;
        let processes = self.processes_of_build(&places)?;
        let cgroups = self.cgroups()?;
        let mut span: Option<(i64, i64)> = None;
        let is_selected = |sample: &Sample<'_>| {
            let process = |of: &HashSet<i64>| sample.process.is_some_and(|id| of.contains(&id));
            self.clock.has(sample.ts) && processes.as_ref().is_none_or(process)
        };
        self.scan(&cgroups, &mut |sample| {
            if is_selected(sample) {
                let (first, last) = span.unwrap_or((sample.ts, sample.ts));
                span = Some((first.min(sample.ts), last.max(sample.ts)));
            }
        })?;
        let Some((first, last)) = span else { return Ok(None) };
        let shift = shift(first.max(0) as u64, last.max(0) as u64);
        let mut sums = Sums::default();
        self.scan(&cgroups, &mut |sample| {
            if is_selected(sample) {
                let node = sample.callsite.and_then(|id| places.nodes.get(&id).copied());
                let node = node.unwrap_or_else(|| places.unknown(&mut profile));
                sums.add(sample, node, shift);
            }
        })?;
        let info = &mut profile.recording;
        info.first_sample = Some(TimestampNs(first.max(0) as u64));
        info.last_sample = Some(TimestampNs(last.max(0) as u64));
        sums.finish(&mut profile, shift);
        Ok(Some(profile))
    }

    fn places(&self, profile: &mut Profile) -> rusqlite::Result<Places> {
        let build = self.selection.build.as_deref();
        PlaceReader { connection: self.connection, id: self.id, build }.read(profile)
    }

    /// Whether the recording has the selected build at all.
    fn has_build(&self) -> rusqlite::Result<bool> {
        let Some(build) = &self.selection.build else { return Ok(true) };
        let sql = "SELECT 1 FROM mapping WHERE recording_id = ?1 AND substr(build_id, 1, length(?2)) = ?2 LIMIT 1";
        let found = self.connection.query_row(sql, params![self.id, build], |_| Ok(()));
        Ok(found.optional()?.is_some())
    }

    /// Processes that have a sample with code of the selected build.
    fn processes_of_build(&self, places: &Places) -> rusqlite::Result<Option<HashSet<i64>>> {
        if self.selection.build.is_none() {
            return Ok(None);
        }
        let mut found = HashSet::new();
        self.scan(&None, &mut |sample| {
            let node = sample.callsite.and_then(|id| places.nodes.get(&id));
            if node.is_some_and(|node| places.of_build.contains(node)) {
                found.extend(sample.process);
            }
        })?;
        Ok(Some(found))
    }

    /// The selected cgroups; `None` where cgroups do not matter.
    fn cgroups(&self) -> rusqlite::Result<Option<HashSet<i64>>> {
        let Selection { unit, pod, container, .. } = self.selection;
        if unit.is_none() && pod.is_none() && container.is_none() {
            return Ok(None);
        }
        let sql = "SELECT id FROM cgroup WHERE recording_id = ?1 AND (?2 IS NULL OR unit = ?2)
                   AND (?3 IS NULL OR pod = ?3) AND (?4 IS NULL OR substr(container, 1, length(?4)) = ?4)";
        let mut statement = self.connection.prepare(sql)?;
        let ids = statement.query_map(params![self.id, unit, pod, container], |row| row.get(0))?;
        ids.collect::<rusqlite::Result<_>>().map(Some)
    }

    /// Gives all samples in these cgroups.
    fn scan(
        &self,
        cgroups: &Option<HashSet<i64>>,
        take: &mut dyn FnMut(&Sample<'_>),
    ) -> rusqlite::Result<()> {
        let sql = "SELECT ts, event, comm, weight, callsite_id, upid, cgroup_id FROM sample WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let cgroup: Option<i64> = row.get(6)?;
            let is_wanted = |of: &HashSet<i64>| cgroup.is_some_and(|id| of.contains(&id));
            if cgroups.as_ref().is_some_and(|of| !is_wanted(of)) {
                continue;
            }
            take(&Sample {
                ts: row.get(0)?,
                event: row.get_ref(1)?.as_str_or_null()?.unwrap_or_default(),
                comm: row.get_ref(2)?.as_str_or_null()?.unwrap_or_default(),
                weight: row.get::<_, i64>(3)?.max(0) as u64,
                callsite: row.get(4)?,
                process: row.get(5)?,
            });
        }
        Ok(())
    }
}
