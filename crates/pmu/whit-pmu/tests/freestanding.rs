//! The crate without features needs neither std nor an allocator: a program that has neither links it
//! and runs.

use std::path::{Path, PathBuf};
use std::process::Command;

fn rustc(arguments: &[&str], output: &Path, source: &Path) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "-C", "panic=abort", "-C", "opt-level=1"]);
    let result = command.args(arguments).arg("-o").arg(output).arg(source).output();
    let result = result.expect("run rustc");
    let errors = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(result.status.success(), "{}: {errors}", source.display());
}

#[test]
fn a_program_without_std_and_without_an_allocator_runs() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let library = directory.join("libwhit_pmu.rlib");
    let name = ["--crate-type", "rlib", "--crate-name", "whit_pmu"];
    rustc(&name, &library, &sources.join("src/lib.rs"));
    let program = directory.join("freestanding");
    let dependency = format!("whit_pmu={}", library.display());
    let source = sources.join("tests/freestanding/program.rs");
    // The C library starts the program and has memcpy; Rust's own std is not there.
    rustc(&["--extern", &dependency, "-C", "link-arg=-lc"], &program, &source);
    let status = Command::new(&program).status().expect("run the program");
    assert_eq!(status.code(), Some(0));
}

/// Nothing that could bring std in through the back door.
#[test]
fn the_crate_has_no_dependencies() {
    let manifest = include_str!("../Cargo.toml");
    let dependencies = manifest.split("\n[dependencies]\n").nth(1).expect("a section");
    let section = dependencies.split("\n[").next().unwrap_or_default();
    assert_eq!(section.trim(), "");
    let library = include_str!("../src/lib.rs");
    assert!(library.contains("\n#![no_std]\n#![forbid(unsafe_code)]\n"));
}
