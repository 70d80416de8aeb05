//! The program under test; everything else is the harness's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use serde_json::Value;
pub(crate) use whit_testing::parse::{report, script, stats};
pub(crate) use whit_testing::{Skip, check, probe};

/// The programs that the tests run.
pub(crate) mod tools {
    pub(crate) use super::{number, page_data, record, sibling, whit, whole_files};
    pub(crate) use whit_testing::probe::tracefs;
    pub(crate) use whit_testing::run::{command, newest_perf, perf, repository, succeed, text};
    pub(crate) use whit_testing::workload;
}

/// A member of a JSON object that is a whole number.
pub(crate) fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("no {key} in {object}"))
}

/// The whit under test, with the programs that it becomes.
pub(crate) fn whit() -> Command {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        ["whit-query", "whit-serve", "whit-terminal"].iter().for_each(|name| drop(sibling(name)))
    });
    whit_testing::run::whit(env!("CARGO_BIN_EXE_whit"))
}

/// A program in the folder of whit.
pub(crate) fn sibling(name: &str) -> PathBuf {
    whit_testing::run::sibling(env!("CARGO_BIN_EXE_whit"), name)
}

/// Recordings of `whit watch` in a folder, by name. Those that are being written have other names.
pub(crate) fn whole_files(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_whole = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("whit-") && name.ends_with(".data")
    };
    let mut files: Vec<_> = found.map(|it| it.path()).filter(is_whole).collect();
    files.sort();
    files
}

/// Records; gives the standard output of the command.
pub(crate) fn record(recorder: &mut Command) -> Result<Vec<u8>, Skip> {
    whit_testing::run::record(recorder).map(|output| output.stdout)
}

/// Options of the engines that run here. A missing one is skipped aloud, as that of `test`.
pub(crate) fn engines(test: &str) -> Vec<&'static str> {
    match probe::bpf_stacks() {
        Ok(()) => vec!["--engine=ring", "--engine=bpf"],
        Err(skip) => {
            whit_testing::skip(&format!("{test} by the BPF engine"), &skip.0);
            vec!["--engine=ring"]
        }
    }
}

/// The JSON that a page embeds.
pub(crate) fn page_data(path: &Path) -> Value {
    let page = fs::read_to_string(path).expect("the page");
    let start = "<script type=\"application/json\" id=\"profile\">";
    let data = page.split_once(start).expect("a block of data").1;
    serde_json::from_str(data.split_once("</script").expect("its end").0).expect("JSON")
}
