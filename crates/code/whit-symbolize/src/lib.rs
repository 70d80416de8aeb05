//! Names for addresses: functions, inlined functions, files and lines.
//!
//! A [`Symbolizer`] opens binaries, each once, and hands out [`DsoSymbols`], which [resolve] one
//! address at a time. ELF files (with their debug companions), the kernel (`/proc/kallsyms`, copies
//! of it, an image), the vdso, perf-map and jitdump files are understood. Absent results come with
//! a [`Reason`].
//!
//! ```
//! use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig};
//! use whit_types::Svma;
//!
//! let program = "../../../tests/recordings/golden/root/opt/whit-golden/spin";
//! let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
//! let symbols = symbolizer.open(&DsoSpec::new(DsoKind::Elf, program.into()));
//! let burn = symbols.resolve(Svma(0x40_00f0));
//! assert_eq!(burn.function.map(|function| function.name.to_string()).as_deref(), Some("burn"));
//!
//! // An absent name has its reason.
//! assert!(symbols.resolve(Svma(0x10)).reason.is_some());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The caller gives the recorded build id in [`DsoSpec::build_id`] where it has one, and asks for each distinct address
//! once. For a return address it asks for the address before, which lies in the call.
//!
//! Built on `object`, `gimli`, `addr2line`, `rustc-demangle` and `cpp_demangle`, and not on a whole
//! symbolizer (blazesym, wholesym). Names in reports must agree with perf's: the choice among
//! aliases, the reach of a label without a size, `name@plt` for linkage stubs, C++ names without
//! parameters. All data also stays in the files' mappings within a fixed memory budget.
//!
//! # Invariants
//!
//! - Nothing here knows samples or the recording's format.
//! - A file whose build id is not the recorded one is never used; nor is one without a build id that is another
//!   than the recorded one by inode, size or time, as far as those were recorded.
//! - Names and debug sections are read where they are mapped. Owned memory: 32 bytes a symbol, and
//!   the parsed units of debug information until [`DsoSymbols::release_debug_info`].
//! - Nothing is cached per address; callers ask for each distinct address once.
//! - Hostile files yield wrong or absent names, never a panic.
//!
//! # Not covered
//!
//! Kernel modules as files (the kernel's own list names their functions). Files of debuginfod's servers are read where its clients keep them; the
//! program `whit-debuginfod` fetches them. It fetches nothing for the kernel and the vdso.
//!
//! [resolve]: DsoSymbols::resolve
#![forbid(unsafe_code)]

mod code;
mod companion;
mod config;
mod debug_sections;
mod demangle;
mod dso;
mod dso_spec;
mod dwarf;
mod elf_symbols;
mod embedded;
mod fetched;
mod file_identity;
mod image_facts;
mod jit_places;
mod jitdump;
mod kallsyms;
mod kernel;
mod kernel_code;
mod kernel_config;
mod lack;
mod long_names;
mod members;
mod metered;
mod mini_debug_info;
mod names_writer;
mod perf_map;
mod perf_map_writer;
mod plt;
mod read_file;
mod reason;
mod recorded_file;
mod remembered;
mod resolution;
mod section_map;
mod split_files;
mod symbol_table;
mod symbolizer;
mod unit_contexts;
mod unit_index;

pub use companion::DebugDirs;
pub use config::SymbolizerConfig;
pub use demangle::demangle;
pub use dso::DsoSymbols;
pub use dso_spec::{DsoKind, DsoSpec};
pub use dwarf::{GivenUp, SourceLocation};
pub use embedded::{BinaryKey, EmbeddedNames};
pub use file_identity::FileIdentity;
pub use image_facts::Variable;
pub use jit_places::{JitMiss, JitMisses};
pub use jitdump::{JitDump, JitLine, JitSymbol};
pub use kernel::running_build_id;
pub use kernel_code::{KernelCode, NoKernelCode};
pub use kernel_config::{KernelConfig, RunningList};
pub use lack::Lack;
pub use names_writer::NamesWriter;
pub use reason::Reason;
pub use resolution::{InlinedFrame, Resolution, SymbolRef};
pub use split_files::MissingUnits;
pub use symbol_table::{FoundSymbol, SymbolSource, SymbolTable};
pub use symbolizer::Symbolizer;
