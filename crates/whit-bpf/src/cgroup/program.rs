//! `bpf/cgroup_count.bpf.c`, loaded: its maps and programs by name and type.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{
    ErrorKind, Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenMapMut, OpenObject,
    ProgramInput, ProgramMut,
};
use whit_sys::bpf::MappedWords;
use whit_sys::privilege;

use super::How;
use super::counts::Count;
use super::layout::{self, account_bytes, account_words, cpu_bytes};
use super::tree::Tree;
use crate::error::BpfError;
use crate::loading::{self, NEEDED, TEST_RUN_ON_CPU, refused};
use crate::messages;

/// The object, as clang has made it.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cgroup_count.bpf.o"));

/// Calls from CPU to CPU. Older kernels do not show them.
const CALLS: &str = "csd_function_exit";
/// Tasks that are moved to a cgroup, whoever moves them.
const MOVES: &str = "cgroup_attach_task";

/// The loaded programs. Closing them detaches them.
pub(super) struct Program {
    links: Vec<Link>,
    accounts: Accounts,
    sees_moves: bool,
    object: Object,
}

/// Whether a CPU was brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    Done,
    /// Nothing runs there.
    CpuIsOffline,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("sees_moves", &self.sees_moves).finish_non_exhaustive()
    }
}

impl Program {
    /// Loads it for so many events on so many CPUs, and tells it which cgroups are watched.
    pub(super) fn load(events: &[How], cpus: usize, tree: &Tree) -> Result<Program, BpfError> {
        messages::listen();
        let attempt = "load the BPF program that counts cgroups";
        // libelf wants the object aligned, which memory of the heap is.
        let bytes = OBJECT.to_vec();
        let load = || {
            let mut open = ObjectBuilder::default().open_memory(&bytes)?;
            dimension(&mut open, events, cpus, tree.accounts())?;
            let _in_force = privilege::raise(&NEEDED);
            open.load()
        };
        let object = loading::load(attempt, load)?;
        let accounts = Accounts::map(&object, events.len(), cpus, tree.accounts())?;
        let program = Program { object, links: Vec::new(), accounts, sees_moves: false };
        let watched = program.map("watched")?;
        let _in_force = privilege::raise(&NEEDED);
        for (id, account) in tree.ids() {
            let account = (account as u32).to_ne_bytes();
            watched
                .update(&id.to_ne_bytes(), &account, MapFlags::ANY)
                .map_err(refused("watch a cgroup"))?;
        }
        Ok(program)
    }

