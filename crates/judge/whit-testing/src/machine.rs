//! Machines made of files.

use tempfile::TempDir;

/// `/sys` of a machine of two sockets with two cores of two threads each: CPU n is thread n / 4.
///
/// # Panics
///
/// Where the files cannot be made.
pub fn two_sockets() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for cpu in 0..8 {
        let at = dir.path().join(format!("devices/system/cpu/cpu{cpu}"));
        for (file, value) in [
            ("topology/physical_package_id", cpu / 2 % 2),
            ("topology/die_id", 0),
            ("topology/core_id", cpu % 2),
            ("cache/index0/level", 1),
            ("cache/index0/id", cpu),
            ("cache/index1/level", 3),
            ("cache/index1/id", cpu / 2 % 2),
            (&format!("node{}/x", cpu / 2 % 2), 0),
        ] {
            let path = at.join(file);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).expect("a directory");
            }
            std::fs::write(path, format!("{value}\n")).expect("a file");
        }
    }
    dir
}
