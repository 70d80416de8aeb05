//! Capabilities of a file: the extended attribute `security.capability`.
//!
//! Layout, all little-endian (`struct vfs_cap_data` in `include/uapi/linux/capability.h`): a word
//! with the revision in its highest byte and the effective flag in its lowest bit. Then come
//! permitted and inheritable, low words first (one pair in revision 1, two from revision 2 on);
//! then, in revision 3, the user id that is root in the user namespace where the attribute counts.

use std::os::fd::AsFd;

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};

use crate::Errno;
use crate::capability::CapabilitySet;

const ATTRIBUTE: &str = "security.capability";
const REVISION_MASK: u32 = 0xff00_0000;
const REVISION_1: u32 = 0x0100_0000;
const REVISION_2: u32 = 0x0200_0000;
const REVISION_3: u32 = 0x0300_0000;
const FLAG_EFFECTIVE: u32 = 1;
/// Size of the largest revision.
const SIZE_MAX_BYTES: usize = 24;
/// Size of revision 2.
const SIZE_BYTES: usize = 20;

/// Capabilities that a file lends to the user who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileCapabilities {
    /// Capabilities that the process may put in force.
    pub permitted: CapabilitySet,
    /// Inherited capabilities that it may put in force.
    pub inheritable: CapabilitySet,
    /// Whether all of it is in force from the start.
    pub effective: bool,
    /// Root of the user namespace where this counts; 0 is the machine's own.
    pub root_uid: u32,
}

impl FileCapabilities {
    /// `permitted`, in force from the start, for every process on the machine.
    pub const fn effective(permitted: CapabilitySet) -> FileCapabilities {
        let inheritable = CapabilitySet::EMPTY;
        FileCapabilities { permitted, inheritable, effective: true, root_uid: 0 }
    }

    /// The attribute in revision 2, which counts in the initial user namespace.
    pub fn to_bytes(&self) -> [u8; SIZE_BYTES] {
        let flag = if self.effective { FLAG_EFFECTIVE } else { 0 };
        let (permitted, inheritable) = (self.permitted.0, self.inheritable.0);
        let words = [
            REVISION_2 | flag,
            permitted as u32,
            inheritable as u32,
            (permitted >> 32) as u32,
            (inheritable >> 32) as u32,
        ];
        let mut bytes = [0; SIZE_BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads an attribute of any revision; `None` for one that is not known or has a wrong size.
    pub fn from_bytes(bytes: &[u8]) -> Option<FileCapabilities> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at * 4..)?.first_chunk()?));
        let magic = word(0)?;
        let (pairs, has_root) = match (magic & REVISION_MASK, bytes.len()) {
            (REVISION_1, 12) => (1, false),
            (REVISION_2, SIZE_BYTES) => (2, false),
            (REVISION_3, SIZE_MAX_BYTES) => (2, true),
            _ => return None,
        };
        let set = |first: usize| {
            let high = if pairs == 2 { word(first + 2)? } else { 0 };
            Some(CapabilitySet(u64::from(word(first)?) | u64::from(high) << 32))
        };
        Some(FileCapabilities {
            permitted: set(1)?,
            inheritable: set(2)?,
            effective: magic & FLAG_EFFECTIVE != 0,
            root_uid: if has_root { word(5)? } else { 0 },
        })
    }

    /// Those of an open file; `None` where it has none. `Errno::OPNOTSUPP` where the file system
    /// keeps no such attributes, `Errno::INVAL` where the attribute is not understood.
    pub fn of_file(file: impl AsFd) -> Result<Option<FileCapabilities>, Errno> {
        let mut bytes = [0u8; SIZE_MAX_BYTES];
        match fgetxattr(file, ATTRIBUTE, &mut bytes) {
            Ok(size) => {
                let bytes = bytes.get(..size).ok_or(Errno::INVAL)?;
                FileCapabilities::from_bytes(bytes).map(Some).ok_or(Errno::INVAL)
            }
            Err(Errno::NODATA) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives them to an open file. Needs `cap_setfcap`.
    pub fn give(&self, file: impl AsFd) -> Result<(), Errno> {
        fsetxattr(file, ATTRIBUTE, &self.to_bytes(), XattrFlags::empty())
    }

    /// Removes all capabilities of a file. Needs `cap_setfcap`.
    pub fn remove(file: impl AsFd) -> Result<(), Errno> {
        match fremovexattr(file, ATTRIBUTE) {
            Err(Errno::NODATA) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Capability;

    const PROFILING: FileCapabilities = FileCapabilities::effective(CapabilitySet::of(&[
        Capability::PerfMon,
        Capability::Bpf,
        Capability::SysPtrace,
        Capability::Syslog,
    ]));

    /// As `setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog+ep` writes it, read with
    /// `getfattr -e hex -n security.capability`.
    const BY_SETCAP: [u8; 20] = [1, 0, 0, 2, 0, 0, 8, 0, 0, 0, 0, 0, 0xc4, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn bytes_are_those_of_setcap() {
        assert_eq!(PROFILING.to_bytes(), BY_SETCAP);
        assert_eq!(FileCapabilities::from_bytes(&BY_SETCAP), Some(PROFILING));
    }

    #[test]
    fn every_revision_is_read_and_everything_else_is_refused() {
        let first = [0, 0, 0, 1, 0, 0, 8, 0, 1, 0, 0, 0];
        let read = FileCapabilities::from_bytes(&first).unwrap();
        assert_eq!((read.permitted.0, read.inheritable.0, read.effective), (1 << 19, 1, false));
        let mut third = BY_SETCAP.to_vec();
        third[3] = 3;
        third.extend(1000u32.to_le_bytes());
        let read = FileCapabilities::from_bytes(&third).unwrap();
        assert_eq!((read.permitted, read.root_uid), (PROFILING.permitted, 1000));
        for size in (0..24).filter(|size| *size != 20) {
            assert_eq!(FileCapabilities::from_bytes(&third[..size]), None, "{size}");
        }
        assert_eq!(FileCapabilities::from_bytes(&[0xff; 20]), None);
    }

    #[test]
    fn a_file_without_any_has_none() {
        let file = tempfile::tempfile().unwrap();
        assert!(matches!(FileCapabilities::of_file(&file), Ok(None) | Err(Errno::OPNOTSUPP)));
        let proc = std::fs::File::open("/proc/self/status").unwrap();
        assert_eq!(FileCapabilities::of_file(&proc), Err(Errno::OPNOTSUPP));
    }
}
