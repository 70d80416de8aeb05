//! Debug information in all forms that compilers and distributions give it: each names the same as
//! the whole program.
//!
//! A tool or compiler that is missing is said aloud, and its rows are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, DsoSymbols, Symbolizer, SymbolizerConfig};
use whit_testing::{Skip, probe, run};
use whit_types::Svma;

const SECOND: &str = "
    #include <vector>
    #include <algorithm>
    static inline int mix(int x) { return (x ^ 77) * x + x / 3; }
    int second(std::vector<int> &values) {
        std::sort(values.begin(), values.end(), [](int a, int b) { return mix(a) < mix(b); });
        int sum = 0;
        for (int value : values) sum += mix(value);
        return sum;
    }
";
const FIRST: &str = "
    #include <vector>
    int second(std::vector<int> &values);
    static inline int square(int x) { return x * x + 1; }
    __attribute__((noinline)) static int local(int x) { int s = 0; while (x--) s ^= square(x); return s; }
    int main(int n, char **) {
        std::vector<int> values(100, n);
        for (int i = 0; i < 100; i++) values[i] = local(i + n);
        return second(values) & 1;
    }
";
const RUST: &str = "
    #[inline(always)] fn square(x: u64) -> u64 { x.wrapping_mul(x) ^ 5 }
    #[inline(never)] fn local(x: u64) -> u64 { (0..x).fold(0, |sum, x| sum ^ square(x)) }
    fn main() {
        let mut values: Vec<u64> = (0..100).map(local).collect();
        values.sort_by_key(|value| square(*value));
        std::process::exit((values[0] & 1) as i32);
    }
";
const GO: &str = "
package main
import (\"os\"; \"sort\")
func square(x int) int { return x*x ^ 5 }
//go:noinline
func local(x int) int { s := 0; for ; x > 0; x-- { s ^= square(x) }; return s }
func main() {
	values := make([]int, 100)
	for i := range values { values[i] = local(i) }
	sort.Slice(values, func(a, b int) bool { return square(values[a]) < square(values[b]) })
	os.Exit(values[0] & 1)
}
";

/// Needs the programs; `None`, aloud, where one is missing.
fn has(what: &str, programs: &[&str]) -> Option<()> {
    programs.iter().try_for_each(|program| {
        let missing =
            |Skip(reason): Skip| whit_testing::skip(&format!("debug_forms {what}"), &reason);
        probe::program(program).map_err(missing).ok()
    })
}

fn tool(name: &str, arguments: &[&str], here: &Path) {
    run::succeed(Command::new(name).args(arguments).current_dir(here));
}

/// One form of a program. Each has a folder of its own.
struct Form {
    name: &'static str,
    program: PathBuf,
    dirs: DebugDirs,
}

impl Form {
    fn new(name: &'static str, program: PathBuf) -> Form {
        Form { name, program, dirs: DebugDirs::none() }
    }

    fn open(&self) -> Arc<DsoSymbols> {
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(self.dirs.clone()));
        symbolizer.open(&DsoSpec::new(DsoKind::Elf, self.program.clone()))
    }
}

/// How addresses are named: function, inlined functions, line.
fn names(dso: &DsoSymbols, addresses: &[u64]) -> Vec<(String, Vec<String>, Option<u32>)> {
    let all = addresses.iter().map(|address| dso.resolve(Svma(*address)));
    all.map(|resolution| {
        let function = resolution.function.as_ref().map_or("?".into(), |f| f.name.to_string());
        let inlined = resolution.inlined.iter().map(|frame| frame.name.to_string()).collect();
        (function, inlined, resolution.innermost_location().map(|location| location.line))
    })
    .collect()
}

/// Addresses all over the program's own functions.
fn addresses(whole: &DsoSymbols, own: &[&str]) -> Vec<u64> {
    let table = whole.symbol_table().expect("an ELF file");
    let symbols = table.iter().filter(|symbol| {
        let name = String::from_utf8_lossy(symbol.name);
        own.iter().any(|own| name.contains(own)) && symbol.size_bytes > 0
    });
    symbols
        .flat_map(|symbol| (symbol.start.0..symbol.start.0 + symbol.size_bytes).step_by(3))
        .collect()
}

