//! The unwind information of one binary.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gimli::{BaseAddresses, UnwindContext};
use whit_types::{Arch, Svma};

use crate::bytes::Bytes;
use crate::cfi::{CfiTable, RowVisitor, SectionKind};
use crate::jit::{JitPiece, JitPieces};

/// Ids start at one: zero marks an empty entry of the rule cache.
static NEXT_ID: AtomicU32 = AtomicU32::new(1);

/// A section: its stated address, and its contents.
#[derive(Clone, Debug)]
pub struct Section {
    /// Stated address.
    pub start: Svma,
    /// Contents, already decompressed.
    pub bytes: Bytes,
}

/// The parts of an ELF file that unwinding needs; all of them may be absent.
#[derive(Clone, Debug)]
pub struct ModuleSections {
    /// Architecture of the file.
    pub arch: Arch,
    /// Call frame information that the loader maps.
    pub eh_frame: Option<Section>,
    /// `.eh_frame_hdr`, the binary search table of the former; without it an index is built when
    /// the first frame of the module is unwound.
    pub eh_frame_hdr: Option<Section>,
    /// `.debug_frame`; asked where `.eh_frame` does not cover an address. Its entries are indexed
    /// when the first such address is unwound.
    pub debug_frame: Option<Bytes>,
    /// Start of `.text`, for text-relative pointers.
    pub text: Option<Svma>,
    /// Start of `.got`, for data-relative pointers.
    pub got: Option<Svma>,
    /// Code that changes stacks.
    pub stack_switches: StackSwitches,
}

/// Code that changes the stack that it runs on, which call frame information cannot say, or does not: routines of
/// runtimes, and arm64's return from a signal. The lists ascend and do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSwitches {
    /// From here code is called that returns. The frame pointer leads to a frame record on the stack of before.
    pub kept_frame: Vec<Range<Svma>>,
    /// The caller does not wait for functions that this one calls: the frame is the outermost one.
    pub outermost: Vec<Range<Svma>>,
    /// A signal's handler returns here: the interrupted registers lie above the stack pointer, as the kernel puts them.
    pub signal: Vec<Range<Svma>>,
}

impl StackSwitches {
    /// Whether no code changes stacks.
    pub(crate) fn is_empty(&self) -> bool {
        self.kept_frame.is_empty() && self.outermost.is_empty() && self.signal.is_empty()
    }

    /// The rule of an address, and where it ends; else where the next one begins.
    pub(crate) fn at(&self, svma: u64) -> (Option<StackSwitch>, u64) {
        let lists = [
            (&self.kept_frame, StackSwitch::KeptFrame),
            (&self.outermost, StackSwitch::Outermost),
            (&self.signal, StackSwitch::Signal),
        ];
        let mut next = u64::MAX;
        for (ranges, switch) in lists {
            let after = ranges.partition_point(|range| range.end.0 <= svma);
            let Some(range) = ranges.get(after) else { continue };
            if range.start.0 <= svma {
                return (Some(switch), range.end.0);
            }
            next = next.min(range.start.0);
        }
        (None, next)
    }
}

/// A change of the stack at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StackSwitch {
    /// See [`StackSwitches::kept_frame`].
    KeptFrame,
    /// See [`StackSwitches::outermost`].
    Outermost,
    /// See [`StackSwitches::signal`].
    Signal,
}

impl ModuleSections {
    /// No section at all.
    pub fn none(arch: Arch) -> ModuleSections {
        ModuleSections {
            arch,
            eh_frame: None,
            eh_frame_hdr: None,
            debug_frame: None,
            text: None,
            got: None,
            stack_switches: StackSwitches::default(),
        }
    }
}

/// The unwind information of one binary, shared by all processes that map it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ModuleUnwindInfo(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: u32,
    tables: Vec<CfiTable>,
    jitted: Option<JitPieces>,
    stack_switches: StackSwitches,
    is_unopened: bool,
}

impl Inner {
    /// With an id of its own.
    fn nothing() -> Inner {
        Inner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            tables: Vec::new(),
            jitted: None,
            stack_switches: StackSwitches::default(),
            is_unopened: false,
        }
    }
}

