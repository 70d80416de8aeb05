//! The code of the kernel that was recorded: from an image, or from the running kernel's memory.
//!
//! The kernel changes its own code while it runs (alternatives, static calls, tracing), so its memory shows the
//! instructions that ran, and an image may show others. But `/proc/kcore` is of the running kernel: it is read only
//! where that is the recorded one, and lies where that lay.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whit_elf::ElfImage;
use whit_types::{Avma, BuildId, InstructionSet};
use whit_unwind::{Bias, Bytes};

use crate::config::SymbolizerConfig;
use crate::dso::{DsoSymbols, Load, Source};
use crate::dso_spec::{DsoKind, DsoSpec};
use crate::kernel::{running_address, running_build_id, stated_address};
use crate::kernel_config::KernelConfig;
use crate::reason::Reason;
use crate::resolution::Resolution;

const CORE: &str = "/proc/kcore";
/// The headers of `/proc/kcore` stand in its first bytes.
const CORE_HEAD_BYTES: u64 = 1 << 16;

/// Why the kernel's code is not at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoKernelCode {
    /// The image that was named cannot be used.
    Image(Reason),
    /// Another kernel runs than the recorded one, and no image is at hand.
    OtherKernel {
        /// Build id of the recorded kernel.
        recorded: Option<BuildId>,
    },
    /// The same kernel runs, but lies elsewhere: the machine was started anew.
    Moved,
    /// The running kernel does not show its memory.
    NoCore,
    /// The running kernel's memory cannot be read.
    Core(Arc<str>),
}

impl fmt::Display for NoKernelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ADVICE: &str = "name its image with --vmlinux FILE";
        match self {
            NoKernelCode::Image(reason) => reason.fmt(f),
            NoKernelCode::OtherKernel { recorded: Some(id) } => {
                write!(f, "another kernel runs than the recorded one ({id}): {ADVICE}")
            }
            NoKernelCode::OtherKernel { recorded: None } => write!(
                f,
                "the recording does not say which kernel it is of, so the running one may be another: {ADVICE}"
            ),
            NoKernelCode::Moved => write!(
                f,
                "the machine was started anew since the recording, and its kernel lies elsewhere: {ADVICE}"
            ),
            NoKernelCode::NoCore => {
                write!(f, "this kernel has no {CORE}, and there is no vmlinux of it: {ADVICE}")
            }
            NoKernelCode::Core(error) => write!(
                f,
                "{CORE} cannot be read ({error}), and there is no vmlinux of this kernel: run whit as root, or {ADVICE}"
            ),
        }
    }
}

/// The code of the recorded kernel. Addresses are actual ones.
pub struct KernelCode(Code);

enum Code {
    /// With the distance between actual and stated addresses.
    Image(Box<DsoSymbols>, Bias),
    Core(File, ElfImage),
}

impl KernelCode {
    /// Finds it: the image that the user named, the running kernel's memory if that is the recorded one, an image that
    /// has the build id.
    pub(crate) fn find(
        config: &Arc<SymbolizerConfig>,
        recorded: Option<BuildId>,
    ) -> Result<KernelCode, NoKernelCode> {
        let kernel = KernelConfig { build_id: recorded, ..config.kernel.clone() };
        if let Some(path) = &kernel.vmlinux {
            let image = ElfImage::open(path).map_err(|error| NoKernelCode::Image(error.into()))?;
            let image = crate::companion::check(image, recorded).map_err(NoKernelCode::Image)?;
            return Ok(KernelCode::of_image(config, image));
        }
        let failure =
            match check_running(&kernel).and_then(|()| KernelCode::of_core(Path::new(CORE))) {
                Ok(code) => return Ok(code),
                Err(failure) => failure,
            };
        let Some(recorded) = recorded else { return Err(failure) };
        let spec = DsoSpec::new(DsoKind::Elf, PathBuf::from("/boot/vmlinux"));
        let image = config.debug_dirs.open_recorded(&DsoSpec { build_id: Some(recorded), ..spec });
        image.map(|image| KernelCode::of_image(config, image)).map_err(|_| failure)
    }

