//! `bpf/pmi_meter.bpf.c`, loaded.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, ProgramMut};
use whit_sys::{Errno, privilege};

use crate::error::BpfError;
use crate::loading::{self, NEEDED, TEST_RUN_ON_CPU, refused};
use crate::messages;
use crate::packed_object::{PackedObject, packed_object};

/// The object, as clang has made it.
pub(crate) const OBJECT: PackedObject = packed_object!("pmi_meter");

/// Name of the tracepoint, in the group `nmi`.
const TRACEPOINT: &str = "nmi_handler";
/// Name of the program in the object.
const PROGRAM: &str = "nmi_handled";
/// The map.
const CPUS: &str = "cpus";

/// The loaded program. Closing it detaches it.
pub(super) struct Program {
    link: Option<Link>,
    object: Object,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("attached", &self.link.is_some()).finish_non_exhaustive()
    }
}

impl Program {
    pub(super) fn load() -> Result<Program, BpfError> {
        messages::listen();
        let bytes = OBJECT.unpacked();
        let object = loading::load("load the BPF program that counts PMU interrupts", || {
            let open = ObjectBuilder::default().open_memory(&bytes)?;
            let _in_force = privilege::raise(&NEEDED);
            open.load()
        })?;
        Ok(Program { link: None, object })
    }

    /// Has the kernel call it.
    pub(super) fn attach(&mut self) -> Result<(), BpfError> {
        messages::listen();
        let _in_force = privilege::raise(&NEEDED);
        let link = self.program()?.attach_raw_tracepoint(TRACEPOINT);
        self.link = Some(link.map_err(refused("attach to the tracepoint nmi:nmi_handler"))?);
        Ok(())
    }

    /// The value of each CPU that the machine may have.
    pub(super) fn cpus(&self) -> Result<Vec<Vec<u8>>, BpfError> {
        let map = self.object.maps().find(|map| map.name() == CPUS);
        let map = map.ok_or(BpfError::Object { part: CPUS })?;
        let _in_force = privilege::raise(&NEEDED);
        map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(refused("read what PMU interrupts took"))?
            .ok_or(BpfError::Object { part: "sums of PMU interrupts" })
    }

    /// Runs it on a CPU with these arguments of the tracepoint.
    pub(super) fn run(&self, arguments: [u64; 3], cpu: u32) -> Result<(), BpfError> {
        let mut context: Vec<u8> = arguments.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let program = self.program()?;
        let _in_force = privilege::raise(&NEEDED);
        let input = ProgramInput {
            context_in: Some(&mut context),
            cpu,
            flags: TEST_RUN_ON_CPU,
            ..ProgramInput::default()
        };
        program.test_run(input).map_err(refused("run a BPF program on a CPU")).map(|_| ())
    }

    /// Hands the program's descriptor out.
    pub(super) fn with_fd<T>(
        &self,
        ask: impl FnOnce(BorrowedFd<'_>) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let program = self.program().map_err(|_| Errno::BADF)?;
        ask(program.as_fd())
    }

    fn program(&self) -> Result<ProgramMut<'_>, BpfError> {
        let found = self.object.progs_mut().find(|program| program.name() == PROGRAM);
        found.ok_or(BpfError::Object { part: PROGRAM })
    }
}