impl ModuleUnwindInfo {
    /// Takes the sections as they are; nothing is parsed yet, and sections that turn out to be
    /// corrupt later read as if they covered nothing.
    pub fn new(sections: ModuleSections) -> ModuleUnwindInfo {
        let bases = base_addresses(&sections);
        let mut tables = Vec::new();
        if let Some(eh_frame) = sections.eh_frame {
            tables.push(CfiTable::new(
                SectionKind::EhFrame,
                sections.arch,
                eh_frame.bytes,
                sections.eh_frame_hdr.map(|hdr| hdr.bytes),
                bases.clone(),
            ));
        }
        if let Some(debug_frame) = sections.debug_frame {
            let kind = SectionKind::DebugFrame;
            tables.push(CfiTable::new(kind, sections.arch, debug_frame, None, bases));
        }
        ModuleUnwindInfo::with(tables, sections.stack_switches)
    }

    fn with(tables: Vec<CfiTable>, stack_switches: StackSwitches) -> ModuleUnwindInfo {
        ModuleUnwindInfo::of(Inner { tables, stack_switches, ..Inner::nothing() })
    }

    fn of(inner: Inner) -> ModuleUnwindInfo {
        ModuleUnwindInfo(Arc::new(inner))
    }

    /// For code of a JIT compiler that describes each piece of it. Stated addresses are actual ones. Outside of
    /// the pieces, frame pointers lead on.
    pub fn jitted(arch: Arch, pieces: impl IntoIterator<Item = JitPiece>) -> ModuleUnwindInfo {
        let jitted = Some(JitPieces::new(arch, pieces));
        ModuleUnwindInfo::of(Inner { jitted, ..Inner::nothing() })
    }

    /// For executable memory without unwind information: JIT code, a file that has none. Such frames are unwound with the frame pointer, if that leads to plausible places.
    pub fn none(arch: Arch) -> ModuleUnwindInfo {
        ModuleUnwindInfo::new(ModuleSections::none(arch))
    }

    /// For a binary that could not be opened: the same, but for the reason why chains end there.
    pub fn unopened() -> ModuleUnwindInfo {
        ModuleUnwindInfo::of(Inner { is_unopened: true, ..Inner::nothing() })
    }

    /// True where nothing is known of the module, since it could not be opened.
    pub(crate) fn is_unopened(&self) -> bool {
        self.0.is_unopened
    }

    /// True where the module has no unwind information: neither a section nor code that is known by name. Pieces of a JIT
    /// compiler's are none.
    pub fn is_none(&self) -> bool {
        self.0.tables.is_empty() && self.0.stack_switches.is_empty()
    }

    /// Distinguishes the modules of one run.
    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    /// The sections, in the order in which they are asked.
    pub(crate) fn tables(&self) -> &[CfiTable] {
        &self.0.tables
    }

    /// The function that an entry describes, by its addresses: the only source for functions
    /// without symbols.
    pub fn function_range(&self, svma: Svma) -> Option<Range<Svma>> {
        let range = self.0.tables.iter().find_map(|table| table.function_range(svma.0))?;
        Some(Svma(range.start)..Svma(range.end))
    }

    /// Code that changes stacks.
    pub(crate) fn stack_switches(&self) -> &StackSwitches {
        &self.0.stack_switches
    }

    /// Shows `visitor` the row for `svma`; `None` where no table covers it.
    pub(crate) fn visit_row<V: RowVisitor>(
        &self,
        svma: u64,
        context: &mut UnwindContext<usize>,
        visitor: &mut V,
    ) -> Option<V::Output> {
        let mut tables = self.0.tables.iter();
        let found = tables.find_map(|table| table.visit_row(svma, context, visitor));
        found.or_else(|| self.0.jitted.as_ref()?.visit_row(svma, context, visitor))
    }
}

fn base_addresses(sections: &ModuleSections) -> BaseAddresses {
    let mut bases = BaseAddresses::default();
    if let Some(section) = &sections.eh_frame {
        bases = bases.set_eh_frame(section.start.0);
    }
    if let Some(section) = &sections.eh_frame_hdr {
        bases = bases.set_eh_frame_hdr(section.start.0);
    }
    if let Some(text) = sections.text {
        bases = bases.set_text(text.0);
    }
    if let Some(got) = sections.got {
        bases = bases.set_got(got.0);
    }
    bases
}
