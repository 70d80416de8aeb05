//! Names of the C++ libraries of this machine, beside those that `c++filt` prints.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSymbol};
use whit_symbolize::demangle;

/// Folders of libraries: those of the system, of LLVM and of the Rust compiler, as far as they are here.
const FOLDERS: [&str; 3] = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
/// Libraries whose names hold most forms of the C++ compilers. The first comes with each C++ compiler.
const LIBRARIES: [&str; 4] = ["libstdc++.so.6", "libLLVM", "libclang-cpp", "librustc_driver"];

fn libraries() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    if let Ok(output) = sysroot {
        folders.push(Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("lib"));
    }
    let is_library = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        LIBRARIES.iter().any(|library| name.starts_with(library)) && name.contains(".so")
    };
    let mut found = BTreeSet::new();
    for folder in folders {
        let below = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in below {
            // One level below lie the folders of an architecture, and of a version of LLVM.
            for path in [path.clone(), path.join("lib")].into_iter().filter(|path| path.is_dir()) {
                let inside = fs::read_dir(path).into_iter().flatten().flatten();
                found.extend(inside.map(|entry| entry.path()).filter(|path| is_library(path)));
            }
            if is_library(&path) {
                found.insert(path);
            }
        }
    }
    let whole: BTreeSet<PathBuf> =
        found.iter().filter_map(|path| path.canonicalize().ok()).collect();
    whole.into_iter().collect()
}

fn mangled_names(library: &Path) -> BTreeSet<String> {
    let bytes = fs::read(library).expect("a library of this machine");
    // Scripts of the linker have such names, too.
    let Ok(file) = object::File::parse(&*bytes) else { return BTreeSet::new() };
    let names =
        file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| symbol.name().ok());
    names.filter(|name| name.starts_with("_Z") && !name.contains('@')).map(str::to_owned).collect()
}

/// The names as `c++filt` reads them, without parameters and result.
fn by_cxxfilt(names: &BTreeSet<String>) -> Option<Vec<String>> {
    let mut child = Command::new("c++filt")
        .arg("-p")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().expect("a pipe");
    let lines = names.iter().map(|name| format!("{name}\n")).collect::<String>();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("c++filt ends");
    writer.join().expect("no panic").expect("c++filt reads all names");
    Some(
        String::from_utf8(output.stdout)
            .expect("readable names")
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

/// c++filt prints some names at greater length: `std::string` with all its arguments, thunks and
/// clones with parameters. And it has spaces in other places from version to version.
fn reduced(name: &str) -> String {
    let mut name = name.to_owned();
    for stream in ["istream", "ostream", "iostream"] {
        let whole = format!("std::basic_{stream}<char, std::char_traits<char> >");
        name = name.replace(&whole, &format!("std::{stream}"));
    }
    name = name.replace(
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "std::string",
    );
    name = name.replace("decltype(nullptr)", "std::nullptr_t");
    if name.contains("thunk to") || name.starts_with("transaction clone") {
        name.truncate(name.find('(').unwrap_or(name.len()));
    }
    name.retain(|c| c != ' ');
    name
}

#[test]
fn no_name_of_the_compilers_libraries_stays_mangled() {
    let names: BTreeSet<String> = libraries().iter().flat_map(|path| mangled_names(path)).collect();
    let Some(expected) = by_cxxfilt(&names).filter(|_| !names.is_empty()) else {
        return whit_testing::skip(
            "whit-symbolize mangled_names",
            "no c++filt or no C++ library here",
        );
    };
    assert_eq!(expected.len(), names.len());
    let (mut same, mut others) = (0, Vec::new());
    for (name, expected) in names.iter().zip(&expected).filter(|(name, expected)| name != expected)
    {
        let readable = demangle(name.as_bytes());
        assert_ne!(readable, *name, "c++filt: {expected}");
        if reduced(&readable) == reduced(expected) {
            same += 1;
        } else {
            others.push(format!("{name}\n  {readable}\n  {expected}"));
        }
    }
    println!("{same} names are the same, {} are not", others.len());
    // Some 6 of 1,000 are readable, but worded in another way. Function pointers in template arguments have no
    // second parentheses, and `auto` of closures has another form. The parser puts the `&` or `const` of some
    // nested types in front of their last part.
    assert!(
        others.len() * 100 <= same,
        "{} of {same} names, such as:\n{}",
        others.len(),
        others[..others.len().min(20)].join("\n")
    );
}
