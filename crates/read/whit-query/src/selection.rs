//! A part of a dataset, in words: `host=web1,build=4f2a`.

use std::fmt;
use std::str::FromStr;

/// Terms that choose recordings and samples. Each narrows the selection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    text: String,
    pub(crate) host: Option<String>,
    /// The first digits of a build id: processes that run code of this build.
    pub(crate) build: Option<String>,
    pub(crate) unit: Option<String>,
    pub(crate) pod: Option<String>,
    /// The first letters of a container.
    pub(crate) container: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

/// A selection that says nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SelectionError {
    /// A term without a value.
    #[error(
        "'{0}' selects nothing: write KEY=VALUE, such as host=web1, and several with commas between them"
    )]
    NoTerm(String),
    /// A term that nobody knows.
    #[error(
        "there is no key '{0}' to select by: there are host, build, unit, pod, container, from and to"
    )]
    NoKey(String),
    /// A term that is there already.
    #[error("'{0}' is there twice: one selection has each key once")]
    Twice(String),
    /// A build id is written in digits.
    #[error(
        "'{0}' is no build id: write its first hexadecimal digits, as `whit query` prints mapping.build_id"
    )]
    NoBuild(String),
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Selection, SelectionError> {
        let mut selection = Selection { text: text.to_owned(), ..Selection::default() };
        for term in text.split(',') {
            let pair = term.split_once('=').filter(|(_, value)| !value.is_empty());
            let (key, value) = pair.ok_or_else(|| SelectionError::NoTerm(term.to_owned()))?;
            let place = match key {
                "host" => &mut selection.host,
                "build" => &mut selection.build,
                "unit" => &mut selection.unit,
                "pod" => &mut selection.pod,
                "container" => &mut selection.container,
                "from" => &mut selection.from,
                "to" => &mut selection.to,
                _ => return Err(SelectionError::NoKey(key.to_owned())),
            };
            if key == "build" && !value.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(SelectionError::NoBuild(value.to_owned()));
            }
            if place.replace(value.to_owned()).is_some() {
                return Err(SelectionError::Twice(key.to_owned()));
            }
        }
        selection.build = selection.build.map(|digits| digits.to_ascii_lowercase());
        Ok(selection)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read() {
        let selection: Selection = "host=web1,build=4F2A,from=2026-11-26T02:24".parse().unwrap();
        assert_eq!(selection.host.as_deref(), Some("web1"));
        assert_eq!(selection.build.as_deref(), Some("4f2a"));
        assert_eq!(selection.from.as_deref(), Some("2026-11-26T02:24"));
        assert_eq!((&selection.unit, &selection.to), (&None, &None));
        assert_eq!(selection.to_string(), "host=web1,build=4F2A,from=2026-11-26T02:24");
    }

    #[test]
    fn wrong_terms_name_the_way_out() {
        for (text, expected) in [
            ("", "KEY=VALUE"),
            ("web1", "KEY=VALUE"),
            ("host=", "KEY=VALUE"),
            ("hosts=web1", "host, build, unit, pod, container, from and to"),
            ("host=a,host=b", "'host' is there twice"),
            ("build=server", "hexadecimal"),
        ] {
            let error = text.parse::<Selection>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
