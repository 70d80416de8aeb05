//! The recordings that are generated: of machines and versions of perf that are not at hand.
//!
//! They are the same on every machine; a test compares the committed files with newly generated
//! ones.

mod arm64;
mod branches;
pub(crate) mod deferred;
mod kernel;
mod life;
mod new;
mod old;

use crate::golden::elf::Elf;
use crate::golden::encode::{Bytes, Id, Recording, kind, record};

/// One generated recording.
pub(crate) struct Made {
    /// Its folder.
    pub(crate) name: &'static str,
    /// The bytes of the file or pipe.
    pub(crate) bytes: Vec<u8>,
    /// Programs that it needs, by the path that the recording has for them.
    pub(crate) programs: Vec<(&'static str, Elf)>,
    /// Its parts, if it is a file.
    pub(crate) recording: Option<Recording>,
}

impl Made {
    fn file(name: &'static str, recording: Recording) -> Made {
        let bytes = recording.file();
        Made { name, bytes, programs: Vec::new(), recording: Some(recording) }
    }

    fn pipe(name: &'static str, recording: Recording) -> Made {
        Made { name, bytes: recording.pipe(), programs: Vec::new(), recording: None }
    }

    fn with_program(mut self, path: &'static str, program: Elf) -> Made {
        self.programs.push((path, program));
        self
    }
}

/// Every golden recording that this program makes.
pub(crate) fn all() -> Vec<Made> {
    vec![
        arm64::dwarf(),
        arm64::frame_pointers(),
        branches::call_stack(),
        branches::any(),
        branches::counted(),
        kernel::guest(),
        kernel::ksymbols(),
        kernel::auxtrace(),
        kernel::losses(),
        kernel::rare_records(),
        kernel::every_field(),
        kernel::orphans(),
        life::processes(),
        life::no_times(),
        life::pipe(),
        old::perf_2_6_34(),
        old::perf_3_9(),
        old::perf_4_4(),
        new::perf_7(),
        deferred::chains(),
    ]
}

/// On CPU 1, of the first event (whose ids begin with 11).
fn at(pid: i32, tid: i32, time: u64) -> Id {
    Id { pid, tid, time, cpu: 1, id: 11 }
}

/// A SAMPLE record; its header has the CPU mode.
fn sample(cpu_mode: u16, fill: impl FnOnce(&mut Bytes)) -> Vec<u8> {
    record(kind::SAMPLE, cpu_mode, fill)
}
