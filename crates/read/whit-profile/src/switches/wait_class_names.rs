//! Functions in which threads wait, and the class of a wait there.
//!
//! Sorted by name for the search. An entry with a star at its end stands for all names that begin like it. Names of
//! kernel functions are those of Linux 5.15 to 7.0.

use super::wait_class::WaitClass::{
    self, Child, Disk, Join, Lock, Network, PageFault, Pipe, Poll, Preempted, Queue, Sleep,
};

/// The meaning of a function for the class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// Waits in it are of this class.
    Class(WaitClass),
    /// User functions decide, and a lock is likely.
    Futex,
    /// Functions further out decide whether it is a lock; else it is a queue.
    Semaphore,
}

/// A name or the beginning of names, and the meaning.
pub(super) type Entry = (&'static str, Meaning);

const fn is(name: &'static str, class: WaitClass) -> Entry {
    (name, Meaning::Class(class))
}

/// The longest entry for a name. Compilers and symbol versions add to the end, the C library to the beginning.
pub(super) fn meaning_of(table: &[Entry], name: &str) -> Option<Meaning> {
    let plain = plain(name);
    // A longer beginning of the name sorts behind a shorter one.
    let after = table.partition_point(|(entry, _)| entry.trim_end_matches('*') <= plain);
    let candidates = table[..after].iter().rev();
    let first = plain.chars().next();
    let same_letter = candidates.take_while(|(entry, _)| entry.chars().next() == first);
    let fits = |(entry, _): &&Entry| match entry.strip_suffix('*') {
        Some(beginning) => plain.starts_with(beginning),
        None => *entry == plain,
    };
    same_letter.into_iter().find(fits).map(|(_, meaning)| *meaning)
}

/// `__GI___poll`, `__libc_read` and `futex_wait.isra.0` are `poll`, `read` and `futex_wait`.
pub(super) fn plain(name: &str) -> &str {
    let name = java_method(name).unwrap_or(name);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    // Rust's newer names put the type in brackets: `<std::sys::sync::condvar::futex::Condvar>::wait`.
    let name = name.trim_start_matches(['_', '<']);
    let name = name.strip_prefix("GI_").map_or(name, |rest| rest.trim_start_matches('_'));
    let name = name.strip_prefix("libc_").unwrap_or(name);
    match name.split_once('.') {
        Some((beginning, _)) if !beginning.is_empty() && !beginning.contains("::") => {
            // Names of Go and Java have a package in front: `runtime.futexsleep`.
            if table_has_package(beginning) { name } else { beginning }
        }
        _ => name,
    }
}

/// A JVM's list of code has `void java.lang.Thread.sleep(long)`.
fn java_method(name: &str) -> Option<&str> {
    let (front, _) = name.split_once('(')?;
    let (kind, method) = front.rsplit_once(' ')?;
    (method.contains('.') && !kind.contains("::")).then_some(method)
}

fn table_has_package(beginning: &str) -> bool {
    matches!(beginning, "runtime" | "sync" | "internal/poll" | "syscall" | "java" | "jdk")
}

/// Functions of the kernel.
pub(super) const KERNEL: &[Entry] = &[
    is("anon_pipe_*", Pipe),
    is("asm_exc_page_fault", PageFault),
    is("balance_dirty_pages*", Disk),
    is("bit_wait_io*", Disk),
    is("blk_*", Disk),
    is("blkdev_*", Disk),
    is("btrfs_*", Disk),
    is("common_nsleep*", Sleep),
    is("cond_resched*", Preempted),
    is("cv_wait_common", Queue),
    is("dio_*", Disk),
    is("do_epoll_pwait", Poll),
    is("do_epoll_wait", Poll),
    is("do_fault", PageFault),
    is("do_msgrcv", Queue),
    is("do_msgsnd", Queue),
    is("do_nanosleep", Sleep),
    is("do_page_fault", PageFault),
    is("do_poll*", Poll),
    is("do_sched_yield", Preempted),
    is("do_select", Poll),
    is("do_semtimedop", Lock),
    is("do_swap_page", PageFault),
    is("do_sys_flock", Lock),
    is("do_sys_poll", Poll),
    is("do_user_addr_fault", PageFault),
    is("do_wait", Child),
    is("do_wait_intr*", Queue),
    is("down", Lock),
    is("down_*", Lock),
    is("ep_poll", Poll),
    is("eventfd_*", Queue),
    is("exc_page_fault", PageFault),
    is("exit_to_user_mode*", Preempted),
    is("ext4_*", Disk),
    is("f2fs_*", Disk),
    is("fcntl_setlk*", Lock),
    is("fifo_open", Pipe),
    is("filemap_fault", PageFault),
    is("filemap_get_pages", Disk),
    is("filemap_read*", Disk),
    is("filemap_update_page", Disk),
    is("flock_lock_inode_wait", Lock),
    is("folio_lock*", Disk),
    is("folio_wait_*", Disk),
    is("fuse_*", Disk),
    ("futex_*", Meaning::Futex),
    ("futex_lock_pi*", Meaning::Class(Lock)),
    is("handle_mm_fault", PageFault),
    is("handle_userfault", PageFault),
    is("hrtimer_nanosleep*", Sleep),
    is("inet_*", Network),
    is("inotify_read", Queue),
    is("io_cqring_wait*", Queue),
    is("io_schedule*", Disk),
    is("io_wq_worker", Queue),
    is("iomap_*", Disk),
    is("irqentry_exit*", Preempted),
    is("iterate_dir", Disk),
    is("jbd2_*", Disk),
    is("kcompactd", Queue),
    is("kernel_wait4", Child),
    is("kjournald2", Queue),
    is("kswapd*", Queue),
    is("kthread", Queue),
    is("kthread_worker_fn", Queue),
    is("locks_lock_inode_wait", Lock),
    is("migration_entry_wait*", PageFault),
    is("msleep*", Sleep),
    is("mutex_lock*", Lock),
    is("netlink_*", Network),
    is("nfs_*", Disk),
    is("nvme_*", Disk),
    is("p9_*", Disk),
    is("percpu_down_*", Lock),
    is("percpu_rwsem_*", Lock),
    is("pipe_*", Pipe),
    is("poll_schedule_timeout", Poll),
    is("posix_lock_inode_wait", Lock),
    is("preempt_schedule*", Preempted),
    is("queued_read_lock_slowpath", Lock),
    is("queued_write_lock_slowpath", Lock),
    is("read_events", Disk),
    is("request_wait_answer", Disk),
    is("rq_qos_wait", Disk),
    is("rt_mutex_*", Lock),
    is("rwbase_*", Lock),
    is("rwsem_down_*", Lock),
    is("sk_stream_*", Network),
    is("sk_wait_*", Network),
    is("skb_*", Network),
    is("skcipher_*", Disk),
    is("smpboot_thread_fn", Queue),
    is("sock_*", Network),
    is("submit_bio*", Disk),
    is("sync_dirty_buffer", Disk),
    is("tcp_*", Network),
    is("timerfd_read*", Sleep),
    is("udp_*", Network),
    is("unix_*", Network),
    is("usleep_range*", Sleep),
    is("virtio_vsock_*", Network),
    is("vsock_*", Network),
    is("wait_for_completion_io*", Disk),
    is("wait_for_partner", Pipe),
    is("wait_for_vfork_done", Child),
    is("wait_on_buffer", Disk),
    is("wait_on_page_*", Disk),
    is("wbt_wait", Disk),
    is("worker_thread", Queue),
    is("wq_sleep", Queue),
    is("ww_mutex_lock*", Lock),
    is("x64_sys_clock_nanosleep", Sleep),
    is("x64_sys_epoll_*", Poll),
    is("x64_sys_nanosleep", Sleep),
    is("x64_sys_poll", Poll),
    is("x64_sys_ppoll", Poll),
    is("xfs_*", Disk),
    is("xlog_*", Disk),
];

/// Functions of programs and libraries, without underlines at the beginning.
pub(super) const USER: &[Entry] = &[
    is("LWLockAcquire*", Lock),
    is("LWLockWaitForVar", Lock),
    is("Monitor::lock*", Lock),
    is("Monitor::wait*", Queue),
    is("Mutex::lock*", Lock),
    is("ObjectMonitor::EnterI*", Lock),
    is("ObjectMonitor::enter*", Lock),
    is("ObjectMonitor::wait*", Queue),
    ("Parker::park*", Meaning::Semaphore),
    is("ProcSleep", Lock),
    is("PyThread_acquire_lock*", Lock),
    ("Unsafe_Park", Meaning::Semaphore),
    is("accept", Network),
    is("accept4", Network),
    is("clock_nanosleep*", Sleep),
    is("connect", Network),
    is("epoll_pwait*", Poll),
    is("epoll_wait", Poll),
    is("fdatasync", Disk),
    is("fsync", Disk),
    is("futex_lock_pi*", Lock),
    is("gomp_barrier_wait*", Join),
    is("gomp_mutex_lock*", Lock),
    ("gomp_sem_wait*", Meaning::Semaphore),
    is("gomp_team_barrier_wait*", Join),
    is("io_uring_wait_*", Queue),
    is("lll_lock_wait*", Lock),
    is("lll_mutex_lock*", Lock),
    is("nanosleep", Sleep),
    ("new_sem_*", Meaning::Semaphore),
    is("parking_lot::condvar::*", Queue),
    is("parking_lot::raw_mutex::*", Lock),
    is("parking_lot::raw_rwlock::*", Lock),
    ("parking_lot_core::*", Meaning::Semaphore),
    is("poll", Poll),
    is("ppoll", Poll),
    is("pselect*", Poll),
    is("pthread_barrier_wait", Join),
    is("pthread_clockjoin*", Join),
    is("pthread_cond_*", Queue),
    is("pthread_join", Join),
    is("pthread_mutex_*", Lock),
    is("pthread_rwlock_*", Lock),
    is("pthread_timedjoin*", Join),
    is("pthread_tryjoin*", Join),
    is("recv", Network),
    is("recvfrom", Network),
    is("recvmmsg", Network),
    is("recvmsg", Network),
    ("runtime.futexsleep", Meaning::Semaphore),
    is("runtime.lock2", Lock),
    is("runtime.notesleep", Queue),
    is("runtime.notetsleep*", Queue),
    is("runtime.usleep*", Sleep),
    is("select", Poll),
    ("sem_*", Meaning::Semaphore),
    is("send", Network),
    is("sendmsg", Network),
    is("sendto", Network),
    is("std::atomic_futex_unsigned_base::*", Join),
    is("std::condition_variable*", Queue),
    is("std::mutex::lock*", Lock),
    is("std::sys::pal::unix::thread::Thread::join*", Join),
    is("std::sys::sync::condvar::*", Queue),
    is("std::sys::sync::mutex::*", Lock),
    is("std::sys::sync::once::*", Lock),
    is("std::sys::sync::rwlock::*", Lock),
    is("std::sys::sync::thread_parking::*", Queue),
    is("std::thread::Thread::park*", Queue),
    is("std::thread::park*", Queue),
    is("std::thread::thread::Thread*", Queue),
    is("usleep", Sleep),
    is("wait", Child),
    is("wait4", Child),
    is("waitid", Child),
    is("waitpid", Child),
];

/// Functions of runtimes around a primitive of the C library, such as a condition variable that makes a lock. The
/// innermost one decides, before any function of the C library does.
pub(super) const RUNTIME: &[Entry] = &[
    is("JavaThread::sleep", Sleep),
    is("ObjectMonitor::EnterI", Lock),
    is("ObjectMonitor::ReenterI", Lock),
    is("ObjectMonitor::enter", Lock),
    is("ObjectMonitor::wait", Queue),
    is("drop_gil", Lock),
    is("queue_SimpleQueue_get*", Queue),
    is("take_gil", Lock),
];

/// Functions by which a Java virtual machine has a thread wait for a lock or for work: the managed program knows.
pub(super) const PARKS: &[Entry] =
    &[("Parker::park*", Meaning::Semaphore), ("Unsafe_Park", Meaning::Semaphore)];

/// Functions of managed programs by which they wait, made of locks and queues further in. The outermost one decides:
/// a latch is made of the same queue of threads as a lock.
pub(super) const MANAGED: &[Entry] = &[
    is("java.util.concurrent.ArrayBlockingQueue.*", Queue),
    is("java.util.concurrent.CountDownLatch.*", Queue),
    is("java.util.concurrent.CyclicBarrier.*", Join),
    is("java.util.concurrent.DelayQueue.*", Queue),
    is("java.util.concurrent.Exchanger.*", Queue),
    is("java.util.concurrent.ForkJoinPool.awaitWork", Queue),
    is("java.util.concurrent.FutureTask.awaitDone", Join),
    is("java.util.concurrent.LinkedBlockingDeque.*", Queue),
    is("java.util.concurrent.LinkedBlockingQueue.*", Queue),
    is("java.util.concurrent.LinkedTransferQueue.*", Queue),
    is("java.util.concurrent.Phaser.*", Join),
    is("java.util.concurrent.PriorityBlockingQueue.*", Queue),
    is("java.util.concurrent.Semaphore.*", Queue),
    is("java.util.concurrent.SynchronousQueue*", Queue),
    is("java.util.concurrent.ThreadPoolExecutor.getTask", Queue),
    is("java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.*", Queue),
    is("java.util.concurrent.locks.AbstractQueuedSynchronizer.*", Lock),
    is("java.util.concurrent.locks.ReentrantLock*", Lock),
    is("java.util.concurrent.locks.ReentrantReadWriteLock*", Lock),
    is("java.util.concurrent.locks.StampedLock.*", Lock),
    is("py::Barrier.wait*", Join),
    is("py::Condition.wait*", Queue),
    is("py::Event.wait*", Queue),
    is("py::Queue.get*", Queue),
    is("py::Queue.put*", Queue),
    is("py::Thread.join*", Join),
    is("py::queue.Queue.get", Queue),
    is("py::queue.Queue.put", Queue),
    is("py::threading.Barrier.wait", Join),
    is("py::threading.Condition.wait*", Queue),
    is("py::threading.Event.wait", Queue),
    is("py::threading.Thread.join", Join),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_have_no_double_names() {
        for table in [KERNEL, USER, RUNTIME, MANAGED] {
            let names: Vec<_> = table.iter().map(|(name, _)| name.trim_end_matches('*')).collect();
            for pair in names.windows(2) {
                assert!(pair[0] < pair[1], "{} must stand before {}", pair[1], pair[0]);
            }
        }
    }

    #[test]
    fn the_longest_entry_counts() {
        assert_eq!(meaning_of(KERNEL, "futex_lock_pi"), Some(Meaning::Class(Lock)));
        assert_eq!(meaning_of(KERNEL, "futex_do_wait"), Some(Meaning::Futex));
        assert_eq!(meaning_of(KERNEL, "__futex_wait"), Some(Meaning::Futex));
        assert_eq!(meaning_of(KERNEL, "futex"), None);
        assert_eq!(meaning_of(KERNEL, "do_wait"), Some(Meaning::Class(Child)));
        assert_eq!(meaning_of(KERNEL, "do_wait_intr_irq"), Some(Meaning::Class(Queue)));
        assert_eq!(meaning_of(KERNEL, ""), None);
    }

    #[test]
    fn additions_to_names_are_left_out() {
        assert_eq!(plain("__GI___poll"), "poll");
        assert_eq!(plain("__libc_read"), "read");
        assert_eq!(plain("futex_wait.isra.0"), "futex_wait");
        assert_eq!(plain("pthread_mutex_lock@@GLIBC_2.2.5"), "pthread_mutex_lock");
        assert_eq!(plain("__new_sem_wait_slow64.constprop.0"), "new_sem_wait_slow64");
        assert_eq!(plain("runtime.lock2"), "runtime.lock2");
        let rust = "<std::sys::sync::condvar::futex::Condvar>::wait_optional_timeout";
        assert_eq!(meaning_of(USER, rust), Some(Meaning::Class(Queue)));
        let parked = "<std::thread::thread::Thread>::park_timeout";
        assert_eq!(meaning_of(USER, parked), Some(Meaning::Class(Queue)));
        for java in [
            "java.util.concurrent.locks.ReentrantLock.lock",
            "void java.util.concurrent.locks.ReentrantLock.lock()",
        ] {
            assert_eq!(meaning_of(MANAGED, java), Some(Meaning::Class(Lock)), "{java}");
        }
        assert_eq!(plain("sync.(*Mutex).lockSlow"), "sync.(*Mutex).lockSlow");
        assert_eq!(plain("std::mutex::lock()"), "std::mutex::lock()");
    }
}
