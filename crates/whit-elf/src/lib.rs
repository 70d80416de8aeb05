//! ELF images: segments, sections (decompressed where needed), build id, symbol tables as they stand in the file,
//! needed libraries, and the image of the running kernel's vdso.
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
mod vdso;

pub use error::ElfError;
pub use image::{ElfImage, ElfKind, RawRela, RawSymbol, SectionHeader, Segment, TableKind};
pub use kept::{KEPT_NAME, kept_directory};
pub use needs::LinkNeeds;
pub use vdso::own_vdso;
