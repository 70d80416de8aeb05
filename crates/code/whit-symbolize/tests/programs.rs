//! Programs compiled here: inlined functions, lines, debug companions, build ids, linkage stubs.
//!
//! Needs `c++`, `objcopy` and `nm`; says aloud when it has to pass.

use std::path::{Path, PathBuf};
use std::process::Command;

use whit_elf::ElfImage;
use whit_symbolize::{
    DebugDirs, DsoKind, DsoSpec, DsoSymbols, Reason, SymbolSource, Symbolizer, SymbolizerConfig,
};
use whit_testing::{Skip, probe, run};
use whit_types::{BuildId, FileOffset, Svma};

/// Nothing, aloud, where the machine lacks something.
fn has(test: &str, probed: Result<(), Skip>) -> Option<()> {
    probed.map_err(|Skip(reason)| whit_testing::skip(test, &reason)).ok()
}

/// Compiles `work.cpp`; `None`, aloud, where that is impossible.
fn compile(dir: &Path, flags: &[&str]) -> Option<PathBuf> {
    let source = dir.join("work.cpp");
    std::fs::write(&source, include_str!("work.cpp")).unwrap();
    let program = dir.join("work");
    let mut compiler = Command::new("c++");
    has("whit-symbolize programs", probe::program("c++"))?;
    run::succeed(compiler.args(flags).arg("-o").arg(&program).arg(&source));
    Some(program)
}

fn symbolizer(roots: &[&Path]) -> Symbolizer {
    let mut dirs = DebugDirs::none();
    dirs.roots = roots.iter().map(|root| root.to_path_buf()).collect();
    Symbolizer::new(SymbolizerConfig::new(dirs))
}

fn spec(path: &Path, build_id: Option<BuildId>) -> DsoSpec {
    DsoSpec { build_id, ..DsoSpec::new(DsoKind::Elf, path.into()) }
}

/// Start and size of a function, by the end of its raw name.
fn find(dso: &DsoSymbols, name: &str) -> (u64, u64) {
    let table = dso.symbol_table().unwrap();
    let symbol =
        table.iter().find(|symbol| String::from_utf8_lossy(symbol.name).contains(name)).unwrap();
    (symbol.start.0, symbol.size_bytes)
}

/// Code that the linker puts elsewhere than where it stands in the file has a distance of its own.
#[test]
fn code_has_one_distance_from_its_offsets_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("far.c");
    let far = "__attribute__((section(\".far\"), noinline)) int far(void) { return 7; }\n";
    std::fs::write(&source, format!("{far}int main(void) {{ return far(); }}\n")).unwrap();
    let image = |name: &str, options: &[&str]| {
        let program = dir.path().join(name);
        let mut compiler = Command::new("cc");
        run::succeed(compiler.args(options).arg("-o").arg(&program).arg(&source));
        ElfImage::open(&program).unwrap()
    };
    if has("whit-symbolize code_bias", probe::program("cc")).is_none() {
        return;
    }
    let near = image("near", &[]);
    let far = image("far", &["-no-pie", "-Wl,--section-start=.far=0x10000000"]);
    let bias = near.code_bias().unwrap();
    let code = near.segments().iter().find(|segment| segment.executable).unwrap();
    let last = FileOffset(code.offset.0 + code.file_size_bytes - 1);
    assert_eq!(near.svma_of(last).unwrap().0, last.0.wrapping_add(bias));
    assert_eq!(far.code_bias(), None, "{:?}", far.segments());
}

/// Line of `work.cpp` that holds `text`, counted from one.
fn line_of(text: &str) -> u32 {
    let at = include_str!("work.cpp").lines().position(|line| line.contains(text)).unwrap();
    at as u32 + 1
}

/// Looks for the function that was inlined into `ns::outer`, with its lines.
fn check_inlining(dso: &DsoSymbols) {
    let (start, size) = find(dso, "5outerERSt6vector");
    let inlined = (start..start + size)
        .map(|address| dso.resolve(Svma(address)))
        .find(|resolution| resolution.inlined.iter().any(|frame| &*frame.name == "hot"))
        .expect("ns::hot is inlined into ns::outer");
    let function = inlined.function.as_ref().unwrap();
    assert_eq!(&*function.name, "ns::outer");
    assert_eq!(function.start, Svma(start));
    let frame = inlined.inlined.last().unwrap();
    // A function that nothing outside its file can call has no linkage name to say its namespace.
    assert_eq!(&*frame.name, "hot");
    let call_site = frame.call_site.as_ref().unwrap();
    assert!(call_site.file.ends_with("work.cpp"));
    assert_eq!(call_site.line, line_of("sum += hot(value)"));
    assert_eq!(inlined.location.as_ref(), Some(call_site));
    let inside = inlined.innermost_location().unwrap().line;
    assert!((line_of("inline int hot")..=line_of("int outer")).contains(&inside), "{inside}");
}

