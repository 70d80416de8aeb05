//! Deep, inlined Rust: generics, closures, trait objects and iterator chains, as optimized as a
//! release build makes them.
//!
//! A pipeline of 24 distinct instances of one generic function leads into a recursion of twelve,
//! which calls through a trait object and a closure into the kernels: more than 40 physical
//! frames below `_start`.
//!
//!   deep-rs [--seconds S | --iterations N]
//!
//! prints a checksum: with --iterations it depends on N alone.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds of the recursion below the pipeline.
const RECURSION: u32 = 12;

trait Kernel {
    fn run(&self, seed: u64) -> u64;
}

struct Hash {
    rounds: u64,
}

struct Sort;

struct Scan<F> {
    accept: F,
}

#[inline(always)]
fn scramble_round(value: u64, key: u64) -> u64 {
    (value ^ value.rotate_left(23).wrapping_add(key)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn scramble(value: u64, key: u64) -> u64 {
    (0..12).fold(value, |value, round| scramble_round(value, key + round))
}

fn fill(block: &mut [u32], mut seed: u64) {
    for slot in block {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *slot = (seed >> 33) as u32;
    }
}

impl Kernel for Hash {
    #[inline(never)]
    fn run(&self, seed: u64) -> u64 {
        (0..self.rounds).fold(seed, scramble)
    }
}

impl Kernel for Sort {
    #[inline(never)]
    fn run(&self, seed: u64) -> u64 {
        let mut block = [0u32; 64];
        fill(&mut block, seed);
        block.sort_unstable();
        u64::from(block[(seed % 64) as usize])
    }
}

impl<F: Fn(u32) -> bool> Kernel for Scan<F> {
    #[inline(never)]
    fn run(&self, seed: u64) -> u64 {
        let mut block = [0u32; 64];
        fill(&mut block, seed);
        block
            .iter()
            .copied()
            .filter(|&value| (self.accept)(value))
            .map(|value| seed / u64::from(value | 1))
            .fold(0, u64::wrapping_add)
    }
}

#[inline(never)]
fn descend(kernels: &[Box<dyn Kernel>], seed: u64, depth: u32) -> u64 {
    if depth == 0 {
        return kernels
            .iter()
            .zip(seed..)
            .map(|(kernel, seed)| kernel.run(seed))
            .fold(0, u64::wrapping_add);
    }
    // Work after the call keeps the frame: no tail call.
    black_box(descend(kernels, seed.wrapping_mul(31), depth - 1)).wrapping_add(1)
}

/// One instance per stage; each passes a closure of its own type to the next.
struct Stage<const N: u32>;

macro_rules! stages {
    ($($n:literal => $next:literal),+ $(,)?) => {
        $(impl Stage<$n> {
            #[inline(never)]
            fn run(finish: &dyn Fn(u64) -> u64, seed: u64) -> u64 {
                let below = Stage::<$next>::run(&|value| finish(value) ^ $n, seed + $n);
                black_box(below).wrapping_add($n)
            }
        })+
    };
}

stages!(
    12 => 11, 11 => 10, 10 => 9, 9 => 8, 8 => 7, 7 => 6, 6 => 5, 5 => 4, 4 => 3, 3 => 2, 2 => 1,
    1 => 0
);

impl Stage<0> {
    #[inline(never)]
    fn run(finish: &dyn Fn(u64) -> u64, seed: u64) -> u64 {
        // Unwinds through the twelve closures that the stages above have stacked up.
        black_box(finish(seed)).wrapping_add(1)
    }
}

#[inline(never)]
fn drive(seconds: f64, iterations: u64) -> u64 {
    let kernels: Vec<Box<dyn Kernel>> = vec![
        Box::new(Hash { rounds: 40 }),
        Box::new(Sort),
        Box::new(Scan { accept: |value: u32| value % 3 != 0 }),
    ];
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut checksum = 0u64;
    for i in 0u64.. {
        if if iterations != 0 { i >= iterations } else { Instant::now() >= end } {
            break;
        }
        let finish = |seed: u64| descend(&kernels, seed, RECURSION);
        checksum = checksum.wrapping_mul(31).wrapping_add(Stage::<12>::run(&finish, i));
    }
    checksum
}

fn main() {
    let (mut seconds, mut iterations) = (1.0, 0);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--seconds" => seconds = number(value),
            [name, value] if name == "--iterations" => iterations = number::<u64>(value),
            _ => usage(),
        }
    }
    println!("checksum {:016x}", drive(seconds, iterations));
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| usage())
}

fn usage() -> ! {
    eprintln!("usage: deep-rs [--seconds S | --iterations N]");
    std::process::exit(2);
}
