//! A program that does nothing at each switch of tasks: its cost is the least that any program there
//! costs.

use std::fmt;
use std::os::fd::AsFd;

use libbpf_rs::{Link, Object, ObjectBuilder};
use whit_sys::bpf::RunStatistics;
use whit_sys::{Errno, privilege};

use crate::error::BpfError;
use crate::loading::{self, NEEDED, refused};
use crate::messages;
use crate::packed_object::{PackedObject, packed_object};

/// The object, as clang has made it.
pub(crate) const OBJECT: PackedObject = packed_object!("nothing");
/// Name of the program in the object.
const PROGRAM: &str = "nothing";

/// The program, called at each switch until this is dropped.
pub struct Nothing {
    // Dropped first.
    _link: Link,
    object: Object,
}

impl fmt::Debug for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nothing").finish_non_exhaustive()
    }
}

impl Nothing {
    /// Has the kernel call it.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn attach() -> Result<Nothing, BpfError> {
        messages::listen();
        let bytes = OBJECT.unpacked();
        let object = loading::load("load a BPF program that does nothing", || {
            let open = ObjectBuilder::default().open_memory(&bytes)?;
            let _in_force = privilege::raise(&NEEDED);
            open.load()
        })?;
        let link = {
            let program = object.progs_mut().find(|program| program.name() == PROGRAM);
            let _in_force = privilege::raise(&NEEDED);
            let link = program.ok_or(BpfError::Object { part: PROGRAM })?.attach();
            link.map_err(refused("have a BPF program called at switches"))?
        };
        Ok(Nothing { _link: link, object })
    }

    /// How often it ran while statistics were kept, and how long
    /// ([`whit_sys::bpf::enable_run_statistics`]).
    ///
    /// # Errors
    ///
    /// Where the kernel keeps no statistics.
    pub fn statistics(&self) -> Result<RunStatistics, Errno> {
        let program = self.object.progs().find(|program| program.name() == PROGRAM);
        whit_sys::bpf::run_statistics(program.ok_or(Errno::BADF)?.as_fd())
    }
}
