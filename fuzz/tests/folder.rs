//! The files of the fuzz targets.

use std::fs;
use std::path::Path;

/// The list of programs in Cargo.toml is written by hand; the folder is the truth.
#[test]
fn every_target_has_a_program_a_dictionary_and_a_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut targets = 0;
    for entry in fs::read_dir(root.join("fuzz_targets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(manifest.contains(&format!("name = \"{name}\"")), "no [[bin]] for {name}");
        assert!(root.join(format!("dictionaries/{name}.dict")).exists(), "{name}");
        assert!(fs::read_dir(root.join("corpus").join(name)).unwrap().count() > 0, "{name}");
        targets += 1;
    }
    assert!(targets > 0);
}
