//! The code that a profile's addresses lie in: ranges of functions, bytes, names and lines.

use crate::first_pass::prepare::Prepared;
use crate::machine_model::binaries::Binary;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::RecordedKind;
use crate::model::DsoId;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use whit_symbolize::{InlinedFrame, KernelCode, NoKernelCode, Reason, Resolution, SourceLocation};
use whit_types::{Avma, InstructionSet, Svma};
use whit_unwind::Bytes;

/// Largest function that is read. Those of real programs reach some hundred KiB.
const MAX_FUNCTION_BYTES: u64 = 4 << 20;

/// Why there is no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCode {
    /// The binary was not opened.
    Binary(Reason),
    /// The kernel's code is not at hand.
    Kernel(NoKernelCode),
    /// The kernel made the code, and did not record it.
    MadeByKernel,
    /// A JIT compiler made the code, and recorded its name alone.
    NamedOnly,
    /// The range lies outside of the code that the binary has.
    NotInFile,
    /// Nothing says where the function begins, and instructions cannot be told apart from the middle on.
    NoBounds,
    /// The function has so many bytes, which are more than are read.
    TooLarge(u64),
    /// The instructions are those of another machine than whit can read.
    OtherMachine,
    /// No mapping explains the address.
    Unmapped,
}

impl fmt::Display for NoCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCode::Binary(reason) => reason.fmt(f),
            NoCode::Kernel(reason) => reason.fmt(f),
            NoCode::MadeByKernel => f.write_str(
                "the kernel made this code while it ran (a BPF program, for example), and the recording has its \
                 name alone",
            ),
            NoCode::NamedOnly => f.write_str(
                "a JIT compiler made this code, and its perf-map has names alone: let it write a jitdump file, which \
                 has the code (Node.js: --perf-prof; .NET: DOTNET_PerfMapEnabled=1; Java: a jitdump agent)",
            ),
            NoCode::NotInFile => f.write_str(
                "the file has no code at this address: it holds debug information alone, or is cut off",
            ),
            NoCode::NoBounds => f.write_str(
                "neither a symbol nor call frame information says where this function begins: install the binary's \
                 debug symbols",
            ),
            NoCode::TooLarge(size_bytes) => write!(
                f,
                "the function has {size_bytes} bytes, of which {MAX_FUNCTION_BYTES} are read at most"
            ),
            NoCode::OtherMachine => {
                f.write_str("whit reads the instructions of x86 and arm64, and these are others")
            }
            NoCode::Unmapped => f.write_str("no mapping of a file explains this address"),
        }
    }
}

/// The instructions of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBytes {
    /// Bytes of the whole range.
    pub bytes: Vec<u8>,
    /// Their encoding.
    pub instruction_set: InstructionSet,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// Path as the compiler recorded it.
    pub file: Arc<str>,
    /// Counted from one; zero where the compiler vouches for none.
    pub line: u32,
}

/// Where an instruction comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceOf {
    /// Its line, in whichever function that is.
    pub line: Option<SourceLine>,
    /// Functions that were inlined there, outermost first, each with the line that calls it.
    pub inlined: Vec<(Arc<str>, Option<SourceLine>)>,
}

/// Finds the code of a profile. Addresses are those of its frames.
pub struct CodeFinder {
    prepared: Prepared,
    kernel: OnceLock<Result<KernelCode, NoKernelCode>>,
}

impl CodeFinder {
    pub(crate) fn new(prepared: Prepared) -> CodeFinder {
        CodeFinder { prepared, kernel: OnceLock::new() }
    }

    fn binary(&self, dso: DsoId) -> Option<&Binary> {
        self.prepared.binaries.get(DsoIndex(dso.0))
    }

    fn kind(&self, dso: DsoId) -> RecordedKind {
        self.prepared.dsos.get(DsoIndex(dso.0)).kind
    }

    fn kernel(&self) -> Result<&KernelCode, NoCode> {
        let code = self.kernel.get_or_init(|| self.prepared.binaries.kernel_code());
        code.as_ref().map_err(|error| NoCode::Kernel(error.clone()))
    }

    /// The lowest loaded address of a binary, from which other tools count; that of code which is no file is 0. `None`
    /// where the file is not at hand.
    pub fn base(&self, dso: DsoId) -> Option<Svma> {
        match self.kind(dso) {
            RecordedKind::File | RecordedKind::Vdso => self.binary(dso)?.symbols.base_svma(),
            _ => Some(Svma(0)),
        }
    }

    /// The range of the function at an address; `None` where nothing says where it begins and ends.
    pub fn function_at(&self, dso: DsoId, address: Svma) -> Option<Range<Svma>> {
        let range = self.binary(dso)?.symbols.function_range(address)?;
        range.contains(&address).then_some(range)
    }

