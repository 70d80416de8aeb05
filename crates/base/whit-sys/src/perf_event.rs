//! One open perf event: `perf_event_open(2)` and the ioctls on its descriptor.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings;
use perf_event_open_sys::ioctls;

use crate::capability::Capability;
use crate::{Errno, check, privilege};

/// Smallest `perf_event_attr` that any kernel takes (`PERF_ATTR_SIZE_VER0`).
const ATTR_SIZE_VER0: usize = 64;
/// Largest attribute the kernel looks at: one page on every architecture.
const ATTR_SIZE_MAX: usize = 4096;
/// The ioctls act on the whole group when told so (`PERF_IOC_FLAG_GROUP`).
const WHOLE_GROUP: u32 = 1;

/// Capabilities that opening may need: the first two to count at all, the third for processes of
/// other users (before Linux 5.9 beside `cap_perfmon`).
const OPENING: [Capability; 3] = [Capability::PerfMon, Capability::SysAdmin, Capability::SysPtrace];

/// Flags of `perf_event_open(2)`. Close-on-exec is always set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// `pid` is a descriptor of a cgroup directory (`PERF_FLAG_PID_CGROUP`).
    pub pid_is_cgroup: bool,
}

/// An open perf event. Closing it stops the event.
#[derive(Debug)]
pub struct PerfEventFd(OwnedFd);

impl PerfEventFd {
    /// Opens the event that `attr` describes: the bytes of a `perf_event_attr` whose second
    /// `u32` is its own size. `pid`, `cpu` and `group` are as in `perf_event_open(2)`; `None`
    /// for `group` stands for -1. `Errno::INVAL` without asking the kernel when the size field
    /// does not fit the bytes.
    pub fn open(
        attr: &[u8],
        pid: i32,
        cpu: i32,
        group: Option<&PerfEventFd>,
        flags: OpenFlags,
    ) -> Result<PerfEventFd, Errno> {
        let mut attr = attr.to_vec();
        let size = attr.get(4..8).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        if size as usize > attr.len() || attr.len() < ATTR_SIZE_VER0 || attr.len() > ATTR_SIZE_MAX {
            return Err(Errno::INVAL);
        }
        let mut bits = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
        if flags.pid_is_cgroup {
            bits |= u64::from(bindings::PERF_FLAG_PID_CGROUP);
        }
        let group = group.map_or(-1, |g| g.0.as_raw_fd());
        let _in_force = privilege::raise(&OPENING);
        // SAFETY: `attr` is a live buffer of at least `size` and at least 64 bytes (the kernel
        // takes a size of 0 for 64); the kernel reads that much and may write the size field.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, attr.as_mut_ptr(), pid, cpu, group, bits)
        };
        let fd = check(fd)? as i32;
        // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
        Ok(PerfEventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The error that a filter in front of the kernel gives for `perf_event_open`; `None` where calls reach the kernel.
    ///
    /// The kernel refuses unknown flags with `EINVAL` before it looks at rights, so any other error is not its own. Only
    /// a kernel without perf events says `ENOSYS`, as some filters do.
    pub fn refused_in_front() -> Option<Errno> {
        const UNKNOWN_FLAGS: libc::c_ulong = !0;
        let attr = std::ptr::null_mut::<bindings::perf_event_attr>();
        // SAFETY: the kernel looks at the flags before the attributes, and reads none from a null pointer.
        let result =
            unsafe { libc::syscall(libc::SYS_perf_event_open, attr, 0, -1, -1, UNKNOWN_FLAGS) };
        check(result).err().filter(|errno| *errno != Errno::INVAL)
    }

    /// A file in the place of an event, which can be mapped as the event's ring. The kernel refuses all else.
    #[cfg(feature = "fake-events")]
    pub fn fake(file: OwnedFd) -> PerfEventFd {
        PerfEventFd(file)
    }

    /// Starts the event.
    pub fn enable(&self) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a plain flag word on a descriptor that we own.
        unit(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    /// Stops the event.
    pub fn disable(&self) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a plain flag word on a descriptor that we own.
        unit(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }

    /// Starts the group that this event leads.
    pub fn enable_group(&self) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a plain flag word on a descriptor that we own.
        unit(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), WHOLE_GROUP) })
    }

    /// Stops the group that this event leads.
    pub fn disable_group(&self) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a plain flag word on a descriptor that we own.
        unit(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), WHOLE_GROUP) })
    }

    /// Sets the count to zero.
    pub fn reset(&self) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a plain flag word on a descriptor that we own.
        unit(unsafe { ioctls::RESET(self.0.as_raw_fd(), 0) })
    }

    /// Begins a new sampling period of this length. `Errno::INVAL` for 0, for one with bit 63, and for an
    /// event that was opened without a period.
    pub fn set_period(&self, period: u64) -> Result<(), Errno> {
        let request = libc::Ioctl::from(bindings::PERIOD);
        // Not by perf-event-open-sys, which passes the period itself where the kernel reads an address.
        // SAFETY: the kernel reads one u64 from the address of a live u64.
        unit(unsafe { libc::ioctl(self.0.as_raw_fd(), request, &raw const period) })
    }

    /// Sends this event's records to the ring of `owner`, which must be on the same CPU (or the
    /// same task, for events on any CPU).
    pub fn set_output(&self, owner: &PerfEventFd) -> Result<(), Errno> {
        // SAFETY: both descriptors are open perf events that we own.
        unit(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), owner.0.as_raw_fd()) })
    }

    /// Stops (`true`) or resumes the writing of records into the ring of this event.
    pub fn pause_output(&self, pause: bool) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a plain flag word on a descriptor that we own.
        unit(unsafe { ioctls::PAUSE_OUTPUT(self.0.as_raw_fd(), u32::from(pause)) })
    }

    /// The kernel's id of this event, as samples carry it.
    pub fn id(&self) -> Result<u64, Errno> {
        let mut id = 0u64;
        // SAFETY: the kernel writes one u64 to the address of a live u64.
        unit(unsafe { ioctls::ID(self.0.as_raw_fd(), &mut id) })?;
        Ok(id)
    }

    /// Sets a tracepoint's filter expression, or an address filter.
    pub fn set_filter(&self, filter: &CStr) -> Result<(), Errno> {
        // SAFETY: the kernel only reads the nul-terminated string, which outlives the call.
        unit(unsafe { ioctls::SET_FILTER(self.0.as_raw_fd(), filter.as_ptr().cast_mut()) })
    }

    /// Attaches the loaded BPF program `program` to this event.
    pub fn set_bpf(&self, program: BorrowedFd<'_>) -> Result<(), Errno> {
        // SAFETY: the ioctl takes a descriptor number; `program` is open for the whole call.
        unit(unsafe { ioctls::SET_BPF(self.0.as_raw_fd(), program.as_raw_fd() as u32) })
    }

    /// Reads the count as `attr.read_format` lays it out; gives the number of words read.
    /// `Errno::NOSPC` when `words` is too small. 0 for an event in error: a pinned one that found
    /// no counter. Allocates nothing.
    pub fn read(&self, words: &mut [u64]) -> Result<usize, Errno> {
        let size_bytes = size_of_val(words);
        // SAFETY: the kernel writes at most `size_bytes` bytes into a live buffer of that size, in
        // which every byte pattern is valid.
        let read = unsafe { libc::read(self.0.as_raw_fd(), words.as_mut_ptr().cast(), size_bytes) };
        Ok(check(read as i64)? as usize / size_of::<u64>())
    }
}

