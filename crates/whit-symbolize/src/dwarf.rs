//! Inlined functions, files and lines from DWARF debug information.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use self_cell::self_cell;
use whit_types::Svma;

use crate::debug_sections::DebugSections;
use crate::split_files::{MissingUnits, SplitFiles};
use crate::unit_contexts::{Frames, UnitContexts};
use whit_elf::ElfImage;

/// Most frames that one address may stand for; compilers inline some dozens deep.
const MAX_INLINE_DEPTH: usize = 500;

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
}

impl DebugInfo {
    /// True where there is something to look into.
    pub(crate) fn is_in(image: &ElfImage) -> bool {
        [".debug_info", ".zdebug_info"]
            .into_iter()
            .filter_map(|name| image.section(name))
            .any(|section| section.in_file && section.size > 0)
    }

    /// Sets up the look-up in a file's sections.
    pub(crate) fn new(sections: DebugSections) -> DebugInfo {
        let contexts = LoadedContexts::new(sections, |sections| UnitContexts::new(sections));
        DebugInfo { contexts, files: FxHashMap::default() }
    }

    /// Files with units that look-ups did not find.
    pub(crate) fn missing_units(&self) -> MissingUnits {
        let sections = self.contexts.borrow_owner();
        sections.split_files().map(SplitFiles::missing).unwrap_or_default()
    }

    /// The functions at `svma`, outermost first: the one that owns the code, then those inlined into
    /// it. Empty where nothing is known.
    pub(crate) fn frames(&mut self, svma: Svma) -> Vec<DwarfFrame> {
        let files = &mut self.files;
        self.contexts.with_dependent_mut(|_, contexts| {
            contexts.look_up(svma.0, |frames| collect(frames, files))
        })
    }
}

fn collect(
    mut frames: Frames<'_, '_>,
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
