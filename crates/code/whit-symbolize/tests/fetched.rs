//! Stripped binaries with sections of their debug information in the cache of debuginfod's clients.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use whit_companion::{Cache, DEBUG_SECTIONS, Parts, SYMBOL_SECTIONS};
use whit_elf::{ElfImage, TableKind};
use whit_symbolize::{
    DebugDirs, DsoKind, DsoSpec, DsoSymbols, Resolution, Symbolizer, SymbolizerConfig,
};
use whit_testing::run::succeed;
use whit_testing::{Skip, check, probe, workload};
use whit_types::Svma;

/// A look at a cache that takes longer waits for something.
const PIPE_PATIENCE: Duration = Duration::from_secs(120);

/// A program with its debug information, the same stripped, and a cache.
struct Stripped {
    /// Holds the files.
    place: tempfile::TempDir,
    full: PathBuf,
    program: PathBuf,
    cache: Cache,
}

impl Stripped {
    fn new(compress: &str) -> Result<Stripped, Skip> {
        probe::program("objcopy")?;
        let place = tempfile::tempdir().expect("make a directory");
        let (full, program) = (place.path().join("full"), place.path().join("program"));
        let mut copy = Command::new("objcopy");
        succeed(
            copy.arg(format!("--compress-debug-sections={compress}"))
                .arg(workload("deep")?)
                .arg(&full),
        );
        succeed(Command::new("objcopy").arg("--strip-all").arg(&full).arg(&program));
        let cache = Cache::at(place.path().join("cache"));
        Ok(Stripped { place, full, program, cache })
    }

    /// Puts sections into the cache, as servers give them.
    fn cache(&self, names: &[&str]) {
        let image = ElfImage::open(&self.full).expect("open the program");
        let id = image.build_id().expect("a build id");
        std::fs::create_dir_all(self.cache.folder(id)).expect("make a directory");
        for name in names {
            if let Some(section) = image.section(name) {
                let bytes = image.section_bytes(section).expect("a section");
                std::fs::write(self.cache.section(id, name), &*bytes).expect("write a section");
            }
        }
    }

    fn symbols(&self, program: &Path) -> std::sync::Arc<DsoSymbols> {
        let dirs = DebugDirs { fetched: Some(self.cache.clone()), ..DebugDirs::none() };
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(dirs));
        symbolizer.open(&DsoSpec::new(DsoKind::Elf, program.to_owned()))
    }

    /// Every eighth byte of the program's code.
    fn addresses(&self) -> Vec<Svma> {
        let image = ElfImage::open(&self.full).expect("open the program");
        let code = image.section(".text").expect("code");
        (code.svma..code.svma + code.size).step_by(8).map(Svma).collect()
    }
}

fn resolve_all(symbols: &DsoSymbols, addresses: &[Svma]) -> Vec<Resolution> {
    addresses.iter().map(|address| symbols.resolve(*address)).collect()
}

#[test]
fn sections_give_the_names_inlines_and_lines_of_the_whole_file() {
    for compress in ["none", "zlib"] {
        check("fetched_sections", || {
            let stripped = Stripped::new(compress)?;
            let addresses = stripped.addresses();
            let without = stripped.symbols(&stripped.program);
            let lack = without.lack(true).expect("a lack");
            assert_eq!(lack.parts, Parts::Sections { symbols: true, debug_info: true });
            stripped.cache(&SYMBOL_SECTIONS);
            stripped.cache(&DEBUG_SECTIONS);
            let fetched = stripped.symbols(&stripped.program);
            assert_eq!(fetched.lack(true), None);
            let expected = resolve_all(&stripped.symbols(&stripped.full), &addresses);
            assert!(expected.iter().any(|it| !it.inlined.is_empty() && it.location.is_some()));
            assert_eq!(resolve_all(&fetched, &addresses), expected, "{compress}");
            Ok(())
        });
    }
}

#[test]
fn symbols_alone_give_functions_alone() {
    check("fetched_symbols", || {
        let stripped = Stripped::new("none")?;
        stripped.cache(&SYMBOL_SECTIONS);
        let fetched = stripped.symbols(&stripped.program);
        assert_eq!(fetched.lack(false), None);
        let lack = fetched.lack(true).expect("a lack");
        assert_eq!(lack.parts, Parts::Sections { symbols: false, debug_info: true });
        let full = stripped.symbols(&stripped.full);
        for address in stripped.addresses() {
            let (found, expected) = (fetched.resolve(address), full.resolve(address));
            assert_eq!(found.function, expected.function);
            assert!(found.inlined.is_empty() && found.location.is_none());
        }
        Ok(())
    });
}

