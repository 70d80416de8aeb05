//! The recording that the repository ships, on any machine: no perf, no compiler and no right to
//! record is needed. `WHIT_BLESS=1` writes the expected report anew.

use std::path::Path;

use crate::support::script;
use crate::support::tools::{repository, succeed, text, whit};

/// The recording's folder, and a folder with the recorded program at its path.
fn demo() -> (std::path::PathBuf, tempfile::TempDir) {
    let folder = repository().join("tests/recordings/demo");
    let root = tempfile::tempdir().expect("make a directory");
    let mut unpack = crate::support::tools::command(folder.join("unpack.sh"));
    succeed(unpack.arg(root.path()));
    (folder, root)
}

fn on_demo(arguments: &[&str], folder: &Path, root: &Path) -> String {
    let mut tool = whit();
    tool.args(arguments).arg("--symfs").arg(root).arg("-i").arg(folder.join("demo.data"));
    text(&mut tool)
}

#[test]
fn the_report_of_the_shipped_recording() {
    let (folder, root) = demo();
    let arguments = ["report", "--stdio", "--no-children", "-g", "none"];
    let actual = on_demo(&arguments, &folder, root.path());
    let path = folder.join("report.txt");
    if std::env::var_os("WHIT_BLESS").is_some() {
        std::fs::write(&path, &actual).expect("write the expected report");
    }
    let expected = std::fs::read_to_string(&path).expect("read the expected report");
    assert_eq!(actual, expected, "WHIT_BLESS=1 accepts a wanted change");
}

#[test]
fn every_chain_of_the_shipped_recording_is_complete() {
    let (folder, root) = demo();
    let arguments = ["script", "-F", "comm,ip,sym"];
    let samples = script::parse(&on_demo(&arguments, &folder, root.path()));
    assert_eq!(samples.len(), 333, "as perf report --stats counts them");
    for sample in samples.iter().filter(|sample| sample.passes("main")) {
        assert_eq!(sample.root(), "_start", "{sample:#?}");
    }
    let deep = samples.iter().filter(|s| s.physical_leaf().contains("hash_block"));
    let frames: Vec<_> = deep.map(script::Sample::physical_frames).collect();
    assert!(frames.len() > 100 && frames.iter().all(|n| *n >= 45), "{frames:?}");
}
