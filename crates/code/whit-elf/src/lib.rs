//! ELF images: segments, sections (decompressed where needed), build id, symbol tables as they stand in the file,
//! needed libraries, and the image of the running kernel's vdso.
//!
//! ```
//! use whit_elf::{ElfImage, TableKind};
//! use whit_types::{FileOffset, Svma};
//!
//! let image = ElfImage::open(std::path::Path::new("/proc/self/exe"))?;
//! let text = image.section(".text").expect("a program has code");
//! let offset = image.file_offset_of(Svma(text.svma));
//! assert_eq!(offset, Some(FileOffset(text.offset)));
//!
//! let mut symbols = 0;
//! image.for_each_symbol(TableKind::Symtab, |_| symbols += 1);
//! assert!(symbols > 100, "{symbols}");
//! # Ok::<(), whit_elf::ElfError>(())
//! ```
//!
//! The caller keeps the file as it is while the image lives: a file that is cut while it is mapped ends the process
//! with SIGBUS. Programs and libraries are replaced by renaming, which is harmless.
//!
//! # Invariants
//!
//! - An image stays in its file's mapping; only compressed sections are copied, up to a bound.
//! - Hostile files yield absent parts or an [`ElfError`], never a panic.
//!
//! Absent: demangled names, lines of DWARF, and any choice among symbols. `whit-symbolize` has them, so
//! that the recorder, which needs build ids and unwind sections, does not carry them.
#![forbid(unsafe_code)]

mod error;
mod go;
mod image;
mod kept;
mod needs;
mod sections;
mod segments;
mod usdt;
mod vdso;

pub use error::ElfError;
pub use go::{GO_PROLOGUE_BYTES, GoScheduler, NoGoScheduler};
pub use image::{ElfImage, ElfKind, RawRela, RawSymbol, SectionHeader, TableKind};
pub use kept::{KEPT_NAME, kept_directory};
pub use needs::LinkNeeds;
pub use segments::{Segment, base_of, svma_in, svma_of_mapping_in};
pub use usdt::UsdtProbe;
pub use vdso::own_vdso;