#[test]
fn inlined_functions_and_lines() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [&["-O2", "-g"][..], &["-O2", "-g", "-gz", "-gdwarf-4", "-no-pie"]] {
        let Some(program) = compile(dir.path(), flags) else { return };
        let dso = symbolizer(&[]).open(&spec(&program, None));
        check_inlining(&dso);
        dso.release_debug_info();
        check_inlining(&dso);
    }
}

#[test]
fn switches_are_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path(), &["-O2", "-g"]) else { return };
    let mut config = SymbolizerConfig::new(DebugDirs::none());
    (config.inlines, config.demangle) = (false, false);
    let dso = Symbolizer::new(config).open(&spec(&program, None));
    let (start, size) = find(&dso, "5outerERSt6vector");
    let mut lines = Vec::new();
    for address in start..start + size {
        let resolution = dso.resolve(Svma(address));
        assert!(resolution.inlined.is_empty());
        assert_eq!(&*resolution.function.unwrap().name, "_ZN2ns5outerERSt6vectorIiSaIiEE");
        lines.extend(resolution.location.map(|location| location.line));
    }
    assert!(lines.contains(&line_of("y = y + i * x")), "{lines:?}");
}

#[test]
fn a_stripped_binary_finds_its_companion() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path(), &["-O2", "-g", "-Wl,--build-id"]) else { return };
    let whole = symbolizer(&[]).open(&spec(&program, None));
    let id = whole.elf().unwrap().build_id().unwrap();
    let hex = id.to_string();
    let debug_root = dir.path().join("debug");
    let companion_dir = debug_root.join(".build-id").join(&hex[..2]);
    std::fs::create_dir_all(&companion_dir).unwrap();
    let companion = companion_dir.join(format!("{}.debug", &hex[2..]));
    let stripped = dir.path().join("stripped");
    if has("whit-symbolize companions", probe::program("objcopy")).is_none() {
        return;
    }
    let mut objcopy = Command::new("objcopy");
    run::succeed(objcopy.arg("--only-keep-debug").arg(&program).arg(&companion));
    let mut objcopy = Command::new("objcopy");
    run::succeed(objcopy.arg("--strip-all").arg(&program).arg(&stripped));
    let (start, _) = find(&whole, "5outerERSt6vector");

    let dso = symbolizer(&[&debug_root]).open(&spec(&stripped, Some(id)));
    check_inlining(&dso);
    let function = dso.resolve(Svma(start)).function.unwrap();
    assert_eq!(function.source, SymbolSource::Symtab);

    // Without its companion only exported and imported functions have a name.
    let alone = symbolizer(&[]).open(&spec(&stripped, Some(id)));
    assert_eq!(alone.resolve(Svma(start)).function, None);
    assert!(alone.resolve(Svma(start)).reason.is_some());

    // By link, and the companion alone where the binary is gone.
    let linked = dir.path().join("linked");
    let link = companion.with_file_name("work.debug");
    std::fs::copy(&companion, &link).unwrap();
    let mut objcopy = Command::new("objcopy");
    objcopy.arg("--add-gnu-debuglink").arg(&link).arg(&stripped).arg(&linked);
    run::succeed(&mut objcopy);
    std::fs::create_dir(dir.path().join(".debug")).unwrap();
    std::fs::rename(&link, dir.path().join(".debug/work.debug")).unwrap();
    check_inlining(&symbolizer(&[]).open(&spec(&linked, Some(id))));
    check_inlining(&symbolizer(&[&debug_root]).open(&spec(Path::new("/gone"), Some(id))));
}

#[test]
fn another_build_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path(), &["-O1", "-Wl,--build-id"]) else { return };
    let other = BuildId::new(&[7; 20]).unwrap();
    let dso = symbolizer(&[]).open(&spec(&program, Some(other)));
    assert!(
        matches!(dso.reason(), Some(Reason::BuildIdDiffers { recorded, .. }) if *recorded == other)
    );
    let resolution = dso.resolve(Svma(0x1000));
    assert_eq!(resolution.reason.as_ref(), dso.reason());
    assert_eq!(resolution.function, None);

    let Some(program) = compile(dir.path(), &["-O1", "-Wl,--build-id=none"]) else { return };
    let dso = symbolizer(&[]).open(&spec(&program, Some(other)));
    assert!(matches!(dso.reason(), Some(Reason::BuildIdDiffers { found: None, .. })));
}

