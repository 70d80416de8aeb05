use super::*;
use crate::model::{DsoId, FunctionInfo};

/// Frames written as in reports, `kernel <- functions | user <- functions`; a function of a library is `name@library`.
struct Written {
    functions: Vec<FunctionInfo>,
    parts: Vec<(String, bool, String)>,
}

impl Written {
    fn of(stack: &str) -> Written {
        let (kernel, user) = stack.split_once('|').unwrap_or((stack, ""));
        let mut written = Written { functions: Vec::new(), parts: Vec::new() };
        for (text, kernel) in [(kernel, true), (user, false)] {
            for frame in text.split("<-").map(str::trim).filter(|frame| !frame.is_empty()) {
                let (name, library) = frame.split_once(" in ").unwrap_or((frame, "app"));
                let name = name.to_owned();
                written.functions.push(FunctionInfo {
                    name: name.clone().into(),
                    dso: DsoId(0),
                    known: true,
                });
                written.parts.push((name, kernel, library.to_owned()));
            }
        }
        written
    }

    fn frames(&self) -> Vec<Frame<'_>> {
        let parts = self.parts.iter().enumerate();
        parts
            .map(|(index, (name, kernel, library))| Frame {
                function: FunctionId(index as u32),
                name,
                kernel: *kernel,
                library,
            })
            .collect()
    }

    fn name(&self, function: FunctionId) -> &str {
        self.functions[function.index()].name.exact()
    }
}

/// Kind, call site, and function of the kernel.
fn site(stack: &str) -> Option<(LockKind, String, String)> {
    let written = Written::of(stack);
    let site = lock_site(&written.frames())?;
    let name = |function: Option<FunctionId>| {
        function.map_or("-", |function| written.name(function)).to_owned()
    };
    Some((site.kind, name(site.caller), name(site.kernel)))
}

const FUTEX: &str =
    "__schedule <- schedule <- futex_do_wait <- futex_wait <- do_futex <- do_syscall_64";

#[test]
fn the_call_site_is_outside_of_the_lock() {
    for (user, caller) in [
        (
            "futex_wait in libc.so.6 <- __GI___lll_lock_wait in libc.so.6 <- \
             pthread_mutex_lock@@GLIBC_2.2.5 in libc.so.6 <- __gthread_mutex_lock <- std::mutex::lock <- \
             std::unique_lock<std::mutex>::lock <- std::unique_lock<std::mutex>::unique_lock <- lookup <- main",
            "lookup",
        ),
        // A static program has the C library inside.
        ("__lll_lock_wait <- pthread_mutex_lock <- take <- main", "take"),
        // A function without a name is a caller like any other, unless locks are on both sides.
        ("__lll_lock_wait <- pthread_mutex_lock <- fun_1a0@app <- main", "fun_1a0@app"),
        ("__lll_lock_wait <- pthread_mutex_lock <- wrapper <- pthread_once <- main", "wrapper"),
        // The lock of the C library's own memory.
        ("__lll_lock_wait_private in libc.so.6 <- malloc in libc.so.6 <- build <- main", "build"),
        ("__lll_lock_wait in libc.so.6 <- start_thread in libc.so.6", "-"),
        // The runtime stands between the C library and the program.
        (
            "__new_sem_wait_slow64 in libc.so.6 <- PyThread_acquire_lock_timed in libpython3.11.so.1.0 <- \
             acquire_timed in libpython3.11.so.1.0 <- cfunction_call in libpython3.11.so.1.0 <- \
             py::__main__.hold in libpython3.11.so.1.0 <- _PyEval_Vector in libpython3.11.so.1.0",
            "py::__main__.hold",
        ),
        (
            "pthread_cond_timedwait in libc.so.6 <- take_gil in libpython3.11.so.1.0 <- \
             PyEval_RestoreThread in libpython3.11.so.1.0 <- compress in _zlib.so <- py::__main__.pack in python3",
            "compress",
        ),
        // A thread of the runtime itself.
        (
            "pthread_mutex_lock in libc.so.6 <- os::PlatformMonitor::wait in libjvm.so <- CompileQueue::get in libjvm.so",
            "CompileQueue::get",
        ),
    ] {
        let wanted = Some((LockKind::Word, caller.to_owned(), "-".to_owned()));
        assert_eq!(site(&format!("{FUTEX} | {user}")), wanted, "{user}");
    }
}

#[test]
fn monitors_of_java_are_parked_in_the_method_that_wants_them() {
    for stack in [
        "pthread_cond_wait in libc.so.6 <- os::PlatformEvent::park in libjvm.so <- ObjectMonitor::EnterI in libjvm.so \
         <- ObjectSynchronizer::enter in libjvm.so <- Runtime1::monitorenter in libjvm.so <- \
         monitorenter_nofpu Runtime1 stub in perf-7.map <- void Locks.work() in perf-7.map",
        "pthread_cond_wait in libc.so.6 <- Parker::park in libjvm.so <- Unsafe_Park in libjvm.so <- \
         void jdk.internal.misc.Unsafe.park(boolean, long) in perf-7.map <- \
         int java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(int) in perf-7.map <- \
         void Locks.work() in perf-7.map",
    ] {
        let wanted = Some((LockKind::Parked, "void Locks.work()".to_owned(), "-".to_owned()));
        assert_eq!(site(&format!("{FUTEX} | {stack}")), wanted, "{stack}");
    }
}

