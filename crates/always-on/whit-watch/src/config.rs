//! The configuration: a file, and options over it.

use crate::described::{Key, Kind};
use crate::settings::{Settings, WrongValue};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use whit_types::OutsideText;

/// Largest configuration file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Names that are further apart are not taken for each other (`strsim::jaro_winkler`).
const NEAREST: f64 = 0.75;

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source} (--config names another file)", path.display())]
    Read {
        /// Its name.
        path: PathBuf,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The file is none.
    #[error("the configuration {} has more than {} bytes", path.display(), MAX_FILE_BYTES)]
    TooLarge {
        /// Its name.
        path: PathBuf,
    },
    /// The file is no TOML, or has wrong keys or types.
    #[error("{place}: {reason}")]
    Wrong {
        /// The file with the line, or the options.
        place: String,
        /// With the nearest key where a key is unknown.
        reason: String,
    },
    /// A value cannot be used.
    #[error(transparent)]
    Value(#[from] WrongValue),
}

/// Where settings come from. It is read again at each reload.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// `--config`.
    pub file: Option<PathBuf>,
    /// Dotted keys and the texts of their options.
    pub options: Vec<(String, String)>,
    /// Bytes that a cgroup lets the service and its recorder have.
    pub memory: Option<u64>,
}

impl Source {
    /// Reads the file, and lays the options over it.
    ///
    /// # Errors
    /// Anything in it is wrong.
    pub fn load(&self) -> Result<Settings, ConfigError> {
        let mut table = match &self.file {
            Some(path) => read(path)?,
            None => Table::new(),
        };
        for (key, text) in &self.options {
            lay_over(&mut table, key, value_of(key, text))
                .map_err(|reason| ConfigError::Wrong { place: format!("--{key}"), reason })?;
        }
        let given: Vec<String> = table.keys().cloned().collect();
        let settings = table.try_into::<Settings>();
        let mut settings = settings.map_err(|error| ConfigError::Wrong {
            place: "the options".to_owned(),
            reason: explained(error.message()),
        })?;
        settings.validate()?;
        if let Some(bytes) = self.memory {
            settings.fit_into(bytes, |key| given.iter().any(|it| it == key));
        }
        Ok(settings)
    }
}

fn read(path: &Path) -> Result<Table, ConfigError> {
    let failed = |source| ConfigError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE_BYTES {
        return Err(ConfigError::TooLarge { path: path.to_owned() });
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    // Once as settings, so that errors have lines.
    parse::<Settings>(path, &text)?;
    parse::<Table>(path, &text)
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str::<T>(text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        let line = line.map_or(String::new(), |line| format!(", line {line}"));
        let place = format!("{}{line}", path.display());
        ConfigError::Wrong { place, reason: explained(error.message()) }
    })
}

/// The value that an option's text stands for. Keys of other crates' tables have no list of types: their texts are
/// read as TOML where they are TOML. So is a list, whose texts may then have commas.
fn value_of(key: &str, text: &str) -> Value {
    let kind = Settings::keys().iter().find(|known| known.name == key).map(|key| key.kind);
    let read = || format!("value = {text}").parse::<Table>().ok()?.remove("value");
    let string = || Value::String(text.to_owned());
    match kind {
        Some(Kind::Text) => string(),
        Some(Kind::List) => {
            let split = || {
                let parts = text.split(',').filter(|part| !part.is_empty());
                Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
            };
            read().filter(Value::is_array).unwrap_or_else(split)
        }
        Some(Kind::Number | Kind::Flag) | None => read().unwrap_or_else(string),
    }
}

fn lay_over(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
            Ok(())
        }
        Some((first, rest)) => {
            let inner = table.entry(first).or_insert_with(|| Value::Table(Table::new()));
            let inner = inner.as_table_mut().ok_or_else(|| format!("{first} is no table"))?;
            lay_over(inner, rest, value)
        }
    }
}

/// With the nearest key, where the message is serde's on an unknown one: "unknown field `a`, expected one of `b`, `c`".
fn explained(message: &str) -> String {
    let message = message.trim();
    let Some((unknown, expected)) =
        message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'))
    else {
        return OutsideText::new(message).to_string();
    };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let written = OutsideText::new(unknown);
    match nearest(unknown, &known) {
        Some(near) => format!("there is no key '{written}': did you mean '{near}'?"),
        None => format!("there is no key '{written}': the keys are {}", known.join(", ")),
    }
}

fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|name| (strsim::jaro_winkler(unknown, name), *name));
    let best = near.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(near, _)| *near >= NEAREST).map(|(_, name)| name)
}

