//! Work that causes every generic event.

use std::hint::black_box;
use std::time::Duration;

/// Rounds of computation: a few milliseconds.
const ROUNDS: usize = 400_000;
/// Allocated bytes: more than any allocator keeps for reuse (glibc maps allocations above 32 MiB),
/// so that its pages fault each time.
const MEMORY_BYTES: usize = 64 << 20;
/// One byte in so many is touched: a page of any architecture, and 4 MiB with the usual ones.
const STRIDE_BYTES: usize = 64 << 10;
/// Number of sleeps; each one is a context switch.
const SLEEPS: u32 = 3;

/// Rounds of the spinning: several milliseconds, the time of some dozens of interrupts.
const SPIN_ROUNDS: usize = 4_000_000;

/// Rounds of the brief spinning: some ten microseconds.
const BRIEF_ROUNDS: usize = 10_000;

/// Computes in user space alone, always the same.
pub(crate) fn spin() {
    compute(SPIN_ROUNDS);
}

/// The same, long enough for a counter to show that it runs.
pub(crate) fn spin_briefly() {
    compute(BRIEF_ROUNDS);
}

fn compute(rounds: usize) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

/// Computes with unpredictable branches, touches fresh memory out of order, and sleeps.
pub(crate) fn work() {
    let mut memory = vec![0_u8; MEMORY_BYTES];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut taken = 0_u64;
    for _ in 0..ROUNDS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if black_box(state) & 1 == 1 {
            taken += 1;
        }
    }
    for page in 0..MEMORY_BYTES / STRIDE_BYTES {
        // An odd factor visits each page once, far from the one before.
        let index = page * 389 % (MEMORY_BYTES / STRIDE_BYTES) * STRIDE_BYTES;
        memory[index] = taken as u8;
    }
    black_box(&memory);
    for _ in 0..SLEEPS {
        std::thread::sleep(Duration::from_micros(1));
    }
}
