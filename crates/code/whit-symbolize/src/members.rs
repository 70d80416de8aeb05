//! Where members of structures are, as debug information says.

use gimli::{DwAt, Reader};

use crate::debug_sections::DebugSections;
use crate::metered::Metered;

/// Below the unit's entry.
const STRUCTURE_DEPTH: isize = 1;

type Entry<'a> = gimli::DebuggingInformationEntry<Metered<'a>>;
type Dwarf<'a> = gimli::Dwarf<Metered<'a>>;
type Unit<'a> = gimli::Unit<Metered<'a>>;

/// The offsets of members in structures; both by their names, in the units of this name. `None` where nothing says it.
pub(crate) fn offsets<const N: usize>(
    sections: &DebugSections,
    unit: &str,
    paths: [[&str; 2]; N],
) -> [Option<u64>; N] {
    let mut found = [None; N];
    sections.meter().begin();
    // An unreadable part leaves the rest unknown.
    let _ = find(sections, unit, paths, &mut found);
    found
}

fn find<const N: usize>(
    sections: &DebugSections,
    unit: &str,
    paths: [[&str; 2]; N],
    found: &mut [Option<u64>; N],
) -> gimli::Result<()> {
    let dwarf = sections.dwarf()?;
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()?
        && found.contains(&None)
    {
        let of = dwarf.unit(header)?;
        let mut entries = of.entries();
        let is_it = entries.next_dfs()?.is_some_and(|root| is_named(&dwarf, &of, root, unit));
        if is_it {
            find_in(&dwarf, &of, paths, found)?;
        }
    }
    Ok(())
}

/// Units of the assembler have the package's name, too, and no structures.
fn find_in<const N: usize>(
    dwarf: &Dwarf<'_>,
    unit: &Unit<'_>,
    paths: [[&str; 2]; N],
    found: &mut [Option<u64>; N],
) -> gimli::Result<()> {
    let mut entries = unit.entries();
    let mut structure = None;
    while let Some(entry) = entries.next_dfs()? {
        if entry.depth() == STRUCTURE_DEPTH {
            let is_structure = entry.tag() == gimli::DW_TAG_structure_type;
            let is_wanted = |path: &[&str; 2]| is_named(dwarf, unit, entry, path[0]);
            let wanted = paths.iter().find(|path| is_structure && is_wanted(path));
            structure = wanted.map(|path| path[0]);
        }
        let is_member = entry.depth() == STRUCTURE_DEPTH + 1;
        let Some(structure) = structure.filter(|_| is_member) else { continue };
        for (path, offset) in paths.iter().zip(found.iter_mut()) {
            if path[0] == structure && is_named(dwarf, unit, entry, path[1]) {
                let at = entry.attr_value(gimli::DW_AT_data_member_location);
                *offset = at.and_then(|at| at.udata_value());
            }
        }
    }
    Ok(())
}

fn is_named(dwarf: &Dwarf<'_>, unit: &Unit<'_>, entry: &Entry<'_>, name: &str) -> bool {
    const NAME: DwAt = gimli::DW_AT_name;
    let value = entry.attr_value(NAME).and_then(|value| dwarf.attr_string(unit, value).ok());
    value.is_some_and(|value| value.to_slice().is_ok_and(|text| *text == *name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use crate::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig};

    #[test]
    fn members_of_structures_have_the_offsets_of_the_compiler() {
        use std::process::Command;
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        let text = "struct o { char a[3]; int b; }; struct p { struct o x; long b; };\n\
                    struct p p; struct o o; int main(void) { return o.b + (int)p.b; }\n";
        std::fs::write(&source, text).unwrap();
        let compiled = Command::new("cc").args(["-g", "-o"]).arg(&program).arg(&source).status();
        assert!(compiled.unwrap().success());
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
        let binary = symbolizer.open(&DsoSpec::new(DsoKind::Elf, program));
        let unit = source.to_str().unwrap();
        let paths = [["p", "b"], ["o", "b"], ["p", "a"], ["q", "b"]];
        assert_eq!(binary.member_offsets(unit, paths), [Some(8), Some(4), None, None]);
        assert_eq!(binary.member_offsets("other", paths), [None; 4]);
    }
}