/// The keys as a table in Markdown, for the documents.
pub fn keys_in_markdown() -> String {
    let mut text = "| key and option | default | |\n|---|---|---|\n".to_owned();
    for Key { name, value, help, default, .. } in Settings::keys() {
        let default = default.as_ref().map_or(String::new(), |default| format!("`{default}`"));
        let value = value.replace('|', "\\|");
        text.push_str(&format!("| `{name}` {value} | {default} | {help} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::described::Length;

    fn of(text: &str, options: &[(&str, &str)]) -> Result<Settings, String> {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        fs::write(file.path(), text).unwrap();
        let options = options.iter().map(|(key, text)| (key.to_string(), text.to_string()));
        let (file_name, memory) = (Some(file.path().to_owned()), None);
        let source = Source { file: file_name, options: options.collect(), memory };
        source
            .load()
            .map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    #[test]
    fn options_go_over_the_file_and_the_file_over_defaults() {
        let settings = of(
            "freq = 99\nwindow = \"1m\"\ncgroup = [\"a\", \"b\"]\n",
            &[("freq", "49"), ("switches", "true"), ("folder", "7"), ("keep-bytes", "1G")],
        );
        let settings = settings.unwrap();
        assert_eq!((settings.freq, settings.window), (49, Length::seconds(60)));
        assert!(settings.switches && settings.folder == Path::new("7"));
        assert_eq!(settings.cgroup, ["a", "b"]);
        assert_eq!(settings.keep_bytes.0.0, 1 << 30);
        assert_eq!(settings.keep_age, Settings::default().keep_age);
        assert_eq!(of("", &[("cgroup", "x,y")]).unwrap().cgroup, ["x", "y"]);
        assert_eq!(of("", &[("cgroup", r#"["x,y", "z"]"#)]).unwrap().cgroup, ["x,y", "z"]);
    }

    #[test]
    fn a_wrong_key_names_the_nearest_and_its_line() {
        let error = of("freq = 99\nkeep-byte = 5\n", &[]).unwrap_err();
        assert_eq!(error, "FILE, line 2: there is no key 'keep-byte': did you mean 'keep-bytes'?");
        let error = of("xyzzy = 1", &[]).unwrap_err();
        assert!(error.contains("the keys are freq, event, switches"), "{error}");
        let error = of("", &[("pushs.main.url", "x")]).unwrap_err();
        assert!(error.contains("did you mean 'push'"), "{error}");
    }

    #[test]
    fn destinations_have_keys_of_their_own() {
        let file = "[push.main]\nkind = \"otlp\"\nurl = \"http://collector:4318\"\n";
        let settings = of(file, &[("push.main.timeout", "3s")]).unwrap();
        assert_eq!(settings.push["main"].timeout.to_string(), "3s");
        let error = of(&format!("{file}timeot = \"3s\"\n"), &[]).unwrap_err();
        assert!(error.contains("there is no key 'timeot': did you mean 'timeout'?"), "{error}");
        let error = of(file, &[("push.main.url", "collector")]).unwrap_err();
        assert!(error.contains("push: main: url 'collector' is no address"), "{error}");
    }

    #[test]
    fn wrong_values_name_what_can_be_used() {
        for (text, wanted) in [
            ("freq = 0", "freq: takes 1 to 100000"),
            ("window = \"90w\"", "such as 30s"),
            ("window = 0.5", "window: takes whole seconds from 1 to 600"),
            ("format = \"pprof\"", "format: is recording, parquet, none"),
            ("keep-bytes = \"5x\"", "such as 500M"),
            ("freq = \"fast\"", "FILE, line 1: invalid type"),
            ("freq = ", "FILE, line 1"),
        ] {
            let error = of(text, &[]).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let error = of("", &[("freq", "fast")]).unwrap_err();
        assert!(error.contains("invalid type: string \"fast\""), "{error}");
        let missing = Source { file: Some("/nowhere/x.toml".into()), ..Source::default() };
        assert!(missing.load().unwrap_err().to_string().contains("/nowhere/x.toml"));
    }

    #[test]
    fn defaults_fit_into_a_limit_of_memory_and_given_sizes_stay() {
        let of = |mib: u64, options: &[(&str, &str)]| {
            let options = options.iter().map(|(key, text)| (key.to_string(), text.to_string()));
            let memory = Some(mib << 20);
            let source = Source { file: None, options: options.collect(), memory };
            let settings = source.load().unwrap();
            [settings.window_bytes, settings.queue_bytes, settings.flight_bytes]
                .map(|size| size.0.0 >> 20)
        };
        assert_eq!(of(4096, &[]), [16, 32, 256]);
        assert_eq!(of(128, &[]), [4, 8, 16]);
        assert_eq!(of(8, &[]), [1, 1, 1]);
        assert_eq!(of(128, &[("window-bytes", "64M"), ("flight-bytes", "1M")]), [64, 8, 1]);
    }

    #[test]
    fn every_key_is_documented_with_its_default() {
        let text = keys_in_markdown();
        for key in Settings::keys() {
            assert!(text.contains(&format!("| `{}` ", key.name)) && !key.help.is_empty());
        }
        assert!(text.contains("| `window` TIME | `30s` |"), "{text}");
    }

    #[test]
    fn the_page_has_the_table_of_keys() {
        let path = Path::new("../../../docs/watch.md");
        let page = fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("<!-- keys -->\n").unwrap();
        let (table, after) = rest.split_once("<!-- end of keys -->\n").unwrap();
        let wanted = keys_in_markdown();
        if table != wanted && std::env::var_os("WHIT_BLESS").is_some() {
            let page = format!("{before}<!-- keys -->\n{wanted}<!-- end of keys -->\n{after}");
            return fs::write(path, page).unwrap();
        }
        assert!(
            table == wanted,
            "docs/watch.md is out of date: WHIT_BLESS=1 cargo test -p whit-watch"
        );
    }
}