#[test]
fn parked_waiters_say_nothing_of_the_lock_by_their_address() {
    for (stack, caller) in [
        (
            format!(
                "{FUTEX} | __new_sem_wait_slow64 in libc.so.6 <- PGSemaphoreLock <- LWLockAcquire <- LockBuffer"
            ),
            "LockBuffer",
        ),
        (
            format!(
                "{FUTEX} | syscall in libc.so.6 <- parking_lot_core::parking_lot::park <- \
                 parking_lot::raw_mutex::RawMutex::lock_slow <- work"
            ),
            "work",
        ),
        // A lock of rows: its waiters poll a latch.
        (
            "schedule <- ep_poll <- do_epoll_wait <- do_syscall_64 | epoll_wait in libc.so.6 <- \
             WaitEventSetWait <- WaitLatch <- ProcSleep <- fun_45d8a0@postgres <- LockAcquireExtended <- \
             heap_update"
                .to_owned(),
            "heap_update",
        ),
    ] {
        let wanted = Some((LockKind::Parked, caller.to_owned(), "-".to_owned()));
        assert_eq!(site(&stack), wanted, "{stack}");
    }
}

#[test]
fn locks_of_the_kernel_are_named_by_the_function_that_wants_them() {
    for (stack, caller, kernel) in [
        (
            "schedule <- rwsem_down_read_slowpath <- down_read_killable <- lock_mm_and_find_vma <- \
             exc_page_fault <- asm_exc_page_fault | touch",
            "touch",
            "lock_mm_and_find_vma",
        ),
        (
            "schedule <- __mutex_lock.constprop.0 <- ext4_orphan_add <- do_syscall_64 | unlink in libc.so.6 <- f",
            "f",
            "ext4_orphan_add",
        ),
        (
            "schedule <- locks_lock_inode_wait <- __do_sys_flock <- do_syscall_64 | flock in libc.so.6 <- f",
            "f",
            "__do_sys_flock",
        ),
        // A kernel thread.
        (
            "schedule <- __mutex_lock <- jbd2_log_do_checkpoint <- kthread",
            "jbd2_log_do_checkpoint",
            "jbd2_log_do_checkpoint",
        ),
    ] {
        let wanted = Some((LockKind::Kernel, caller.to_owned(), kernel.to_owned()));
        assert_eq!(site(stack), wanted, "{stack}");
    }
    let pi =
        "schedule <- rt_mutex_schedule <- rt_mutex_slowlock_block <- futex_lock_pi <- do_futex | f";
    assert_eq!(site(pi), Some((LockKind::Word, "f".into(), "-".into())));
}

#[test]
fn other_waits_have_no_site() {
    for stack in [
        "schedule <- do_nanosleep | nanosleep in libc.so.6 <- f",
        "schedule <- ep_poll | epoll_wait in libc.so.6 <- loop",
        "schedule <- futex_wait | pthread_cond_wait in libc.so.6 <- next_job",
        "",
    ] {
        assert_eq!(site(stack), None, "{stack}");
    }
}

#[test]
fn the_releasing_function_is_the_users_or_that_of_the_interrupt() {
    for (stack, wanted) in [
        (
            "try_to_wake_up <- wake_up_q <- futex_wake | __GI___lll_lock_wake in libc.so.6 <- \
             __GI___pthread_mutex_unlock_usercnt in libc.so.6 <- std::lock_guard<std::mutex>::~lock_guard <- refresh",
            Some("refresh"),
        ),
        ("try_to_wake_up <- hrtimer_wakeup <- __hrtimer_run_queues", Some("hrtimer_wakeup")),
        ("", None),
    ] {
        let written = Written::of(stack);
        let found = releasing(&written.frames()).map(|function| written.name(function));
        assert_eq!(found, wanted, "{stack}");
    }
}

#[test]
fn kernel_locks_are_wanted_by_the_function_outside_of_them() {
    for (stack, wanted) in [
        (
            "__pv_queued_spin_lock_slowpath <- _raw_spin_lock <- try_to_wake_up <- kick_pool",
            "try_to_wake_up",
        ),
        (
            "rwsem_down_read_slowpath <- down_read_killable <- lock_mm_and_find_vma | f",
            "lock_mm_and_find_vma",
        ),
        ("__mutex_lock.constprop.0 <- ext4_orphan_add | unlink", "ext4_orphan_add"),
        ("_raw_spin_lock | f", "-"),
    ] {
        let written = Written::of(stack);
        let found = kernel_caller(&written.frames()).map_or("-", |function| written.name(function));
        assert_eq!(found, wanted, "{stack}");
    }
}
