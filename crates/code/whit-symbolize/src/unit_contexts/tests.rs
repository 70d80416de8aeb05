//! Units alone against the whole file: on made-up units for each way back to the whole, and on real
//! binaries for sameness.

use std::path::{Path, PathBuf};
use std::process::Command;

use gimli::write::{
    Address, AttributeValue, DebugInfoRef, Dwarf, EndianVec, LineProgram, Sections, Unit,
    UnitEntryId, UnitId,
};
use gimli::{DwAt, DwTag, Encoding, Format, LittleEndian};

use super::*;
use crate::companion::DebugDirs;
use crate::dso_spec::{DsoKind, DsoSpec};
use crate::dwarf::DebugInfo;
use crate::symbol_table::SymbolTable;
use crate::unit_index::tests::aranges;
use whit_elf::ElfImage;

mod bounds;

const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 5, address_size: 8 };

/// Name and line of each frame, the innermost first.
type Found = Vec<(Option<String>, Option<String>, Option<u32>)>;

fn describe(mut frames: Frames<'_, '_>) -> Found {
    let mut found = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.map(|name| name.raw_name().unwrap().into_owned());
        let file = frame.location.as_ref().and_then(|location| Some(location.file?.to_owned()));
        found.push((name, file, frame.location.and_then(|location| location.line)));
    }
    found
}

fn alone(contexts: &mut UnitContexts<'_>, svma: u64) -> Option<Found> {
    contexts.look_up_in_units(svma, &mut describe).map(Result::unwrap)
}

fn whole(contexts: &mut UnitContexts<'_>, svma: u64) -> Found {
    contexts.look_up_in_whole(svma, &mut describe).unwrap()
}

fn names(found: &Found) -> Vec<&str> {
    found.iter().map(|(name, ..)| name.as_deref().unwrap()).collect()
}

/// Units of made-up functions.
#[derive(Default)]
struct Program {
    dwarf: Dwarf,
}

impl Program {
    /// A unit that says it covers `size` bytes.
    fn unit(&mut self, begin: u64, size: u64) -> UnitId {
        let id = self.dwarf.units.add(Unit::new(ENCODING, LineProgram::none()));
        let root = self.dwarf.units.get(id).root();
        self.cover(id, root, begin, size);
        id
    }

    fn cover(&mut self, unit: UnitId, entry: UnitEntryId, begin: u64, size: u64) {
        let begin = AttributeValue::Address(Address::Constant(begin));
        self.set(unit, entry, gimli::DW_AT_low_pc, begin);
        self.set(unit, entry, gimli::DW_AT_high_pc, AttributeValue::Udata(size));
    }

    fn set(&mut self, unit: UnitId, entry: UnitEntryId, name: DwAt, value: AttributeValue) {
        self.dwarf.units.get_mut(unit).get_mut(entry).set(name, value);
    }

    fn add(&mut self, unit: UnitId, parent: Option<UnitEntryId>, tag: DwTag) -> UnitEntryId {
        let unit = self.dwarf.units.get_mut(unit);
        unit.add(parent.unwrap_or(unit.root()), tag)
    }

    fn function(&mut self, unit: UnitId, name: &str, code: Option<(u64, u64)>) -> UnitEntryId {
        let entry = self.add(unit, None, gimli::DW_TAG_subprogram);
        self.set(unit, entry, gimli::DW_AT_name, AttributeValue::String(name.into()));
        if let Some((begin, size)) = code {
            self.cover(unit, entry, begin, size);
        }
        entry
    }

    fn inline(
        &mut self,
        unit: UnitId,
        into: UnitEntryId,
        origin: AttributeValue,
        (begin, size): (u64, u64),
    ) {
        let entry = self.add(unit, Some(into), gimli::DW_TAG_inlined_subroutine);
        self.set(unit, entry, gimli::DW_AT_abstract_origin, origin);
        self.cover(unit, entry, begin, size);
    }

    /// The sections, with an index of the units in order; a range of length zero is left out.
    fn sections(mut self, indexed: &[(u64, u64)]) -> DebugSections {
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        self.dwarf.write(&mut sections).unwrap();
        let mut parts = Vec::new();
        let add = |id, bytes: &EndianVec<LittleEndian>| {
            parts.push((id, bytes.slice().to_vec()));
            gimli::write::Result::Ok(())
        };
        sections.for_each(add).unwrap();
        let info = &parts.iter().find(|(id, _)| *id == SectionId::DebugInfo).unwrap().1;
        let mut headers = gimli::DebugInfo::new(info, LittleEndian).units();
        let mut offsets = Vec::new();
        while let Some(header) = headers.next().unwrap() {
            offsets.push(header.debug_info_offset().unwrap().0 as u32);
        }
        assert_eq!(offsets.len(), indexed.len());
        let ranges: Vec<_> = indexed.iter().map(|range| [*range]).collect();
        let sets: Vec<_> = offsets.into_iter().zip(ranges.iter().map(|range| &range[..])).collect();
        parts.push((SectionId::DebugAranges, aranges(&sets)));
        DebugSections::from_parts(parts)
    }
}

