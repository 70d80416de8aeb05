//! The bytes of an export do not depend on the threads that read the recording.

use std::path::Path;

use super::recordings::{self, Example, recorded};
use crate::support::check;

const FORMATS: [&str; 7] =
    ["pprof", "firefox", "perfetto", "perfetto-v57", "speedscope", "otlp", "folded"];

/// Several threads take blocks in another order each time.
const THREADS: [&str; 3] = ["2", "3", "8"];

fn assert_same_bytes(example: &Example, folder: &Path) {
    for format in FORMATS {
        let bytes = |threads: &str| {
            let file = example.export_with(format, folder, &["-f", "--threads", threads]);
            std::fs::read(file).expect("a file")
        };
        let first = bytes("1");
        for threads in THREADS {
            assert!(bytes(threads) == first, "{} {format} {threads}", example.name);
        }
    }
}

#[test]
fn exports_have_the_same_bytes_with_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("make a directory");
    for example in recordings::all(&folder) {
        assert_same_bytes(&example, folder.path());
    }
    check("exports_of_many_blocks", || {
        // 30 MiB: more blocks than threads hold at once.
        let options = ["-F", "1997", "--call-graph", "dwarf,32768", "--switch-events"];
        let command = ["threads", "--seconds", "0.5"];
        let example = recorded("blocks", folder.path(), &options, &command)?;
        assert_same_bytes(&example, folder.path());
        Ok(())
    });
}
