use super::*;
use crate::model::{CommId, ThreadId};

/// The class of a stack written as in reports, `kernel <- functions | user <- functions`.
fn class(stack: &str) -> &'static str {
    let (kernel, user) = stack.split_once('|').unwrap_or((stack, ""));
    let frames = |text, kernel| {
        let names = str::split(text, "<-").map(str::trim).filter(|name| !name.is_empty());
        names.map(move |name| NamedFrame { name, kernel })
    };
    let all: Vec<_> = frames(kernel, true).chain(frames(user, false)).collect();
    classify(&all).name()
}

const FUTEX: &str = "__schedule <- schedule <- futex_do_wait <- __futex_wait <- futex_wait <- do_futex <- \
                     __x64_sys_futex <- do_syscall_64 <- entry_SYSCALL_64_after_hwframe";

/// The stacks of the mutex, the rwlock, the condition variable, the semaphore and the join are those that Linux 6.18
/// and glibc 2.36 gave for `bench/workloads/wait_classes.c`, with outer functions left out. All others are written by
/// hand, with the names of functions that the programs have.
#[test]
fn futex_waits_are_classified_by_user_functions() {
    for (wanted, user) in [
        (
            "lock",
            "futex_wait <- __GI___lll_lock_wait <- lll_mutex_lock_optimized <- \
             pthread_mutex_lock@@GLIBC_2.2.5 <- lock_mutex",
        ),
        (
            "lock",
            "__futex_abstimed_wait_common <- __pthread_rwlock_rdlock_full64 <- \
             pthread_rwlock_rdlock@GLIBC_2.2.5 <- lock_rwlock",
        ),
        (
            "queue",
            "__futex_abstimed_wait_common64 <- __futex_abstimed_wait_common <- __pthread_cond_wait_common <- \
             pthread_cond_wait@@GLIBC_2.3.2 <- wait_cond",
        ),
        // The condition came, and somebody else has its mutex.
        (
            "lock",
            "futex_wait <- __GI___lll_lock_wait <- __pthread_mutex_cond_lock <- __pthread_cond_wait_common <- \
             pthread_cond_wait@@GLIBC_2.3.2 <- wait_cond",
        ),
        (
            "queue",
            "__futex_abstimed_wait_common <- __new_sem_wait_slow64.constprop.0 <- wait_semaphore",
        ),
        ("join", "__futex_abstimed_wait_common <- __pthread_clockjoin_ex <- join_threads"),
        // The tail call of pthread_barrier_wait() is none.
        ("join", "futex_wait <- pthread_barrier_wait@GLIBC_2.2.5 <- run"),
        // A lock of PostgreSQL is made of a semaphore.
        (
            "lock",
            "__futex_abstimed_wait_common <- __new_sem_wait_slow64.constprop.0 <- PGSemaphoreLock <- \
             LWLockAcquire <- XLogFlush",
        ),
        ("queue", "runtime.futex <- runtime.futexsleep <- runtime.notesleep <- runtime.stopm"),
        ("lock", "runtime.futex <- runtime.futexsleep <- runtime.lock2 <- runtime.lockWithRank"),
        ("lock", "syscall <- std::sys::sync::mutex::futex::Mutex::lock_contended <- worker"),
        ("queue", "syscall <- std::sys::sync::condvar::futex::Condvar::wait_optional_timeout"),
        (
            "lock",
            "syscall <- parking_lot_core::parking_lot::park <- parking_lot::raw_mutex::RawMutex::lock_slow",
        ),
        (
            "queue",
            "syscall <- parking_lot_core::parking_lot::park <- parking_lot::condvar::Condvar::wait",
        ),
        // Stacks of JDK 17 and CPython 3.11, with outer functions left out.
        (
            "lock",
            "pthread_cond_wait@@GLIBC_2.3.2 <- os::PlatformEvent::park <- ObjectMonitor::EnterI <- \
             ObjectMonitor::enter <- ObjectSynchronizer::enter <- InterpreterRuntime::monitorenter <- Interpreter",
        ),
        (
            "queue",
            "pthread_cond_wait@@GLIBC_2.3.2 <- os::PlatformEvent::park <- ObjectMonitor::wait <- JVM_MonitorWait",
        ),
        (
            "sleep",
            "pthread_cond_timedwait@@GLIBC_2.3.2 <- os::PlatformEvent::park <- JavaThread::sleep <- JVM_Sleep",
        ),
        (
            "lock",
            "pthread_cond_wait@@GLIBC_2.3.2 <- Parker::park <- Unsafe_Park <- \
             void jdk.internal.misc.Unsafe.park(boolean, long) <- \
             void java.util.concurrent.locks.LockSupport.park(java.lang.Object) <- \
             int java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(int) <- void Locks.contendLock()",
        ),
        (
            "queue",
            "pthread_cond_wait@@GLIBC_2.3.2 <- Parker::park <- Unsafe_Park <- \
             int java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(int) <- \
             void java.util.concurrent.CountDownLatch.await() <- void Main.run()",
        ),
        (
            "lock",
            "pthread_cond_timedwait@@GLIBC_2.3.2 <- PyCOND_TIMEDWAIT <- take_gil <- PyEval_RestoreThread <- \
             acquire_timed <- lock_PyThread_acquire_lock <- py::threading.Condition.wait <- py::queue.Queue.get",
        ),
        (
            "queue",
            "__new_sem_wait_slow64.constprop.0 <- PyThread_acquire_lock_timed <- acquire_timed <- \
             lock_PyThread_acquire_lock <- py::threading.Condition.wait <- py::queue.Queue.get <- py::__main__.getter",
        ),
        (
            "queue",
            "__new_sem_wait_slow64.constprop.0 <- PyThread_acquire_lock_timed <- _queue_SimpleQueue_get_impl <- \
             _queue_SimpleQueue_get <- py::concurrent.futures.thread._worker",
        ),
        (
            "lock",
            "__new_sem_wait_slow64.constprop.0 <- PyThread_acquire_lock_timed <- acquire_timed <- \
             lock_PyThread_acquire_lock <- py::__main__.hold",
        ),
        // A lock of one's own.
        ("lock", "syscall <- play"),
        ("lock", ""),
    ] {
        assert_eq!(class(&format!("{FUTEX} | {user}")), wanted, "{user}");
    }
}