/// One unit with an inlined function of its own, one that inlines it from there, one without an
/// index entry.
fn three_units() -> DebugSections {
    let mut program = Program::default();
    let near = program.unit(0x1000, 0x100);
    let origin = program.function(near, "inlined", None);
    let outer = program.function(near, "near", Some((0x1000, 0x80)));
    program.inline(near, outer, AttributeValue::UnitRef(origin), (0x1010, 0x10));
    let far = program.unit(0x2000, 0x100);
    let outer = program.function(far, "far", Some((0x2000, 0x80)));
    let origin = AttributeValue::DebugInfoRef(DebugInfoRef::Entry(near, origin));
    program.inline(far, outer, origin, (0x2010, 0x10));
    let unlisted = program.unit(0x3000, 0x100);
    program.function(unlisted, "unlisted", Some((0x3000, 0x80)));
    program.sections(&[(0x1000, 0x100), (0x2000, 0x100), (0, 0)])
}

#[test]
fn one_unit_is_enough_where_it_is_alone() {
    let sections = three_units();
    let mut contexts = UnitContexts::new(&sections);
    let found = contexts.look_up(0x1018, describe).unwrap();
    assert_eq!(names(&found), ["inlined", "near"]);
    assert_eq!(names(&contexts.look_up(0x1000, describe).unwrap()), ["near"]);
    assert!(contexts.whole.is_none());
    assert_eq!(found, whole(&mut contexts, 0x1018));
    assert!(contexts.look_up(u64::MAX, describe).unwrap().is_empty());
}

#[test]
fn missing_data_of_a_unit_comes_from_the_whole() {
    let sections = three_units();
    let mut contexts = UnitContexts::new(&sections);
    // Its inlined function is described in another unit.
    assert_eq!(alone(&mut contexts, 0x2018), None);
    assert_eq!(names(&contexts.look_up(0x2018, describe).unwrap()), ["inlined", "far"]);
    // No index entry.
    assert_eq!(alone(&mut contexts, 0x3000), None);
    assert_eq!(names(&contexts.look_up(0x3000, describe).unwrap()), ["unlisted"]);
    // Indexed, but there is no function.
    assert_eq!(alone(&mut contexts, 0x1090), None);
    assert!(contexts.look_up(0x1090, describe).unwrap().is_empty());
}

#[test]
fn the_unit_with_a_line_answers_among_overlapping_ones() {
    let mut program = Program::default();
    for name in ["first", "second"] {
        let unit = program.unit(0x1000, 0x100);
        let begin = if name == "first" { 0x1080 } else { 0x1000 };
        program.function(unit, name, Some((begin, 0x40)));
    }
    let sections = program.sections(&[(0x1000, 0x100), (0x1000, 0x100)]);
    let mut contexts = UnitContexts::new(&sections);
    for (svma, name) in [(0x1000, "second"), (0x1080, "first")] {
        let found = alone(&mut contexts, svma).unwrap();
        assert_eq!(names(&found), [name]);
        assert_eq!(found, whole(&mut contexts, svma));
    }
}

#[test]
fn a_wrong_index_leads_to_the_whole() {
    let mut program = Program::default();
    let units = [program.unit(0x1000, 0x100), program.unit(0x2000, 0x100)];
    program.function(units[0], "first", Some((0x1000, 0x100)));
    program.function(units[1], "second", Some((0x2000, 0x100)));
    // The index gives the addresses of both to the second.
    let sections = program.sections(&[(0, 0), (0x1000, 0x1100)]);
    let mut contexts = UnitContexts::new(&sections);
    assert_eq!(names(&contexts.look_up(0x1001, describe).unwrap()), ["first"]);
    assert!(contexts.whole.is_some());
    assert_eq!(names(&alone(&mut contexts, 0x2001).unwrap()), ["second"]);
    // An index of units that are not there.
    let ranges: [(u64, u64); 1] = [(0x1000, 0x100)];
    for unit in [3, u32::MAX] {
        let parts = vec![
            (SectionId::DebugInfo, vec![0xff; 40]),
            (SectionId::DebugAranges, aranges(&[(unit, &ranges)])),
        ];
        let sections = DebugSections::from_parts(parts);
        assert!(UnitContexts::new(&sections).look_up(0x1000, describe).unwrap().is_empty());
    }
}

#[test]
fn few_units_stay_parsed() {
    let mut program = Program::default();
    let begins: Vec<u64> = (1..9).map(|n| 0x1000 * n).collect();
    for begin in &begins {
        let unit = program.unit(*begin, 0x100);
        program.function(unit, &format!("at {begin:x}"), Some((*begin, 0x100)));
    }
    let ranges: Vec<_> = begins.iter().map(|begin| (*begin, 0x100)).collect();
    let sections = program.sections(&ranges);
    let mut contexts = UnitContexts::new(&sections);
    contexts.max_kept_units = 3;
    for begin in begins.iter().chain(&begins) {
        let found = contexts.look_up(*begin, describe).unwrap();
        assert_eq!(names(&found), [format!("at {begin:x}")]);
        assert!((1..=3).contains(&contexts.units.len()));
    }
    assert!(contexts.whole.is_none());
}

