//! Unwinds recorded user stacks: register values and a copy of the top of the stack in, frames out.
//!
//! No I/O: a [`ModuleUnwindInfo`] is made from the bytes of an ELF file's unwind sections, an
//! [`AddressSpace`] says which module is mapped where, and an [`Unwinder`] walks a [`StackDump`].
//! x86-64 and arm64 stacks unwind on any host. A frame costs about 35 ns once its rule is cached
//! (`examples/unwind_cost.rs`).
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
mod module;
mod regs;
mod rule;
mod rule_cache;
mod stack;
pub mod table;
mod unwinder;

pub use address_space::{AddressSpace, Bias};
pub use bytes::Bytes;
pub use module::{ModuleSections, ModuleUnwindInfo, Section, StackSwitches};
pub use regs::UserRegs;
pub use rule_cache::CacheStats;
pub use stack::StackDump;
pub use unwinder::{FrameKind, StopReason, Unwinder, UserFrame};
