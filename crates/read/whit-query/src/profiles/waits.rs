//! The voluntary waits of a recording, in blocks of time.

use super::{Reader, Recording};
use rusqlite::{Result, Row, params};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use whit_perfdata::wait_object::Brings;
use whit_profile::model::{CommId, NodeId, Profile, ThreadId, ThreadInfo};
use whit_profile::switches::{
    Futex, NamedObject, Sources, SwitchOptions, SwitchRow, SwitchSums, Switches, WaitClass,
};
use whit_profile::time_filter::{TimeRange, TimeRanges};
use whit_types::{Pid, Tid, TimestampNs};

/// The values of `wait.object_kind`.
const OBJECT_KINDS: [&str; 12] = [
    "futex",
    "file",
    "pipe",
    "anonymous-file",
    "inet-socket",
    "unix-socket",
    "socket",
    "files",
    "time",
    "child",
    "signal",
    "ipc",
];

/// A voluntary wait.
struct Wait {
    from: TimestampNs,
    /// Absent where the recording has no end of it.
    to: Option<TimestampNs>,
    woken: Option<TimestampNs>,
    is_certain: bool,
    /// The switch, or the end, is not in the recording.
    is_open: bool,
    begun_before: bool,
}

/// Rows of a block differ by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    thread: u32,
    node: NodeId,
    object: Option<u32>,
    brings: Brings,
}

/// Objects in the order in which they came.
#[derive(Default)]
struct Objects {
    numbers: HashMap<(String, String, Option<i64>), u32>,
    names: Vec<NamedObject>,
}

impl Objects {
    fn of(&mut self, kind: String, text: String, futex: Option<i64>) -> u32 {
        let next = self.names.len() as u32;
        *self.numbers.entry((kind, text, futex)).or_insert_with_key(|(kind, text, futex)| {
            let kind = OBJECT_KINDS.into_iter().find(|known| known == kind).unwrap_or("unknown");
            let futex = futex.and_then(|address| Futex::parse(address as u64, text));
            let of_text = || NamedObject::Text(kind, Arc::from(text.as_str()));
            self.names.push(futex.map_or_else(of_text, NamedObject::Futex));
            next
        })
    }
}

/// Times of one recording.
struct Times {
    blocks: TimeRanges,
    losses: Vec<(u64, u64)>,
    /// Wake-ups of waits that are not certain, by thread, in order.
    woken: HashMap<i64, Vec<u64>>,
}