/// Addresses that are compared in each binary.
const COMPARED_ADDRESSES: usize = 3000;

/// Compares both ways for addresses all over a binary; how many units alone answered, and how many
/// addresses had any answer.
fn compare(symbols: &ElfImage, debug: &ElfImage) -> (usize, usize) {
    let table = SymbolTable::from_elf(symbols, symbols);
    let addresses: Vec<u64> = table
        .iter()
        .filter(|symbol| symbol.size_bytes > 0)
        .flat_map(|symbol| {
            let (start, size) = (symbol.start.0, symbol.size_bytes);
            [start, start + size / 3, start + size / 2, start + size - 1]
        })
        .collect();
    assert!(!addresses.is_empty(), "{:?}", symbols.path());
    let sections = DebugSections::load(debug, None);
    let (mut contexts, mut reference) =
        (UnitContexts::new(&sections), UnitContexts::new(&sections));
    reference.index = None;
    let (mut alone_count, mut known) = (0, 0);
    for svma in addresses.iter().step_by(addresses.len().div_ceil(COMPARED_ADDRESSES)) {
        let expected = reference.look_up(*svma, describe).unwrap();
        let found = contexts.look_up(*svma, describe).unwrap();
        assert_eq!(found, expected, "{:?} at {svma:#x}", debug.path());
        alone_count += usize::from(alone(&mut contexts, *svma).is_some());
        known += usize::from(!expected.is_empty());
    }
    (alone_count, known)
}

#[test]
fn this_program_and_its_libraries_are_described_the_same() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths: Vec<_> =
        maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).collect();
    paths.sort_unstable();
    paths.dedup();
    let dirs = DebugDirs::standard(None);
    let mut compared = 0;
    for path in paths.into_iter().map(Path::new) {
        let Ok(image) = ElfImage::open(path) else { continue };
        let debug = if DebugInfo::is_in(&image) {
            Some(image.clone())
        } else {
            let spec = DsoSpec::new(DsoKind::Elf, path.to_path_buf());
            dirs.open_companions(&spec, &image).find(DebugInfo::is_in)
        };
        let Some(debug) = debug else {
            eprintln!("PASSED OVER: no debug information of {}", path.display());
            continue;
        };
        let (alone, known) = compare(&image, &debug);
        eprintln!("{}: {alone} of {known} by units alone", debug.path().display());
        assert!(known > 0, "{}", path.display());
        compared += 1;
    }
    assert!(compared > 0);
}

/// Both units inline the same functions, and have the same template at the same address.
const SHARED: &str = "
    template<class T> __attribute__((noinline)) T both(T x) { return x * 3 + x / 7; }
    static inline int small(int x) { return (x ^ 5) * x; }
    __attribute__((noinline)) inline int comdat(int x) { return small(x) + both(x); }
    int other(int x);
";
const FIRST: &str = "#include \"shared.h\"
    int main(int n, char **) { return comdat(n) + small(n) + both(n) + other(n); }
";
const SECOND: &str = "#include \"shared.h\"
    int other(int x) { int s = 0; for (int i = 0; i < x; i++) s += comdat(i) ^ small(s); return s; }
";

/// `None`, aloud, where that is impossible.
fn compile(dir: &Path, flags: &[&str]) -> Option<PathBuf> {
    for (name, text) in [("shared.h", SHARED), ("first.cpp", FIRST), ("second.cpp", SECOND)] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let program = dir.join("program");
    let mut compiler = Command::new("c++");
    compiler.args(flags).arg("-o").arg(&program).args(["first.cpp", "second.cpp"]);
    if let Err(whit_testing::Skip(reason)) = whit_testing::probe::program("c++") {
        whit_testing::skip("whit-symbolize unit_contexts", &reason);
        return None;
    }
    whit_testing::run::succeed(compiler.current_dir(dir));
    Some(program)
}

#[test]
fn compiled_programs_are_described_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let sets: [&[&str]; 5] = [
        &["-O2", "-g"],
        &["-O2", "-g", "-gdwarf-4", "-ffunction-sections", "-Wl,--gc-sections"],
        &["-O2", "-g", "-gdwarf-2", "-gstrict-dwarf"],
        &["-O2", "-g", "-flto"],
        &["-O2", "-g", "-gz"],
    ];
    for flags in sets {
        let Some(program) = compile(dir.path(), flags) else { continue };
        let image = ElfImage::open(&program).unwrap();
        let (alone, known) = compare(&image, &image);
        assert!(known > 0, "{flags:?}");
        // Units that were optimized together refer to each other.
        assert!(flags.contains(&"-flto") || alone == known, "{flags:?}: {alone} of {known}");
    }
}
