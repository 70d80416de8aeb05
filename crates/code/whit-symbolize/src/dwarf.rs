//! Inlined functions, files and lines from DWARF debug information.

use std::ops::Add;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use self_cell::self_cell;
use whit_types::Svma;

use crate::debug_sections::DebugSections;
use crate::metered::Refused;
use crate::split_files::{MissingUnits, SplitFiles};
use crate::unit_contexts::{Frames, UnitContexts};
use whit_elf::ElfImage;

/// Most functions that are inlined into one another; compilers inline some dozens deep.
const MAX_INLINE_DEPTH: usize = 500;

/// With the function that owns the code.
const MAX_FRAMES: usize = MAX_INLINE_DEPTH + 1;

/// Parts of names that are not read, since a file of its kind and size may not ask for so much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Addresses in functions that are inlined into one another too deep. They have lines.
    pub nesting: usize,
    /// Addresses for which more had to be read than the file's size allows. They have neither inlined functions nor
    /// lines.
    pub reading: usize,
    /// Stated contents of compressed sections of debug information; none of them is read.
    pub packed_bytes: u64,
    /// The front of a perf-map, before the lines that are read.
    pub map_bytes: u64,
}

impl Add for GivenUp {
    type Output = GivenUp;

    fn add(self, other: GivenUp) -> GivenUp {
        GivenUp {
            nesting: self.nesting.saturating_add(other.nesting),
            reading: self.reading.saturating_add(other.reading),
            packed_bytes: self.packed_bytes.max(other.packed_bytes),
            map_bytes: self.map_bytes.max(other.map_bytes),
        }
    }
}

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

self_cell!(
    struct LoadedContexts {
        owner: DebugSections,
        #[not_covariant]
        dependent: UnitContexts,
    }
);

/// The debug information of one binary.
///
/// Units stay parsed after their first look-up; dropping this frees them.
pub(crate) struct DebugInfo {
    contexts: LoadedContexts,
    files: FxHashMap<Box<str>, Arc<str>>,
    given_up: GivenUp,
}

impl DebugInfo {
    /// True where there is something to look into.
    pub(crate) fn is_in(image: &ElfImage) -> bool {
        [".debug_info", ".zdebug_info"]
            .into_iter()
            .filter_map(|name| image.section(name))
            .any(|section| section.in_file && section.size > 0)
    }

    /// Sets up the look-up in a file's sections. `given_up` are earlier look-ups in them.
    pub(crate) fn new(sections: DebugSections, given_up: GivenUp) -> DebugInfo {
        let contexts = LoadedContexts::new(sections, |sections| UnitContexts::new(sections));
        DebugInfo { contexts, files: FxHashMap::default(), given_up }
    }

    /// Files with units that look-ups did not find.
    pub(crate) fn missing_units(&self) -> MissingUnits {
        let sections = self.contexts.borrow_owner();
        sections.split_files().map(SplitFiles::missing).unwrap_or_default()
    }

    /// Look-ups that were given up so far.
    pub(crate) fn given_up(&self) -> GivenUp {
        self.given_up
    }

    /// The functions at `svma`, outermost first: the one that owns the code, then those inlined into
    /// it. Empty where nothing is known.
    pub(crate) fn frames(&mut self, svma: Svma) -> Vec<DwarfFrame> {
        let files = &mut self.files;
        let (found, line) = self.contexts.with_dependent_mut(|_, contexts| {
            let found = contexts.look_up(svma.0, |frames| collect(frames, files));
            let found = found.and_then(|frames| match frames.len() {
                0..=MAX_FRAMES => Ok(frames),
                _ => Err(Refused::Nesting),
            });
            let is_nested = found == Err(Refused::Nesting);
            (found, is_nested.then(|| contexts.line_at(svma.0)).flatten())
        });
        let refused = match found {
            Ok(frames) => return frames,
            Err(refused) => refused,
        };
        match refused {
            Refused::Nesting => self.given_up.nesting += 1,
            Refused::Reading => self.given_up.reading += 1,
        }
        let location = line.map(|(file, line)| SourceLocation { file: intern(files, &file), line });
        location.map(|it| DwarfFrame { raw_name: None, location: Some(it) }).into_iter().collect()
    }
}

fn collect(
    mut frames: Frames<'_, '_>,
    files: &mut FxHashMap<Box<str>, Arc<str>>,
) -> Vec<DwarfFrame> {
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        if found.len() > MAX_FRAMES {
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