impl Reader<'_> {
    /// `None` where no wait is selected.
    pub(super) fn waits(&self, recording: Recording) -> Result<Option<(Profile, Switches)>> {
        let Recording { mut profile, span, .. } = recording;
        if !self.has_build()? {
            return Ok(None);
        }
        let span = self
            .span_of_waits()?
            .zip(span)
            .map(|(waits, of)| (waits.0.min(of.0), waits.1.max(of.1)));
        let Some(span) = span.and_then(|span| self.clock.part_of(span)) else { return Ok(None) };
        let places = self.places(&mut profile)?;
        let threads = self.threads(&mut profile)?;
        let processes = match self.processes_of_build(&places)? {
            Some(of_samples) => Some(self.processes_of_waits(
                of_samples,
                &threads,
                &places.of_build,
                &places.nodes,
            )?),
            None => None,
        };
        let blocks = TimeRanges::new([span]).cut_into(SwitchOptions::BLOCKS);
        let times = Times { blocks, losses: self.losses()?, woken: self.wake_ups()? };
        let mut sources = Sources { records: true, ..Sources::default() };
        let mut objects = Objects::default();
        let mut sums: BTreeMap<(Key, u16), SwitchSums> = BTreeMap::new();
        let sql = "SELECT ts, dur, utid, callsite_id, runnable_dur, waker_utid, class, object_kind, object, futex, certain,
                   is_open, begun_before FROM wait WHERE recording_id = ?1 AND kind = 'sync'";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(params![self.id])?;
        while let Some(row) = rows.next()? {
            let thread: i64 = row.get("utid")?;
            let Some((number, process)) = threads.get(&thread) else { continue };
            if processes.as_ref().is_some_and(|of| !of.contains(process)) {
                continue;
            }
            let callsite: Option<i64> = row.get("callsite_id")?;
            sources.stacks |= callsite.is_some();
            sources.wakeups |= row.get::<_, Option<i64>>("waker_utid")?.is_some();
            let node = callsite.and_then(|id| places.nodes.get(&id).copied());
            let kind: Option<String> = row.get("object_kind")?;
            let object = match kind.zip(row.get("object")?) {
                Some((kind, text)) => Some(objects.of(kind, text, row.get("futex")?)),
                None => None,
            };
            let brings = brings(row.get_ref("class")?.as_str_or_null()?);
            let key = Key { thread: *number, node: node.unwrap_or(NodeId::NONE), object, brings };
            let wait = wait(row, times.woken.get(&thread))?;
            for (block, part) in times.parts(&wait) {
                sums.entry((key, block)).or_default().add(&part);
            }
        }
        if sums.is_empty() {
            return Ok(None);
        }
        let row = |((key, block), sums): ((Key, u16), SwitchSums)| SwitchRow {
            thread: ThreadId(key.thread),
            comm: profile.threads[key.thread as usize].comm,
            node: key.node,
            object: key.object,
            brings: key.brings,
            block,
            sums,
        };
        let block_ns = times.blocks.iter().map(|block| block.to.since(block.from));
        let switches = Switches {
            sources,
            rows: sums.into_iter().map(row).collect(),
            objects: objects.names,
            cgroups: vec![None; profile.threads.len()],
            block_ns: block_ns.collect(),
            span: Some((span.from, span.to)),
            recorded_ns: span.to.since(span.from),
            ..Switches::default()
        };
        Ok(Some((profile, switches)))
    }

    /// From the first begin to the last end of a wait: an open one begins or ends with the recording.
    fn span_of_waits(&self) -> Result<Option<(i64, i64)>> {
        let sql = "SELECT MIN(ts), MAX(ts + COALESCE(dur, 0)) FROM wait WHERE recording_id = ?1";
        self.connection
            .query_row(sql, [self.id], |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?)))
    }

    /// Fills threads, each with its last name. Gives their numbers and processes by the numbers of the tables.
    fn threads(&self, profile: &mut Profile) -> Result<HashMap<i64, (u32, i64)>> {
        let (mut threads, mut comms) = (HashMap::new(), HashMap::new());
        let sql = "SELECT t.utid, t.tid, t.upid, t.name, p.pid FROM thread t JOIN process p USING (recording_id, upid)
                   WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(params![self.id])?;
        while let Some(row) = rows.next()? {
            let name = row.get::<_, Option<String>>(3)?.unwrap_or_default();
            let comm = *comms.entry(name).or_insert_with_key(|name| {
                profile.comms.push(name.as_str().into());
                CommId(profile.comms.len() as u32 - 1)
            });
            threads.insert(row.get(0)?, (profile.threads.len() as u32, row.get(2)?));
            let (pid, tid) = (Pid(row.get(4)?), Tid(row.get(1)?));
            profile.threads.push(ThreadInfo { pid, tid, comm });
        }
        Ok(threads)
    }

    /// Adds the processes that wait in code of the selected build.
    fn processes_of_waits(
        &self,
        mut processes: HashSet<i64>,
        threads: &HashMap<i64, (u32, i64)>,
        of_build: &HashSet<NodeId>,
        nodes: &HashMap<i64, NodeId>,
    ) -> Result<HashSet<i64>> {
        let sql = "SELECT DISTINCT utid, callsite_id FROM wait WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(params![self.id])?;
        while let Some(row) = rows.next()? {
            let node = row.get::<_, Option<i64>>(1)?.and_then(|id| nodes.get(&id));
            let thread: i64 = row.get(0)?;
            if node.is_some_and(|node| of_build.contains(node)) {
                processes.extend(threads.get(&thread).map(|(_, process)| process));
            }
        }
        Ok(processes)
    }

    /// First and last moment of each loss.
    fn losses(&self) -> Result<Vec<(u64, u64)>> {
        let sql = "SELECT ts, dur FROM loss WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let loss = |row: &Row<'_>| {
            let from = row.get::<_, i64>(0)?.max(0) as u64;
            let dur: Option<i64> = row.get(1)?;
            Ok((from, dur.map_or(u64::MAX, |dur| from.saturating_add(dur.max(0) as u64))))
        };
        statement.query_map([self.id], loss)?.collect()
    }

    /// Wake-ups of waits that are not certain: `wait` does not have them.
    fn wake_ups(&self) -> Result<HashMap<i64, Vec<u64>>> {
        let mut found: HashMap<i64, Vec<u64>> = HashMap::new();
        let sql = "SELECT utid, ts FROM thread_state WHERE recording_id = ?1 AND state = 'R' AND certain = 0";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            found.entry(row.get(0)?).or_default().push(row.get::<_, i64>(1)?.max(0) as u64);
        }
        found.values_mut().for_each(|times| times.sort_unstable());
        Ok(found)
    }
}