/// Shares of addresses with a function, with inlined functions, and with a line.
fn shares(names: &[(String, Vec<String>, Option<u32>)]) -> [f64; 3] {
    let share = |count: usize| count as f64 / names.len() as f64 * 100.0;
    [
        share(names.iter().filter(|(function, ..)| function != "?").count()),
        share(names.iter().filter(|(_, inlined, _)| !inlined.is_empty()).count()),
        share(names.iter().filter(|(.., line)| line.is_some()).count()),
    ]
}

/// A stripped copy, and its debug information in a file of its own.
fn stripped(program: &Path) -> (PathBuf, PathBuf) {
    let (here, name) = (program.parent().unwrap(), program.file_name().unwrap().to_str().unwrap());
    tool("objcopy", &["--only-keep-debug", name, "debug"], here);
    let copy = here.join("stripped");
    fs::create_dir(&copy).unwrap();
    let copy = copy.join(name);
    tool("objcopy", &["--strip-all", name, copy.to_str().unwrap()], here);
    (copy, here.join("debug"))
}

/// Puts debug information where the build id leads.
fn by_build_id(program: &Path, debug: &Path, root: &Path) {
    let id = whit_elf::ElfImage::open(program).unwrap().build_id().expect("a build id").to_string();
    let folder = root.join(".build-id").join(&id[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(debug, folder.join(format!("{}.debug", &id[2..]))).unwrap();
}

fn with_debug_file(program: &Path, debug: &Path, name: &'static str) -> Form {
    let root = program.parent().unwrap().join(format!("root of {name}"));
    by_build_id(program, debug, &root);
    let mut form = Form::new(name, program.to_path_buf());
    form.dirs.roots = vec![root];
    form
}

/// Compares each form with the whole program; gives the shares of each.
fn compare(
    compiler: &str,
    whole: &Form,
    own: &[&str],
    forms: &[Form],
) -> BTreeMap<&'static str, [f64; 3]> {
    let reference = whole.open();
    let addresses = addresses(&reference, own);
    assert!(addresses.len() > 20, "{compiler}: {} addresses", addresses.len());
    let expected = names(&reference, &addresses);
    let whole_shares = shares(&expected);
    // Go inlines less, and gives its own checks of the stack no line.
    assert!(whole_shares[1] > 2.0 && whole_shares[2] > 75.0, "{compiler}: {whole_shares:?}");
    let mut table = BTreeMap::from([(whole.name, whole_shares)]);
    for form in forms {
        let dso = form.open();
        let found = names(&dso, &addresses);
        let name = form.name;
        for ((found, expected), address) in found.iter().zip(&expected).zip(&addresses) {
            assert_eq!(
                found,
                expected,
                "{compiler}, {name}, {address:#x}: missing {:?}",
                dso.missing_units()
            );
        }
        assert_eq!(dso.missing_units().count, 0, "{compiler}, {name}");
        // The same after the parsed units were freed.
        dso.release_debug_info();
        assert_eq!(names(&dso, &addresses), expected, "{compiler}, {name}, loaded again");
        table.insert(name, shares(&found));
    }
    for (form, [function, inlined, line]) in &table {
        println!("{compiler:8} {form:24} {function:5.1} {inlined:5.1} {line:5.1}");
    }
    table
}

const CPP_OWN: [&str; 3] = ["second", "local", "main"];

/// Compiles the C++ program in a folder of its own.
fn cpp(compiler: &str, root: &Path, folder: &str, flags: &[&str]) -> PathBuf {
    let here = root.join(compiler).join(folder);
    fs::create_dir_all(&here).unwrap();
    fs::write(here.join("first.cpp"), FIRST).unwrap();
    fs::write(here.join("second.cpp"), SECOND).unwrap();
    let flags = [&["-O2", "-g", "-Wl,--build-id", "-no-pie"], flags].concat();
    // Objects stay, and so do the files beside them.
    for source in ["first", "second"] {
        let (source, object) = (format!("{source}.cpp"), format!("{source}.o"));
        tool(compiler, &[&flags[..], &["-c", &source, "-o", &object]].concat(), &here);
    }
    tool(compiler, &[&flags[..], &["first.o", "second.o", "-o", "program"]].concat(), &here);
    here.join("program")
}

fn cpp_forms(compiler: &str) {
    if has(compiler, &[compiler, "objcopy"]).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for dwarf in ["-gdwarf-4", "-gdwarf-5"] {
        let whole = Form::new("whole", cpp(compiler, root, &format!("whole{dwarf}"), &[dwarf]));
        let (copy, debug) = stripped(&whole.program);
        let mut forms = vec![with_debug_file(&copy, &debug, "stripped, debug file")];
        let split =
            |folder| cpp(compiler, root, &format!("{folder}{dwarf}"), &[dwarf, "-gsplit-dwarf"]);
        forms.push(Form::new("split (.dwo)", split("split")));
        forms.extend(package(compiler, dwarf, &split("package")));
        // dwz 0.15 does not know what Clang makes of DWARF 5.
        if (compiler, dwarf) != ("clang++", "-gdwarf-5") {
            forms.extend(dwz(&whole.program, root.join(compiler).join(format!("dwz{dwarf}"))));
        }
        let gnu =
            [("compressed, legacy", "-gz=zlib-gnu")].into_iter().filter(|_| compiler == "g++");
        for (name, flag) in [("compressed, zlib", "-gz")].into_iter().chain(gnu) {
            forms.push(Form::new(
                name,
                cpp(compiler, root, &format!("{name}{dwarf}"), &[dwarf, flag]),
            ));
        }
        if compiler == "clang++" {
            let flags = [dwarf, "-gpubnames"];
            forms.push(Form::new(
                "index of names",
                cpp(compiler, root, &format!("names{dwarf}"), &flags),
            ));
        }
        compare(&format!("{compiler}{dwarf}"), &whole, &CPP_OWN, &forms);
        none_and_small(compiler, &whole, &copy);
    }
}

/// `dwz` moves what units share into a file of its own.
fn dwz(program: &Path, here: PathBuf) -> Option<Form> {
    has("dwz", &["dwz"])?;
    fs::create_dir_all(&here).unwrap();
    // Two files, so that there is something to share.
    for name in ["program", "other"] {
        fs::copy(program, here.join(name)).unwrap();
    }
    tool("dwz", &["-m", "shared.debug", "-M", "shared.debug", "program", "other"], &here);
    let image = whit_elf::ElfImage::open(&here.join("program")).unwrap();
    assert!(image.section(".gnu_debugaltlink").is_some(), "dwz shares nothing");
    Some(Form::new("dwz", here.join("program")))
}

/// A `.dwp` file beside a copy of the program. GNU's packer knows DWARF 4 alone, and LLVM's does not end with some
/// files of GCC.
fn package(compiler: &str, dwarf: &str, split: &Path) -> Option<Form> {
    let packer = match (compiler, dwarf) {
        ("g++", "-gdwarf-4") => "dwp",
        ("clang++", _) => "llvm-dwp",
        _ => return None,
    };
    has("package", &[packer])?;
    let here = split.parent().unwrap();
    let folder = here.join("package");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("program");
    fs::copy(split, &program).unwrap();
    tool(packer, &["-e", "program", "-o", "package/program.dwp"], here);
    // The compiler's own files must not answer in its place.
    for unit in ["first.dwo", "second.dwo"] {
        fs::remove_file(here.join(unit)).unwrap();
    }
    Some(Form::new("package (.dwp)", program))
}

/// Without any: exported functions alone. With `.gnu_debugdata`: all functions, and nothing else.
fn none_and_small(compiler: &str, whole: &Form, stripped: &Path) {
    let addresses = addresses(&whole.open(), &["local", "second"]);
    let expected: Vec<String> =
        names(&whole.open(), &addresses).into_iter().map(|(name, ..)| name).collect();
    let none = names(&Form::new("none", stripped.to_path_buf()).open(), &addresses);
    assert!(
        none.iter()
            .all(|(name, inlined, line)| name == "?" && inlined.is_empty() && line.is_none())
    );
    if has("small debug information", &["xz"]).is_none() {
        return;
    }
    let here = stripped.parent().unwrap();
    fs::copy(&whole.program, here.join("small")).unwrap();
    tool("objcopy", &["--strip-debug", "--remove-section=.comment", "small"], here);
    tool("xz", &["-9", "--force", "small"], here);
    fs::copy(stripped, here.join("fedora")).unwrap();
    tool("objcopy", &["--add-section", ".gnu_debugdata=small.xz", "fedora"], here);
    let found = names(&Form::new("small", here.join("fedora")).open(), &addresses);
    let functions: Vec<String> = found.iter().map(|(name, ..)| name.clone()).collect();
    assert_eq!(functions, expected, "{compiler}");
    assert!(found.iter().all(|(_, inlined, line)| inlined.is_empty() && line.is_none()));
    // Damaged, it names nothing.
    let packed = fs::read(here.join("small.xz")).unwrap();
    fs::write(here.join("damaged.xz"), &packed[..packed.len() / 2]).unwrap();
    fs::copy(stripped, here.join("damaged")).unwrap();
    tool("objcopy", &["--add-section", ".gnu_debugdata=damaged.xz", "damaged"], here);
    assert_eq!(names(&Form::new("damaged", here.join("damaged")).open(), &addresses), none);
}

#[test]
fn gcc_names_the_same_in_all_forms() {
    cpp_forms("g++");
}

#[test]
fn clang_names_the_same_in_all_forms() {
    cpp_forms("clang++");
}

#[test]
fn rust_names_the_same_in_all_forms() {
    if has("rustc", &["rustc", "objcopy"]).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let build = |name: &'static str, flags: &[&str]| {
        let here = dir.path().join(name);
        fs::create_dir(&here).unwrap();
        fs::write(here.join("program.rs"), RUST).unwrap();
        let always =
            ["-O", "-g", "-C", "codegen-units=1", "-C", "link-arg=-Wl,--build-id", "program.rs"];
        tool("rustc", &[&always[..], flags].concat(), &here);
        Form::new(name, here.join("program"))
    };
    let whole = build("whole", &[]);
    let (copy, debug) = stripped(&whole.program);
    let forms = [
        with_debug_file(&copy, &debug, "stripped, debug file"),
        build("split (.dwo)", &["-C", "split-debuginfo=unpacked"]),
        build("package", &["-C", "split-debuginfo=packed"]),
    ];
    compare("rustc", &whole, &["program"], &forms);
}

