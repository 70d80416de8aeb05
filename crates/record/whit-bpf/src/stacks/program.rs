//! `bpf/stacks.bpf.c`, loaded: its maps and programs by name and type.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{
    Link, Map, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject,
    ProgramInput, ProgramMut,
};
use whit_sys::bpf::SharedWords;
use whit_sys::{Errno, privilege};
use whit_types::ServerSocket;

use super::channel::{self, Channels};
use super::chosen::{CGROUPS_MAX, NAME_BYTES, NAMES_MAX};
use super::functions::Functions;
use super::interpreters::INTERPRETER_BYTES;
use super::layout::{self, CHUNK_WORDS, CHUNKS_MAX, RULES_MAX, TABLES_MAX};
use super::sockets::{self, EDGES, SOCKETS_MAX};
use super::{MAPPINGS_MAX, Mapping, ProgramKind, StackOptions, TableNumber, needs};
use crate::error::BpfError;
use crate::loading::{self, NEEDED, refused};
use crate::messages;
use crate::packed_object::{PackedObject, packed_object};

/// The object, as clang has made it.
pub(crate) const OBJECT: PackedObject = packed_object!("stacks");
/// The slot of `changes` that the loader counts up: see `bpf/stacks.bpf.c`.
const CHANGED_BY_LOADER: u32 = 0;
/// The slot of `changes` with the time from which switches are recorded.
const SWITCHES_SINCE: u32 = 2;
/// The slot of `changes` with the most frames of a walk.
const WALKED_FRAMES_MAX: u32 = 3;
/// Where the words begin in `settings`: the mask of channels, and the namespace.
const WORDS_AT: usize = 8;
/// Programs that the kernel calls when processes come and change.
const FOLLOWERS: [&str; 2] = ["forked", "executed"];
/// The program that the loader runs to name a file.
const NAME_FILE: &str = "name_file";
/// The programs that sample waits: where one begins, and where it has ended.
const OFF_CPU_BEGAN: &str = "off_cpu_began";
const OFF_CPU_ENDED: &str = "off_cpu_ended";
/// The programs of sockets: data was received, or sent.
const SOCKETS: [&str; EDGES] = ["received", "sent"];
/// The program that notes when a call begins that sends. It is at a function, which some kernels do not have.
const SENDING: &str = "sending";
/// The program that the loader runs to read an account of a CPU out.
const SETTLE_ACCOUNT: &str = "settle_account";
/// Tracepoints of interrupts, without `_entry` and `_exit`, and the programs there that take their time. Every kernel that
/// the others need has the first [`INTERRUPTS_MIN`]; those of CPUs differ from machine to machine.
const INTERRUPTS: [(&str, [&str; 2]); 7] = [
    ("irq_handler", ["irq_handler_begins", "irq_handler_ends"]),
    ("softirq", ["softirq_begins", "softirq_ends"]),
    ("local_timer", ["local_timer_begins", "local_timer_ends"]),
    ("reschedule", ["reschedule_begins", "reschedule_ends"]),
    ("call_function", ["call_function_begins", "call_function_ends"]),
    ("call_function_single", ["call_function_single_begins", "call_function_single_ends"]),
    ("irq_work", ["irq_work_begins", "irq_work_ends"]),
];
/// Without these, no time of interrupts is recorded.
const INTERRUPTS_MIN: usize = 2;
/// `BPF_F_TEST_RUN_ON_CPU`.
const RUN_ON_CPU: u32 = 1;
/// Error while this process's memory changes: `EBUSY`.
const BUSY: i32 = 16;
/// Error where no file is mapped or known: `ENOENT`.
const NO_FILE: i32 = 2;
/// In the place of a table, for a file that is to be forgotten: `FORGET` of `bpf/find_vma.h`.
const FORGET: TableNumber = TableNumber(u64::MAX);
/// It is asked again so often, after a pause: mappings are made within microseconds.
const NAMING_ATTEMPTS_MAX: u32 = 100;
const NAMING_PAUSE: Duration = Duration::from_micros(100);
/// The key of the kernel's own code for user mode in `files`.
const VDSO: u64 = 0;

