//! Builds the guests: `guest/main.rs` and `guest/kernel.rs` with `whit-pmu`, by rustc itself, as its flags are none that cargo could be
//! given for one program. It is for the ordinary Linux target, as other targets' core libraries may not be
//! installed, without SSE, which a hypervisor that emulates its guests may not have.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The one that measures its handlers, and the toy kernel.
const GUESTS: [&str; 2] = ["main", "kernel"];

/// Options of both compilations.
const FLAGS: &[&str] = &[
    "--edition=2024",
    "-Cpanic=abort",
    "-Copt-level=2",
    "-Cdebuginfo=0",
    "-Coverflow-checks=off",
    "-Crelocation-model=static",
    "-Ctarget-feature=-sse,-sse2,-sse3,-avx",
    // rustc warns that the target's convention for floating-point numbers needs SSE: there are none here.
    "-Awarnings",
];

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    let output = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let image = |name: &str| output.join(name).with_extension("bin");
    if !target.starts_with("x86_64") || !target.contains("linux") {
        // The crate is empty there.
        GUESTS.iter().for_each(|name| std::fs::write(image(name), []).expect("write the image"));
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let (guest, pmu) = (root.join("guest"), root.join("crates/pmu/whit-pmu/src"));
    for path in [&guest, &pmu] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let library = output.join("libwhit_pmu.rlib");
    rustc(&target, &["--crate-type=rlib", "--crate-name=whit_pmu"], &pmu.join("lib.rs"), &library);
    let script = guest.join("link.ld");
    let arguments = [
        "-Ccodegen-units=1".to_owned(),
        "-Clto=fat".to_owned(),
        format!("--extern=whit_pmu={}", library.display()),
        "-Clink-arg=-nostdlib".to_owned(),
        "-Clink-arg=-static".to_owned(),
        "-Clink-arg=-no-pie".to_owned(),
        format!("-Clink-arg=-Wl,-T,{},--oformat=binary,--build-id=none", script.display()),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for name in GUESTS {
        rustc(&target, &arguments, &guest.join(name).with_extension("rs"), &image(name));
    }
}

fn rustc(target: &str, arguments: &[&str], source: &Path, output: &Path) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.arg(format!("--target={target}")).args(FLAGS).args(arguments);
    let result = command.arg("-o").arg(output).arg(source).output().expect("run rustc");
    let errors = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "cannot build {}: {errors}", source.display());
}
