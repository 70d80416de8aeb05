//! `bpf/cgroup_count.bpf.c`, loaded: its maps and programs by name and type.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::{
    ErrorKind, Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenMapMut, OpenObject,
    ProgramInput, ProgramMut,
};
use whit_sys::bpf::MappedWords;
use whit_sys::privilege;

use super::counts::Count;
use super::layout::{AccountLayout, EVENTS_MAX, accounts_stride, cpu_bytes, memos};
use super::tree::Tree;
use super::{How, Of};
use crate::error::BpfError;
use crate::loading::{self, NEEDED, TEST_RUN_ON_CPU, refused};
use crate::messages;
use crate::packed_object::{PackedObject, packed_object};

/// The object, as clang has made it.
pub(crate) const OBJECT: PackedObject = packed_object!("cgroup_count");

/// Calls from CPU to CPU. Older kernels do not show them.
const CALLS: &str = "csd_function_exit";
/// Tasks that are moved to a cgroup, by themselves or by others.
const MOVES: &str = "cgroup_attach_task";

/// Hierarchies that are made and unmade.
const MOUNTS: [&str; 2] = ["cgroup_setup_root", "cgroup_destroy_root"];

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
        let layout = AccountLayout::of(events);
        let sizes = Sizes { events, layout: &layout, cpus, accounts: tree.accounts() };
        let object = match sizes.load(Software::InMemory) {
            // Older kernels do not let programs look there.
            Err(error) if !error.is_permission() => sizes.load(Software::ByCall)?,
            loaded => loaded?,
        };
        let accounts = Accounts::map(&object, layout, cpus, tree.accounts())?;
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

    /// Puts an event into the program's table, or removes the entry.
    pub(super) fn set_event(
        &self,
        index: u32,
        fd: Option<BorrowedFd<'_>>,
        is_software: bool,
    ) -> Result<(), BpfError> {
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
        result.map_err(refused("give an event to a BPF program"))?;
        self.locate(index, fd.filter(|_| is_software))
    }

    /// Tells the program where the kernel has an event, or that it has to ask.
    fn locate(&self, index: u32, fd: Option<BorrowedFd<'_>>) -> Result<(), BpfError> {
        // The program takes the last number for no descriptor.
        let fd = fd.map_or(u64::from(u32::MAX), |fd| fd.as_raw_fd() as u64);
        let mut arguments = [fd, u64::from(index)].map(u64::to_ne_bytes).concat();
        let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
        let located = self.program("locate")?.test_run(input);
        located.map(|_| ()).map_err(refused("tell a BPF program where an event is"))
    }

    /// Has the kernel call it.
    pub(super) fn attach(&mut self) -> Result<(), BpfError> {
        messages::listen();
        let _in_force = privilege::raise(&NEEDED);
        // First: the other programs need the accounts that it makes.
        let made = self.program("made")?.attach();
        let mut links = vec![made.map_err(refused("have a BPF program called for new cgroups"))?];
        for mounts in MOUNTS {
            let link = self.program("remounted")?.attach_raw_tracepoint(mounts);
            links.push(link.map_err(refused("have a BPF program called for new hierarchies"))?);
        }
        let switched = self.program("switched")?.attach();
        links.push(switched.map_err(refused("have a BPF program called at switches"))?);
        let moved = self.program("moved")?;
        let moves = moved.attach_raw_tracepoint(CALLS);
        let sees_moves = moves.is_ok();
        // Without either, moves are seen at the next switch.
        links.extend(moves.or_else(|_| moved.attach_raw_tracepoint(MOVES)));
        (self.links, self.sees_moves) = (links, sees_moves);
        Ok(())
    }

    /// Runs `halt` on a CPU: nothing is counted there before it begins again.
    pub(super) fn halt(&self, cpu: u32) -> Result<(), BpfError> {
        self.run_on("halt", cpu).map(|_| ())
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

    /// The accounts of all CPUs, as the program writes them.
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
    layout: AccountLayout,
    accounts_stride: usize,
}

impl Accounts {
    fn map(
        object: &Object,
        layout: AccountLayout,
        cpus: usize,
        accounts: usize,
    ) -> Result<Accounts, BpfError> {
        let fd = map_of(object, "accounts")?;
        let accounts_stride = accounts_stride(accounts);
        let words = MappedWords::map(fd.as_fd(), layout.size() * cpus * accounts_stride);
        let words = words.map_err(|error| refused("map what is counted")(error.into()))?;
        Ok(Accounts { words, layout, accounts_stride })
    }

    /// The count of an event for an account on a CPU.
    pub(super) fn count(&self, account: usize, cpu: u32, event: usize, timed_by: usize) -> Count {
        let begin = (cpu as usize * self.accounts_stride + account) * self.layout.size();
        self.layout.count(|word| self.words.word(begin + word), event, timed_by)
    }
}

