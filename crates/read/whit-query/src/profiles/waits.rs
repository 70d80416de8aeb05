//! The waits and the CPU time of a recording, in blocks of time.

use super::cpu_time::CpuTime;
use super::places::Places;
use super::threads::Threads;
use super::wait_times::{Times, wait};
use super::{Reader, Recording};
use rusqlite::{OptionalExtension, Result, Row, params};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use whit_perfdata::ledger::Ledger;
use whit_perfdata::wait_object::Brings;
use whit_profile::model::{EventId, EventInfo, HeaderEvent, NodeId, Profile, ThreadId};
use whit_profile::switches::{
    Futex, NamedObject, Sources, SwitchOptions, SwitchRow, SwitchSums, Switches, WaitClass,
};
use whit_profile::time_filter::TimeRanges;

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

/// Sums of the rows of a recording.
struct Rows {
    places: Places,
    threads: Threads,
    times: Times,
    objects: Objects,
    sums: BTreeMap<(Key, u16), SwitchSums>,
}

impl Rows {
    fn node(&self, callsite: Option<i64>) -> NodeId {
        let node = callsite.and_then(|id| self.places.nodes.get(&id).copied());
        node.unwrap_or(NodeId::NONE)
    }

    fn enter_cpu_time(&mut self, time: &CpuTime) {
        let Some(thread) = self.threads.number(time.thread) else { return };
        let node = self.node(time.callsite);
        let key = Key { thread, node, object: None, brings: Brings::Unknown };
        let (cpu_ns, lossy_cpu_ns) = if time.is_certain { (time.ns, 0) } else { (0, time.ns) };
        let sums = SwitchSums { cpu_ns, lossy_cpu_ns, ..SwitchSums::default() };
        self.sums.entry((key, self.times.block(time.at))).or_default().add(&sums);
    }
}

/// Parts of a dataset are compared if they have CPU time by the same event.
fn enter_event(profile: &mut Profile, name: &str) {
    profile.events = vec![EventInfo { name: name.into(), ..EventInfo::default() }];
    let (ids, attributes) = (Vec::new(), Vec::new());
    profile.recording.header.events = vec![HeaderEvent { name: name.into(), ids, attributes }];
}

impl Reader<'_> {
    /// `None` where no wait is selected.
    pub(super) fn waits(&self, recording: Recording) -> Result<Option<(Profile, Switches)>> {
        let Recording { mut profile, span, .. } = recording;
        if !self.has_build()? {
            return Ok(None);
        }
        let mut sources = Sources { records: true, ..Sources::default() };
        profile.ledger = Some(self.ledger()?);
        let cpu_time_event = self.cpu_time_event()?;
        if let Some(name) = &cpu_time_event {
            enter_event(&mut profile, name);
            sources.samples = Some(EventId(0));
        }
        let span = self
            .span_of_waits()?
            .zip(span)
            .map(|(waits, of)| (waits.0.min(of.0), waits.1.max(of.1)));
        let Some(span) = span.and_then(|span| self.clock.part_of(span)) else { return Ok(None) };
        let places = self.places(&mut profile)?;
        let threads = self.threads(&mut profile, &places)?;
        let blocks = TimeRanges::new([span]).cut_into(SwitchOptions::BLOCKS);
        let times = Times { blocks, losses: self.losses()?, woken: self.wake_ups()? };
        let mut rows =
            Rows { places, threads, times, objects: Objects::default(), sums: BTreeMap::new() };
        self.enter_waits(&mut rows, &mut sources)?;
        if rows.sums.is_empty() {
            return Ok(None);
        }
        self.cpu_time(cpu_time_event.as_deref(), &mut |time| rows.enter_cpu_time(&time))?;
        let row = |((key, block), sums): ((Key, u16), SwitchSums)| SwitchRow {
            thread: ThreadId(key.thread),
            comm: profile.threads[key.thread as usize].comm,
            node: key.node,
            object: key.object,
            brings: key.brings,
            block,
            sums,
        };
        let block_ns = rows.times.blocks.iter().map(|block| block.to.since(block.from));
        let switches = Switches {
            sources,
            block_ns: block_ns.collect(),
            rows: rows.sums.into_iter().map(row).collect(),
            objects: rows.objects.names,
            cgroups: rows.threads.cgroups,
            span: Some((span.from, span.to)),
            recorded_ns: span.to.since(span.from),
            ..Switches::default()
        };
        Ok(Some((profile, switches)))
    }

    fn enter_waits(&self, of: &mut Rows, sources: &mut Sources) -> Result<()> {
        let sql = "SELECT ts, dur, utid, kind, callsite_id, runnable_dur, waker_utid, class, object_kind, object, futex,
                   certain, is_open, begun_before FROM wait WHERE recording_id = ?1";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query(params![self.id])?;
        while let Some(row) = rows.next()? {
            let thread: i64 = row.get("utid")?;
            let Some(number) = of.threads.number(thread) else { continue };
            let callsite: Option<i64> = row.get("callsite_id")?;
            sources.stacks |= callsite.is_some();
            sources.wakeups |= row.get::<_, Option<i64>>("waker_utid")?.is_some();
            let kind: Option<String> = row.get("object_kind")?;
            let object = match kind.zip(row.get("object")?) {
                Some((kind, text)) => Some(of.objects.of(kind, text, row.get("futex")?)),
                None => None,
            };
            let brings = brings(row.get_ref("class")?.as_str_or_null()?);
            let key = Key { thread: number, node: of.node(callsite), object, brings };
            let wait = wait(row, of.times.woken.get(&thread))?;
            for (block, part) in of.times.parts(&wait) {
                of.sums.entry((key, block)).or_default().add(&part);
            }
        }
        Ok(())
    }

    /// The figure that tells the engine.
    fn ledger(&self) -> Result<Ledger> {
        let sql = "SELECT value FROM ledger WHERE recording_id = ?1 AND key = 'stacks.walks'";
        let walks: Option<Option<i64>> =
            self.connection.query_row(sql, [self.id], |row| row.get(0)).optional()?;
        let mut ledger = Ledger::default();
        ledger.stacks.walks = walks.flatten().unwrap_or(0).max(0) as u64;
        Ok(ledger)
    }

    /// From the first begin to the last end of a wait: an open one begins or ends with the recording.
    fn span_of_waits(&self) -> Result<Option<(i64, i64)>> {
        let sql = "SELECT MIN(ts), MAX(ts + COALESCE(dur, 0)) FROM wait WHERE recording_id = ?1";
        self.connection
            .query_row(sql, [self.id], |row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?)))
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