impl AsFd for PerfEventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn unit(result: i32) -> Result<(), Errno> {
    check(i64::from(result)).map(drop)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_DUMMY` with `sample_id_all` and `comm`: opens for
    /// any user on any machine.
    pub(crate) fn dummy_attr() -> Vec<u8> {
        let mut attr = vec![0u8; 112];
        attr[0..4].copy_from_slice(&1u32.to_ne_bytes());
        attr[4..8].copy_from_slice(&112u32.to_ne_bytes());
        attr[8..16].copy_from_slice(&9u64.to_ne_bytes());
        // exclude_kernel | exclude_hv | comm: bits 5, 6 and 9.
        attr[40..48].copy_from_slice(&((1u64 << 5) | (1 << 6) | (1 << 9)).to_ne_bytes());
        attr
    }

    /// `PERF_COUNT_SW_TASK_CLOCK` with a sampling period, user mode alone.
    pub(crate) fn sampling_attr(period: u64) -> Vec<u8> {
        let mut attr = dummy_attr();
        attr[8..16].copy_from_slice(&1u64.to_ne_bytes());
        attr[16..24].copy_from_slice(&period.to_ne_bytes());
        attr[40..48].copy_from_slice(&((1u64 << 5) | (1 << 6)).to_ne_bytes());
        attr
    }

    #[test]
    fn attributes_with_a_wrong_size_are_refused_before_the_kernel_sees_them() {
        let mut attr = dummy_attr();
        attr[4..8].copy_from_slice(&200u32.to_ne_bytes());
        let error = PerfEventFd::open(&attr, 0, -1, None, OpenFlags::default()).unwrap_err();
        assert_eq!(error, Errno::INVAL);
        let short = PerfEventFd::open(&attr[..32], 0, -1, None, OpenFlags::default());
        assert_eq!(short.unwrap_err(), Errno::INVAL);
    }

    #[test]
    fn events_have_distinct_ids_and_counts_can_be_read() {
        let open = || PerfEventFd::open(&dummy_attr(), 0, -1, None, OpenFlags::default()).unwrap();
        let (a, b) = (open(), open());
        assert_ne!(a.id().unwrap(), b.id().unwrap());
        a.reset().unwrap();
        a.disable().unwrap();
        a.enable().unwrap();
        let mut words = [u64::MAX; 4];
        assert_eq!(a.read(&mut words).unwrap(), 1);
        assert_eq!(words[0], 0);
    }

    #[test]
    fn the_errno_of_a_refusal_is_kept() {
        let gone = PerfEventFd::open(&dummy_attr(), i32::MAX, -1, None, OpenFlags::default());
        assert_eq!(gone.unwrap_err(), Errno::SRCH);
    }
}