    /// Puts an event where the program finds it, or takes away what was there.
    pub(super) fn set_event(&self, index: u32, fd: Option<BorrowedFd<'_>>) -> Result<(), BpfError> {
        let events = self.map("events")?;
        let _in_force = privilege::raise(&NEEDED);
        let result = match fd {
            Some(fd) => {
                let fd = fd.as_raw_fd().to_ne_bytes();
                events.update(&index.to_ne_bytes(), &fd, MapFlags::ANY)
            }
            None => match events.delete(&index.to_ne_bytes()) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                other => other,
            },
        };
        result.map_err(refused("give an event to a BPF program"))
    }

    /// Has the kernel call it.
    pub(super) fn attach(&mut self) -> Result<(), BpfError> {
        messages::listen();
        let _in_force = privilege::raise(&NEEDED);
        let switched = self.program("switched")?.attach();
        let mut links = vec![switched.map_err(refused("have a BPF program called at switches"))?];
        let moved = self.program("moved")?;
        let moves = moved.attach_raw_tracepoint(CALLS);
        let sees_moves = moves.is_ok();
        // Without either, moves are seen at the next switch.
        links.extend(moves.or_else(|_| moved.attach_raw_tracepoint(MOVES)));
        (self.links, self.sees_moves) = (links, sees_moves);
        Ok(())
    }

    /// Runs `begin` on a CPU. One that is offline has nothing to begin with.
    pub(super) fn begin(&self, cpu: u32) -> Result<(), BpfError> {
        self.run_on("begin", cpu).map(|_| ())
    }

    /// Runs `flush` on a CPU.
    pub(super) fn flush(&self, cpu: u32) -> Result<Flushed, BpfError> {
        self.run_on("flush", cpu)
    }

    fn run_on(&self, name: &'static str, cpu: u32) -> Result<Flushed, BpfError> {
        let program = self.program(name)?;
        let _in_force = privilege::raise(&NEEDED);
        let input = ProgramInput { cpu, flags: TEST_RUN_ON_CPU, ..ProgramInput::default() };
        match program.test_run(input) {
            Ok(output) if output.return_value == 0 => Ok(Flushed::Done),
            Ok(_) => Err(BpfError::Program { program: name, cpu }),
            Err(error) if is_offline(&error) => Ok(Flushed::CpuIsOffline),
            Err(error) => Err(refused("run a BPF program on a CPU")(error)),
        }
    }

    pub(super) fn sees_moves(&self) -> bool {
        self.sees_moves
    }

    /// What CPUs have counted for accounts.
    pub(super) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The state of each CPU that the machine may have.
    pub(super) fn cpus(&self) -> Result<Vec<Vec<u8>>, BpfError> {
        let map = self.map("cpus")?;
        let _in_force = privilege::raise(&NEEDED);
        let values = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        values
            .map_err(refused("read what happens on CPUs"))?
            .ok_or(BpfError::Object { part: "state of CPUs" })
    }

    fn map(&self, name: &'static str) -> Result<Map<'_>, BpfError> {
        map_of(&self.object, name)
    }

    fn program(&self, name: &'static str) -> Result<ProgramMut<'_>, BpfError> {
        let found = self.object.progs_mut().find(|program| program.name() == name);
        found.ok_or(BpfError::Object { part: name })
    }
}

fn map_of<'a>(object: &'a Object, name: &'static str) -> Result<Map<'a>, BpfError> {
    object.maps().find(|map| map.name() == name).ok_or(BpfError::Object { part: name })
}

/// `accounts`, where the program writes it.
#[derive(Debug)]
pub(super) struct Accounts {
    words: MappedWords,
    /// Words of an account on a CPU.
    stride: usize,
    accounts: usize,
}

impl Accounts {
    fn map(
        object: &Object,
        events: usize,
        cpus: usize,
        accounts: usize,
    ) -> Result<Accounts, BpfError> {
        let stride = account_words(events.max(1));
        let words = MappedWords::map(map_of(object, "accounts")?.as_fd(), stride * cpus * accounts);
        let words = words.map_err(|error| refused("map what is counted")(error.into()))?;
        Ok(Accounts { words, stride, accounts })
    }

    /// What a CPU has counted of an event for an account.
    pub(super) fn count(&self, account: usize, cpu: u32, event: usize, timed_by: usize) -> Count {
        let begin = (cpu as usize * self.accounts + account) * self.stride;
        layout::count(|word| self.words.word(begin + word), event, timed_by)
    }
}

/// `ENXIO`: nobody can run anything there. libbpf-rs keeps the number to itself.
fn is_offline(error: &libbpf_rs::Error) -> bool {
    error.to_string() == std::io::Error::from(whit_sys::Errno::NXIO).to_string()
}

/// Gives the maps their sizes, before anything is loaded.
fn dimension(
    object: &mut OpenObject,
    how: &[How],
    cpus: usize,
    accounts: usize,
) -> Result<(), libbpf_rs::Error> {
    // Maps of nothing cannot be made.
    let events = how.len().max(1);
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "events" => map.set_max_entries((events * cpus) as u32)?,
            "accounts" => {
                map.set_max_entries((accounts * cpus) as u32)?;
                map.set_value_size(account_bytes(events) as u32)?;
            }
            "cpus" => map.set_value_size(cpu_bytes(events) as u32)?,
            "watched" => map.set_max_entries((accounts as u32 - 1).max(1))?,
            name if name.ends_with(".rodata") => set_up(&mut map, how, accounts),
            _ => {}
        }
    }
    Ok(())
}

/// `settings`: the number of events and of accounts, and how each event is read.
fn set_up(settings: &mut OpenMapMut<'_>, how: &[How], accounts: usize) {
    let Some(value) = settings.initial_value_mut() else { return };
    let counts = [how.len() as u32, accounts as u32].map(u32::to_ne_bytes);
    let bytes = counts.into_iter().flatten().chain(how.iter().map(|how| *how as u8));
    value.iter_mut().zip(bytes).for_each(|(value, byte)| *value = byte);
}