/// The loaded programs. Closing them detaches them.
pub(super) struct Program {
    switches: Option<Link>,
    wakes: Option<Link>,
    off_cpu: Vec<Link>,
    sockets: Vec<Link>,
    traces: Vec<OwnedFd>,
    followers: Vec<Link>,
    interrupts: Vec<Link>,
    /// Programs that take the time of interrupts.
    interrupt_programs: Vec<&'static str>,
    /// The programs find mappings without an announcement.
    pub(super) finds_mappings: bool,
    object: Object,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("switches", &self.switches.is_some())
            .finish_non_exhaustive()
    }
}

const MAKE_ROOM: &str = "make room for an unwind table";

fn new_chunk() -> Result<MapHandle, BpfError> {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as u64,
        ..bpf_map_create_opts::default()
    };
    let _in_force = privilege::raise(&NEEDED);
    let size = CHUNK_WORDS as u32 * 4;
    MapHandle::create(MapType::Array, Some("whit_chunk"), 4, size, 1, &options)
        .map_err(refused(MAKE_ROOM))
}

impl Program {
    pub(super) fn load(options: &StackOptions) -> Result<Program, BpfError> {
        messages::listen();
        let bytes = OBJECT.unpacked();
        let finds_mappings = needs::finds_mappings();
        let interrupt_programs = match options.channel_bytes {
            0 => Vec::new(),
            _ => interrupt_programs(),
        };
        let load = || {
            let mut open = ObjectBuilder::default().open_memory(&bytes)?;
            dimension(&mut open, options, finds_mappings, !interrupt_programs.is_empty())?;
            leave_out(&mut open, options, finds_mappings, &interrupt_programs);
            let _in_force = privilege::raise(&NEEDED);
            open.load()
        };
        let object = loading::load("load the BPF programs that unwind stacks", load)?;
        Ok(Program {
            switches: None,
            wakes: None,
            off_cpu: Vec::new(),
            sockets: Vec::new(),
            traces: Vec::new(),
            followers: Vec::new(),
            interrupts: Vec::new(),
            interrupt_programs,
            finds_mappings,
            object,
        })
    }

    pub(super) fn set_output(&self, cpu: u32, event: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.set_event("output", cpu, event)
    }

    pub(super) fn set_wakeup_event(&self, cpu: u32, event: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.set_event("wakeup_events", cpu, event)
    }

    fn set_event(
        &self,
        map: &'static str,
        cpu: u32,
        event: BorrowedFd<'_>,
    ) -> Result<(), BpfError> {
        let fd = event.as_raw_fd().to_ne_bytes();
        self.update(map, cpu, &fd, "give an event to a BPF program")
    }

    pub(super) fn attach_switches(&mut self) -> Result<(), BpfError> {
        for number in 0..self.interrupt_programs.len() {
            let link = self.attach(self.interrupt_programs[number])?;
            self.interrupts.push(link);
        }
        let link = self.attach("switched")?;
        self.switches = Some(link);
        Ok(())
    }

    pub(super) fn attach_wakes(&mut self) -> Result<(), BpfError> {
        let link = self.attach("woken")?;
        self.wakes = Some(link);
        Ok(())
    }

    pub(super) fn attach_off_cpu(&mut self) -> Result<(), BpfError> {
        for name in [OFF_CPU_BEGAN, OFF_CPU_ENDED] {
            let link = self.attach(name)?;
            self.off_cpu.push(link);
        }
        Ok(())
    }

    /// Chooses the sockets of a server.
    pub(super) fn choose_socket(&self, number: u32, socket: &ServerSocket) -> Result<(), BpfError> {
        self.update(
            "chosen_sockets",
            number,
            &sockets::value(socket),
            "name a socket to a BPF program",
        )
    }

