//! Copies the page's modules without their comments: a page carries its script, and `whit` carries it as well.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MODULES: &str = "../../web/src";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={MODULES}");
    println!("cargo::rerun-if-changed=build.rs");
    let missing = || io::Error::other("cargo sets OUT_DIR");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(missing)?);
    for entry in fs::read_dir(MODULES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            let name = path.file_name().unwrap_or_default();
            fs::write(out.join(name), without_comments(&read(&path)?))?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> io::Result<String> {
    let named = |error| io::Error::other(format!("{}: {error}", path.display()));
    fs::read_to_string(path).map_err(named)
}

/// Leaves out lines that are comments alone; a comment beside code stays.
fn without_comments(source: &str) -> String {
    let mut kept = String::with_capacity(source.len());
    let mut in_comment = false;
    for line in source.lines() {
        let text = line.trim();
        let begins = text.starts_with("/**") && (text.ends_with("*/") || !text.contains("*/"));
        if !in_comment && !begins && !text.starts_with("//") {
            kept.push_str(line);
            kept.push('\n');
        }
        in_comment = (in_comment || begins) && !text.ends_with("*/");
    }
    kept
}
