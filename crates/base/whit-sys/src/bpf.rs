//! Whether BPF programs may be loaded: by loading one that does nothing. The kernel's counts of a
//! program's runs and their time. And maps' values, read where programs write them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::capability::Capability;
use crate::{Errno, check, privilege};

/// `BPF_PROG_LOAD` in `include/uapi/linux/bpf.h`.
const PROG_LOAD: libc::c_int = 5;
/// `BPF_PROG_TYPE_PERF_EVENT`: may be attached to any perf event.
const TYPE_PERF_EVENT: u32 = 7;
/// `r0 = 0; exit`, each a `struct bpf_insn`: opcode, registers, offset, immediate value.
const NOTHING: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
/// `r1 = 0; *(u64 *)(r10 - 8) = r1; r1 = atomic_xchg(r10 - 8, r1); r0 = 0; exit`.
const EXCHANGE: [[u8; 8]; 5] = [
    [0xb7, 1, 0, 0, 0, 0, 0, 0],
    [0x7b, 0x1a, 0xf8, 0xff, 0, 0, 0, 0],
    [0xdb, 0x1a, 0xf8, 0xff, 0xe1, 0, 0, 0],
    NOTHING[0],
    NOTHING[1],
];
/// Helpers for tracing are for programs with such a licence; this one calls none.
const LICENSE: &std::ffi::CStr = c"GPL";