#[test]
fn absent_symbols_have_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let symbolizer = symbolizer(&[]);
    // A new one each time: an opened file is not looked at again.
    let reason = |path: &Path| self::symbolizer(&[]).open(&spec(path, None)).reason().cloned();
    let gone = dir.path().join("gone");
    assert!(matches!(reason(&gone), Some(Reason::FileMissing { .. })));
    assert!(matches!(reason(dir.path()), Some(Reason::NotElf { .. })));
    assert!(matches!(reason(Path::new("/dev/zero")), Some(Reason::NotElf { .. })));
    let text = dir.path().join("text");
    std::fs::write(&text, "#!/bin/sh\n").unwrap();
    assert!(matches!(reason(&text), Some(Reason::NotElf { .. })));
    std::fs::write(&text, b"\x7fELF\x02\x01\x01").unwrap();
    assert!(matches!(reason(&text), Some(Reason::Corrupt { .. })));
    std::fs::write(&text, b"").unwrap();
    assert!(matches!(reason(&text), Some(Reason::NotElf { .. })));
    for kind in [DsoKind::PerfMap, DsoKind::JitDump, DsoKind::Unknown, DsoKind::Vdso] {
        let pid = Some(whit_types::Pid(i32::MAX));
        let dso = symbolizer
            .open(&DsoSpec { pids: pid.into_iter().collect(), ..DsoSpec::new(kind, gone.clone()) });
        assert!(dso.reason().is_some(), "{kind:?}");
        assert!(!dso.reason().unwrap().to_string().is_empty());
    }
}

#[test]
fn symfs_replaces_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path(), &["-O2", "-g"]) else { return };
    std::fs::create_dir_all(dir.path().join("root/opt")).unwrap();
    std::fs::rename(&program, dir.path().join("root/opt/work")).unwrap();
    let mut dirs = DebugDirs::none();
    dirs.symfs = Some(dir.path().join("root"));
    let symbolizer = Symbolizer::new(SymbolizerConfig::new(dirs));
    check_inlining(&symbolizer.open(&spec(Path::new("/opt/work"), None)));
}

#[test]
fn linkage_stubs_have_names() {
    if has("whit-symbolize linkage stubs", probe::program("objdump")).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let lazy = ["-O2", "-Wl,-z,lazy", "-fno-plt", "-fcf-protection=none"];
    for flags in [&["-O2", "-Wl,-z,lazy"][..], &["-O2", "-Wl,-z,now"], &lazy] {
        let Some(program) = compile(dir.path(), flags) else { return };
        let dso = symbolizer(&[]).open(&spec(&program, None));
        let mut objdump = Command::new("objdump");
        objdump.args(["-d", "-j", ".plt", "-j", ".plt.got", "-j", ".plt.sec"]).arg(&program);
        // It fails where none of the sections is there; a program without a table has nothing to compare.
        let listed = run::output(&mut objdump);
        if !listed.status.success() {
            continue;
        }
        let listing = run::stdout(&listed);
        let mut compared = 0;
        for line in listing.lines() {
            // 0000000000001030 <printf@plt>:
            let Some((address, name)) = line.split_once(" <") else { continue };
            let (Ok(address), Some(name)) =
                (u64::from_str_radix(address, 16), name.strip_suffix(">:"))
            else {
                continue;
            };
            if name.ends_with("@plt") && !name.contains("ABS") {
                let function = dso.resolve(Svma(address)).function.expect(name);
                assert_eq!(&*function.raw, name);
                assert_eq!(function.source, SymbolSource::Plt);
                compared += 1;
            }
        }
        assert!(compared > 0, "{flags:?}");
    }
}

#[test]
fn both_threads_get_the_same_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = compile(dir.path(), &["-O2", "-g"]) else { return };
    let symbolizer = symbolizer(&[]);
    let spec = spec(&program, None);
    std::thread::scope(|scope| {
        let work = || {
            let dso = symbolizer.open(&spec);
            check_inlining(&dso);
            dso
        };
        let (a, b) = (scope.spawn(work), scope.spawn(work));
        assert!(std::sync::Arc::ptr_eq(&a.join().unwrap(), &b.join().unwrap()));
    });
}
