//! Copies the page's modules without their comments, since a page carries its script, and compressed, since `whit` carries
//! it as well.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MODULES: &str = "../../../web/src";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={MODULES}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/comments.rs");
    let missing = || io::Error::other("cargo sets OUT_DIR");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or_else(missing)?);
    for entry in fs::read_dir(MODULES)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "js") {
            let name = path.file_name().unwrap_or_default();
            let refused = |line| {
                let why = "the build leaves comments out by lines: write this text or comment in one line";
                io::Error::other(format!("{}:{line}: {why}", path.display()))
            };
            let module = without_comments(&read(&path)?).map_err(refused)?;
            let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
            packed.write_all(module.as_bytes())?;
            fs::write(out.join(name).with_extension("js.z"), packed.finish()?)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> io::Result<String> {
    let named = |error| io::Error::other(format!("{}: {error}", path.display()));
    fs::read_to_string(path).map_err(named)
}

include!("build/comments.rs");
