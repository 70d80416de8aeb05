//! Adding leaves up beside the reading of a stream: one thread reads blocks, another one takes their samples.

use crate::first_pass::leaf_sums::LeafSums;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use whit_perfdata::event_table::EventTable;

/// Adds up the samples of a stream's blocks.
pub(crate) enum LeafCounter {
    /// In the thread that reads.
    Here(Box<LeafSums>, Arc<EventTable>),
    /// In one of its own.
    OnThread(Arc<HandOver>, JoinHandle<LeafSums>),
}

/// One block on its way from the reading thread to the adding one: those of compressed records may have some MiB.
#[derive(Default)]
pub(crate) struct HandOver {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    block: Option<Vec<u8>>,
    /// A block that was added, to be filled again.
    spare: Option<Vec<u8>>,
    /// No block follows, or nobody takes one.
    has_ended: bool,
}

impl LeafCounter {
    /// With a thread of its own where the stream has more than one. Where samples have stack dumps, a block has few of
    /// them, and handing it over costs more than adding them.
    pub(crate) fn new(sums: LeafSums, events: &Arc<EventTable>, threads: usize) -> LeafCounter {
        if threads > 1 && !events.has_user_stacks() {
            let blocks = Arc::<HandOver>::default();
            let (own, known, taken) = (sums.clone(), events.clone(), blocks.clone());
            let thread = Builder::new().name("whit-leaves".into());
            // Where no thread can be started, the calling one adds.
            if let Ok(thread) = thread.spawn(move || taken.add_all(own, &known)) {
                return LeafCounter::OnThread(blocks, thread);
            }
        }
        LeafCounter::Here(Box::new(sums), events.clone())
    }

    /// Adds the samples of a block, and gives back a buffer for the next one.
    pub(crate) fn add(&mut self, block: Vec<u8>) -> Vec<u8> {
        match self {
            LeafCounter::Here(sums, events) => {
                sums.see_block(events, &block);
                block
            }
            LeafCounter::OnThread(blocks, _) => blocks.give(block),
        }
    }

    /// The sums of all blocks. `None` where the thread died.
    pub(crate) fn finish(self) -> Option<LeafSums> {
        match self {
            LeafCounter::Here(sums, _) => Some(*sums),
            LeafCounter::OnThread(blocks, thread) => {
                drop(End(&blocks));
                thread.join().ok()
            }
        }
    }
}

impl HandOver {
    /// No lock is held where anything can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of the adding thread.
    fn add_all(&self, mut sums: LeafSums, events: &EventTable) -> LeafSums {
        let _end = End(self);
        while let Some(block) = self.take() {
            sums.see_block(events, &block);
            self.lock().spare = Some(block);
        }
        sums
    }

    /// Waits until the block before was taken. Gives back a buffer.
    fn give(&self, block: Vec<u8>) -> Vec<u8> {
        let is_waiting = |state: &mut State| state.block.is_some() && !state.has_ended;
        let state = self.changed.wait_while(self.lock(), is_waiting);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.block = Some(block);
        self.changed.notify_one();
        state.spare.take().unwrap_or_default()
    }

    /// Waits for a block. `None` behind the last one.
    fn take(&self) -> Option<Vec<u8>> {
        let is_missing = |state: &mut State| state.block.is_none() && !state.has_ended;
        let state = self.changed.wait_while(self.lock(), is_missing);
        let block = state.unwrap_or_else(PoisonError::into_inner).block.take();
        self.changed.notify_one();
        block
    }
}

/// Ends the wait of the other thread in any case.
struct End<'h>(&'h HandOver);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_a_thread_that_died_are_none() {
        let blocks = Arc::<HandOver>::default();
        let taken = blocks.clone();
        let thread = std::thread::spawn(move || {
            let _end = End(&taken);
            assert!(taken.take().is_none(), "adding fails");
            unreachable!()
        });
        let mut counter = LeafCounter::OnThread(blocks, thread);
        (0..3).for_each(|_| assert!(counter.add(vec![0; 8]).is_empty()));
        assert!(counter.finish().is_none());
    }
}
