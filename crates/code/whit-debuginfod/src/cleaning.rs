//! Files that nobody used for long leave the cache, by elfutils' rules and control files.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use whit_companion::{Cache, MISS_DEFAULT_S};

/// Control files with their values where there are none.
const CONTROLS: [(&str, u64); 3] =
    [(INTERVAL, 86_400), (MAX_UNUSED, 604_800), ("cache_miss_s", MISS_DEFAULT_S)];
const INTERVAL: &str = "cache_clean_interval_s";
const MAX_UNUSED: &str = "max_unused_age_s";

/// Names of files, or their beginnings: those that were being written when a client died begin so too.
const NAMES: [&str; 4] = ["debuginfo", "executable", "source", "section-"];

/// Makes the cache, and removes old files if the last time is long ago.
pub(crate) fn clean(cache: &Cache, now: SystemTime) -> io::Result<()> {
    fs::create_dir_all(cache.root())?;
    let interval = cache.root().join(INTERVAL);
    let is_new = !interval.exists();
    for (name, value) in CONTROLS {
        let path = cache.root().join(name);
        if !path.exists() {
            fs::write(path, value.to_string())?;
        }
    }
    let value = |name: &str| {
        let default = CONTROLS.iter().find(|(known, _)| *known == name).map_or(0, |it| it.1);
        Duration::from_secs(cache.control(name).unwrap_or(default))
    };
    if is_new || age(interval.metadata()?.modified()?, now) < value(INTERVAL) {
        return Ok(());
    }
    // At the beginning, so that no other client cleans at the same time.
    fs::File::options().write(true).open(&interval)?.set_modified(now)?;
    let max_unused = value(MAX_UNUSED);
    for folder in fs::read_dir(cache.root())?.flatten() {
        let is_build_id = |name: &str| name.bytes().all(|b| b.is_ascii_hexdigit());
        let is_folder = folder.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && folder.file_name().to_str().is_some_and(is_build_id) {
            clean_folder(&folder.path(), max_unused, now);
        }
    }
    Ok(())
}

/// Other clients clean too: nothing has to be there.
fn clean_folder(folder: &Path, max_unused: Duration, now: SystemTime) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let is_ours = NAMES.iter().any(|known| name.to_string_lossy().starts_with(known));
        let Ok(metadata) = file.metadata() else { continue };
        let used = metadata.accessed().or_else(|_| metadata.modified());
        if is_ours && used.is_ok_and(|used| age(used, now) >= max_unused) {
            let _ = fs::remove_file(file.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

fn age(time: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_files_go_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path().join("cache"));
        let later = |days: u64| SystemTime::now() + Duration::from_secs(days * 86_400);
        clean(&cache, SystemTime::now()).unwrap();
        assert_eq!(cache.control(MAX_UNUSED), Some(604_800));
        let folder = cache.root().join("abcd");
        fs::create_dir(&folder).unwrap();
        for name in ["debuginfo", "section-.symtab", "section-.strtab.x1y2", "notes"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        fs::create_dir(cache.root().join("0123")).unwrap();
        fs::create_dir(cache.root().join("other")).unwrap();
        fs::write(cache.root().join("other/debuginfo"), "x").unwrap();
        clean(&cache, later(2)).unwrap();
        assert!(folder.join("debuginfo").exists());
        clean(&cache, later(9)).unwrap();
        let names: Vec<_> =
            fs::read_dir(&folder).unwrap().flatten().map(|it| it.file_name()).collect();
        assert_eq!(names, ["notes"]);
        assert!(!cache.root().join("0123").exists());
        assert!(cache.root().join("other/debuginfo").exists());
    }
}
