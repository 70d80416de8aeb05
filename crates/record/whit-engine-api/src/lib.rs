//! The seam between the recorder and its engines.
//!
//! An [`Engine`] makes the call chains of a recording, and the records of switches and wake-ups. The recorder opens
//! events, maps and drains rings, and writes files. It plans by the engine's [`Capabilities`], and asks it at four moments:
//!
//! 1. *Configure*: the engine adapts the [`event_plan::EventPlan`], changes attributes, and names events of its own.
//! 2. *Attach*: it connects with the open events, and each [`Adjustment`] switches it with them.
//! 3. *Decode*: its [`RecordDecoder`] turns the bytes of one ring into ordinary records, a block at a time.
//! 4. *Summarise*: it reports its losses and its work, in an [`OutputEnd`].
//!
//! The types that both sides need are here: events as they are planned, configured and opened, rings, and the bytes of
//! rings as records. The recorder depends on engines, and engines on this crate alone.
//!
//! A default method is the answer of an engine that leaves the matter to the kernel.
//!
//! ```
//! use whit_engine_api::{DecodeCounts, Engine};
//!
//! /// perf's way: the kernel does everything.
//! #[derive(Debug)]
//! struct Ring;
//! impl Engine for Ring {}
//!
//! let mut ring = Ring;
//! assert!(!ring.capabilities().needs_cpus);
//! assert!(ring.end_output(&[], Some(DecodeCounts::default())).summary.is_none());
//! ```
#![forbid(unsafe_code)]

pub mod branch;
pub mod error;
pub mod event;
pub mod event_plan;
pub mod lost_counts;
pub mod open_event;
pub mod ring_slices;
pub mod rings;
pub mod settings;
pub mod time_layout;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use whit_host::roots::Roots;
use whit_perfdata::blocked::Edge;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::ledger::Ledger;
use whit_types::{Pid, StackEnd, Tid, TimestampNs};

use error::EngineError;
use event_plan::EventPlan;
use open_event::{ConfiguredEvent, OpenEvent};
use ring_slices::RingSlices;
use rings::MappedRing;
use settings::RingSize;

/// Makes call chains, and the records of switches and wake-ups.
pub trait Engine: fmt::Debug {
    /// Facts for the plan of the recorder.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// *Configure*: changes the plan to the records that this engine needs. The size of rings is the user's wish.
    fn adapt(&self, _plan: &mut EventPlan, _ring_size: &mut RingSize) {}

    /// Changes events that are about to be opened, and appends the one that the engine writes by, which shares the rings
    /// of the others. Gives the event that the engine reads by itself; `inherit`: children of its tasks have it, too.
    fn configure(
        &self,
        _plan: &EventPlan,
        _inherit: bool,
        _events: &mut Vec<ConfiguredEvent>,
    ) -> Option<PrivateEvent> {
        None
    }

    /// Changes the descriptions of the events in the header, and adds those of records that the engine makes up.
    fn describe(&self, _descriptions: &mut Vec<EventDesc>, _events: &[OpenEvent]) {}

    /// *Attach*: connects with open events, before anything is recorded.
    fn attach(&mut self, _to: Attachment<'_>) -> Result<(), EngineError> {
        Ok(())
    }

    /// Does more or less from here on.
    fn adjust(&mut self, _adjustment: Adjustment) -> Result<(), EngineError> {
        Ok(())
    }

    /// *Decode*: makes ordinary records of a ring's bytes; `None` where the kernel wrote these.
    fn decoder(&self, _events: &[OpenEvent], _ring: &MappedRing) -> Option<Box<dyn RecordDecoder>> {
        None
    }

    /// Records of threads that write none themselves, when recording begins or ends; or why there are none, which is said
    /// once.
    fn edge_records(&mut self, _edge: Edge, _events: &[OpenEvent]) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    /// *Summarise*: CPU time of the engine's programs; `None` where it has none.
    fn program_times(&self) -> Option<ProgramTimes> {
        None
    }

    /// Completes an output. `decoded`, the work of all decoders, is there for the last one alone: the engine ends.
    fn end_output(&mut self, _events: &[OpenEvent], _decoded: Option<DecodeCounts>) -> OutputEnd {
        OutputEnd::default()
    }
}

/// Facts for the plan of the recorder. The default is an engine that leaves everything to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Switches are written packed.
    pub packs_switches: bool,
    /// Events are opened on whole CPUs for any target.
    pub needs_cpus: bool,
    /// The engine itself leaves out threads that are not chosen by name.
    pub chooses_targets: bool,
    /// The period of an event continues from thread to thread, so that short threads have their share of samples.
    pub shares_periods: bool,
    /// The depth of stacks can be changed while it records.
    pub can_cut_stacks: bool,
    /// How waits can be recorded: first as it was asked for, then with less and less cost. Empty where none are asked for.
    pub wait_modes: Vec<WaitMode>,
}

/// An event that the engine reads by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateEvent {
    /// With its attributes.
    pub event: ConfiguredEvent,
    /// Pages of each of its rings.
    pub pages: usize,
}

/// A change of the work of an engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjustment {
    /// It records.
    On,
    /// It records nothing. This is never refused.
    Off,
    /// It records requests by sockets or not, while it is on. The latter is never refused.
    Requests(bool),
    /// It records waits in one of the ways that it can, while it is on.
    Waits(WaitMode),
    /// Stacks have one part in so many of their depth.
    StackDivisor(u32),
    /// Its threads take no more than this part of one CPU, above 0, for new processes and their code. This is never
    /// refused.
    ThreadShare(f64),
}

