//! Blocks: one is filled while others are being written.

use std::io;

use whit_sys::WriteBuffer;

use crate::loss::Tally;

/// A buffer and its content.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) buffer: WriteBuffer,
    /// The records that went into it, before compression.
    pub(super) tally: Tally,
}

/// A block whose write has ended.
#[derive(Debug)]
pub(super) struct Written {
    /// Where it was to go.
    pub(super) offset: u64,
    pub(super) block: Block,
    /// An error says how many bytes went before it.
    pub(super) result: Result<(), (usize, io::Error)>,
}

/// Blocks of one size.
#[derive(Debug)]
pub(super) struct BlockPool {
    free: Vec<WriteBuffer>,
    size_bytes: usize,
    /// How many may exist.
    limit: usize,
    made: usize,
}

impl BlockPool {
    pub(super) fn new(size_bytes: usize, limit: usize) -> BlockPool {
        BlockPool { free: Vec::new(), size_bytes, limit: limit.max(1), made: 0 }
    }

    /// An empty block; a new one is made where the calling thread runs. `None` when all are in
    /// use.
    pub(super) fn take(&mut self) -> Option<Block> {
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None if self.made < self.limit => {
                self.made += 1;
                WriteBuffer::new(self.size_bytes)
            }
            None => return None,
        };
        Some(Block { buffer, tally: Tally::default() })
    }

    pub(super) fn give_back(&mut self, block: Block) {
        let mut buffer = block.buffer;
        buffer.clear();
        self.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_blocks_than_allowed_and_they_come_back_empty() {
        let mut pool = BlockPool::new(8, 2);
        let (mut one, two) = (pool.take().unwrap(), pool.take().unwrap());
        assert!(pool.take().is_none());
        one.buffer.push(b"content");
        pool.give_back(one);
        assert!(pool.take().unwrap().buffer.used().is_empty());
        assert!(pool.take().is_none());
        pool.give_back(two);
        assert!(pool.take().is_some());
    }
}
