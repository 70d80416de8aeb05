//! Inlined functions, files and lines from DWARF debug information.

use std::sync::Arc;

use addr2line::{FrameIter, LookupContinuation, LookupResult};
use gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use rustc_hash::FxHashMap;
use self_cell::self_cell;
use whit_types::Svma;
use whit_unwind::Bytes;

use crate::elf::ElfImage;

/// Most frames that one address may stand for; compilers inline some dozens deep.
const MAX_INLINE_DEPTH: usize = 500;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type Context<'a> = addr2line::Context<Slice<'a>>;

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLocation {
    /// Path as the compiler recorded it, made absolute where it recorded its directory.
    pub file: Arc<str>,
    /// Line, counted from one; zero where the compiler vouches for none.
    pub line: u32,
}

/// One function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DwarfFrame {
    /// Linkage name if there is one, else the plain name.
    pub(crate) raw_name: Option<String>,
    /// Where in this function: the call of the next inner one, or the address itself.
    pub(crate) location: Option<SourceLocation>,
}

/// The sections of one file, and of the supplementary file that it shares with others.
struct DebugSections {
    endian: RunTimeEndian,
    main: SectionMap,
    supplement: Option<SectionMap>,
}

type SectionMap = FxHashMap<&'static str, Bytes>;

self_cell!(
    struct LoadedContext {
        owner: DebugSections,
        #[not_covariant]
        dependent: Context,
    }
);

/// The debug information of one binary.
///
/// What was looked up once stays parsed, unit by unit; dropping this frees it.
pub(crate) struct DebugInfo {
    context: LoadedContext,
    files: FxHashMap<Box<str>, Arc<str>>,
}

impl DebugInfo {
    /// True where [`DebugInfo::load`] has something to load.
    pub(crate) fn is_in(image: &ElfImage) -> bool {
        [".debug_info", ".zdebug_info"]
            .into_iter()
            .filter_map(|name| image.section(name))
            .any(|section| section.in_file && section.size > 0)
    }

    /// Sets up the look-up in `image`'s sections, which stay in its mapping unless they are
    /// compressed. `supplement` is the file that `.gnu_debugaltlink` names.
    pub(crate) fn load(image: &ElfImage, supplement: Option<&ElfImage>) -> Option<DebugInfo> {
        let sections = DebugSections {
            endian: match image.endian() {
                object::Endianness::Little => RunTimeEndian::Little,
                object::Endianness::Big => RunTimeEndian::Big,
            },
            main: section_map(image),
            supplement: supplement.map(section_map),
        };
        let context = LoadedContext::try_new(sections, build_context).ok()?;
        Some(DebugInfo { context, files: FxHashMap::default() })
    }

    /// The functions at `svma`, outermost first: the one that owns the code, then those inlined into
    /// it. Empty where nothing is known.
    pub(crate) fn frames(&mut self, svma: Svma) -> Vec<DwarfFrame> {
        // addr2line looks into the range up to the next address, which the last one has not.
        if svma.0 == u64::MAX {
            return Vec::new();
        }
        let files = &mut self.files;
        self.context.with_dependent(|_, context| {
            let Some(frames) = without_split_units(context.find_frames(svma.0)) else {
                return Vec::new();
            };
            collect(frames, files)
        })
    }
}

fn build_context(sections: &DebugSections) -> Result<Context<'_>, gimli::Error> {
    let main = |id| Ok::<_, gimli::Error>(slice(&sections.main, id, sections.endian));
    let mut dwarf = Dwarf::load(main)?;
    if let Some(map) = &sections.supplement {
        dwarf.load_sup(|id| Ok::<_, gimli::Error>(slice(map, id, sections.endian)))?;
    }
    Context::from_dwarf(dwarf)
}

fn slice(map: &SectionMap, id: SectionId, endian: RunTimeEndian) -> Slice<'_> {
    EndianSlice::new(map.get(id.name()).map_or(&[], |bytes| bytes), endian)
}

/// Units in separate files (split DWARF) are passed over; their addresses then have lines but no
/// inlined functions.
fn without_split_units<'c, 'a, L>(lookup: LookupResult<L>) -> Option<FrameIter<'c, Slice<'a>>>
where
    L: LookupContinuation<Output = Result<FrameIter<'c, Slice<'a>>, gimli::Error>>,
{
    lookup.skip_all_loads().ok()
}

fn collect(
    mut frames: FrameIter<'_, Slice<'_>>,
    files: &mut FxHashMap<Box<str>, Arc<str>>,
) -> Vec<DwarfFrame> {
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        if found.len() == MAX_INLINE_DEPTH {
            break;
        }
        let raw_name =
            frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
        let location = frame.location.and_then(|location| {
            let file = intern(files, location.file?);
            Some(SourceLocation { file, line: location.line.unwrap_or(0) })
        });
        found.push(DwarfFrame { raw_name, location });
    }
    found.reverse();
    found
}

fn intern(files: &mut FxHashMap<Box<str>, Arc<str>>, file: &str) -> Arc<str> {
    if let Some(known) = files.get(file) {
        return known.clone();
    }
    let shared: Arc<str> = Arc::from(file);
    files.insert(Box::from(file), shared.clone());
    shared
}

fn section_map(image: &ElfImage) -> SectionMap {
    // What functions, inlining and lines need: locations of variables are left where they are.
    const WANTED: [SectionId; 10] = [
        SectionId::DebugAbbrev,
        SectionId::DebugAddr,
        SectionId::DebugAranges,
        SectionId::DebugInfo,
        SectionId::DebugLine,
        SectionId::DebugLineStr,
        SectionId::DebugRanges,
        SectionId::DebugRngLists,
        SectionId::DebugStr,
        SectionId::DebugStrOffsets,
    ];
    // Distributions compress debug sections, and taking them apart is most of the cost of the first
    // look-up in a binary: each larger one has a thread of its own.
    let is_costly =
        |name: &str| image.section(name).is_some_and(|s| s.compressed && s.size > OWN_THREAD_BYTES);
    std::thread::scope(|scope| {
        let (costly, cheap): (Vec<_>, Vec<_>) =
            WANTED.into_iter().map(SectionId::name).partition(|name| is_costly(name));
        let threads: Vec<_> = costly
            .into_iter()
            .map(|name| (name, scope.spawn(move || image.section_contents(name))))
            .collect();
        let mut map: SectionMap = cheap
            .into_iter()
            .filter_map(|name| Some((name, image.section_contents(name)?)))
            .collect();
        let joined = threads.into_iter();
        map.extend(joined.filter_map(|(name, thread)| Some((name, thread.join().ok()??))));
        map
    })
}

/// Compressed sections above this size are decompressed in a thread of their own.
const OWN_THREAD_BYTES: u64 = 256 << 10;