    /// Gives the event of a CPU for one edge of a chosen socket.
    pub(super) fn set_socket_event(
        &self,
        cpu: u32,
        (number, edge): (u32, u32),
        event: BorrowedFd<'_>,
    ) -> Result<(), BpfError> {
        let place = (cpu * SOCKETS_MAX as u32 + number) * EDGES as u32 + edge;
        self.set_event("socket_events", place, event)
    }

    /// Each program takes a while to attach, and to detach in the same order. Received data comes last: a request whose
    /// answer was not seen would go on up to the next answer.
    pub(super) fn attach_sockets(&mut self) -> Result<(), BpfError> {
        if !self.sockets.is_empty() {
            return Ok(());
        }
        let [received, sent] = SOCKETS;
        let link = self.attach(sent)?;
        self.sockets.push(link);
        if self.program(SENDING)?.autoload() {
            // A kernel may have the function, and call no program there: the times of calls are not known then.
            self.sockets.extend(self.attach(SENDING).ok());
        }
        let link = self.attach(received)?;
        self.sockets.push(link);
        Ok(())
    }

    pub(super) fn attach_trace(
        &mut self,
        event: BorrowedFd<'_>,
        number: u32,
        part: ProgramKind,
    ) -> Result<(), BpfError> {
        let program = self.part(part)?;
        let link = whit_sys::bpf::link_perf_event(program.as_fd(), event, number.into());
        let refusal = |errno: Errno| libbpf_rs::Error::from_raw_os_error(errno.raw_os_error());
        let attempt = "have a BPF program called at a tracepoint or probe";
        self.traces.push(link.map_err(|errno| refused(attempt)(refusal(errno)))?);
        Ok(())
    }

    pub(super) fn attach_processes(&mut self) -> Result<(), BpfError> {
        if !self.followers.is_empty() {
            return Ok(());
        }
        for name in FOLLOWERS {
            let link = self.attach(name)?;
            self.followers.push(link);
        }
        Ok(())
    }

    fn attach(&self, name: &'static str) -> Result<Link, BpfError> {
        messages::listen();
        let _in_force = privilege::raise(&NEEDED);
        let link = self.program(name)?.attach();
        link.map_err(refused(
            "have a BPF program called at switches, interrupts, wake-ups, forks, execs and sockets",
        ))
    }

    pub(super) fn detach_switches(&mut self) {
        let _in_force = privilege::raise(&NEEDED);
        self.switches = None;
        self.interrupts.clear();
        self.wakes = None;
    }

    /// Records the account of a CPU at this moment. When recording begins, accounts begin there.
    pub(super) fn settle_account(&self, cpu: u32, begins: bool) -> Result<(), BpfError> {
        let mut arguments = u64::from(begins).to_ne_bytes();
        let input = ProgramInput {
            context_in: Some(&mut arguments),
            cpu,
            flags: RUN_ON_CPU,
            ..ProgramInput::default()
        };
        let program = self.program(SETTLE_ACCOUNT)?;
        let _in_force = privilege::raise(&NEEDED);
        program.test_run(input).map(drop).map_err(refused("read the account of a CPU out"))
    }

    pub(super) fn detach_off_cpu(&mut self) {
        let _in_force = privilege::raise(&NEEDED);
        self.off_cpu.clear();
    }

    pub(super) fn detach_sockets(&mut self) {
        let _in_force = privilege::raise(&NEEDED);
        // In order.
        self.sockets.clear();
    }

    pub(super) fn detach(&mut self) {
        self.detach_sockets();
        let _in_force = privilege::raise(&NEEDED);
        self.switches = None;
        self.interrupts.clear();
        self.wakes = None;
        self.off_cpu.clear();
        self.traces.clear();
        self.followers.clear();
    }