#[test]
fn go_names_the_same_in_all_forms() {
    if has("go", &["go", "objcopy"]).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let build = |name: &'static str, flags: &str| {
        let here = dir.path().join(name);
        fs::create_dir(&here).unwrap();
        fs::write(here.join("program.go"), GO).unwrap();
        let flags = format!("-ldflags=-B 0x0123456789abcdef {flags}");
        tool("go", &["build", &flags, "-o", "program", "program.go"], &here);
        Form::new(name, here.join("program"))
    };
    let whole = build("whole", "-compressdwarf=false");
    let compressed = build("compressed, zlib", "");
    let (copy, debug) = stripped(&whole.program);
    let forms = [with_debug_file(&copy, &debug, "stripped, debug file"), compressed];
    compare("go", &whole, &["main.local", "main.main"], &forms);
}

/// The rest of the program keeps its names, and the missing file is named.
#[test]
fn a_missing_or_foreign_split_file_is_said() {
    if has("missing", &["g++"]).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = cpp("g++", dir.path(), "split", &["-gsplit-dwarf"]);
    let here = program.parent().unwrap();
    let form = Form::new("split", program.clone());
    let reference = form.open();
    let (second, local) = (addresses(&reference, &["second"]), addresses(&reference, &["local"]));
    let expected = [names(&reference, &second), names(&reference, &local)];

    // A file of the other unit has another number.
    fs::rename(here.join("second.dwo"), here.join("kept.dwo")).unwrap();
    fs::copy(here.join("first.dwo"), here.join("second.dwo")).unwrap();
    for present in [true, false] {
        let dso = form.open();
        let found = names(&dso, &second);
        assert!(found.iter().all(|(_, inlined, _)| inlined.is_empty()), "{found:?}");
        // Lines are in the program itself.
        assert!(found.iter().filter(|(.., line)| line.is_some()).count() * 10 > found.len() * 9);
        assert_eq!(names(&dso, &local), expected[1]);
        let missing = dso.missing_units();
        assert_eq!(missing.count, 1, "{present}: {missing:?}");
        assert!(missing.named[0].ends_with("second.dwo"));
        dso.release_debug_info();
        assert_eq!(dso.missing_units(), missing);
        if present {
            fs::remove_file(here.join("second.dwo")).unwrap();
        }
    }

    // Both lie beside a program that was moved with them.
    fs::rename(here.join("kept.dwo"), here.join("second.dwo")).unwrap();
    let moved = dir.path().join("moved");
    fs::rename(here, &moved).unwrap();
    let dso = Form::new("moved", moved.join("program")).open();
    assert_eq!([names(&dso, &second), names(&dso, &local)], expected);
}