    /// The name of the function at an address, and the distance from its start.
    pub fn name_at(&self, dso: DsoId, address: Svma) -> Option<(Arc<str>, u64)> {
        let function = self.binary(dso)?.symbols.resolve_plainly(address).function?;
        Some((function.name, address.0.wrapping_sub(function.start.0)))
    }

    /// The bytes of a function.
    ///
    /// # Errors
    /// They are not at hand.
    pub fn bytes(&self, dso: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        let size_bytes = range.end.0.saturating_sub(range.start.0);
        if size_bytes > MAX_FUNCTION_BYTES {
            return Err(NoCode::TooLarge(size_bytes));
        }
        match self.kind(dso) {
            RecordedKind::Kernel | RecordedKind::KernelModule => self.kernel_bytes(dso, range),
            RecordedKind::File | RecordedKind::Vdso | RecordedKind::JitDump => {
                self.file_bytes(dso, range.start, size_bytes)
            }
            RecordedKind::KernelSymbol(_) => Err(NoCode::MadeByKernel),
            RecordedKind::Anonymous(_) | RecordedKind::Interpreted(_) => Err(NoCode::NamedOnly),
            RecordedKind::Unknown => Err(NoCode::Unmapped),
        }
    }

    /// The code that the recording carries, or else that of this machine.
    fn kernel_bytes(&self, dso: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        let symbols = self.binary(dso).map(|binary| &binary.symbols);
        let note = |bytes: &Bytes| {
            if let Some(symbols) = symbols {
                symbols.note_code(range.start, bytes);
            }
        };
        let size_bytes = range.end.0.saturating_sub(range.start.0);
        if let Some(bytes) = symbols.and_then(|it| it.carried_code(range.start, size_bytes)) {
            let instruction_set = self.prepared.arch.map(InstructionSet::from);
            let instruction_set = instruction_set.ok_or(NoCode::OtherMachine)?;
            note(&bytes);
            return Ok(CodeBytes { bytes: bytes.to_vec(), instruction_set });
        }
        let kernel = self.kernel()?;
        let instruction_set = kernel.instruction_set().ok_or(NoCode::OtherMachine)?;
        let bytes = kernel.bytes(Avma(range.start.0)..Avma(range.end.0));
        let bytes = Bytes::from(bytes.ok_or(NoCode::NotInFile)?);
        note(&bytes);
        Ok(CodeBytes { bytes: bytes.to_vec(), instruction_set })
    }

    fn file_bytes(&self, dso: DsoId, start: Svma, size_bytes: u64) -> Result<CodeBytes, NoCode> {
        let symbols = &self.binary(dso).ok_or(NoCode::Unmapped)?.symbols;
        if let Some(reason) = symbols.reason() {
            return Err(NoCode::Binary(reason.clone()));
        }
        let instruction_set = match symbols.segments() {
            Some(_) => symbols.instruction_set(),
            None => self.prepared.arch.map(InstructionSet::from),
        };
        let instruction_set = instruction_set.ok_or(NoCode::OtherMachine)?;
        let bytes = symbols.code_at(start, size_bytes).ok_or(NoCode::NotInFile)?;
        Ok(CodeBytes { bytes: bytes.to_vec(), instruction_set })
    }

    /// The text of a source line, if the recording carries it.
    pub fn own_line(&self, line: &SourceLine) -> Option<String> {
        let names = self.prepared.binaries.own_names()?;
        names.line(&line.file, line.line).map(|text| text.to_string())
    }

    /// Line and inlined functions of an instruction.
    pub fn source_of(&self, dso: DsoId, address: Svma) -> SourceOf {
        let resolution = match self.kind(dso) {
            RecordedKind::Kernel | RecordedKind::KernelModule => match self.kernel() {
                Ok(kernel) => kernel.resolve_in_full(Avma(address.0)),
                Err(_) => return SourceOf::default(),
            },
            _ => match self.binary(dso) {
                Some(binary) => binary.symbols.resolve_frames(address),
                None => return SourceOf::default(),
            },
        };
        source_of(resolution)
    }

    /// Frees the parsed debug information of a binary.
    pub fn release(&self, dso: DsoId) {
        if let Some(binary) = self.binary(dso) {
            binary.symbols.release_debug_info();
        }
    }
}

fn source_of(resolution: Resolution) -> SourceOf {
    let line =
        |location: &SourceLocation| SourceLine { file: location.file.clone(), line: location.line };
    let innermost = resolution.innermost_location().map(line);
    let inlined = |frame: InlinedFrame| {
        let call_site = frame.call_site.as_ref().map(line);
        (frame.name, call_site)
    };
    SourceOf { line: innermost, inlined: resolution.inlined.into_iter().map(inlined).collect() }
}
