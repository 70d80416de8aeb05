//! The programs of `bench/workloads`.

use std::path::PathBuf;

use crate::Skip;
use crate::probe;
use crate::run::{command, repository, succeed};

/// Workloads that are not C++.
const COMPILERS: [(&str, &[&str]); 3] = [
    ("go", &["deep-go", "collect-go", "goroutines-go", "gorequests-go"]),
    ("rustc", &["deep-rs"]),
    (
        "cc",
        &[
            "forks",
            "storm",
            "pingpong",
            "pool",
            "flood",
            "yield",
            "waits",
            "callers",
            "matrix",
            "spawn",
            "jit",
            "corners",
            "token",
            "mappings",
            "sleeper",
            "silent",
            "blocked",
            "phases",
            "shares",
            "service",
            "service-no-id",
            "impostor",
            "impostor-no-id",
        ],
    ),
];

/// The workload `name`, built if need be.
///
/// # Errors
///
/// Where its compiler is missing.
///
/// # Panics
///
/// Where it does not build.
pub fn workload(name: &str) -> Result<PathBuf, Skip> {
    let compiler = COMPILERS.iter().find(|(_, names)| names.contains(&name));
    probe::program(compiler.map_or("c++", |(compiler, _)| compiler))?;
    let directory = repository().join("target/workloads");
    std::fs::create_dir_all(&directory).expect("make target/workloads");
    let directory = directory.canonicalize().expect("find target/workloads");
    // Tests run side by side: one make at a time.
    let mut make = command("flock");
    make.arg(directory.join(".lock")).args(["make", "-s", "-C"]);
    make.arg(repository().join("bench/workloads"));
    make.arg(format!("OUT={}", directory.display())).arg(directory.join(name));
    succeed(&mut make);
    Ok(directory.join(name))
}