    /// The first program of a kind.
    pub(super) fn part(&self, part: ProgramKind) -> Result<ProgramMut<'_>, BpfError> {
        self.program(names(part)[0])
    }

    /// The programs of a kind that were not left out.
    pub(super) fn parts(&self, part: ProgramKind) -> impl Iterator<Item = ProgramMut<'_>> {
        self.loaded().filter(move |program| {
            program.name().to_str().is_some_and(|name| names(part).contains(&name))
        })
    }

    /// The program that records threads that come after hidden ones.
    pub(super) fn switch_ins(&self) -> Result<ProgramMut<'_>, BpfError> {
        self.program("switched_in")
    }

    pub(super) fn set_table(&self, number: u32, table: &[u8; 32]) -> Result<(), BpfError> {
        self.update("tables", number, table, "load an unwind table")
    }

    pub(super) fn set_interpreter(
        &self,
        number: u32,
        interpreter: &[u8; INTERPRETER_BYTES],
    ) -> Result<(), BpfError> {
        self.update("interpreters", number, interpreter, "describe an interpreter")
    }

    /// The ring of interpreted functions.
    pub(super) fn functions(&self) -> Result<Functions, BpfError> {
        let map = MapHandle::try_from(&self.map("functions")?);
        Functions::new(&map.map_err(refused("hear of interpreted functions"))?)
    }

    /// Writes rules from a number on.
    pub(super) fn set_rules(&self, first: u32, rules: &[[u8; 8]]) -> Result<(), BpfError> {
        self.update_row("rules", first, rules.as_flattened(), rules.len(), "load an unwind table")
    }

    /// Writes mappings from a number on.
    pub(super) fn set_mappings(&self, first: u32, mappings: &[Mapping]) -> Result<(), BpfError> {
        let bytes: Vec<u8> = mappings.iter().flat_map(layout::mapping).collect();
        self.update_row("mappings", first, &bytes, mappings.len(), "describe a process")
    }

    pub(super) fn set_process(&self, pid: u32, value: [u8; 8]) -> Result<(), BpfError> {
        self.update("processes", pid, &value, "describe a process")
    }

    /// Where nobody has made it known.
    pub(super) fn add_process(&self, pid: u32, value: [u8; 8]) -> Result<(), BpfError> {
        let processes = self.map("processes")?;
        let _in_force = privilege::raise(&NEEDED);
        match processes.update(&pid.to_ne_bytes(), &value, MapFlags::NO_EXIST) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => Ok(()),
            other => other.map_err(refused("describe a process")),
        }
    }

    pub(super) fn add_thread(&self, tid: u32) -> Result<(), BpfError> {
        self.update("threads", tid, &[0; 4], "name a thread to a BPF program")
    }

    /// Chooses a cgroup with those below it.
    pub(super) fn choose_cgroup(&self, id: u64) -> Result<(), BpfError> {
        self.choose("chosen_cgroups", &id.to_ne_bytes())
    }

    /// Chooses threads by name.
    pub(super) fn choose_name(&self, name: [u8; NAME_BYTES]) -> Result<(), BpfError> {
        self.choose("chosen_names", &name)
    }

    fn choose(&self, map: &'static str, key: &[u8]) -> Result<(), BpfError> {
        let map = self.map(map)?;
        let _in_force = privilege::raise(&NEEDED);
        map.update(key, &1u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused("name a target to a BPF program"))
    }

    pub(super) fn remove_process(&self, pid: u32) {
        if let Ok(processes) = self.map("processes") {
            let _in_force = privilege::raise(&NEEDED);
            // It may never have been there.
            let _ = processes.delete(&pid.to_ne_bytes());
        }
    }

    /// The kernel is asked which file is mapped there.
    pub(super) fn set_file(
        &self,
        address: u64,
        bias: u64,
        table: TableNumber,
    ) -> Result<(), BpfError> {
        if !self.finds_mappings {
            return Ok(());
        }
        match self.name_file(layout::naming(address, bias, table))? {
            0 => Ok(()),
            errno => {
                let refusal = libbpf_rs::Error::from_raw_os_error(errno);
                Err(refused("name a file to a BPF program")(refusal))
            }
        }
    }

    /// The file that is mapped there names no table any more.
    pub(super) fn forget_file(&self, address: u64) -> Result<(), BpfError> {
        if !self.finds_mappings {
            return Ok(());
        }
        match self.name_file(layout::naming(address, 0, FORGET))? {
            // It was never made known: there was no room.
            0 | NO_FILE => Ok(()),
            errno => {
                let refusal = libbpf_rs::Error::from_raw_os_error(errno);
                Err(refused("have a BPF program forget a file")(refusal))
            }
        }
    }

    /// Runs the program with its arguments, and gives its error.
    fn name_file(&self, mut arguments: [u8; 24]) -> Result<i32, BpfError> {
        let program = self.program(NAME_FILE)?;
        for attempt in 1.. {
            let input =
                ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
            let output = {
                let _in_force = privilege::raise(&NEEDED);
                program.test_run(input).map_err(refused("name a file to a BPF program"))?
            };
            match -(output.return_value as i32) {
                // Another thread of ours maps something at this moment.
                BUSY if attempt < NAMING_ATTEMPTS_MAX => std::thread::sleep(NAMING_PAUSE),
                errno => return Ok(errno),
            }
        }
        Ok(0)
    }

    pub(super) fn set_vdso(&self, bias: u64, table: TableNumber) -> Result<(), BpfError> {
        let files = self.map("files")?;
        let value = layout::file_table(bias, table);
        let _in_force = privilege::raise(&NEEDED);
        let updated = files.update(&VDSO.to_ne_bytes(), &value, MapFlags::ANY);
        updated.map_err(refused("name a file to a BPF program"))
    }

    /// Chunks of table memory, put where the programs find them. The kernel waits for all programs that run after each
    /// call that changes this place, some 15 ms and more on a busy machine: so there is one call for all of them.
    pub(super) fn new_chunks(&self, first: u32, count: usize) -> Result<Vec<MapHandle>, BpfError> {
        let chunks = (0..count).map(|_| new_chunk()).collect::<Result<Vec<_>, _>>()?;
        let fd = |chunk: &MapHandle| chunk.as_fd().as_raw_fd().to_ne_bytes();
        let fds: Vec<u8> = chunks.iter().flat_map(fd).collect();
        if self.update_row("chunks", first, &fds, count, MAKE_ROOM).is_err() {
            // Linux before 5.19 takes no row of such a map.
            for (number, chunk) in (first..).zip(&chunks) {
                self.update("chunks", number, &fd(chunk), MAKE_ROOM)?;
            }
        }
        Ok(chunks)
    }

    pub(super) fn read_chunk(&self, chunk: &MapHandle) -> Result<Vec<u8>, BpfError> {
        let _in_force = privilege::raise(&NEEDED);
        let words = chunk.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        words
            .map_err(refused("read an unwind table"))?
            .ok_or(BpfError::Object { part: "table memory" })
    }

    pub(super) fn fill_chunk(&self, chunk: &MapHandle, words: &[u8]) -> Result<(), BpfError> {
        let _in_force = privilege::raise(&NEEDED);
        chunk
            .update(&0u32.to_ne_bytes(), words, MapFlags::ANY)
            .map_err(refused("load an unwind table"))
    }

    /// Processes have changed so often: what the program of switches remembers of them is void.
    pub(super) fn set_changes(&self, count: u64) -> Result<(), BpfError> {
        self.update("changes", CHANGED_BY_LOADER, &count.to_ne_bytes(), "describe a process")
    }

    /// Switches are recorded from this time on, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(super) fn set_switches_since(&self, now_ns: u64) -> Result<(), BpfError> {
        self.update("changes", SWITCHES_SINCE, &now_ns.to_ne_bytes(), "tell of switches")
    }

    /// Walks of user stacks end at so many frames from here on; 0 for as many as there may be.
    pub(super) fn set_frames_max(&self, frames: u64) -> Result<(), BpfError> {
        let value = frames.to_ne_bytes();
        self.update("changes", WALKED_FRAMES_MAX, &value, "limit the depth of stacks")
    }

    /// The channels of the program of switches, as they were dimensioned.
    pub(super) fn channels(&self, options: &StackOptions) -> Result<Channels, BpfError> {
        let map = self.map("channels")?;
        let (cpus, ring_words) = (options.cpus.max(1), channel::words_for(options.channel_bytes));
        let words = channel::value_bytes(ring_words) / 8 * cpus;
        let words = SharedWords::map(map.as_fd(), words);
        let words = words.map_err(|error| refused("map the channels of switches")(error.into()))?;
        Ok(Channels::new(words, cpus, ring_words))
    }

    /// The `struct scratch` of each CPU that the machine may have.
    pub(super) fn scratches(&self, part: ProgramKind) -> Result<Vec<Vec<u8>>, BpfError> {
        let map = self.map("scratches")?;
        let _in_force = privilege::raise(&NEEDED);
        map.lookup_percpu(&(part as u32).to_ne_bytes(), MapFlags::ANY)
            .map_err(refused("read what BPF programs counted"))?
            .ok_or(BpfError::Object { part: "counts" })
    }

    fn update(
        &self,
        map: &'static str,
        key: u32,
        value: &[u8],
        attempt: &'static str,
    ) -> Result<(), BpfError> {
        let map = self.map(map)?;
        let _in_force = privilege::raise(&NEEDED);
        map.update(&key.to_ne_bytes(), value, MapFlags::ANY).map_err(refused(attempt))
    }

    /// Elements of an array in one call.
    fn update_row(
        &self,
        map: &'static str,
        first: u32,
        values: &[u8],
        count: usize,
        attempt: &'static str,
    ) -> Result<(), BpfError> {
        if count == 0 {
            return Ok(());
        }
        let keys: Vec<u8> = (first..first + count as u32).flat_map(u32::to_ne_bytes).collect();
        let map = self.map(map)?;
        let _in_force = privilege::raise(&NEEDED);
        map.update_batch(&keys, values, count as u32, MapFlags::ANY, MapFlags::ANY)
            .map_err(refused(attempt))
    }

    /// Gives another object the maps that it has in common with this one. Settings are each object's own: their maps have
    /// names with a dot, which libbpf makes from where the object is in memory and which may be the same.
    pub(super) fn share_maps(&self, object: &mut OpenObject) -> Result<(), libbpf_rs::Error> {
        for mut map in object.maps_mut() {
            if map.name().to_string_lossy().contains('.') {
                continue;
            }
            let mut own = self.object.maps();
            if let Some(own) = own.find(|own| own.name() == map.name()) {
                map.reuse_fd(own.as_fd())?;
            }
        }
        Ok(())
    }

    fn map(&self, name: &'static str) -> Result<Map<'_>, BpfError> {
        self.object.maps().find(|map| map.name() == name).ok_or(BpfError::Object { part: name })
    }

    /// Those that were not left out.
    pub(super) fn loaded(&self) -> impl Iterator<Item = ProgramMut<'_>> {
        self.object.progs_mut().filter(|program| program.autoload())
    }

    fn program(&self, name: &'static str) -> Result<ProgramMut<'_>, BpfError> {
        let found = self.object.progs_mut().find(|program| program.name() == name);
        found.ok_or(BpfError::Object { part: name })
    }
}