/// The last part of an output by an engine.
#[derive(Debug, Default)]
pub struct OutputEnd {
    /// Records that decoders would have made later: names of functions that call chains have frames of. For the last
    /// output, everything that was met is read first.
    pub records: Vec<u8>,
    /// Processes whose interpreters are walked, so that their functions have names.
    pub interpreted: BTreeSet<Pid>,
    /// The losses so far.
    pub losses: EngineLosses,
    /// The work of the engine, for the last output; `None` if there is nothing to report.
    pub summary: Option<Box<dyn EngineSummary>>,
}

/// Lost records that the kernel's counts of the events do not show, or show too many of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineLosses {
    /// By CPU, lost records that are in no recording.
    pub private: BTreeMap<u32, u64>,
    /// Records that were lost outside of the ring of a CPU, by the number of the CPU.
    pub outside_rings: Vec<u64>,
}

/// The open events of a recording, and whom they record.
#[derive(Debug)]
pub struct Attachment<'a> {
    /// All events but the engine's private one.
    pub events: &'a [OpenEvent],
    /// The private event, and its rings.
    pub private: Option<(Vec<OpenEvent>, Vec<MappedRing>)>,
    /// The recorded threads, where they have names.
    pub threads: &'a [Tid],
    /// The recorded processes that exist.
    pub processes: &'a [Pid],
    /// `/proc` and `/sys`.
    pub roots: &'a Roots,
}

/// Makes ordinary records of the bytes of one ring. Each call is for a block of records.
pub trait RecordDecoder: fmt::Debug + Send {
    /// Bytes that wait beside the ring.
    fn available_bytes(&self) -> usize;

    /// The next records go into another stream.
    fn start_stream(&mut self);

    /// To be called before a ring is read: bytes that come beside it later are left for the next time.
    fn look(&mut self);

    /// Appends to `out` the records of `ring_slices`, up to the first that is not whole or that ends
    /// behind `enough_bytes`. Gives the bytes that were taken.
    fn decode(
        &mut self,
        ring_slices: RingSlices<'_>,
        enough_bytes: usize,
        out: &mut Vec<u8>,
    ) -> usize;

    /// To be called when a ring was read: appends the records that are left beside it, until these are
    /// `enough_bytes`. Whether there are more.
    fn rest(&mut self, enough_bytes: usize, out: &mut Vec<u8>) -> bool;

    /// The work so far.
    fn counts(&self) -> DecodeCounts;

    /// Time of the ring's last record; 0 before the first.
    fn ring_time(&self) -> TimestampNs;

    /// Time of the last record beside the ring, where any can be.
    fn last_outside(&self) -> Option<TimestampNs>;
}

/// How waits are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Every context switch.
    Exact,
    /// Samples, in proportion to the duration of waits.
    Sampled,
    /// No wait is recorded.
    None,
}

/// Runs of a program while they were timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTime {
    /// Their number.
    pub runs: u64,
    /// Their time.
    pub time_ns: u64,
}

/// CPU time of programs so far. The kernel times them for a part of the time only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTimes {
    /// For how long they were timed.
    pub timed_ns: u64,
    /// The program of samples.
    pub samples: ProgramTime,
    /// The program of context switches, with the time of that of wake-ups.
    pub switches: ProgramTime,
    /// The programs of samples of waits.
    pub waits: ProgramTime,
    /// The time of all others.
    pub other_ns: u64,
}

/// An engine's work, for the user: one line, and the details.
pub trait EngineSummary: fmt::Debug + fmt::Display {
    /// Enters it into the ledger.
    fn enter(&self, ledger: &mut Ledger);

    /// Everything that was counted, in one line.
    fn details(&self) -> String;
}

/// Records that could not be completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeCounts {
    /// Samples and switches that came out.
    pub records: u64,
    /// Records that define a stack.
    pub stacks: u64,
    /// Records that name a stack without its definition.
    pub unknown_stacks: u64,
    /// Records of the bpf-output event that nobody can read.
    pub unreadable: u64,
    /// Samples of tracepoints whose stacks were never defined.
    pub without_stacks: u64,
    /// Switches, and of these, preemptions.
    pub switches: u64,
    /// The thread could have gone on.
    pub preemptions: u64,
    /// Wake-ups.
    pub wakes: u64,
    /// Records that channels had no room for.
    pub lost_switches: u64,
    /// User stacks of these records, by the number of their end.
    pub user_stacks: [u64; StackEnd::ALL.len()],
}

impl std::ops::AddAssign for DecodeCounts {
    fn add_assign(&mut self, other: DecodeCounts) {
        self.records += other.records;
        self.stacks += other.stacks;
        self.unknown_stacks += other.unknown_stacks;
        self.unreadable += other.unreadable;
        self.without_stacks += other.without_stacks;
        self.switches += other.switches;
        self.preemptions += other.preemptions;
        self.wakes += other.wakes;
        self.lost_switches += other.lost_switches;
        self.user_stacks.iter_mut().zip(other.user_stacks).for_each(|(sum, more)| *sum += more);
    }
}