/// `ENXIO`: nobody can run anything there. libbpf-rs keeps the number to itself.
fn is_offline(error: &libbpf_rs::Error) -> bool {
    error.to_string() == std::io::Error::from(whit_sys::Errno::NXIO).to_string()
}

/// How the program reads events of software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Software {
    InMemory,
    ByCall,
}

/// The numbers that decide the sizes of maps.
#[derive(Debug)]
struct Sizes<'a> {
    events: &'a [How],
    layout: &'a AccountLayout,
    cpus: usize,
    accounts: usize,
}

impl Sizes<'_> {
    /// Has the kernel take the programs.
    fn load(&self, software: Software) -> Result<Object, BpfError> {
        messages::listen();
        let bytes = OBJECT.unpacked();
        loading::load("load the BPF program that counts cgroups", || {
            let mut open = ObjectBuilder::default().open_memory(&bytes)?;
            self.give(&mut open, software)?;
            let _in_force = privilege::raise(&NEEDED);
            open.load()
        })
    }

    /// Gives the maps their sizes, before anything is loaded.
    fn give(&self, object: &mut OpenObject, software: Software) -> Result<(), libbpf_rs::Error> {
        // Maps of nothing cannot be made.
        let events = self.events.len().max(1);
        for mut map in object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            match name.as_str() {
                "events" | "addresses" => map.set_max_entries((events * self.cpus) as u32)?,
                "accounts" => {
                    map.set_max_entries((accounts_stride(self.accounts) * self.cpus) as u32)?;
                    map.set_value_size((self.layout.size() * size_of::<u64>()) as u32)?;
                }
                "memos" => map.set_max_entries(memos(self.accounts) as u32)?,
                "cpus" => map.set_value_size(cpu_bytes(events) as u32)?,
                "watched" => map.set_max_entries((self.accounts as u32 - 1).max(1))?,
                name if name.ends_with(".rodata") => self.set_up(&mut map, software),
                _ => {}
            }
        }
        Ok(())
    }

    /// `settings`.
    fn set_up(&self, settings: &mut OpenMapMut<'_>, software: Software) {
        let Some(value) = settings.initial_value_mut() else { return };
        let reads = self.reads();
        let numbers = [
            self.events.len(),
            usize::from(software == Software::InMemory),
            accounts_stride(self.accounts),
            self.layout.size(),
            memos(self.accounts),
            reads.len(),
        ];
        let places = self.layout.places();
        let read = |event: usize| {
            let how = self.events[event].bits();
            [event as u8, how, places[event].times as u8, places[event].value as u8]
        };
        let reads = reads.into_iter().map(read).chain(std::iter::repeat([0; 4]));
        let how = self.events.iter().map(|how| how.bits());
        let numbers = numbers.into_iter().flat_map(|number| (number as u32).to_ne_bytes());
        let bytes = numbers.chain(reads.take(EVENTS_MAX).flatten()).chain(how);
        value.iter_mut().zip(bytes).for_each(|(value, byte)| *value = byte);
    }

    /// The events that have to be read; the times of the event before give the others.
    fn reads(&self) -> Vec<usize> {
        let is_read = |how: &How| how.is_timed || how.of != Of::Time;
        (0..self.events.len()).filter(|&event| is_read(&self.events[event])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Where the kernel refuses BPF altogether that is said, and there is nothing to test.
    fn is_refused(error: &BpfError) -> bool {
        if error.is_permission() {
            let line = format!("loads_either_way: BPF is refused here: {error}\n");
            let _ = std::io::stderr().write_all(format!("\nskipped {line}").as_bytes());
            if let Some(path) = std::env::var_os("WHIT_SKIP_LOG") {
                let log = std::fs::OpenOptions::new().append(true).create(true).open(path);
                log.and_then(|mut log| log.write_all(line.as_bytes()))
                    .expect("write WHIT_SKIP_LOG");
            }
        }
        error.is_permission()
    }

    #[test]
    fn kernels_that_show_their_memory_and_those_that_do_not_take_the_programs() {
        let timed = How::TIMED.in_software();
        let sets = [
            vec![timed, How::CLOCK, How::UNTIMED.in_software(), How::UNTIMED.of_switches()],
            vec![How::TIMED, How::UNTIMED.in_software(), timed, timed.of_switches()],
            vec![timed; EVENTS_MAX],
        ];
        for events in &sets {
            let layout = AccountLayout::of(events);
            let sizes = Sizes { events, layout: &layout, cpus: 2, accounts: 3 };
            // The first is refused by older kernels, as it should be.
            for software in [Software::InMemory, Software::ByCall] {
                match sizes.load(software) {
                    Err(error) if is_refused(&error) => return,
                    Err(error) if software == Software::ByCall => panic!("{error}"),
                    _ => {}
                }
            }
        }
    }
}
