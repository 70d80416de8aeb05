//! Inputs as files, for code that reads files.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::NamedTempFile;

thread_local! {
    /// Made once: making a file costs more than filling one.
    static FILE: RefCell<NamedTempFile> =
        RefCell::new(NamedTempFile::new().expect("a temporary file"));
}

fn fill(file: &mut File, data: &[u8]) {
    file.set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(data))
        .expect("fill the temporary file");
}

/// Calls `body` with a file that holds the input.
pub fn with_file<T>(data: &[u8], body: impl FnOnce(File) -> T) -> T {
    FILE.with_borrow_mut(|file| {
        fill(file.as_file_mut(), data);
        body(file.as_file().try_clone().expect("another handle of the temporary file"))
    })
}

/// Calls `body` with the path of a file that holds the input.
pub fn with_path<T>(data: &[u8], body: impl FnOnce(&Path) -> T) -> T {
    FILE.with_borrow_mut(|file| {
        fill(file.as_file_mut(), data);
        body(file.path())
    })
}
