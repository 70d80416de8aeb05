//! The kernel's symbols, loaded beside all else, and how other threads make room for that.
//!
//! The kernel writes its list of symbols for each reader anew, which takes longer than reading a
//! small recording and cannot be divided. So it begins first and goes on to the end without being
//! disturbed: as long as it keeps a CPU busy, one of the other threads holds back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use whit_symbolize::{DsoSpec, Symbolizer};

/// Whether the kernel's symbols are being loaded.
#[derive(Debug, Default)]
pub(crate) struct KernelLoad {
    is_running: Mutex<bool>,
    changed: Condvar,
}

impl KernelLoad {
    /// Loads them in a thread of their own. Its end is not awaited: the first user of the symbols
    /// waits for them.
    pub(crate) fn start(symbolizer: Arc<Symbolizer>) -> Arc<KernelLoad> {
        KernelLoad::start_with(move || drop(symbolizer.open(&DsoSpec::kernel())))
    }

    fn start_with(load: impl FnOnce() + Send + 'static) -> Arc<KernelLoad> {
        let this = Arc::new(KernelLoad { is_running: Mutex::new(true), ..KernelLoad::default() });
        let running = Running(this.clone());
        std::thread::spawn(move || {
            // Ends the wait of others even if loading panics.
            let _running = running;
            load();
        });
        this
    }

    /// Runs `work` in `threads` threads, this one among them. Gives the result of this one, and the
    /// results of the others that took part. `work` returns when all work is done. One of the
    /// threads begins only when the kernel's symbols are loaded.
    pub(crate) fn run_during<T: Send>(
        &self,
        threads: usize,
        work: impl Fn() -> T + Sync,
    ) -> (T, Vec<std::thread::Result<T>>) {
        let is_over = AtomicBool::new(false);
        let first_helper = || self.wait(&is_over).then(&work);
        let helper = || Some(work());
        std::thread::scope(|scope| {
            let first = (threads > 1).then(|| scope.spawn(first_helper));
            let others: Vec<_> = (2..threads).map(|_| scope.spawn(helper)).collect();
            let own = {
                let _end = End { load: self, is_over: &is_over };
                work()
            };
            let helpers = first.into_iter().chain(others);
            (own, helpers.filter_map(|helper| helper.join().transpose()).collect())
        })
    }

    /// Until the kernel's symbols are loaded; then its thread has ended.
    pub(crate) fn wait_for_end(&self) {
        self.wait(&AtomicBool::new(false));
    }

    /// Until the kernel's symbols are loaded, or `is_over`; false where nothing is left to do.
    fn wait(&self, is_over: &AtomicBool) -> bool {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        while *is_running && !is_over.load(Ordering::Relaxed) {
            is_running = self.changed.wait(is_running).unwrap_or_else(PoisonError::into_inner);
        }
        !is_over.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut bool)) {
        change(&mut self.is_running.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

struct Running(Arc<KernelLoad>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.change(|is_running| *is_running = false);
    }
}

struct End<'a> {
    load: &'a KernelLoad,
    is_over: &'a AtomicBool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Under the lock, so that nobody looks before and falls asleep behind it.
        self.load.change(|_| self.is_over.store(true, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc::channel;

    /// Numbers up to a limit, handed out to any thread.
    fn count_to(limit: usize, next: &AtomicUsize) -> usize {
        std::iter::from_fn(|| (next.fetch_add(1, Ordering::Relaxed) < limit).then_some(())).count()
    }

    #[test]
    fn everything_is_done_whether_or_not_symbols_are_loaded() {
        for threads in [1, 2, 5] {
            let (end_load, load_ends) = channel::<()>();
            let load = KernelLoad::start_with(move || _ = load_ends.recv());
            // Loading goes on all the time: the work ends without the one that holds back.
            let next = AtomicUsize::new(0);
            let (own, others) = load.run_during(threads, || count_to(1000, &next));
            let others: Vec<usize> = others.into_iter().map(Result::unwrap).collect();
            assert_eq!(own + others.iter().sum::<usize>(), 1000);
            assert_eq!(others.len(), threads.saturating_sub(2));
            // Loaded, they all take part.
            end_load.send(()).unwrap();
            assert!(load.wait(&AtomicBool::new(false)));
            let all_here = std::sync::Barrier::new(threads);
            let (_, others) = load.run_during(threads, || all_here.wait());
            assert_eq!(others.len(), threads - 1);
        }
    }

    #[test]
    fn the_one_that_held_back_joins_in() {
        let (end_load, load_ends) = channel::<()>();
        let load = KernelLoad::start_with(move || _ = load_ends.recv());
        let both_here = std::sync::Barrier::new(2);
        let own = std::thread::current().id();
        let (_, others) = load.run_during(2, || {
            if std::thread::current().id() == own {
                end_load.send(()).unwrap();
            }
            both_here.wait();
        });
        assert_eq!(others.len(), 1);
    }

    #[test]
    fn panics_leave_no_thread_waiting() {
        let load = KernelLoad::start_with(|| panic!("loading fails"));
        assert!(load.wait(&AtomicBool::new(false)));
        let (end_load, load_ends) = channel::<()>();
        let load = KernelLoad::start_with(move || _ = load_ends.recv());
        let run = std::panic::AssertUnwindSafe(|| load.run_during(2, || panic!("work fails")));
        assert!(std::panic::catch_unwind(run).is_err());
        drop(end_load);
        let own = std::thread::current().id();
        let (_, others) =
            KernelLoad::default().run_during(3, || assert_eq!(std::thread::current().id(), own));
        assert!(others.iter().all(Result::is_err));
    }
}