    fn of_image(config: &Arc<SymbolizerConfig>, image: ElfImage) -> KernelCode {
        let stated = |(name, actual): &(String, Avma)| {
            Some(Bias::between(*actual, stated_address(&image, name)?))
        };
        let bias = config.kernel.reference.as_ref().and_then(stated).unwrap_or_default();
        let spec = DsoSpec::new(DsoKind::Elf, image.path().to_path_buf());
        // Nothing else is looked for.
        let load: Load = |_, _| Source::Absent(Reason::OutsideSymbols);
        let symbols = DsoSymbols::new(spec, config.clone(), Source::Elf(image), load, None);
        KernelCode(Code::Image(Box::new(symbols), bias))
    }

    fn of_core(path: &Path) -> Result<KernelCode, NoKernelCode> {
        let failed = |error: String| NoKernelCode::Core(error.into());
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NoKernelCode::NoCore,
            _ => failed(error.to_string()),
        })?;
        let mut head = Vec::new();
        let read = (&file).take(CORE_HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| failed(error.to_string()))?;
        let image = ElfImage::from_bytes(path, Bytes::from(head));
        let image = image.map_err(|error| failed(error.to_string()))?;
        Ok(KernelCode(Code::Core(file, image)))
    }

    /// The encoding of its instructions.
    pub fn instruction_set(&self) -> Option<InstructionSet> {
        match &self.0 {
            Code::Image(symbols, _) => symbols.elf()?.instruction_set(),
            Code::Core(_, image) => image.instruction_set(),
        }
    }

    /// The bytes of a range; `None` where the image or the memory has not all of them.
    pub fn bytes(&self, range: Range<Avma>) -> Option<Vec<u8>> {
        let size_bytes = range.end.0.checked_sub(range.start.0)?;
        match &self.0 {
            Code::Image(symbols, bias) => {
                let bytes = symbols.code_at(bias.to_svma(range.start), size_bytes)?;
                (bytes.len() as u64 == size_bytes).then(|| bytes.to_vec())
            }
            Code::Core(file, image) => {
                let segment = image.segments().iter().find(|segment| {
                    let at = range.start.0.checked_sub(segment.svma.0);
                    let end = at.and_then(|at| at.checked_add(size_bytes));
                    end.is_some_and(|end| end <= segment.file_size_bytes)
                })?;
                let at = segment.offset.0.checked_add(range.start.0 - segment.svma.0)?;
                read_at(file, at, size_bytes).ok()
            }
        }
    }

    /// Inlined functions and lines at an address: an image with debug information has them.
    pub fn resolve_in_full(&self, address: Avma) -> Resolution {
        match &self.0 {
            Code::Image(symbols, bias) => symbols.resolve_in_full(bias.to_svma(address)),
            Code::Core(..) => Resolution::default(),
        }
    }
}

