//! Debug information that compilers leave beside a binary (`-gsplit-dwarf`): `.dwo` files, and `.dwp` packages of them.
//!
//! DWARF 5, section 7.3.2 ("Split DWARF Object Files"); GCC's extension of DWARF 4 has the same sections.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use elsa::sync::FrozenVec;
use gimli::{DwarfPackage, DwoId, RunTimeEndian, SectionId, UnitType};

use crate::companion::DebugDirs;
use crate::dso_spec::DsoSpec;
use crate::metered::{Meter, Metered};
use crate::section_map::{SectionMap, sections_of};

type Dwarf<'a> = gimli::Dwarf<Metered<'a>>;

/// Files of one binary that are opened. Each stays mapped while the binary's debug information is loaded; units
/// in further files have lines but no inlined functions.
const MAX_FILES: usize = 16_384;

/// Missing files that are named; the rest is counted.
const MAX_NAMED: usize = 8;

/// Sections of a `.dwo` file for functions, inlining and lines.
const OF_FILE: [SectionId; 6] = [
    SectionId::DebugAbbrev,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
];

/// Those of a `.dwp` file: all that its index may refer to.
const OF_PACKAGE: [SectionId; 13] = [
    SectionId::DebugAbbrev,
    SectionId::DebugCuIndex,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTuIndex,
    SectionId::DebugTypes,
];

/// Files with units of a binary that were not found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingUnits {
    /// Some of the files, as the binary names them.
    pub named: Vec<Arc<Path>>,
    /// The number of files that were not found.
    pub count: usize,
}

/// The split files of one binary, opened when a unit in them is first looked into.
pub(crate) struct SplitFiles {
    dirs: DebugDirs,
    spec: DsoSpec,
    /// Binaries whose neighbours may be split files: the one with the debug information, and the recorded one.
    binaries: Vec<Arc<Path>>,
    endian: RunTimeEndian,
    /// That of the binary.
    meter: Arc<Meter>,
    package: OnceLock<Option<SectionMap>>,
    files: FrozenVec<Box<SectionMap>>,
    missing: Mutex<MissingUnits>,
}

impl SplitFiles {
    pub(crate) fn new(
        dirs: DebugDirs,
        spec: DsoSpec,
        binaries: Vec<Arc<Path>>,
        endian: RunTimeEndian,
        meter: Arc<Meter>,
    ) -> SplitFiles {
        let (package, files, missing) = Default::default();
        SplitFiles { dirs, spec, binaries, endian, meter, package, files, missing }
    }

    /// The package of all units beside the binary.
    pub(crate) fn package(&self) -> Option<DwarfPackage<Metered<'_>>> {
        let open = || {
            let places = self.binaries.iter().map(|binary| {
                let mut place = binary.as_os_str().to_owned();
                place.push(".dwp");
                PathBuf::from(place)
            });
            let images = places.flat_map(|place| self.dirs.open_all(&self.spec, &place));
            images.map(|image| sections_of(&image, &OF_PACKAGE, SectionId::dwo_name)).next()
        };
        let map = self.package.get_or_init(open).as_ref()?;
        let empty = Metered::new(&[], self.endian, &self.meter);
        let section = |id: SectionId| Ok::<_, gimli::Error>(self.section(map, id));
        DwarfPackage::load(section, empty).ok()
    }

    /// The unit of a `.dwo` file. `directory` is that of the compiler.
    pub(crate) fn unit<'a>(
        &'a self,
        id: DwoId,
        directory: Option<&[u8]>,
        name: &[u8],
        parent: &Dwarf<'a>,
    ) -> Option<Dwarf<'a>> {
        if self.files.len() >= MAX_FILES {
            return None;
        }
        let name = Path::new(OsStr::from_bytes(name));
        let found = self.places(directory, name).into_iter().find_map(|place| {
            self.dirs.open_all(&self.spec, &place).find_map(|image| {
                let map = Box::new(sections_of(&image, &OF_FILE, SectionId::dwo_name));
                // A file that was compiled again stands for other code.
                self.has_unit(&map, id)?;
                Some(map)
            })
        });
        match found {
            Some(map) => self.dwarf(self.files.push_get(map), parent),
            None => {
                self.miss(name);
                None
            }
        }
    }

    /// As the compiler named it, beside the binary, and beside it without folders.
    fn places(&self, directory: Option<&[u8]>, name: &Path) -> Vec<PathBuf> {
        let directory = Path::new(OsStr::from_bytes(directory.unwrap_or_default()));
        let mut places = vec![self.dirs.in_symfs(&directory.join(name))];
        for folder in self.binaries.iter().filter_map(|binary| binary.parent()) {
            places.extend((!name.is_absolute()).then(|| folder.join(name)));
            places.extend(name.file_name().map(|name| folder.join(name)));
        }
        places
    }

    fn has_unit(&self, map: &SectionMap, id: DwoId) -> Option<()> {
        let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(self.section(map, id))).ok()?;
        dwarf.file_type = gimli::DwarfFileType::Dwo;
        let header = dwarf.units().next().ok()??;
        let found = match header.type_() {
            UnitType::SplitCompilation(found) => Some(found),
            // DWARF 4 states it in the unit's own entry.
            _ => dwarf.unit(header).ok()?.dwo_id,
        };
        (found == Some(id)).then_some(())
    }

    fn dwarf<'a>(&'a self, map: &'a SectionMap, parent: &Dwarf<'a>) -> Option<Dwarf<'a>> {
        let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(self.section(map, id))).ok()?;
        dwarf.make_dwo(parent);
        Some(dwarf)
    }

    fn section<'a>(&'a self, map: &'a SectionMap, id: SectionId) -> Metered<'a> {
        let bytes = id.dwo_name().and_then(|name| map.get(name));
        Metered::new(bytes.map_or(&[], |bytes| bytes), self.endian, &self.meter)
    }

    fn miss(&self, name: &Path) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.count += 1;
        if missing.named.len() < MAX_NAMED {
            missing.named.push(Arc::from(name));
        }
    }

    pub(crate) fn missing(&self) -> MissingUnits {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
