//! Whether anybody is left to be counted.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use whit_host::processes;
use whit_host::roots::Roots;
use whit_sys::pidfd;
use whit_types::Tid;

/// Interval of the search for ended threads where the kernel has no descriptor for them.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The counted threads. One of them is watched at a time: while it lives, the count goes on.
#[derive(Debug)]
pub(super) struct Watch {
    /// Those that may still be there.
    threads: VecDeque<Tid>,
    /// Descriptor of the first thread; `None` where the kernel has none for it.
    first: Option<OwnedFd>,
}

impl Watch {
    pub(super) fn new(threads: &[Tid]) -> Watch {
        let mut watch = Watch { threads: threads.iter().copied().collect(), first: None };
        watch.first = watch.open_first();
        watch
    }

    fn open_first(&self) -> Option<OwnedFd> {
        self.threads.front().and_then(|&tid| pidfd::of_thread(tid.0).ok())
    }

    /// The descriptor that becomes readable when the watched thread ends.
    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        self.first.as_ref()
    }

    /// How long to wait before looking again.
    pub(super) fn timeout(&self) -> Option<Duration> {
        (self.first.is_none() && !self.threads.is_empty()).then_some(LOOK_EVERY)
    }

    /// Passes over threads that are not there any more; says whether none is left.
    pub(super) fn is_over(&mut self, roots: &Roots, first_has_ended: bool) -> bool {
        let mut has_ended = first_has_ended;
        while let Some(&tid) = self.threads.front() {
            if !has_ended && processes::exists(roots, tid) {
                break;
            }
            has_ended = false;
            self.threads.pop_front();
            self.first = self.open_first();
        }
        self.threads.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_the_last_thread_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        // Above the kernel's largest id: there are no descriptors of these.
        let ids = [5_000_001, 5_000_002, 5_000_003];
        for id in ids {
            std::fs::create_dir(dir.path().join(id.to_string())).unwrap();
        }
        let mut watch = Watch::new(&ids.map(Tid));
        assert_eq!(watch.timeout(), Some(LOOK_EVERY));
        assert!(!watch.is_over(&roots, false));
        std::fs::remove_dir(dir.path().join("5000001")).unwrap();
        std::fs::remove_dir(dir.path().join("5000003")).unwrap();
        assert!(!watch.is_over(&roots, false));
        assert!(watch.is_over(&roots, true), "the kernel says so, /proc may still have it");
        assert_eq!(watch.timeout(), None);
    }
}
