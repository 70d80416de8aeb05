//! The unit of switching and reading by one system call: a lone event, or a leader with its
//! members.

use whit_sys::{Errno, PerfEventFd};

use crate::reading::Reading;

/// Count, time enabled, time running.
pub(super) const SINGLE_WORDS: usize = 3;
/// Before the counts of a group: their number, time enabled, time running.
const GROUP_HEADER_WORDS: usize = 3;

/// One open event.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    pub(crate) fd: PerfEventFd,
    /// Where its reading goes; `None` for one that only leads.
    pub(crate) slot: Option<usize>,
}

/// Events of one set in one place, the leader first.
#[derive(Debug)]
pub(crate) struct OpenGroup {
    pub(crate) events: Vec<OpenEvent>,
    /// Whether the leader's read gives the counts of all (`PERF_FORMAT_GROUP`).
    pub(crate) reads_group: bool,
    /// The kernel reads the group no longer.
    pub(super) is_broken: bool,
}

/// How reading a unit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Done,
    /// The group cannot be read as a whole from here on; the leader of this slot not at all.
    Broken(Option<usize>),
}

impl OpenGroup {
    pub(crate) fn new(reads_group: bool) -> OpenGroup {
        OpenGroup { events: Vec::new(), reads_group, is_broken: false }
    }

    fn leader(&self) -> Option<&PerfEventFd> {
        self.events.first().map(|event| &event.fd)
    }

    /// Switches the leader, which its members follow.
    pub(super) fn switch(&self, on: bool) -> Result<(), Errno> {
        match self.leader() {
            Some(leader) if on => leader.enable(),
            Some(leader) => leader.disable(),
            None => Ok(()),
        }
    }

    /// Words that a read gives at the most.
    pub(super) fn words(&self) -> usize {
        match self.reads_group {
            true => GROUP_HEADER_WORDS + self.events.len(),
            false => SINGLE_WORDS,
        }
    }

    /// Reads all events into their slots. `words` has at least [`OpenGroup::words`] entries.
    pub(super) fn read(
        &mut self,
        words: &mut [u64],
        readings: &mut [Reading],
    ) -> Result<ReadOutcome, Errno> {
        if !self.reads_group || self.is_broken {
            return self.read_each(words, readings).map(|()| ReadOutcome::Done);
        }
        let Some(leader) = self.leader() else { return Ok(ReadOutcome::Done) };
        let size = match leader.read(&mut words[..self.words()]) {
            Ok(size) => size,
            // Since Linux 6.6 (commit 32671e3799ca): children inherited other groups than ours.
            Err(Errno::CHILD) => return self.give_up_group(words, readings),
            Err(errno) => return Err(errno),
        };
        if size == 0 {
            // A pinned group that found no counters.
            return Ok(ReadOutcome::Done);
        }
        let counts = words.get(GROUP_HEADER_WORDS..size).unwrap_or_default();
        if counts.len() != self.events.len() {
            return self.give_up_group(words, readings);
        }
        let (enabled_ns, running_ns) = (words[1], words[2]);
        for (event, &value) in self.events.iter().zip(counts) {
            if let Some(slot) = event.slot {
                readings[slot] = Reading { value, enabled_ns, running_ns };
            }
        }
        Ok(ReadOutcome::Done)
    }

    fn give_up_group(
        &mut self,
        words: &mut [u64],
        readings: &mut [Reading],
    ) -> Result<ReadOutcome, Errno> {
        self.is_broken = true;
        self.read_each(words, readings)?;
        Ok(ReadOutcome::Broken(self.events.first().and_then(|event| event.slot)))
    }

    /// The count of each event by itself, in a group or not: the kernel breaks groups up when their
    /// CPU goes offline. `None` for one that cannot be read.
    pub(crate) fn read_apart(&self) -> Vec<Option<Reading>> {
        let mut words = vec![0; self.words()];
        let mut read = |(number, event): (usize, &OpenEvent)| {
            let size = event.fd.read(&mut words).ok()?;
            let (value, times) = match number == 0 && self.reads_group {
                true if size > GROUP_HEADER_WORDS => (words[GROUP_HEADER_WORDS], &words[1..3]),
                false if size >= SINGLE_WORDS => (words[0], &words[1..3]),
                _ => return None,
            };
            Some(Reading { value, enabled_ns: times[0], running_ns: times[1] })
        };
        self.events.iter().enumerate().map(&mut read).collect()
    }

    /// Each by itself, but the leader of a group, which gives the whole group or nothing.
    fn read_each(&self, words: &mut [u64], readings: &mut [Reading]) -> Result<(), Errno> {
        for event in self.events.iter().skip(usize::from(self.reads_group)) {
            let Some(slot) = event.slot else { continue };
            // An event in error (a pinned one that found no counter) reads as the end of file.
            if event.fd.read(&mut words[..SINGLE_WORDS])? == SINGLE_WORDS {
                let (value, enabled_ns, running_ns) = (words[0], words[1], words[2]);
                readings[slot] = Reading { value, enabled_ns, running_ns };
            }
        }
        Ok(())
    }
}
