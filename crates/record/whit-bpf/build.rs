//! Compiles the BPF programs. The objects fit themselves to the running kernel when they are
//! loaded, so that no kernel headers are needed here.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Sources that are programs, without `.bpf.c`.
const PROGRAMS: [&str; 5] = ["blocked", "cgroup_count", "nothing", "pmi_meter", "stacks"];
const HOW_TO_GET_CLANG: &str = "whit's BPF programs are compiled by clang 12 or newer: install it \
    (Debian, Ubuntu: apt-get install clang; Fedora: dnf install clang), or name another one in \
    the environment variable CLANG";

fn main() -> ExitCode {
    println!("cargo:rerun-if-env-changed=CLANG");
    // All files of the folder: programs and headers.
    println!("cargo:rerun-if-changed=bpf");
    for program in PROGRAMS {
        let source = format!("bpf/{program}.bpf.c");
        let object = format!("{program}.bpf.o");
        if let Err(reason) = compile(&source, &object).and_then(|()| pack(&object)) {
            eprintln!("{reason}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// Compresses an object, which takes a third of its size in the executable then.
fn pack(object: &str) -> Result<(), String> {
    let path = Path::new(&variable("OUT_DIR")?).join(object);
    let packed = || {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&fs::read(&path)?)?;
        fs::write(path.with_extension("o.deflate"), encoder.finish()?)
    };
    packed().map_err(|error| format!("cannot compress {}: {error}", path.display()))
}

fn compile(source: &str, object: &str) -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let target = match variable("CARGO_CFG_TARGET_ENDIAN")?.as_str() {
        "big" => "bpfeb",
        _ => "bpfel",
    };
    // The name that libbpf's headers have for it.
    let arch = match variable("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86".to_owned(),
        "aarch64" => "arm64".to_owned(),
        other => other.to_owned(),
    };
    let here = variable("CARGO_MANIFEST_DIR")?;
    let output = Path::new(&variable("OUT_DIR")?).join(object);
    let status = Command::new(&clang)
        // -g describes the types of the kernel.
        .args(["-g", "-O2", "-std=gnu11", "-target", target, "-mcpu=v3"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-ffile-prefix-map={here}=."))
        .args(["-c", source, "-o"])
        .arg(&output)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(format!("{clang} cannot compile {source} ({status}).\n{HOW_TO_GET_CLANG}"))
        }
        Err(error) => Err(format!("cannot run {clang}: {error}.\n{HOW_TO_GET_CLANG}")),
    }
}
