//! Reading blocks before they are asked for, by several threads, in the order in which they are
//! wanted.

use super::block::Block;
use super::block_reader::OwnBlock;
use super::{BlockRange, BlockReader, Stream, StreamError};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Blocks that are read ahead for each thread. With one, a thread waits whenever blocks are taken
/// less evenly than they are read.
const BLOCKS_PER_THREAD: usize = 2;

/// Blocks that are read ahead in all.
const MAX_BLOCKS: usize = 32;

/// The result for a block.
type Outcome = Result<Option<OwnBlock>, StreamError>;

/// Reads blocks ahead. Threads are started when there is work for them, and end with this.
pub struct ReadAhead {
    shared: Arc<Shared>,
    /// All blocks that have not been taken, in order.
    jobs: VecDeque<Arc<Job>>,
    /// The calling thread reads too.
    own: BlockReader,
    helpers: Vec<JoinHandle<()>>,
    max_helpers: usize,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Told when there is something in the queue, or it ends.
    work: Condvar,
    /// Buffers to be filled again.
    spare: Mutex<Vec<Block>>,
}

#[derive(Default)]
struct Queue {
    /// Blocks that nobody has begun, and some that somebody has.
    waiting: VecDeque<Arc<Job>>,
    /// Threads that wait for work.
    idle: usize,
    ended: bool,
}

struct Job {
    stream: Stream,
    range: BlockRange,
    state: Mutex<State>,
    done: Condvar,
}

enum State {
    Waiting,
    Running,
    Done(Block, Outcome),
}

/// No lock is held where anything can panic; should it, the data are whole all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Takes the job on, unless somebody has.
    fn begin(&self) -> bool {
        let mut state = lock(&self.state);
        let begins = matches!(*state, State::Waiting);
        if begins {
            *state = State::Running;
        }
        begins
    }

    fn run(&self, reader: &mut BlockReader, shared: &Shared) {
        let mut running = Running { job: self, result: None };
        let mut buffer = lock(&shared.spare).pop().unwrap_or_default();
        let outcome = reader.decode(&self.stream, self.range, &mut buffer);
        running.result = Some((buffer, outcome));
    }
}

/// Ends the job in any case: somebody waits for it.
struct Running<'j> {
    job: &'j Job,
    result: Option<(Block, Outcome)>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Without a result, the block is read in order, as one that cannot be read on its own.
        let (buffer, outcome) = self.result.take().unwrap_or_else(|| (Block::default(), Ok(None)));
        *lock(&self.job.state) = State::Done(buffer, outcome);
        self.job.done.notify_one();
    }
}

impl Shared {
    /// The work of a helping thread.
    fn help(&self) {
        let mut reader = BlockReader::default();
        while let Some(job) = self.next_job() {
            if job.begin() {
                job.run(&mut reader, self);
            }
        }
    }

