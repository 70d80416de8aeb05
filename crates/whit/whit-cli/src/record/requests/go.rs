//! The calls of a function of a Go program.
//!
//! A goroutine may begin a call in one thread and return in another, and its stack moves where it grows. So the kernel's own
//! probe of returns does not do: it puts an address into the stack. Here each instruction that returns has a probe. A call
//! is known by the goroutine, and by the distance of the stack pointer from the top of its stack.

use super::super::go_code::{Fields, returns};
use anyhow::{Context, Result, bail};
use std::path::Path;
use whit_elf::ElfImage;
use whit_host::user_probe::ProbePlace;
use whit_perfdata::request::{KEY, STACK_POINTER, STACK_TOP};
use whit_types::{FileOffset, InstructionSet, Svma};

/// `runtime.g.stack.hi`, the second word: the assembler's part of the runtime relies on it.
const STACK_TOP_OFFSET: u64 = 8;

/// The fields of a beginning and of an end, in the kernel's language.
pub(super) fn fields(path: &Path, key: Option<&str>) -> [String; 2] {
    let end = format!(
        "{STACK_POINTER}=%sp:u64 {STACK_TOP}=+{STACK_TOP_OFFSET}(%r14):u64 {}",
        Fields::of(path).running()
    );
    let key = key.map_or_else(String::new, |key| format!(" {KEY}={key}"));
    [format!("{end}{key}"), end]
}

/// The place where the function has its stack, and those of its returns.
pub(super) fn places(
    image: &ElfImage,
    (start, size): (Svma, u64),
    [begin_fields, end_fields]: [String; 2],
) -> Result<[Vec<ProbePlace>; 2]> {
    if image.instruction_set() != Some(InstructionSet::X86_64) {
        bail!("calls of goroutines are recorded on x86-64 alone");
    }
    let begin = image
        .go_prologue(start, size)
        .context("it does not begin with a frame as those of Go 1.21 and later do")?;
    let place = |offset: FileOffset, fields: &str| ProbePlace {
        offset: offset.0,
        counter: None,
        fields: fields.to_owned(),
    };
    let ends = returns(image, (start, size))?.into_iter();
    let ends = ends.map(|offset| place(offset, &end_fields)).collect();
    Ok([vec![place(begin, &begin_fields)], ends])
}
