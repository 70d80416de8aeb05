//! Files of the repository that come from the code: reference pages, schemas.

use std::path::Path;

/// Compares a file, named from the root of the repository, with its text by the code. `WHIT_BLESS=1` writes
/// the file anew.
///
/// # Panics
/// If they differ.
pub fn assert_published(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    if std::env::var_os("WHIT_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{file}: {error}"));
        return;
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == text, "{file} is not what the code says; WHIT_BLESS=1 takes that over");
}

/// The text of a file, named from the root of the repository.
///
/// # Panics
/// If it cannot be read.
pub fn published(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
}
