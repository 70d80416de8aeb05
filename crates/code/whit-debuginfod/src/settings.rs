//! Settings by the variables of `debuginfod-find(1)`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whit_companion::{Cache, URLS};

/// Without `DEBUGINFOD_TIMEOUT`: as elfutils.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
/// Longest wait for a connection. Servers that are there answer within a second.
const MAX_CONNECT: Duration = Duration::from_secs(10);
/// Longest time for one file without `DEBUGINFOD_MAXTIME`. elfutils has no bound.
const DEFAULT_MAX_TIME: Duration = Duration::from_secs(600);
/// Largest file without `DEBUGINFOD_MAXSIZE`. elfutils has no bound.
const DEFAULT_MAX_SIZE_BYTES: u64 = 4 << 30;
/// Largest file of headers.
const MAX_HEADERS_BYTES: u64 = 64 << 10;

/// Settings that are wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("no server is named: set {URLS}, as in {URLS}=https://debuginfod.elfutils.org")]
    NoServers,
    #[error("'{0}' is no server: addresses begin with http:// or https://")]
    OtherProtocol(String),
    #[error("there is no place for a cache: set HOME or DEBUGINFOD_CACHE_PATH")]
    NoCache,
    #[error("{name} is '{value}', which is no number")]
    NoNumber { name: &'static str, value: String },
    #[error("cannot read DEBUGINFOD_HEADERS_FILE {path}: {reason}")]
    Headers { path: String, reason: String },
}

/// Where to ask, how long, and where to keep answers.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) urls: Vec<String>,
    pub(crate) cache: Cache,
    pub(crate) connect_timeout: Duration,
    /// In which some progress has to be made; `None` waits.
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_time: Duration,
    pub(crate) max_size_bytes: u64,
    /// Header lines of each request.
    pub(crate) headers: Vec<(String, String)>,
}

impl Settings {
    /// `variable` gives the environment.
    pub(crate) fn from_variables(
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Settings, SettingsError> {
        let cache = Cache::standard(variable).ok_or(SettingsError::NoCache)?;
        let seconds = |name| Ok(number(variable, name)?.map(|it| u64::try_from(it).unwrap_or(0)));
        let timeout = seconds("DEBUGINFOD_TIMEOUT")?.map(Duration::from_secs);
        let timeout = Some(timeout.unwrap_or(DEFAULT_TIMEOUT)).filter(|it| !it.is_zero());
        let max_time = seconds("DEBUGINFOD_MAXTIME")?.filter(|it| *it > 0).map(Duration::from_secs);
        let max_size_bytes = seconds("DEBUGINFOD_MAXSIZE")?.filter(|it| *it > 0);
        let headers = variable("DEBUGINFOD_HEADERS_FILE").filter(|path| !path.is_empty());
        Ok(Settings {
            urls: urls(&variable(URLS).unwrap_or_default().to_string_lossy())?,
            cache,
            connect_timeout: timeout.unwrap_or(MAX_CONNECT).min(MAX_CONNECT),
            timeout,
            max_time: max_time.unwrap_or(DEFAULT_MAX_TIME),
            max_size_bytes: max_size_bytes.unwrap_or(DEFAULT_MAX_SIZE_BYTES),
            headers: headers.map(PathBuf::from).map_or(Ok(Vec::new()), |path| headers_in(&path))?,
        })
    }
}

fn number(
    variable: &dyn Fn(&str) -> Option<OsString>,
    name: &'static str,
) -> Result<Option<i64>, SettingsError> {
    let value = variable(name).unwrap_or_default().to_string_lossy().trim().to_owned();
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|_| SettingsError::NoNumber { name, value })
}

fn urls(list: &str) -> Result<Vec<String>, SettingsError> {
    let mut urls: Vec<String> = Vec::new();
    for url in list.split_whitespace() {
        let begins = |scheme: &str| {
            url.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme))
        };
        if !begins("http://") && !begins("https://") {
            return Err(SettingsError::OtherProtocol(url.to_owned()));
        }
        let url = url.trim_end_matches('/').to_owned();
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    if urls.is_empty() { Err(SettingsError::NoServers) } else { Ok(urls) }
}

fn headers_in(path: &Path) -> Result<Vec<(String, String)>, SettingsError> {
    let error =
        |reason: String| SettingsError::Headers { path: path.display().to_string(), reason };
    let size_bytes = path.metadata().map_err(|it| error(it.to_string()))?.len();
    if size_bytes > MAX_HEADERS_BYTES {
        return Err(error(format!("it has more than {MAX_HEADERS_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|it| error(it.to_string()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    lines.map(|line| header(line).ok_or_else(|| error(format!("no header: {line}")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Settings::from_variables(&value).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_have_the_meaning_that_elfutils_gives_them() {
        let base = [("HOME", "/h"), (URLS, " http://a/ https://b  http://a ")];
        let plain = settings(&base).unwrap();
        assert_eq!(plain.urls, ["http://a", "https://b"]);
        assert_eq!(plain.timeout, Some(DEFAULT_TIMEOUT));
        assert_eq!(plain.max_size_bytes, DEFAULT_MAX_SIZE_BYTES);
        let set = |name, value| settings(&[base[0], base[1], (name, value)]);
        assert_eq!(set("DEBUGINFOD_TIMEOUT", "-1").unwrap().timeout, None);
        let short = set("DEBUGINFOD_TIMEOUT", "2").unwrap();
        assert_eq!(short.connect_timeout, Duration::from_secs(2));
        assert_eq!(set("DEBUGINFOD_MAXTIME", "7").unwrap().max_time, Duration::from_secs(7));
        assert_eq!(set("DEBUGINFOD_MAXTIME", "0").unwrap().max_time, DEFAULT_MAX_TIME);
        assert_eq!(set("DEBUGINFOD_MAXSIZE", "100").unwrap().max_size_bytes, 100);
        let error = set("DEBUGINFOD_MAXSIZE", "1M").unwrap_err();
        assert!(error.contains("DEBUGINFOD_MAXSIZE is '1M'"), "{error}");
    }

    #[test]
    fn a_wrong_list_of_servers_names_the_way_out() {
        let list = |list| settings(&[("HOME", "/h"), (URLS, list)]).unwrap_err();
        assert!(list("  ").contains("set DEBUGINFOD_URLS"));
        assert!(list("ftp://x").contains("begin with http://"));
        assert!(settings(&[(URLS, "http://a")]).unwrap_err().contains("set HOME"));
    }

    #[test]
    fn headers_come_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let with =
            || settings(&[("HOME", "/h"), (URLS, "http://a"), ("DEBUGINFOD_HEADERS_FILE", path)]);
        std::fs::write(file.path(), "\n X-A: b: c \n").unwrap();
        assert_eq!(with().unwrap().headers, [("X-A".to_owned(), "b: c".to_owned())]);
        std::fs::write(file.path(), "nothing").unwrap();
        assert!(with().unwrap_err().contains("no header: nothing"));
    }
}