fn read_at(file: &File, offset: u64, size_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size_bytes as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Whether the running kernel is the recorded one, and lies where that lay.
fn check_running(kernel: &KernelConfig) -> Result<(), NoKernelCode> {
    let other = NoKernelCode::OtherKernel { recorded: kernel.build_id };
    let (Some(recorded), Some((name, actual))) = (kernel.build_id, &kernel.reference) else {
        return Err(other);
    };
    if running_build_id() != Some(recorded) {
        return Err(other);
    }
    match running_address(kernel, name) {
        Ok(address) if address == Some(*actual) => Ok(()),
        Ok(_) => Err(NoKernelCode::Moved),
        Err(reason) => Err(NoKernelCode::Image(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// An ELF core file with one segment, as `/proc/kcore` has them.
    fn core(start: u64, code: &[u8]) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
        file.resize(16, 0);
        // Core file of an x86-64 machine, version 1.
        for half in [4u16, 62] {
            file.extend(half.to_le_bytes());
        }
        file.extend(1u32.to_le_bytes());
        // Entry, program headers, section headers.
        for word in [0u64, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        for half in [64u16, 56, 1, 64, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        // A loaded segment that may be read, written and executed, at offset 0x1000.
        for word in [1u32, 7] {
            file.extend(word.to_le_bytes());
        }
        for word in [0x1000, start, 0, code.len() as u64, code.len() as u64, 0x1000] {
            file.extend(word.to_le_bytes());
        }
        file.resize(0x1000, 0);
        file.extend(code);
        file
    }

    const START: u64 = 0xffff_ffff_8100_0000;

    #[test]
    fn memory_of_the_kernel_is_read_by_address() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&core(START, &[0x90, 0xc3, 0xcc, 0x55])).unwrap();
        let code = KernelCode::of_core(file.path()).ok().unwrap();
        assert_eq!(code.instruction_set(), Some(InstructionSet::X86_64));
        let bytes = |from: u64, to: u64| code.bytes(Avma(START + from)..Avma(START + to));
        assert_eq!(bytes(1, 3).unwrap(), [0xc3, 0xcc]);
        // Half of a function would be disassembled as if it were all.
        assert_eq!((bytes(2, 5), bytes(4, 4 + 1)), (None, None));
        assert_eq!(code.bytes(Avma(START - 2)..Avma(START + 1)), None);
        assert_eq!(code.bytes(Avma(START + 2)..Avma(START)), None);
    }

    /// A program stands for the image of a kernel: its function `burn` lay elsewhere in memory.
    #[test]
    fn an_image_is_read_where_the_kernel_lay() {
        let path = Path::new("../../../tests/recordings/golden/root/opt/whit-golden/spin");
        let mut config = SymbolizerConfig::new(crate::DebugDirs::none());
        config.kernel.vmlinux = Some(path.to_path_buf());
        config.kernel.reference = Some(("burn".to_owned(), Avma(START)));
        let config = Arc::new(config);
        let code = KernelCode::find(&config, None).ok().unwrap();
        let image = ElfImage::open(path).unwrap();
        let burn = stated_address(&image, "burn").unwrap();
        let expected = image.code_at(burn, 8).unwrap();
        assert_eq!(code.bytes(Avma(START)..Avma(START + 8)).unwrap(), *expected);
        assert_eq!(code.bytes(Avma(START - 0x10_0000)..Avma(START)), None);
        let recorded = BuildId::new(&[7; 20]);
        let Err(other) = KernelCode::find(&config, recorded) else {
            panic!("another image is used")
        };
        assert!(matches!(other, NoKernelCode::Image(Reason::BuildIdDiffers { .. })), "{other}");
    }

    #[test]
    fn a_file_that_is_no_core_is_refused_with_the_way_out() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"no core").unwrap();
        let Err(error) = KernelCode::of_core(file.path()) else { panic!("taken as a core") };
        assert!(error.to_string().contains("--vmlinux FILE"), "{error}");
        let missing = file.path().with_extension("gone");
        let Err(error) = KernelCode::of_core(&missing) else { panic!("taken as a core") };
        assert!(error.to_string().starts_with("this kernel has no /proc/kcore"), "{error}");
    }

    #[test]
    fn memory_of_another_kernel_is_not_read() {
        let other = BuildId::new(&[7; 20]);
        let reference = Some(("_text".to_owned(), Avma(START)));
        let of = |build_id, reference| {
            check_running(&KernelConfig { build_id, reference, ..KernelConfig::default() })
        };
        let refused = |recorded| Err(NoKernelCode::OtherKernel { recorded });
        assert_eq!(of(other, reference.clone()), refused(other));
        assert_eq!(of(None, reference), refused(None));
        let running = running_build_id();
        assert_eq!(of(running, None), refused(running));
    }

    #[test]
    fn memory_of_a_kernel_that_was_started_anew_is_not_read() {
        let running = running_build_id();
        let reference = Some(("_text".to_owned(), Avma(0xffff_ffff_0000_1000)));
        let build_id = running.or(BuildId::new(&[7; 20]));
        let kernel = KernelConfig { build_id, reference, ..KernelConfig::default() };
        let refused = check_running(&kernel).unwrap_err();
        let is_expected = match (running, &refused) {
            (None, NoKernelCode::OtherKernel { .. }) => true,
            // An unprivileged user sees no addresses, and is refused for that.
            (Some(_), NoKernelCode::Moved | NoKernelCode::Image(_)) => true,
            _ => false,
        };
        assert!(is_expected, "{refused}");
    }
}