    fn next_job(&self) -> Option<Arc<Job>> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.ended {
                return None;
            }
            if let Some(job) = queue.waiting.pop_front() {
                return Some(job);
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

impl ReadAhead {
    /// Reads with up to so many threads, the calling one among them.
    pub fn new(threads: usize) -> ReadAhead {
        ReadAhead {
            shared: Arc::default(),
            jobs: VecDeque::new(),
            own: BlockReader::default(),
            helpers: Vec::new(),
            max_helpers: threads.saturating_sub(1),
        }
    }

    /// Whether no block is left to be taken.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Blocks that are left to be taken.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether another block may be read ahead.
    pub fn has_room(&self) -> bool {
        let blocks = match self.max_helpers {
            0 => 1,
            helpers => MAX_BLOCKS.min((helpers + 1).saturating_mul(BLOCKS_PER_THREAD)),
        };
        self.jobs.len() < blocks
    }

    /// Another block to be read, behind all others.
    pub fn push(&mut self, stream: &Stream, range: BlockRange) {
        let job = Job::new(stream, range);
        self.jobs.push_back(job.clone());
        if self.max_helpers == 0 {
            return;
        }
        let mut queue = lock(&self.shared.queue);
        queue.waiting.push_back(job);
        let (waiting, idle) = (queue.waiting.len(), queue.idle);
        drop(queue);
        if idle > 0 {
            self.shared.work.notify_one();
        } else if waiting > 1 && self.helpers.len() < self.max_helpers {
            self.start_helper();
        }
    }

    /// A block to be read before all others.
    pub(super) fn push_front(&mut self, stream: &Stream, range: BlockRange) {
        self.jobs.push_front(Job::new(stream, range));
    }

    /// Waits for the next block, and makes it the content of `out`. `None` where there is none.
    pub fn next(&mut self, out: &mut Block) -> Option<Result<(), StreamError>> {
        let stream = self.jobs.front()?.stream.clone();
        let (range, outcome) = self.take(out)?;
        Some(match outcome {
            Ok(Some(block)) if block.size_bytes == range.size_bytes => Ok(()),
            Ok(_) => Err(stream.changed(range.offset)),
            Err(error) => Err(error),
        })
    }

    /// The same, of blocks that may turn out to be none.
    pub(super) fn take(&mut self, out: &mut Block) -> Option<(BlockRange, Outcome)> {
        let job = self.jobs.pop_front()?;
        if job.begin() {
            // The first of all is the first of those that wait.
            let mut queue = lock(&self.shared.queue);
            if queue.waiting.front().is_some_and(|first| Arc::ptr_eq(first, &job)) {
                queue.waiting.pop_front();
            }
            drop(queue);
            let outcome = self.own.decode(&job.stream, job.range, out);
            return Some((job.range, outcome));
        }
        self.help_until_done(&job);
        let mut state = lock(&job.state);
        while matches!(*state, State::Running) {
            state = job.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let State::Done(mut bytes, outcome) = std::mem::replace(&mut *state, State::Waiting) else {
            return None;
        };
        std::mem::swap(out, &mut bytes);
        lock(&self.shared.spare).push(bytes);
        Some((job.range, outcome))
    }

    /// Reads other blocks while somebody reads this one.
    fn help_until_done(&mut self, job: &Job) {
        while matches!(*lock(&job.state), State::Running) {
            let Some(other) = lock(&self.shared.queue).waiting.pop_front() else { return };
            if other.begin() {
                other.run(&mut self.own, &self.shared);
            }
        }
    }

    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        lock(&self.shared.queue).waiting.clear();
        self.jobs.clear();
    }

    fn start_helper(&mut self) {
        let shared = self.shared.clone();
        let helper = std::thread::Builder::new().name("whit-decode".into());
        // Where no thread can be started, the calling one reads all.
        self.helpers.extend(helper.spawn(move || shared.help()));
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.ended = true;
        queue.waiting.clear();
        drop(queue);
        self.shared.work.notify_all();
        for helper in self.helpers.drain(..) {
            // One that panicked has left its block to be read in order.
            let _ = helper.join();
        }
    }
}

impl Job {
    fn new(stream: &Stream, range: BlockRange) -> Arc<Job> {
        let (state, done) = (Mutex::new(State::Waiting), Condvar::new());
        Arc::new(Job { stream: stream.clone(), range, state, done })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_as_many_as_were_asked_for_and_blocks_are_bounded() {
        for (threads, blocks) in [(0, 1), (1, 1), (3, 6), (100, MAX_BLOCKS)] {
            let mut ahead = ReadAhead::new(threads);
            let file = Arc::new(tempfile::tempfile().unwrap());
            let path = std::path::Path::new("empty").into();
            let stream = Stream { file, path, start: 0, end: 8, unpacker: None, dumps: None };
            let range = BlockRange { offset: 0, size_bytes: 8, compressed: false };
            while ahead.has_room() {
                ahead.push(&stream, range);
            }
            assert_eq!(ahead.len(), blocks, "{threads} threads");
            assert!(ahead.helpers.len() < threads.max(1), "{threads} threads");
            (0..blocks).for_each(|_| assert!(ahead.take(&mut Block::default()).is_some()));
            assert!(ahead.is_empty() && ahead.take(&mut Block::default()).is_none());
        }
    }
}
