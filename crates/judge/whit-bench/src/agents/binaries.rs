//! Names for the addresses of agents that leave names to those who show profiles.
//!
//! Such an agent names a file by the last part of its path and by its build id. The files are those that the processes
//! of the load had mapped.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use whit_measure::process_tree::children;
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, DsoSymbols, Symbolizer, SymbolizerConfig};
use whit_sys::maps::MapsLine;
use whit_types::Svma;

use super::otlp::Code;

/// Files of code, by the last part of their paths.
pub(super) struct Binaries {
    files: HashMap<String, Vec<PathBuf>>,
    symbolizer: Symbolizer,
}

impl Binaries {
    /// With the debug information that this machine has.
    pub(super) fn new(files: &BTreeSet<PathBuf>) -> Binaries {
        let mut by_name: HashMap<String, Vec<PathBuf>> = HashMap::new();
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            by_name.entry(name).or_default().push(path.clone());
        }
        let mut config = SymbolizerConfig::new(DebugDirs::standard(None));
        config.lines = false;
        Binaries { files: by_name, symbolizer: Symbolizer::remembering(config) }
    }

    /// The functions at an address, the outermost first, inlined ones behind it. One empty name where there is none.
    pub(super) fn names(&self, code: &Code<'_>) -> Vec<String> {
        let found = self.files.get(code.file).into_iter().flatten().find_map(|path| {
            let symbols = self.symbolizer.open(&DsoSpec::new(DsoKind::Elf, path.clone()));
            has_id(&symbols, code.build_id).then_some(symbols)
        });
        let Some(found) = found.map(|symbols| symbols.resolve(Svma(code.address))) else {
            return vec![String::new()];
        };
        let function = found.function.map_or_else(String::new, |it| it.name.to_string());
        let inlined = found.inlined.iter().map(|it| it.name.to_string());
        [function].into_iter().chain(inlined).collect()
    }
}

/// An agent that gives no build id is believed.
fn has_id(symbols: &DsoSymbols, wanted: Option<&str>) -> bool {
    let id = symbols.elf().and_then(|elf| elf.build_id());
    symbols.reason().is_none()
        && wanted.is_none_or(|wanted| Some(wanted.to_owned()) == id.map(|id| id.to_string()))
}

/// All files of code that a process and those below it have mapped.
pub(super) fn files_of_tree(process: u32) -> BTreeSet<PathBuf> {
    let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    let mut files = files(&maps);
    files.extend(children(process).into_iter().flat_map(files_of_tree));
    files
}

fn files(maps: &[u8]) -> BTreeSet<PathBuf> {
    let lines = maps.split(|byte| *byte == b'\n').filter_map(MapsLine::parse);
    let code = lines.filter(|line| line.is_executable() && line.is_file());
    code.map(|line| Path::new(OsStr::from_bytes(line.path)).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "../../../tests/recordings/golden/root/opt/whit-golden/spin";

    fn name(build_id: Option<&str>, file: &str, address: u64) -> Vec<String> {
        let files = BTreeSet::from([PathBuf::from("/nowhere/spin"), PathBuf::from(PROGRAM)]);
        Binaries::new(&files).names(&Code { file, build_id, address })
    }

    #[test]
    fn a_file_is_found_by_its_name() {
        assert_eq!(name(None, "spin", 0x40_00f0), ["burn"]);
        for lost in [
            name(Some("00112233"), "spin", 0x40_00f0),
            name(None, "other", 0x40_00f0),
            name(None, "spin", 0x10),
        ] {
            assert_eq!(lost, [""]);
        }
    }

    #[test]
    fn a_build_id_must_be_that_of_the_file() {
        let own = files_of_tree(std::process::id());
        let is_libc = |path: &&PathBuf| path.ends_with("libc.so.6");
        let libc = own.iter().find(is_libc).expect("the C library is mapped").clone();
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
        let symbols = symbolizer.open(&DsoSpec::new(DsoKind::Elf, libc));
        let id = symbols.elf().unwrap().build_id().expect("a distribution gives one").to_string();
        assert!(has_id(&symbols, Some(&id)) && has_id(&symbols, None));
        assert!(!has_id(&symbols, Some(&id[..38])) && !has_id(&symbols, Some("")));
        let missing = symbolizer.open(&DsoSpec::new(DsoKind::Elf, "/nowhere/libc".into()));
        assert!(!has_id(&missing, Some(&id)) && !has_id(&missing, None));
    }

    #[test]
    fn files_are_those_of_code() {
        let maps = b"00400000-00401000 r--p 00000000 fd:00 17 /opt/a\n\
            00401000-00402000 r-xp 00001000 fd:00 17 /opt/a b\n\
            7f0000000000-7f0000001000 r-xp 00000000 00:00 0 [vdso]\n\
            7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n";
        assert_eq!(files(maps), BTreeSet::from([PathBuf::from("/opt/a b")]));
        let own = files_of_tree(std::process::id());
        assert!(own.contains(&std::env::current_exe().unwrap()), "{own:?}");
    }
}