#[test]
fn sections_of_another_build_are_not_used() {
    check("fetched_other_build", || {
        let stripped = Stripped::new("none")?;
        stripped.cache(&SYMBOL_SECTIONS);
        let id = ElfImage::open(&stripped.full).unwrap().build_id().unwrap();
        let table = stripped.cache.section(id, ".symtab");
        let mut bytes = std::fs::read(&table).expect("read the symbols");
        // All values are moved: st_value is the second word of eight bytes.
        for symbol in bytes.chunks_exact_mut(24).skip(1) {
            let value = u64::from_le_bytes(symbol[8..16].try_into().unwrap()) + 0x10000;
            symbol[8..16].copy_from_slice(&value.to_le_bytes());
        }
        std::fs::write(&table, bytes).expect("write the symbols");
        let fetched = stripped.symbols(&stripped.program);
        assert!(fetched.lack(false).is_some());
        assert!(stripped.addresses().iter().all(|it| fetched.resolve(*it).function.is_none()));
        Ok(())
    });
}

/// To open a pipe takes until somebody writes into it.
#[test]
fn a_pipe_in_the_cache_is_no_section() {
    check("fetched_pipe", || {
        let stripped = Stripped::new("none")?;
        stripped.cache(&SYMBOL_SECTIONS);
        let image = ElfImage::open(&stripped.full).expect("open the program");
        let id = image.build_id().expect("a build id");
        succeed(Command::new("mkfifo").arg(stripped.cache.section(id, ".debug_info")));
        let (fetched, addresses) = (stripped.symbols(&stripped.program), stripped.addresses());
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(resolve_all(&fetched, &addresses)));
        let found = ended.recv_timeout(PIPE_PATIENCE).expect("nothing waits for the pipe");
        assert!(found.iter().any(|it| it.function.is_some()));
        Ok(())
    });
}

#[test]
fn the_whole_file_replaces_a_binary_that_is_gone() {
    check("fetched_whole", || {
        let stripped = Stripped::new("none")?;
        let image = ElfImage::open(&stripped.full).unwrap();
        let id = image.build_id();
        let spec =
            DsoSpec { build_id: id, ..DsoSpec::new(DsoKind::Elf, "/nowhere/program".into()) };
        let dirs = DebugDirs { fetched: Some(stripped.cache.clone()), ..DebugDirs::none() };
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(dirs));
        let lack = symbolizer.open(&spec).lack(true).expect("a lack");
        assert_eq!(lack.parts, Parts::Whole);
        let whole = stripped.cache.whole(lack.id);
        std::fs::create_dir_all(whole.parent().unwrap()).expect("make a directory");
        let mut split = Command::new("objcopy");
        succeed(split.arg("--only-keep-debug").arg(&stripped.full).arg(&whole));
        let reopened = symbolizer.reopen(&spec);
        assert!(reopened.reason().is_none() && reopened.lack(true).is_none());
        let addresses = stripped.addresses();
        let expected = resolve_all(&stripped.symbols(&stripped.full), &addresses);
        assert_eq!(resolve_all(&reopened, &addresses), expected);
        // The same file under another build id is refused.
        let other = whit_types::BuildId::new(&[1, 2, 3, 4]).unwrap();
        std::fs::create_dir_all(stripped.cache.folder(other)).expect("make a directory");
        std::fs::copy(&whole, stripped.cache.whole(other)).expect("copy the file");
        let spec = DsoSpec { build_id: Some(other), ..spec };
        assert!(symbolizer.open(&spec).reason().is_some());
        drop(stripped.place);
        Ok(())
    });
}

#[test]
fn arbitrary_sections_are_survived() {
    check("fetched_garbage", || {
        let stripped = Stripped::new("none")?;
        stripped.cache(&SYMBOL_SECTIONS);
        stripped.cache(&DEBUG_SECTIONS);
        let id = ElfImage::open(&stripped.full).unwrap().build_id().unwrap();
        for name in SYMBOL_SECTIONS.iter().chain(&DEBUG_SECTIONS) {
            let path = stripped.cache.section(id, name);
            let Ok(good) = std::fs::read(&path) else { continue };
            for bad in [&good[..good.len() / 2], b"\x01\0\0\0\0\0\0\0\0", b"<html>", &[0xff; 99]] {
                std::fs::write(&path, bad).expect("write a section");
                let symbols = stripped.symbols(&stripped.program);
                resolve_all(&symbols, &stripped.addresses()[..40]);
            }
            std::fs::write(&path, good).expect("write a section");
        }
        Ok(())
    });
}

#[test]
fn the_table_of_the_program_stays_in_place() {
    check("fetched_numbers", || {
        let stripped = Stripped::new("none")?;
        let (full, program) =
            (ElfImage::open(&stripped.full).unwrap(), ElfImage::open(&stripped.program).unwrap());
        full.for_each_symbol(TableKind::Symtab, |symbol| {
            if let Some(section) = full.sections().get(usize::from(symbol.section)) {
                let same = &program.sections()[usize::from(symbol.section)];
                assert!(!section.allocated || section.name == same.name);
            }
        });
        Ok(())
    });
}
