//! From a profile and its code to annotated functions: instructions and source lines with their own weights.
//!
//! [`Weights`] sums a profile's samples by address, [`Weights::find`] and [`Weights::hottest`] choose functions, and
//! [`annotate()`] takes one apart. Code, names and lines come through [`Code`], which
//! [`CodeFinder`](whit_profile::CodeFinder) has for recordings.
//!
//! ```
//! use whit_annotate::{Syntax, disassemble};
//! use whit_types::{InstructionSet, Svma};
//!
//! let code = [0x48, 0x89, 0xe5, 0xc3];
//! let all = disassemble(&code, Svma(0x1000), InstructionSet::X86_64, Syntax::Att);
//! assert_eq!(all[0].text, "mov    %rsp,%rbp");
//! assert_eq!((all[1].address, &*all[1].text), (Svma(0x1003), "ret"));
//! ```
//!
//! The caller gives a profile whose rows end in the place that was executing, and shows the profile's losses beside the
//! result.
//!
//! Invariants:
//! - The weights of the instructions add up to that of the function, and so do those of the lines: whole numbers of
//!   samples and of the period.
//! - A sample belongs to the instruction that its address lies in.
//! - Any bytes are taken apart, without a panic and without a rest.
//! - Nothing here opens files, asks for the time or prints.
#![forbid(unsafe_code)]

mod annotation;
mod arm64;
mod choice;
mod code;
mod disassemble;
mod instruction;
mod jumps;
mod weights;
mod x86;

pub use annotation::{AnnotatedFunction, AnnotatedLine, AnnotatedRow, Annotation, annotate};
pub use choice::{Chosen, Wanted};
pub use code::Code;
pub use disassemble::disassemble;
pub use instruction::{Instruction, Syntax, Target};
pub use jumps::{Jumps, MAX_LANES};
pub use weights::{EventWeights, Weight, Weights};

#[cfg(test)]
mod tests;
