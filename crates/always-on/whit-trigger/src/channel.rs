//! The way of triggers to the one who dumps.

use crate::trigger::Trigger;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Triggers that wait.
const WAITING_MAX: usize = 16;

/// Sends triggers, and counts those that found the channel full.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    sender: SyncSender<Trigger>,
    lost: Arc<AtomicU64>,
}

pub(crate) fn channel() -> (Outlet, Receiver<Trigger>) {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    (Outlet { sender, lost: Arc::default() }, receiver)
}

impl Outlet {
    pub(crate) fn send(&self, trigger: Trigger) {
        if self.sender.try_send(trigger).is_err() {
            self.lose();
        }
    }

    pub(crate) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trigger::Kind;

    #[test]
    fn a_full_channel_counts_and_does_not_wait() {
        let (outlet, receiver) = channel();
        (0..20).for_each(|number| outlet.send(Trigger::now(Kind::Request, number.to_string())));
        assert_eq!(outlet.lost(), 20 - WAITING_MAX as u64);
        assert_eq!(receiver.try_iter().count(), WAITING_MAX);
        assert_eq!(receiver.try_iter().count(), 0);
        drop(receiver);
        outlet.send(Trigger::now(Kind::Request, ""));
        assert_eq!(outlet.lost(), 5);
    }
}