/// Written by hand, with the functions that decide; most of them stand in stacks of the same recording.
#[test]
fn the_innermost_known_kernel_function_decides() {
    for (wanted, stack) in [
        (
            "sleep",
            "__schedule <- schedule <- do_nanosleep <- hrtimer_nanosleep <- common_nsleep <- \
             __x64_sys_clock_nanosleep <- do_syscall_64 | clock_nanosleep@GLIBC_2.2.5 <- __nanosleep",
        ),
        (
            "disk",
            "schedule_timeout <- io_schedule_timeout <- __iomap_dio_rw <- iomap_dio_rw <- ext4_file_read_iter \
             <- vfs_read <- __x64_sys_pread64 | __libc_pread",
        ),
        (
            "disk",
            "io_schedule <- folio_wait_bit <- folio_wait_writeback <- file_write_and_wait_range <- \
             ext4_sync_file <- do_fsync | fsync",
        ),
        (
            "disk",
            "io_schedule_timeout <- wait_for_completion_io_timeout <- submit_bio_wait <- blkdev_issue_flush",
        ),
        (
            "page-fault",
            "io_schedule <- folio_wait_bit_common <- filemap_read_folio <- filemap_fault <- __do_fault <- \
             do_fault <- __handle_mm_fault <- handle_mm_fault <- exc_page_fault <- asm_exc_page_fault | touch",
        ),
        // The lock of the address space, not the page.
        (
            "lock",
            "schedule_preempt_disabled <- rwsem_down_read_slowpath <- down_read_killable <- \
             lock_mm_and_find_vma <- exc_page_fault <- asm_exc_page_fault | touch_file",
        ),
        (
            "lock",
            "rwsem_down_write_slowpath <- down_write_killable <- vm_mmap_pgoff <- do_syscall_64 | __mmap",
        ),
        ("lock", "schedule <- __mutex_lock.constprop.0 <- ext4_orphan_add | unlink"),
        ("lock", "schedule <- locks_lock_inode_wait <- __do_sys_flock | __GI___flock"),
        ("pipe", "schedule <- anon_pipe_read <- vfs_read <- ksys_read | __GI___libc_read <- read"),
        (
            "network",
            "schedule_timeout <- unix_stream_read_generic <- unix_stream_recvmsg <- sock_recvmsg <- vfs_read",
        ),
        ("network", "schedule_timeout <- inet_csk_accept <- inet_accept <- do_accept | accept"),
        ("queue", "schedule <- do_wait_intr_irq <- eventfd_read <- vfs_read <- ksys_read | read"),
        (
            "poll",
            "schedule_hrtimeout_range_clock <- do_epoll_wait <- __x64_sys_epoll_wait | epoll_wait",
        ),
        (
            "poll",
            "schedule_hrtimeout_range_clock <- poll_schedule_timeout.constprop.0 <- do_sys_poll | __poll",
        ),
        ("poll", "poll_schedule_timeout.constprop.0 <- do_select <- core_sys_select | __select"),
        // A lock of PostgreSQL's rows: its waiters poll a latch.
        (
            "lock",
            "ep_poll <- do_epoll_wait | epoll_wait <- WaitEventSetWait <- WaitLatch <- ProcSleep",
        ),
        ("child", "schedule <- do_wait <- kernel_wait4 <- do_syscall_64 | __GI___wait4"),
        ("queue", "schedule <- worker_thread <- kthread <- ret_from_fork"),
        ("queue", "schedule <- khugepaged <- kthread <- ret_from_fork_asm"),
        ("other", "schedule <- do_sigtimedwait <- __x64_sys_rt_sigtimedwait | sigwait"),
        ("other", "schedule_timeout <- wait_for_completion <- __flush_work <- __lru_add_drain_all"),
    ] {
        assert_eq!(class(stack), wanted, "{stack}");
    }
}

