//! Where perf keeps copies of binaries: `~/.debug`, unless the environment or perf's configuration has another
//! directory (`tools/perf/util/config.c`: `set_buildid_dir`).

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use whit_sys::process_files::open_regular;

/// Most bytes of a configuration that are read.
const CONFIG_MAX_BYTES: u64 = 1 << 20;
/// The configuration of the machine.
const MACHINE_CONFIG: &str = "/etc/perfconfig";

/// The facts that decide where the cache is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheEnvironment {
    /// The user's home.
    pub home: Option<PathBuf>,
    /// `PERF_BUILDID_DIR`, which perf sets for its scripts.
    pub buildid_dir: Option<OsString>,
    /// `PERF_CONFIG`: this file in place of all others.
    pub config: Option<OsString>,
}

impl CacheEnvironment {
    /// The directory; `None` for a user without a home.
    pub fn directory(&self) -> Option<PathBuf> {
        let named = self.buildid_dir.as_ref().filter(|name| !name.is_empty()).map(PathBuf::from);
        named.or_else(|| self.configured()).or_else(|| {
            let home = self.home.as_deref().filter(|home| home.is_absolute())?;
            Some(home.join(".debug"))
        })
    }

    /// `buildid.dir`: the user's goes before the machine's.
    fn configured(&self) -> Option<PathBuf> {
        if let Some(config) = &self.config {
            return directory_in(Path::new(config));
        }
        let own = self.home.as_ref().and_then(|home| directory_in(&home.join(".perfconfig")));
        own.or_else(|| directory_in(Path::new(MACHINE_CONFIG)))
    }
}

fn directory_in(config: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    open_regular(config).ok()?.take(CONFIG_MAX_BYTES).read_to_end(&mut text).ok()?;
    parse(&String::from_utf8_lossy(&text)).map(PathBuf::from)
}

/// The last value of `dir` in a section `[buildid]`.
fn parse(text: &str) -> Option<String> {
    let mut is_inside = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            is_inside = section.split(']').next().is_some_and(|name| name.trim() == "buildid");
        } else if let Some((key, value)) = line.split_once('=')
            && is_inside
            && key.trim() == "dir"
        {
            found = Some(value_of(value)).filter(|value| !value.is_empty());
        }
    }
    found
}

/// A value without quotation marks and comment.
fn value_of(text: &str) -> String {
    let text = text.trim();
    let value = match text.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => text.split(['#', ';']).next().map(str::trim_end),
    };
    value.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_precedes_the_configuration_and_that_home() {
        let dir = tempfile::tempdir().unwrap();
        let home = Some(dir.path().to_owned());
        let plain = CacheEnvironment {
            home,
            config: Some("/dev/null".into()),
            ..CacheEnvironment::default()
        };
        assert_eq!(plain.directory(), Some(dir.path().join(".debug")));
        let config = dir.path().join("config");
        std::fs::write(&config, "[buildid]\n\tdir = /var/cache/b # here\n").unwrap();
        let configured = CacheEnvironment { config: Some(config.into()), ..plain.clone() };
        assert_eq!(configured.directory(), Some("/var/cache/b".into()));
        let named = CacheEnvironment { buildid_dir: Some("/named".into()), ..configured };
        assert_eq!(named.directory(), Some("/named".into()));
        std::fs::write(dir.path().join(".perfconfig"), "[buildid]\ndir = \"/a b\"\n").unwrap();
        let own = CacheEnvironment { config: None, ..plain };
        assert_eq!(own.directory(), Some("/a b".into()));
        assert_eq!(CacheEnvironment { home: Some("".into()), ..own }.directory(), None);
    }

    #[test]
    fn only_the_directory_of_the_right_section_counts() {
        assert_eq!(parse("[report]\ndir = /x\n[buildid]\n# dir = /y\n"), None);
        assert_eq!(parse("[ buildid ]\ndir=/x\ndir = \"/y;z\" ; more\n").as_deref(), Some("/y;z"));
        assert_eq!(parse("[buildid]\ndir =\n"), None);
    }
}
