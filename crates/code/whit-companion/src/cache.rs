//! Where elfutils' client keeps files: `debuginfod_query_server` in its `debuginfod-client.c`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use whit_types::BuildId;

/// The directory that older versions used. It goes on being used where it is there.
const OLD_NAME: &str = ".debuginfod_client_cache";

/// The directory below that of caches.
const NAME: &str = "debuginfod_client";

/// How long a failed query is remembered, in seconds, where the cache does not say it.
pub const MISS_DEFAULT_S: u64 = 600;

/// Says how long a failed query is remembered.
const MISS_FILE: &str = "cache_miss_s";

/// Largest control file that is read.
const MAX_CONTROL_BYTES: u64 = 64;

/// A cache of files by build id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// A cache in this directory, which need not exist.
    pub fn at(root: PathBuf) -> Cache {
        Cache { root }
    }

    /// The place by the environment, whose variables `variable` gives. `None` where nothing names a place.
    pub fn standard(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Cache> {
        let given =
            |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(root) = given("DEBUGINFOD_CACHE_PATH") {
            return Some(Cache { root });
        }
        let home = given("HOME");
        let old = home.as_ref().map(|home| home.join(OLD_NAME)).filter(|old| old.exists());
        let caches = || given("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
        Some(Cache { root: old.or_else(|| Some(caches()?.join(NAME)))? })
    }

    /// The directory of all files.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of a build id.
    pub fn folder(&self, id: BuildId) -> PathBuf {
        self.root.join(id.to_string())
    }

    /// The whole debug file.
    pub fn whole(&self, id: BuildId) -> PathBuf {
        self.folder(id).join("debuginfo")
    }

    /// One section, as it stands in the file.
    pub fn section(&self, id: BuildId, name: &str) -> PathBuf {
        self.folder(id).join(format!("section-{}", escaped(name)))
    }

    /// Whether servers were asked for a file a short while ago, and none had it: an empty file says so.
    pub fn is_missed(&self, file: &Path, now: SystemTime) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let age = metadata.modified().ok().and_then(|at| now.duration_since(at).ok());
        let remembered = Duration::from_secs(self.control(MISS_FILE).unwrap_or(MISS_DEFAULT_S));
        metadata.len() == 0 && age.unwrap_or_default() <= remembered
    }

    /// The number in a control file.
    pub fn control(&self, name: &str) -> Option<u64> {
        let path = self.root.join(name);
        // A pipe or a device states no size, and reading it need not end.
        let is_short =
            path.metadata().is_ok_and(|it| it.is_file() && it.len() <= MAX_CONTROL_BYTES);
        if !is_short {
            return None;
        }
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }
}

/// Names of sections are names of files: no directory begins in them.
fn escaped(name: &str) -> String {
    name.replace('#', "#_").replace('/', "##")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Option<String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Cache::standard(&value).map(|cache| cache.root.display().to_string())
    }

    #[test]
    fn the_place_is_that_of_elfutils() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_str().unwrap();
        let default = format!("{path}/.cache/debuginfod_client");
        assert_eq!(place(&[("HOME", path)]), Some(default.clone()));
        assert_eq!(place(&[("HOME", path), ("XDG_CACHE_HOME", "")]), Some(default));
        let xdg = [("HOME", path), ("XDG_CACHE_HOME", "/c")];
        assert_eq!(place(&xdg).as_deref(), Some("/c/debuginfod_client"));
        std::fs::create_dir(home.path().join(OLD_NAME)).unwrap();
        assert_eq!(place(&xdg), Some(format!("{path}/{OLD_NAME}")));
        let named = [("HOME", path), ("DEBUGINFOD_CACHE_PATH", "/d")];
        assert_eq!(place(&named).as_deref(), Some("/d"));
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn names_of_sections_lead_nowhere_else() {
        let cache = Cache::at(PathBuf::from("/c"));
        let id = BuildId::new(&[1, 2]).unwrap();
        assert_eq!(cache.section(id, "../a#b"), Path::new("/c/0102/section-..##a#_b"));
        assert_eq!(cache.whole(id), Path::new("/c/0102/debuginfo"));
    }

    #[test]
    fn a_device_is_no_control_file() {
        let place = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", place.path().join(MISS_FILE)).unwrap();
        assert_eq!(Cache::at(place.path().to_owned()).control(MISS_FILE), None);
    }

    #[test]
    fn a_failed_query_is_forgotten_after_its_time() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path().to_owned());
        let file = place.path().join("debuginfo");
        assert!(!cache.is_missed(&file, SystemTime::now()));
        fs::write(&file, "").unwrap();
        let after = |seconds| SystemTime::now() + Duration::from_secs(seconds);
        assert!(cache.is_missed(&file, after(0)) && cache.is_missed(&file, after(500)));
        assert!(!cache.is_missed(&file, after(700)));
        fs::write(place.path().join(MISS_FILE), "20\n").unwrap();
        assert!(!cache.is_missed(&file, after(500)));
        fs::write(&file, "x").unwrap();
        assert!(!cache.is_missed(&file, after(0)));
    }
}
