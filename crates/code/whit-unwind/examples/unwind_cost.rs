//! Measures what a frame costs: `cargo run --release -p whit-unwind --example unwind_cost`.
//!
//! Simulated stacks of 45 frames over 2000 functions: few distinct chains (everything cached),
//! many distinct leaves (the leaf misses the cache), and framehop on the same for comparison.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::{Function, Shape, Stopped};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use whit_types::{Arch, Avma};
use whit_unwind::{StackDump, Unwinder};

const FUNCTIONS: usize = 2000;
const DEPTH: usize = 44;
const STACKS: usize = 400;
const ROUNDS: usize = 50;

fn main() {
    let shapes = [Shape::SpOnly, Shape::SpAndSavedFp, Shape::FramePointer];
    let functions: Vec<Function> = (0..FUNCTIONS)
        .map(|at| Function { shape: shapes[at % 3], frame_by_16: 2 + at as u64 % 20 })
        .collect();
    for (name, distinct) in [("few callers", 60), ("2000 callers", FUNCTIONS - 1)] {
        let mut random = 12345u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            1 + (random >> 33) as usize % distinct
        };
        let stacks: Vec<Stopped> = (0..STACKS)
            .map(|_| {
                let chain: Vec<usize> = (0..DEPTH).map(|_| next()).collect();
                common::stop_in(Arch::X86_64, &functions, &chain)
            })
            .collect();
        println!("{name}: whit {:.1} ns a frame", ours(&functions, &stacks));
        println!("{name}: framehop {:.1} ns a frame", framehop(&functions, &stacks));
    }
}

fn ours(functions: &[Function], stacks: &[Stopped]) -> f64 {
    let space = common::space(common::module(Arch::X86_64, functions, true), FUNCTIONS);
    let (mut unwinder, mut out, mut frames) = (Unwinder::new(), Vec::new(), 0);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for stopped in stacks {
            out.clear();
            let stack = StackDump { sp: Avma(stopped.sp), bytes: &stopped.bytes, rest: None };
            black_box(unwinder.unwind(&space, &stopped.regs, stack, 127, &mut out));
            frames += out.len();
        }
    }
    assert_eq!(frames, ROUNDS * STACKS * (DEPTH + 1));
    let cost = start.elapsed().as_nanos() as f64 / frames as f64;
    let stats = unwinder.cache_stats();
    println!("  cache: {} hits, {} misses", stats.hits, stats.misses);
    cost
}

fn framehop(functions: &[Function], stacks: &[Stopped]) -> f64 {
    let eh_frame = common::eh_frame(Arch::X86_64, functions);
    let info = ExplicitModuleSectionInfo {
        text_svma: Some(common::TEXT..common::EH_FRAME),
        eh_frame_svma: Some(common::EH_FRAME..common::EH_FRAME + eh_frame.len() as u64),
        eh_frame: Some(eh_frame),
        ..Default::default()
    };
    let end = common::BASE + common::TEXT + FUNCTIONS as u64 * common::FUNCTION_SIZE;
    let mut unwinder = UnwinderX86_64::new();
    unwinder.add_module(Module::new("m".into(), common::BASE..end, common::BASE, info));
    let mut cache = CacheX86_64::<_>::new();
    let mut frames = 0;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for s in stacks {
            let mut read = |address: u64| {
                let at = usize::try_from(address.checked_sub(s.sp).ok_or(())?).map_err(|_| ())?;
                let word = s.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
                Ok(u64::from_le_bytes(*word))
            };
            let (ip, fp) = (s.regs.ip().unwrap_or(0), s.regs.fp().unwrap_or(0));
            let regs = UnwindRegsX86_64::new(ip, s.sp, fp);
            let mut chain = unwinder.iter_frames(ip, regs, &mut cache, &mut read);
            while let Ok(Some(frame)) = chain.next() {
                black_box(frame);
                frames += 1;
            }
        }
    }
    start.elapsed().as_nanos() as f64 / frames as f64
}
