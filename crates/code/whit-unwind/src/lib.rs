//! Unwinds recorded user stacks: register values and a copy of the top of the stack in, frames out.
//!
//! No I/O: a [`ModuleUnwindInfo`] is made from the bytes of an ELF file's unwind sections, an
//! [`AddressSpace`] says which module is mapped where, and an [`Unwinder`] walks a [`StackDump`].
//! x86-64 and arm64 stacks unwind on any host. A frame costs about 35 ns once its rule is cached
//! (`examples/unwind_cost.rs`).
//!
//! ```
//! use whit_types::{Arch, Avma};
//! use whit_unwind::{AddressSpace, Bias, ModuleUnwindInfo, StackDump, Unwinder, UserRegs};
//!
//! // Code without unwind sections: the frame pointer leads to the caller.
//! let mut space = AddressSpace::new();
//! space.map(Avma(0x1000)..Avma(0x2000), Bias(0), ModuleUnwindInfo::none(Arch::X86_64));
//! let regs = UserRegs::new(Arch::X86_64).with_ip(0x1500).with_sp(0x7000).with_fp(0x7010);
//! // Two words of locals, the caller's frame pointer, the return address.
//! let words = [0_u64, 0, 0, 0x1600];
//! let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
//! let dump = StackDump { sp: Avma(0x7000), bytes: &bytes, rest: None };
//!
//! let mut frames = Vec::new();
//! let stop = Unwinder::new().unwind(&space, &regs, dump, 127, &mut frames);
//! let addresses: Vec<u64> = frames.iter().map(|frame| frame.address.0).collect();
//! assert_eq!(addresses, [0x1500, 0x1600]);
//! // This dump does not reach the thread's first function, and the end says so.
//! assert!(!stop.is_complete());
//! ```
//!
//! The caller keeps one [`AddressSpace`] a process and one [`Unwinder`] a thread, and maps each file's
//! [`ModuleUnwindInfo`] as a clone of one, so that all processes share its rules.
//!
//! # Why gimli and not a whole unwinding library
//!
//! `gimli` parses the call frame information; the evaluation of a row is ours, because the
//! ready-made unwinder (framehop 0.16, which the tests use as their oracle) does not do what
//! recordings of servers need:
//! - it knows only the instruction, stack and frame pointer and reads no memory in expressions, so
//!   that it leaves the right path at functions that realign the stack (AVX code compiled by GCC)
//!   and at signal frames;
//! - where a binary has both `.eh_frame` and `.debug_frame` (Go with cgo) it ignores the latter;
//! - its rule cache is keyed by process, with a 16-bit generation that wraps in a recording of
//!   thousands of processes; ours is keyed by module, so that all processes share the rules of the
//!   C library;
//! - it guesses with the frame pointer without telling; here every end of a chain has a
//!   [`StopReason`].
//!
//! # Invariants
//!
//! - Nothing here knows symbols, files or the recording's format.
//! - Every call of [`Unwinder::unwind`] ends: the stack pointer grows with each frame, except in
//!   signal frames and where code changes stacks, and the number of frames is bounded by the caller.
//! - No allocation per sample once `out` has grown to its working size.
//! - Hostile unwind sections and stacks yield short or wrong chains, never a panic.
//!
//! Sources: System V ABI for x86-64 and for AArch64 (DWARF register numbers), DWARF 5 section 6.4,
//! Linux Standard Base core specification (`.eh_frame`, `.eh_frame_hdr`).
#![forbid(unsafe_code)]

mod abi;
mod address_space;
mod bytes;
mod cfi;
mod expression;
mod general;
mod go;
mod jit;
mod module;
mod regs;
mod rule;
mod rule_cache;
mod stack;
mod stop_reason;
pub mod table;
mod trampolines;
mod unwinder;

pub use address_space::{AddressSpace, Bias};
pub use bytes::Bytes;
pub use jit::JitPiece;
pub use module::{ModuleSections, ModuleUnwindInfo, Section, StackSwitches};
pub use regs::UserRegs;
pub use rule_cache::CacheStats;
pub use stack::{DeeperStack, StackDump};
pub use stop_reason::StopReason;
pub use trampolines::Trampolines;
pub use unwinder::{FrameKind, Unwinder, UserFrame};
