//! Functions and libraries that implement locks. The function that wants a lock stands outside of them.

use super::wait_class_names::plain;

/// Beginnings of the names of libraries in which no call site lies.
const LIBRARIES: &[&str] = &[
    "[vdso]",
    "ld-linux",
    "ld-musl",
    "libc++",
    "libc-",
    "libc.",
    "libgcc_s",
    "libgomp",
    "libpthread",
    "libstdc++",
];

/// Beginnings of the names of runtimes of managed languages. Where a managed function is further out, it is the one
/// that waits.
const RUNTIMES: &[&str] = &["_queue.", "_thread.", "libjvm.", "libpython", "pypy", "python"];

/// Functions of locks, without underlines at the beginning. One with a star at its end stands for all names that
/// begin like it.
const USER: &[&str] = &[
    "LWLock*",
    "LockAcquire*",
    "LockRelease*",
    "InterpreterRuntime::monitor*",
    "Monitor::*",
    "Mutex::lock*",
    "Mutex::unlock*",
    "ObjectMonitor::*",
    "ObjectSynchronizer::*",
    "PGSemaphore*",
    "Parker::*",
    "ProcLockWakeup",
    "ProcSleep",
    "ProcWakeup",
    "PyThread_acquire_lock*",
    "PyThread_release_lock*",
    "Runtime1::monitor*",
    "SetLatch",
    "SharedRuntime::monitor*",
    "Unsafe_Park",
    "Unsafe_Unpark",
    "WaitEventSet*",
    "WaitLatch*",
    "WaitOnLock",
    "absl::Mutex*",
    "clock_nanosleep*",
    "complete_monitor_locking*",
    "futex*",
    "gthread_*",
    "glibcxx_rwlock_*",
    "gomp_*",
    "java.util.concurrent.locks.*",
    "jdk.internal.misc.Unsafe.*",
    "kill",
    "lll_*",
    "lock_api::*",
    "monitorenter*",
    "monitorexit*",
    "mtx_*",
    "new_sem_*",
    "os::Platform*",
    "parking_lot::*",
    "parking_lot_core::*",
    "pthread_*",
    "py::Condition.*",
    "py::Queue.*",
    "py::Thread.join*",
    "py::threading.*",
    "runtime.futex*",
    "runtime.lock*",
    "runtime.semrelease*",
    "runtime.unlock*",
    "sem_*",
    "shared_mutex_pthread::*",
    "std::__shared_mutex_*",
    "std::lock<*",
    "std::lock_guard<*",
    "std::mutex::*",
    "std::recursive_*",
    "std::scoped_lock<*",
    "std::shared_lock<*",
    "std::shared_mutex::*",
    "std::shared_timed_mutex::*",
    "std::sync::*",
    "std::sys::*",
    "std::timed_mutex::*",
    "std::unique_lock<*",
    "syscall",
    "sync.(*Mutex).*",
    "sync.(*RWMutex).*",
];

/// Functions of locks whose waiters wait at a word of their own, not at one of the lock.
const PARKING: &[&str] = &[
    "LWLock*",
    "ObjectMonitor::*",
    "ProcSleep",
    "Unsafe_Park",
    "java.util.concurrent.locks.*",
    "parking_lot::*",
    "parking_lot_core::*",
    "runtime.lock*",
];

/// Functions of the kernel's own locks.
const KERNEL: &[&str] = &[
    "down",
    "down_*",
    "mutex_*",
    "native_queued_*",
    "osq_*",
    "percpu_*",
    "pv_queued_*",
    "queued_*",
    "raw_read_*",
    "raw_spin_*",
    "raw_write_*",
    "rt_mutex_*",
    "rt_spin_*",
    "rwbase_*",
    "rwsem_*",
    "schedule_preempt_disabled",
    "ww_mutex_*",
];

/// Functions of the kernel between a system call and the wake-up of a thread.
const WAKING: &[&str] = &[
    "autoremove_wake_function",
    "complete*",
    "default_wake_function",
    "pollwake",
    "swake_up_*",
    "try_to_wake_up",
    "ttwu_*",
    "wake_up_*",
    "wake_up",
    "woken_wake_function",
];

/// Functions with which the kernel is entered.
const ENTRIES: &[&str] = &["asm_*", "do_syscall_*", "entry_*", "ret_from_fork*", "x64_sys_*"];

fn has(table: &[&str], name: &str) -> bool {
    let plain = plain(name);
    table.iter().any(|entry| match entry.strip_suffix('*') {
        Some(beginning) => plain.starts_with(beginning),
        None => *entry == plain,
    })
}

pub(super) fn is_lock_function(name: &str) -> bool {
    has(USER, name)
}

pub(super) fn is_parking(name: &str) -> bool {
    has(PARKING, name)
}

pub(super) fn is_kernel_lock_function(name: &str) -> bool {
    has(KERNEL, name)
}

pub(super) fn is_waking(name: &str) -> bool {
    has(WAKING, name)
}

pub(super) fn is_entry(name: &str) -> bool {
    has(ENTRIES, name)
}

/// Whether a library is one that programs wait and take locks in: the function that called it says more. For the name of
/// a file without its folder.
pub fn is_system_library(name: &str) -> bool {
    LIBRARIES.iter().any(|beginning| name.starts_with(beginning))
}

/// For the library and the name of a function: glibc's own names, or its library. Other C libraries have another
/// mutex.
pub(super) fn is_glibc_mutex(library: &str, name: &str) -> bool {
    let (plain, of_glibc) = (plain(name), ["libc.so.6", "libc-2", "libpthread"]);
    let is_mutex = plain.starts_with("pthread_mutex_") && !plain.contains("unlock");
    plain.starts_with("lll_mutex_lock")
        || is_mutex && of_glibc.iter().any(|beginning| library.starts_with(beginning))
}

/// Whether a library is the runtime of a managed language. For the name of a file without its folder.
pub fn is_runtime(name: &str) -> bool {
    RUNTIMES.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_names_without_underlines() {
        for entry in [USER, PARKING, KERNEL, WAKING, ENTRIES].concat() {
            assert_eq!(plain(entry.trim_end_matches('*')), entry.trim_end_matches('*'), "{entry}");
        }
    }

    #[test]
    fn names_of_locks_are_known_with_their_additions() {
        for name in [
            "__GI___lll_lock_wait",
            "lll_mutex_lock_optimized",
            "pthread_mutex_lock@@GLIBC_2.2.5",
            "__gthread_mutex_lock",
            "std::unique_lock<std::mutex>::unique_lock",
            "std::sys::sync::mutex::futex::Mutex::lock_contended",
            "sync.(*Mutex).lockSlow",
            "__futex_abstimed_wait_common",
        ] {
            assert!(is_lock_function(name), "{name}");
        }
        for name in
            ["lookup", "std::thread::_State_impl", "runtime.mallocgc", "lock_table", "LockBuffer"]
        {
            assert!(!is_lock_function(name), "{name}");
        }
        assert!(is_system_library("libc.so.6") && is_system_library("libstdc++.so.6.0.30"));
        assert!(!is_system_library("libcurl.so.4") && !is_system_library("postgres"));
    }
}
