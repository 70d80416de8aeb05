//! Only the file that was recorded has a say: told from others by build id, or by its numbers, size and time.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use whit_elf::{KEPT_NAME, kept_directory};
use whit_symbolize::{
    DebugDirs, DsoKind, DsoSpec, DsoSymbols, FileIdentity, Reason, Symbolizer, SymbolizerConfig,
};
use whit_sys::process_files::stated_id;
use whit_types::{FileId, FileStamp, Pid};

/// A program with one function of this name, without a build id.
fn compile(path: &Path, function: &str, flags: &[&str]) -> Option<()> {
    let source = path.with_extension("c");
    let call = format!("int {function}(int n) {{ return n * 7; }}\n");
    std::fs::write(&source, format!("{call}int main(int n) {{ return {function}(n); }}\n"))
        .unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-Wl,--build-id=none"]).args(flags).arg("-o").arg(path).arg(source);
    let built = compiler.output().is_ok_and(|output| output.status.success());
    if !built {
        whit_testing::skip("whit-symbolize recorded_file", "no C compiler here");
    }
    built.then_some(())
}

fn stamp(path: &Path) -> FileStamp {
    let metadata = path.metadata().unwrap();
    let modified = metadata.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    FileStamp {
        id: stated_id(&metadata),
        size_bytes: metadata.size(),
        modified_ns: modified.as_nanos() as u64,
    }
}

fn open(path: &Path, identity: FileIdentity, home: Option<&Path>) -> std::sync::Arc<DsoSymbols> {
    let mut dirs = DebugDirs::standard(home);
    dirs.roots.clear();
    let spec = DsoSpec { identity, ..DsoSpec::new(DsoKind::Elf, path.to_path_buf()) };
    Symbolizer::new(SymbolizerConfig::new(dirs)).open(&spec)
}

fn has(dso: &DsoSymbols, function: &str) -> bool {
    let name = function.as_bytes();
    dso.symbol_table().is_some_and(|table| table.iter().any(|symbol| symbol.name == name))
}

fn is_replaced(dso: &DsoSymbols) -> bool {
    matches!(dso.reason(), Some(Reason::Replaced { .. })) && dso.reason().unwrap().is_unopened()
}

#[test]
fn a_file_with_other_numbers_size_or_time_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let Some(()) = compile(&path, "first", &[]) else { return };
    let own = stamp(&path);
    let stamped = |stamp| FileIdentity { stamp: Some(stamp), ..FileIdentity::default() };
    assert!(has(&open(&path, stamped(own), None), "first"));
    let other_inode = FileId { inode: own.id.inode + 1, ..own.id };
    for other in [
        FileStamp { size_bytes: own.size_bytes + 1, ..own },
        FileStamp { modified_ns: own.modified_ns - 1, ..own },
        FileStamp { id: other_inode, ..own },
    ] {
        assert!(is_replaced(&open(&path, stamped(other), None)), "{other:?}");
    }
    // Built anew, as a linker does, which may be given the same inode.
    let kept = dir.path().join(".debug").join(kept_directory(&own));
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::copy(&path, kept.join(KEPT_NAME)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let Some(()) = compile(&path, "second", &[]) else { return };
    let replaced = open(&path, stamped(own), None);
    assert!(is_replaced(&replaced) && !has(&replaced, "second"));
    // A recorder kept a copy.
    assert!(has(&open(&path, stamped(own), Some(dir.path())), "first"));
}

#[test]
fn without_a_look_of_the_recorder_the_number_decides() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let Some(()) = compile(&path, "first", &[]) else { return };
    let own = stamp(&path).id;
    let numbered = |id| open(&path, FileIdentity { id: Some(id), ..FileIdentity::default() }, None);
    assert!(has(&numbered(own), "first"));
    assert!(is_replaced(&numbered(FileId { inode: own.inode + 1, ..own })));
    assert!(is_replaced(&numbered(FileId { device: (251, 7), ..own })));
}

#[test]
fn without_a_look_of_the_recorder_no_later_change_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let Some(()) = compile(&path, "first", &[]) else { return };
    let own = stamp(&path);
    let until = |stamp, ns| FileIdentity { stamp, recorded_until_ns: Some(ns), id: Some(own.id) };
    // The change of the inode is no earlier than that of the contents.
    let changed = path.metadata().unwrap();
    let changed_ns = (changed.ctime() * 1_000_000_000 + changed.ctime_nsec()) as u64;
    assert!(has(&open(&path, until(None, changed_ns), None), "first"));
    let refused = open(&path, until(None, changed_ns - 1), None);
    assert!(
        matches!(refused.reason(), Some(Reason::ChangedSince { .. })),
        "{:?}",
        refused.reason()
    );
    assert!(refused.reason().unwrap().is_unopened());
    let nameless = FileIdentity { id: None, ..until(None, changed_ns - 1) };
    assert!(open(&path, nameless, None).reason().is_some());
    assert!(has(&open(&path, until(Some(own), 0), None), "first"), "the recorder looked");
}