/// The programs of a kind.
fn names(part: ProgramKind) -> &'static [&'static str] {
    match part {
        ProgramKind::Samples => &["sampled"],
        ProgramKind::Switches => &["switched"],
        ProgramKind::Traces => &["traced"],
        ProgramKind::Wakes => &["woken"],
        ProgramKind::Probes => &["probed"],
        ProgramKind::Waits => &[OFF_CPU_ENDED, OFF_CPU_BEGAN],
        ProgramKind::Sockets => &[SOCKETS[0], SOCKETS[1], SENDING],
    }
}

/// The programs of interrupts whose tracepoints the kernel has.
fn interrupt_programs() -> Vec<&'static str> {
    let Ok(types) = Btf::from_vmlinux() else { return Vec::new() };
    let has = |(tracepoint, _): &(&str, [&str; 2])| {
        let name = format!("btf_trace_{tracepoint}_entry");
        types.type_by_name::<Typedef<'_>>(name.as_str()).is_some()
    };
    if !INTERRUPTS[..INTERRUPTS_MIN].iter().all(has) {
        return Vec::new();
    }
    INTERRUPTS.into_iter().filter(has).flat_map(|(_, programs)| programs).collect()
}

/// Programs that are not needed: the verifier takes its time for each.
fn leave_out(
    object: &mut OpenObject,
    options: &StackOptions,
    finds_mappings: bool,
    interrupt_programs: &[&str],
) {
    for mut program in object.progs_mut() {
        let is_of_interrupts =
            |name| INTERRUPTS.iter().any(|(_, programs)| programs.contains(&name));
        let is_needed = match program.name().to_str() {
            Some(name) if is_of_interrupts(name) => interrupt_programs.contains(&name),
            Some("traced") => options.traces,
            Some("probed") => options.probes,
            Some("woken") => options.wakes,
            Some("switched" | "switched_in" | SETTLE_ACCOUNT) => options.channel_bytes > 0,
            Some(OFF_CPU_BEGAN | OFF_CPU_ENDED) => options.off_cpu_period_ns > 0,
            Some(NAME_FILE) => finds_mappings,
            Some(name) if SOCKETS.contains(&name) => options.sockets,
            Some(SENDING) => options.sockets && options.times_sends,
            _ => true,
        };
        if !is_needed {
            program.set_autoload(false);
        }
    }
}

