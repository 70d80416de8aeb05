//! The small vocabulary that every whit crate shares: kinds of address, ids, CPU lists, times, sizes, the
//! median, the events that have a name everywhere, and language runtimes.
//!
//! A bare `u64` says nothing about whether it is an address in a running process, an address as
//! the ELF file states it, or an offset into that file; mixing the three is the classic symbolizer
//! bug. These types keep them apart and cost nothing at run time. [`OutsideText`] does the same for names that a
//! recording or another program chose: it cannot be printed unescaped by mistake.
//!
//! Kinds of address do not mix, and names of others print escaped:
//!
//! ```
//! use whit_types::{BuildId, FileOffset, HardwareEvent, OutsideText, Svma};
//!
//! let stated = Svma(0x40_1000);
//! let in_file = FileOffset(0x1000);
//! // `stated == in_file` does not compile.
//! assert_eq!(stated.0 - in_file.0, 0x40_0000);
//!
//! let name = OutsideText::from("worker\x1b[2J".to_string());
//! assert_eq!(name.to_string(), r"worker\x1b[2J");
//! assert_eq!(name.exact(), "worker\x1b[2J");
//!
//! assert_eq!(HardwareEvent::from_name("cpu-cycles"), Some(HardwareEvent::CpuCycles));
//! assert_eq!(BuildId::new(&[0xab, 0xcd]).map(|id| id.to_string()).as_deref(), Some("abcd"));
//! ```
//!
//! The caller converts at the boundary of a file or process, and asks for the exact text only where bytes have to stay.
//!
//! Invariants: no dependency, no I/O, no `unsafe`, nothing here knows a file format.
#![forbid(unsafe_code)]

mod byte_size;
mod cgroup_path;
mod civil;
mod cpu_list;
mod event;
mod instruction_set;
mod median;
mod open_failure;
mod outside_text;
pub mod pad;
mod runtime;
mod server_socket;
mod stack_end;
mod time_length;

use std::fmt;

pub use byte_size::{ByteSize, ParseByteSizeError};
pub use cgroup_path::{CgroupPath, short_container_id};
pub use civil::civil;
pub use cpu_list::{CpuListError, MAX_CPUS, format_cpu_list, parse_cpu_list};
pub use event::{HardwareEvent, SoftwareEvent, ToolEvent};
pub use instruction_set::InstructionSet;
pub use median::median;
pub use open_failure::OpenFailure;
pub use outside_text::{
    OutsideText, escape, escape_appended, escape_json, escape_path, is_escaped,
};
pub use runtime::{PYTHON_WALKED, Runtime};
pub use server_socket::{ParseServerSocketError, ServerSocket};
pub use stack_end::StackEnd;
pub use time_length::{ParseTimeLengthError, TimeLength};

macro_rules! address_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address_type!(
    /// Actual virtual memory address: where something was in the address space of the process
    /// (or kernel) that was sampled.
    Avma
);
address_type!(
    /// Stated virtual memory address: the address that the ELF file itself gives (`p_vaddr`,
    /// `st_value`), before the loader adds its bias.
    Svma
);
address_type!(
    /// Offset in bytes from the start of a file on disk, as `mmap` takes it.
    FileOffset
);

/// Process id (thread group id). `-1` stands for "none", as in the kernel's records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pid(pub i32);

impl Pid {
    /// The thread that the process began with: it bears the same number.
    pub fn main_thread(self) -> Tid {
        Tid(self.0)
    }
}

/// Thread id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid(pub i32);

/// Index of a logical CPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CpuId(pub u32);

/// A time stamp in nanoseconds of whichever clock the recording was made with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TimestampNs(pub u64);

impl TimestampNs {
    /// Nanoseconds from `earlier` to `self`; zero where the order is reversed.
    pub fn since(self, earlier: TimestampNs) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// In seconds with all nine decimal places.
    pub fn in_seconds(self) -> String {
        format!("{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Instruction set of the machine that was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arch {
    /// x86 with 64-bit registers, little-endian.
    X86_64,
    /// arm64.
    Aarch64,
}

impl Arch {
    /// The architecture that this program was built for, if whit can unwind it.
    pub const fn native() -> Option<Arch> {
        if cfg!(target_arch = "x86_64") {
            Some(Arch::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Arch::Aarch64)
        } else {
            None
        }
    }

    /// From the machine field of `uname`, as recordings carry it.
    pub fn from_uname(machine: &str) -> Option<Arch> {
        match machine {
            "x86_64" | "amd64" => Some(Arch::X86_64),
            "aarch64" | "arm64" => Some(Arch::Aarch64),
            _ => None,
        }
    }
}

/// Device and inode of a mapped file, as `/proc/PID/maps` and mapping records name them. On overlayfs and
/// btrfs, `stat` gives another device for the same file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// The file's number on its device.
    pub inode: u64,
}

/// Tells a file without a build id from other files that have had its path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileStamp {
    /// Which file.
    pub id: FileId,
    /// Length in bytes.
    pub size_bytes: u64,
    /// When it was written last, in nanoseconds since the epoch.
    pub modified_ns: u64,
}

/// A GNU build id: up to 20 bytes that name one linked binary.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BuildId {
    len: u8,
    bytes: [u8; BuildId::MAX_SIZE_BYTES],
}

impl BuildId {
    /// Longest build id that perf recordings can carry.
    pub const MAX_SIZE_BYTES: usize = 20;

    /// From the note's bytes; longer ids are cut to 20 bytes, as perf does. `None` when empty.
    pub fn new(id: &[u8]) -> Option<BuildId> {
        if id.is_empty() {
            return None;
        }
        let len = id.len().min(Self::MAX_SIZE_BYTES);
        let mut bytes = [0; Self::MAX_SIZE_BYTES];
        bytes[..len].copy_from_slice(&id[..len]);
        Some(BuildId { len: len as u8, bytes })
    }

    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_prints_as_hex_and_is_cut_at_twenty_bytes() {
        assert_eq!(BuildId::new(&[0xab, 0x01]).unwrap().to_string(), "ab01");
        assert_eq!(BuildId::new(&[7; 32]).unwrap().as_bytes().len(), 20);
        assert!(BuildId::new(&[]).is_none());
    }

    #[test]
    fn time_never_runs_backwards() {
        assert_eq!(TimestampNs(5).since(TimestampNs(9)), 0);
    }
}