#[test]
fn debug_information_by_name_has_to_have_the_checksum() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    let debug = dir.path().join("program.debug");
    let run = |arguments: &[&str], more: &[&PathBuf]| {
        let mut objcopy = Command::new("objcopy");
        let done = objcopy.args(arguments).args(more).output();
        done.is_ok_and(|output| output.status.success())
    };
    let Some(()) = compile(&path, "first", &[]) else { return };
    let link = format!("--add-gnu-debuglink={}", debug.display());
    if !run(&["--only-keep-debug"], &[&path, &debug])
        || !run(&["--strip-all", &link], &[&path, &path])
    {
        return whit_testing::skip("whit-symbolize debuglink", "no objcopy here");
    }
    let plain = || open(&path, FileIdentity::default(), None);
    assert!(has(&plain(), "first"));
    let Some(()) = compile(&dir.path().join("other"), "second", &[]) else { return };
    std::fs::rename(dir.path().join("other"), &debug).unwrap();
    assert!(!has(&plain(), "second"), "another file's names");
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_block() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jit-1.dump");
    let made = Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        return whit_testing::skip("whit-symbolize pipe", "no mkfifo here");
    }
    let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
    for kind in [DsoKind::Elf, DsoKind::JitDump] {
        let dso = symbolizer.open(&DsoSpec::new(kind, path.clone()));
        assert!(dso.reason().is_some(), "{kind:?}");
    }
    // A device that could be read for ever.
    let zero = symbolizer.open(&DsoSpec::new(DsoKind::JitDump, "/dev/zero".into()));
    assert!(zero.reason().is_some());
}

#[test]
fn a_file_that_a_process_mapped_and_that_is_gone_is_not_looked_for_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let reason = |pids| {
        let new = DsoSpec::new(DsoKind::Elf, dir.path().join("gone"));
        let symbolizer = Symbolizer::new(SymbolizerConfig::new(DebugDirs::none()));
        let dso = symbolizer.open(&DsoSpec { pids, ..new });
        dso.reason().cloned().unwrap()
    };
    let gone = reason(vec![Pid(i32::MAX)]);
    assert!(matches!(gone, Reason::Gone { .. }) && gone.is_unopened(), "{gone}");
    assert!(!gone.to_string().contains("--symfs"), "{gone}");
    assert!(reason(Vec::new()).to_string().contains("--symfs"));
}

#[test]
fn compiled_code_has_its_names_from_the_copy_that_the_recorder_kept() {
    let home = tempfile::tempdir().unwrap();
    let id = FileId { device: (8, 1), inode: 7 };
    let stamp = FileStamp { id, size_bytes: 18, modified_ns: 30 };
    let kept = home.path().join(".debug").join(kept_directory(&stamp));
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(kept.join(KEPT_NAME), "1000 20 compiled\n").unwrap();
    let open = |stamp| {
        let identity = FileIdentity { stamp, ..FileIdentity::default() };
        let new = DsoSpec::new(DsoKind::PerfMap, PathBuf::from("/tmp/perf.map"));
        let spec = DsoSpec { identity, pids: vec![Pid(i32::MAX)], ..new };
        Symbolizer::new(SymbolizerConfig::new(DebugDirs::standard(Some(home.path())))).open(&spec)
    };
    assert!(has(&open(Some(stamp)), "compiled"));
    let without = open(None);
    let reason = without.reason().unwrap();
    assert!(matches!(reason, Reason::JitNamesGone { .. }), "{reason}");
}

#[test]
fn a_file_that_is_cut_while_it_is_read_has_no_names_and_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    let whole = open(&path, FileIdentity::default(), None);
    let entry = whole.elf().unwrap().entry();
    assert!(whole.resolve(entry).function.is_some());
    let cut = open(&path, FileIdentity::default(), None);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let resolution = cut.resolve(entry);
    let reason = resolution.reason.map(|reason| reason.to_string()).unwrap_or_default();
    assert!(resolution.function.is_none() && reason.contains("cut while it was read"), "{reason}");
}