/// Capabilities that loading a program for perf events needs.
const LOADING: [Capability; 3] = [Capability::Bpf, Capability::PerfMon, Capability::SysAdmin];

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` has had since Linux 4.9; the kernel takes
/// missing fields for zero.
#[repr(C)]
#[derive(Default)]
struct LoadAttr {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// Loads a program for perf events that does nothing, and unloads it. `Errno::PERM` where this
/// process may not, `Errno::NOSYS` where the kernel has no BPF.
pub fn try_load() -> Result<(), Errno> {
    try_load_program(&NOTHING)
}

/// The same with a program that exchanges a value atomically, which kernels before Linux 5.12 do not
/// know: `Errno::INVAL`.
pub fn try_load_exchange() -> Result<(), Errno> {
    try_load_program(&EXCHANGE)
}

fn try_load_program(instructions: &[[u8; 8]]) -> Result<(), Errno> {
    let attr = LoadAttr {
        prog_type: TYPE_PERF_EVENT,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        ..LoadAttr::default()
    };
    let _in_force = privilege::raise(&LOADING);
    // SAFETY: the attribute is live and has the size that is given; the addresses in it are of
    // constants and of live instructions, which the kernel only reads.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const attr, size_of_val(&attr)) };
    let fd = check(fd)? as i32;
    // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// `BPF_LINK_CREATE` and `BPF_PERF_EVENT` in `include/uapi/linux/bpf.h`.
const LINK_CREATE: libc::c_int = 28;
const ATTACH_PERF_EVENT: u32 = 41;

/// The part of `union bpf_attr` that `BPF_LINK_CREATE` has for perf events, since Linux 5.15.
#[repr(C)]
struct LinkAttr {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    bpf_cookie: u64,
}

/// Makes the kernel call a program at each hit of an event's tracepoint or probe, by any thread,
/// until the link is closed. The program can read the cookie. The event itself is neither switched
/// on nor off.
pub fn link_perf_event(
    program: BorrowedFd<'_>,
    event: BorrowedFd<'_>,
    cookie: u64,
) -> Result<OwnedFd, Errno> {
    let attr = LinkAttr {
        prog_fd: program.as_raw_fd() as u32,
        target_fd: event.as_raw_fd() as u32,
        attach_type: ATTACH_PERF_EVENT,
        flags: 0,
        bpf_cookie: cookie,
    };
    let _in_force = privilege::raise(&LOADING);
    // SAFETY: the attribute is live and has the size that is given; both descriptors are open for the whole call.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, LINK_CREATE, &raw const attr, size_of_val(&attr)) };
    let fd = check(fd)? as i32;
    // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `BPF_OBJ_GET_INFO_BY_FD` in `include/uapi/linux/bpf.h`.
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
/// `BPF_ENABLE_STATS`, since Linux 5.8.
const ENABLE_STATS: libc::c_int = 32;
/// `BPF_STATS_RUN_TIME`.
const STATS_RUN_TIME: u32 = 0;
/// Words of `struct bpf_prog_info` up to and with `run_cnt`, which it has since Linux 5.1; then comes
/// `recursion_misses`, since Linux 5.12,
const RUN_WORDS: usize = 26;
/// and the word that begins with `verified_insns`, of 32 bits, since Linux 5.16.
const VERIFIED_WORD: usize = RUN_WORDS + 1;
const INFO_WORDS: usize = VERIFIED_WORD + 1;
/// The word `run_time_ns`; `run_cnt` is the next.
const RUN_TIME_WORD: usize = 24;

/// The kernel's counts of a program's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunStatistics {
    /// Runs while statistics were kept.
    pub runs: u64,
    /// Time of these runs, on all CPUs.
    pub run_time_ns: u64,
    /// Runs that did not happen since the program, or one of its kind, ran on that CPU already. These
    /// are always counted; zero on kernels that do not know them.
    pub missed: u64,
}

/// Has the kernel keep statistics of all BPF programs' runs while the descriptor is open. It takes
/// `cap_sys_admin`: `Errno::PERM` without it, `Errno::INVAL` before Linux 5.8.
pub fn enable_run_statistics() -> Result<OwnedFd, Errno> {
    let kind = STATS_RUN_TIME;
    let _in_force = privilege::raise(&[Capability::SysAdmin]);
    // SAFETY: the attribute is live and has the size that is given; the kernel only reads it.
    let fd =
        unsafe { libc::syscall(libc::SYS_bpf, ENABLE_STATS, &raw const kind, size_of_val(&kind)) };
    let fd = check(fd)? as i32;
    // SAFETY: the kernel has just returned this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The part of `union bpf_attr` that `BPF_OBJ_GET_INFO_BY_FD` takes.
#[repr(C)]
struct InfoAttr {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// How often and how long a BPF program ran while statistics were kept. `Errno::OPNOTSUPP` where the
/// kernel keeps none.
pub fn run_statistics(program: BorrowedFd<'_>) -> Result<RunStatistics, Errno> {
    let (info, words) = program_info(program)?;
    if words < RUN_WORDS {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(RunStatistics {
        runs: info[RUN_TIME_WORD + 1],
        run_time_ns: info[RUN_TIME_WORD],
        missed: info[RUN_WORDS],
    })
}

/// Instructions that the verifier has looked at, each as often as it came by; `None` where the kernel
/// does not tell.
pub fn verified_instructions(program: BorrowedFd<'_>) -> Result<Option<u32>, Errno> {
    let (info, words) = program_info(program)?;
    let [a, b, c, d, ..] = info[VERIFIED_WORD].to_ne_bytes();
    Ok((words >= INFO_WORDS).then(|| u32::from_ne_bytes([a, b, c, d])))
}

/// The kernel's description of a program, and the number of its words.
fn program_info(program: BorrowedFd<'_>) -> Result<([u64; INFO_WORDS], usize), Errno> {
    // Zero where the kernel takes addresses: nothing else of the program is asked for.
    let mut info = [0u64; INFO_WORDS];
    let mut attr = InfoAttr {
        bpf_fd: program.as_raw_fd() as u32,
        info_len: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    let size = size_of_val(&attr);
    let _in_force = privilege::raise(&LOADING);
    // SAFETY: the attribute is live, has the size that is given and may be written; so is the
    // buffer of its address and length, and both live longer than the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, OBJ_GET_INFO_BY_FD, &raw mut attr, size) };
    check(result)?;
    Ok((info, attr.info_len as usize / size_of::<u64>()))
}

/// The values of an array that the kernel shows in memory (`BPF_F_MMAPABLE`, since Linux 5.5).
/// Programs write them meanwhile: each word is read whole, two words may be of different moments.
#[derive(Debug)]
pub struct MappedWords {
    map: MmapRaw,
    words: usize,
}

impl MappedWords {
    /// Maps the first `words` words of a map's values. The kernel refuses more than there are, up to
    /// the end of a page, and maps that it does not show.
    pub fn map(map: BorrowedFd<'_>, words: usize) -> io::Result<MappedWords> {
        let map = MmapOptions::new().len(words * size_of::<u64>()).map_raw_read_only(&map)?;
        Ok(MappedWords { map, words })
    }

    /// A word; 0 beyond the last.
    pub fn word(&self, index: usize) -> u64 {
        let start = self.map.as_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping is aligned to a page, has this many words, and is there as long as
        // `self`, which the slice does not outlive. Others write to it with whole words only, and we
        // load whole words, relaxed, which is allowed of memory that may not be written.
        let words = unsafe { std::slice::from_raw_parts(start, self.words) };
        words.get(index).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}

/// The values of an array that the kernel shows in memory, to be written here as well. Each word is read
/// and written whole.
#[derive(Debug)]
pub struct SharedWords {
    map: MmapRaw,
    words: usize,
}

impl SharedWords {
    /// Maps the first `words` words of a map's values. The kernel refuses more than there are, up to
    /// the end of a page, and maps that it does not show.
    pub fn map(map: BorrowedFd<'_>, words: usize) -> io::Result<SharedWords> {
        let map = MmapOptions::new().len(words * size_of::<u64>()).map_raw(&map)?;
        Ok(SharedWords { map, words })
    }

    fn all(&self) -> &[AtomicU64] {
        let start = self.map.as_mut_ptr().cast::<AtomicU64>();
        // SAFETY: the mapping is aligned to a page, may be written, has this many words, and is there
        // as long as `self`, which the slice does not outlive. Others write to it with whole words only.
        unsafe { std::slice::from_raw_parts(start, self.words) }
    }

    /// A word; 0 beyond the last. Writes before the store are visible from here on.
    pub fn load(&self, index: usize) -> u64 {
        self.all().get(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Some of the words; none where they go beyond the last.
    pub fn words(&self, range: std::ops::Range<usize>) -> &[AtomicU64] {
        self.all().get(range).unwrap_or(&[])
    }

    /// Stores a word; nothing beyond the last. Earlier reads are not moved behind this store.
    pub fn store(&self, index: usize, value: u64) {
        if let Some(word) = self.all().get(index) {
            word.store(value, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_loaded_or_the_right_is_missing() {
        let usable = crate::privilege::usable().unwrap();
        let may = usable.has(Capability::SysAdmin)
            || (usable.has(Capability::Bpf) && usable.has(Capability::PerfMon));
        match try_load() {
            Ok(()) => {}
            Err(Errno::PERM) => assert!(!may, "a lockdown or a filter forbids it"),
            Err(error) => assert_eq!(error, Errno::NOSYS),
        }
        match (try_load(), try_load_exchange()) {
            // A kernel before Linux 5.12.
            (Ok(()), Err(error)) => assert_eq!(error, Errno::INVAL),
            (all, exchange) => assert_eq!(all, exchange),
        }
    }

    #[test]
    fn a_descriptor_of_another_kind_has_no_statistics() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let refused = run_statistics(std::os::fd::AsFd::as_fd(&file)).unwrap_err();
        assert!([Errno::INVAL, Errno::PERM, Errno::NOSYS].contains(&refused), "{refused}");
    }

    #[test]
    fn words_are_read_where_others_write_them() {
        use std::os::fd::AsFd;
        use std::os::unix::fs::FileExt;
        let file = tempfile::tempfile().unwrap();
        file.set_len(24).unwrap();
        let words = MappedWords::map(file.as_fd(), 3).unwrap();
        assert_eq!(words.word(2), 0);
        file.write_all_at(&7u64.to_ne_bytes(), 16).unwrap();
        assert_eq!([0, 1, 2, 3].map(|index| words.word(index)), [0, 0, 7, 0]);
        let null = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(MappedWords::map(null.as_fd(), 3).is_err(), "it cannot be mapped");
    }

    #[test]
    fn shared_words_are_written_on_both_sides() {
        use std::os::fd::AsFd;
        use std::os::unix::fs::FileExt;
        let file = tempfile::tempfile().unwrap();
        file.set_len(24).unwrap();
        let words = SharedWords::map(file.as_fd(), 3).unwrap();
        file.write_all_at(&7u64.to_ne_bytes(), 16).unwrap();
        words.store(1, 5);
        words.store(3, 6);
        assert_eq!([0, 1, 2, 3].map(|index| words.load(index)), [0, 5, 7, 0]);
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 8).unwrap();
        assert_eq!(u64::from_ne_bytes(bytes), 5);
        assert_eq!((words.words(1..3).len(), words.words(1..4).len()), (2, 0));
    }

    #[test]
    fn statistics_are_switched_on_or_the_right_is_missing() {
        let may = crate::privilege::usable().unwrap().has(Capability::SysAdmin);
        match enable_run_statistics() {
            Ok(_) => assert!(may),
            Err(Errno::PERM) => assert!(!may, "a lockdown or a filter forbids it"),
            Err(error) => assert!([Errno::INVAL, Errno::NOSYS].contains(&error), "{error}"),
        }
    }
}