/// Gives the maps their sizes, before anything is loaded.
fn dimension(
    object: &mut OpenObject,
    options: &StackOptions,
    finds_mappings: bool,
    takes_interrupts: bool,
) -> Result<(), libbpf_rs::Error> {
    let ring_words = channel::words_for(options.channel_bytes);
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "channels" => {
                map.set_max_entries(options.cpus.max(1) as u32)?;
                map.set_value_size(channel::value_bytes(ring_words) as u32)?;
            }
            "output" | "wakeup_events" | "switch_memories" | "cpu_accounts" => {
                map.set_max_entries(options.cpus.max(1) as u32)?
            }
            "mappings" => map.set_max_entries(MAPPINGS_MAX)?,
            "tables" => map.set_max_entries(TABLES_MAX as u32)?,
            "rules" => map.set_max_entries(RULES_MAX as u32)?,
            "chunks" => map.set_max_entries(CHUNKS_MAX as u32)?,
            "chosen_cgroups" if options.chosen.cgroups.is_some() => {
                map.set_max_entries(CGROUPS_MAX)?;
            }
            "chosen_names" if options.chosen.names => map.set_max_entries(NAMES_MAX)?,
            "socket_events" if options.sockets => {
                map.set_max_entries((options.cpus.max(1) * SOCKETS_MAX * EDGES) as u32)?;
            }
            "off_cpu_accounts" | "off_cpu_others" => {
                map.set_autocreate(options.off_cpu_period_ns > 0)?;
            }
            name if name.ends_with(".rodata") => {
                let settings = [
                    options.is_system_wide,
                    options.kernel_stacks,
                    options.user_stacks,
                    !options.memo,
                    options.perf_samples,
                    options.by_thread,
                    finds_mappings,
                ];
                let settings = settings.map(u8::from).into_iter().chain([options.chosen.bits()]);
                if let Some(value) = map.initial_value_mut() {
                    value.iter_mut().zip(settings).for_each(|(to, byte)| *to = byte);
                    let namespace = options.pid_namespace.unwrap_or(0);
                    let words = [
                        ring_words as u32 - 1,
                        namespace,
                        options.chosen.subsystem(),
                        u32::from(takes_interrupts),
                        options.sampled_cgroups.subsystem(),
                        whit_sys::system::page_size().ilog2(),
                    ];
                    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
                    // The programs divide by the period. It is 0 where the user wants no samples of waits.
                    let period = options.off_cpu_period_ns.max(1).to_ne_bytes();
                    let bytes = bytes.chain(period);
                    let places = value.iter_mut().skip(WORDS_AT);
                    places.zip(bytes).for_each(|(to, byte)| *to = byte);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