/// The class of a wait at several files depends on its object.
fn brings(class: Option<&str>) -> Brings {
    let is = |of: WaitClass| class == Some(of.name());
    match () {
        () if is(WaitClass::IdleLoop) => Brings::Work,
        () if is(WaitClass::Peer) => Brings::Answers,
        () => Brings::Unknown,
    }
}

fn wait(row: &Row<'_>, woken: Option<&Vec<u64>>) -> Result<Wait> {
    let flag = |column: &str| -> Result<bool> { Ok(row.get::<_, i64>(column)? != 0) };
    let time = |column: &str| -> Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(|time| time.max(0) as u64))
    };
    let from = time("ts")?.unwrap_or_default();
    let to = time("dur")?.map(|dur| from.saturating_add(dur));
    let is_certain = flag("certain")?;
    let woken = match (to, time("runnable_dur")?) {
        (Some(to), Some(runnable)) => Some(to.saturating_sub(runnable)),
        (Some(to), None) if !is_certain => woken.and_then(|times| {
            let next = times.get(times.partition_point(|time| *time < from))?;
            (*next <= to).then_some(*next)
        }),
        _ => None,
    };
    Ok(Wait {
        from: TimestampNs(from),
        to: to.map(TimestampNs),
        woken: woken.map(TimestampNs),
        is_certain,
        is_open: flag("is_open")?,
        begun_before: flag("begun_before")?,
    })
}

impl Times {
    /// The sums of a wait, by block. It is counted in the block in which it began.
    fn parts(&self, wait: &Wait) -> impl Iterator<Item = (u16, SwitchSums)> {
        let range = TimeRange { from: wait.from, to: wait.to.unwrap_or(wait.from) };
        let first = self.blocks.iter().take_while(|block| block.to < range.from).count();
        let is_lossy = wait.to.is_none()
            || self.losses.iter().any(|(from, to)| *from < range.to.0 && range.from.0 < *to);
        self.blocks.meeting(range).zip(first..).map(move |(block, number)| {
            let (from, to) = (block.from.max(range.from), block.to.min(range.to));
            let (ns, is_begin) = (to.since(from), from == range.from);
            let blocked_ns = wait.woken.map_or(ns, |woken| woken.since(from).min(ns));
            let sync_count = u64::from(is_begin && !wait.begun_before);
            let mut sums = SwitchSums { sync_count, ..SwitchSums::default() };
            let is_bounded = !wait.is_open && !wait.begun_before;
            if wait.is_certain {
                (sums.sync_wait_ns, sums.longest_sync_ns) = (ns, ns);
                if wait.woken.is_some() {
                    sums.woken_count = u64::from(is_begin);
                    (sums.blocked_ns, sums.runnable_ns) = (blocked_ns, ns - blocked_ns);
                }
            } else if !is_bounded && !is_lossy {
                (sums.open_count, sums.open_wait_ns) = (u64::from(is_begin), ns);
                (sums.open_blocked_ns, sums.open_runnable_ns) = (blocked_ns, ns - blocked_ns);
            } else {
                (sums.lossy_count, sums.lossy_wait_ns) = (u64::from(is_begin), ns);
            }
            (number as u16, sums)
        })
    }
}
