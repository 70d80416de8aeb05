//! The programs compile for each architecture, whichever one this machine has: the build compiles those of its own.

use std::path::Path;
use std::process::Command;

use whit_testing::{check, probe, run};

/// As libbpf names them.
const ARCHITECTURES: [&str; 2] = ["x86", "arm64"];
/// Those that read registers, and the structures of the kernel that differ.
const PROGRAMS: [&str; 5] = ["blocked", "cgroup_count", "nothing", "pmi_meter", "stacks"];

#[test]
fn all_programs_compile_for_all_architectures() {
    check("programs of all architectures", || {
        let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
        probe::program(&clang)?;
        for (architecture, program) in ARCHITECTURES.iter().flat_map(|a| PROGRAMS.map(|p| (a, p))) {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("bpf/{program}.bpf.c"));
            // The options of the build, without an object.
            let mut compile = Command::new(&clang);
            compile.args(["-O2", "-std=gnu11", "-target", "bpfel", "-mcpu=v3", "-fsyntax-only"]);
            compile.args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]);
            compile.arg(format!("-D__TARGET_ARCH_{architecture}")).arg(source);
            run::succeed(&mut compile);
        }
        Ok(())
    });
}