#[test]
fn without_kernel_functions_those_of_the_library_decide() {
    assert_eq!(class("| __GI___poll <- loop"), "poll");
    assert_eq!(class("| pthread_mutex_lock@@GLIBC_2.2.5 <- f"), "lock");
    assert_eq!(class("| __libc_recvfrom <- f"), "network");
    assert_eq!(class("| f <- main"), "other");
    assert_eq!(class(""), "unknown");
}

#[test]
fn sets_have_names_of_classes_and_groups() {
    let io = WaitClassSet::parse("io").unwrap();
    assert!(io.has(WaitClass::Disk) && io.has(WaitClass::PageFault) && !io.has(WaitClass::Lock));
    for class in WaitClass::ALL {
        let set = WaitClassSet::parse(class.name()).unwrap();
        assert_eq!(set.only(), Some(class));
        assert!(WaitClassSet::ALL.has(class) && !WaitClassSet::ALL.without(set).has(class));
    }
    assert_eq!(io.only(), None);
    let error = WaitClassSet::parse("locks").unwrap_err().to_string();
    assert!(error.contains("`locks`") && error.contains("page-fault"), "{error}");
}

#[test]
fn throttled_waits_are_a_class_apart_from_other_preemptions() {
    let sums = SwitchSums {
        cpu_ns: 1,
        sync_count: 2,
        sync_wait_ns: 20,
        preempt_count: 5,
        preempt_wait_ns: 50,
        throttled_count: 3,
        throttled_wait_ns: 40,
        longest_preempt_ns: 6,
        longest_throttled_ns: 30,
        ..SwitchSums::default()
    };
    let row = SwitchRow {
        thread: ThreadId(0),
        comm: CommId(0),
        node: NodeId(0),
        object: None,
        brings: Brings::Unknown,
        block: 0,
        sums,
    };
    let parts: Vec<_> = NodeClasses::default().split(&row).collect();
    let shown: Vec<_> = parts
        .iter()
        .map(|(class, part)| (*class, part.count(), part.wait_ns(), part.longest_wait_ns()))
        .collect();
    let wanted = [
        (None, 0, 0, 0),
        (Some(WaitClass::Unknown), 2, 20, 0),
        (Some(WaitClass::Preempted), 2, 10, 6),
        (Some(WaitClass::Throttled), 3, 40, 30),
    ];
    assert_eq!(shown, wanted);
    // The parts are the whole.
    let mut whole = SwitchSums::default();
    parts.iter().for_each(|(_, part)| whole.add(part));
    assert_eq!(whole, sums);
}

#[test]
fn the_object_decides_between_waits_for_several_files() {
    let of = |brings| WaitClass::ALL.map(|class| class.of_object(brings));
    assert_eq!(of(Brings::Unknown), WaitClass::ALL);
    for (brings, wanted) in
        [(Brings::Work, WaitClass::IdleLoop), (Brings::Answers, WaitClass::Peer)]
    {
        let expected =
            WaitClass::ALL.map(|class| if class == WaitClass::Poll { wanted } else { class });
        assert_eq!(of(brings), expected);
        assert!(WaitClassSet::parse("idle").unwrap().has(wanted), "{wanted:?}");
    }
}
