//! Threads that are on no CPU at a moment, with their stacks (`bpf/blocked.bpf.c`).

use std::fmt;
use std::io::Read;
use std::os::fd::AsFd;

use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject};
use whit_sys::{Errno, privilege};

use super::program::Program;
use super::{FRAMES_MAX, PROCESSES_MAX, StackOptions, StopReason};
use crate::error::BpfError;
use crate::loading::{self, NEEDED, refused};
use crate::messages;
use crate::packed_object::{PackedObject, packed_object};

pub(crate) const OBJECT: PackedObject = packed_object!("blocked");
/// Threads of one reading that a recording has, at most; others are counted.
pub const BLOCKED_THREADS_MAX: usize = PROCESSES_MAX;
/// Bytes of `struct blocked_record`.
const RECORD_BYTES: usize = 48;
/// Where the words begin in `settings`.
const WORDS_AT: usize = 8;
const READ_THREADS: &str = "read the stacks of blocked threads";

/// A thread that is on no CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockedThread {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// How often the thread has left a CPU in its life, by the kernel's counts.
    pub switches: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// As `prev_state` of `sched:sched_switch` has it: zero if the thread is runnable.
    pub state: u32,
    /// Where it ran last.
    pub cpu: u32,
    /// Why the walk of the user stack ended; `None` if there was none.
    pub reason: Option<StopReason>,
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<u64>,
    /// Addresses in user mode, innermost first.
    pub user: Vec<u64>,
}

/// One reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// In the order of the kernel's iterator.
    pub threads: Vec<BlockedThread>,
    /// Threads beyond the number that is read.
    pub left_out: u64,
    /// Threads that ran while their stacks were read.
    pub ran: u64,
}

/// The loaded iterator.
pub struct BlockedThreads {
    link: Link,
    object: Object,
}

impl fmt::Debug for BlockedThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockedThreads").finish_non_exhaustive()
    }
}

impl BlockedThreads {
    pub(super) fn load(
        program: &Program,
        options: &StackOptions,
        threads_max: usize,
    ) -> Result<BlockedThreads, BpfError> {
        messages::listen();
        let bytes = OBJECT.unpacked();
        let load = || {
            let mut open = ObjectBuilder::default().open_memory(&bytes)?;
            program.share_maps(&mut open)?;
            set(&mut open, options, threads_max);
            let _in_force = privilege::raise(&NEEDED);
            open.load()
        };
        let object = loading::load("load the BPF program that unwinds blocked threads", load)?;
        let link = {
            let mut programs = object.progs_mut();
            let program = programs.find(|program| program.name() == "blocked");
            let program = program.ok_or(BpfError::Object { part: "blocked" })?;
            let _in_force = privilege::raise(&NEEDED);
            program.attach().map_err(refused(READ_THREADS))?
        };
        Ok(BlockedThreads { link, object })
    }

    /// Instructions that the verifier has looked at; `None` where the kernel does not tell.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to tell.
    pub fn verified_instructions(&self) -> Result<Option<u32>, Errno> {
        let program = self.object.progs_mut().find(|program| program.name() == "blocked");
        let program = program.ok_or(Errno::BADF)?;
        whit_sys::bpf::verified_instructions(program.as_fd())
    }

    /// Reads the stacks of all recorded threads that are on no CPU now.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn read(&mut self) -> Result<Blocked, BpfError> {
        let mut maps = self.object.maps();
        let scratch = maps.find(|map| map.name() == "blocked_scratch");
        let scratch = scratch.ok_or(BpfError::Object { part: "blocked_scratch" })?;
        let zeros = vec![0; scratch.value_size() as usize];
        let key = 0u32.to_ne_bytes();
        let _in_force = privilege::raise(&NEEDED);
        scratch.update(&key, &zeros, MapFlags::ANY).map_err(refused(READ_THREADS))?;
        let mut bytes = Vec::new();
        let mut threads = Iter::new(&self.link).map_err(refused(READ_THREADS))?;
        let read = threads.read_to_end(&mut bytes);
        read.map_err(|error| refused(READ_THREADS)(error.into()))?;
        let counts = scratch.lookup(&key, MapFlags::ANY).map_err(refused(READ_THREADS))?;
        let counts = counts.unwrap_or_default();
        let count = |at| counts.as_chunks::<8>().0.get(at).map_or(0, |c| u64::from_ne_bytes(*c));
        Ok(Blocked { threads: threads_of(&bytes), left_out: count(1), ran: count(2) })
    }
}

/// Writes `settings`.
fn set(object: &mut OpenObject, options: &StackOptions, threads_max: usize) {
    for mut map in object.maps_mut() {
        if !map.name().to_string_lossy().ends_with(".rodata") {
            continue;
        }
        let Some(value) = map.initial_value_mut() else { continue };
        let StackOptions { is_system_wide, kernel_stacks, user_stacks, by_thread, .. } = *options;
        let switches = [is_system_wide, kernel_stacks, user_stacks, by_thread].map(u8::from);
        let bytes = switches.into_iter().chain([options.chosen.bits()]);
        value.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        let namespace = options.pid_namespace.unwrap_or(0);
        let words = [namespace, threads_max as u32, options.chosen.subsystem()];
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
        value.iter_mut().skip(WORDS_AT).zip(bytes).for_each(|(to, byte)| *to = byte);
    }
}

/// Decodes what the program wrote, as far as it is whole.
fn threads_of(mut bytes: &[u8]) -> Vec<BlockedThread> {
    let mut threads = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<RECORD_BYTES>() {
        let long = |at: usize| head[at..].first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
        let word = |at: usize| head[at..].first_chunk().map_or(0, |b| u32::from_ne_bytes(*b));
        let (kernel, user) = (word(32) as usize, word(36) as usize);
        if kernel > FRAMES_MAX || user > FRAMES_MAX || rest.len() < (kernel + user) * 8 {
            break;
        }
        let (stacks, next) = rest.split_at((kernel + user) * 8);
        let mut frames = stacks.as_chunks::<8>().0.iter().map(|frame| u64::from_ne_bytes(*frame));
        threads.push(BlockedThread {
            time_ns: long(0),
            switches: long(8),
            pid: word(16),
            tid: word(20),
            state: word(24),
            cpu: word(40),
            reason: (word(28) as u8 != 0)
                .then(|| StopReason::from_number(word(28) as u8))
                .flatten(),
            kernel: frames.by_ref().take(kernel).collect(),
            user: frames.collect(),
        });
        bytes = next;
    }
    threads
}
