//! The settings of a destination: the table `[push.NAME]` of a configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use whit_export::SampleLabels;
use whit_types::{ByteSize, TimeLength};

/// Longest name of a destination.
const NAME_MAX: usize = 64;

/// A receiver, how it is reached, and how much waits for it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The protocol of the receiver: `otlp`, `pyroscope` or `parca`.
    pub kind: Kind,
    /// The address of the receiver, as `http://127.0.0.1:4318`. The protocol's path is added.
    pub url: String,
    /// The name under which receivers file the profiles: `service.name`, `service_name` or `job`.
    #[serde(default = "default_service")]
    pub service: String,
    /// Attributes or labels of all profiles, as `region = "eu"`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Labels by which pprof tells samples apart: `comm`, `cgroup`, `workload` (container, pod, unit).
    #[serde(default = "default_sample_labels")]
    pub sample_labels: Vec<SampleLabel>,
    /// Header lines of each request, as `X-Scope-OrgID = "team"`.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// A file of further header lines, read before each request: a token in it may change.
    #[serde(default)]
    pub headers_file: Option<PathBuf>,
    /// Certificates for HTTPS.
    #[serde(default)]
    pub tls: Tls,
    /// Longest time for a connection.
    #[serde(default = "default_connect_timeout", deserialize_with = "written")]
    pub connect_timeout: TimeLength,
    /// Longest time for a request with its answer.
    #[serde(default = "default_timeout", deserialize_with = "written")]
    pub timeout: TimeLength,
    /// The wait after a first failure. It doubles with each further failure.
    #[serde(default = "default_retry_first", deserialize_with = "written")]
    pub retry_first: TimeLength,
    /// The longest wait between two requests that fail.
    #[serde(default = "default_retry_longest", deserialize_with = "written")]
    pub retry_longest: TimeLength,
    /// Bounds of the windows that wait for a receiver.
    #[serde(default)]
    pub spool: SpoolSettings,
}

/// A protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// OTLP profiles over HTTP (Alpha).
    Otlp,
    /// Pyroscope's push service, with pprof.
    Pyroscope,
    /// Parca's store, with pprof.
    Parca,
}

/// A group of labels of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SampleLabel {
    /// The thread's name.
    Comm,
    /// The path of the cgroup.
    Cgroup,
    /// Container, pod and systemd unit.
    Workload,
}

/// Certificates. Without any, those of the system hold.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Tls {
    /// The certificates that a receiver is judged by, in PEM, in the place of the system's.
    pub ca_file: Option<PathBuf>,
    /// The certificate with which whit names itself, in PEM.
    pub certificate_file: Option<PathBuf>,
    /// The key of this certificate, in PEM.
    pub key_file: Option<PathBuf>,
}

/// Bounds of a spool.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SpoolSettings {
    /// Most bytes of windows that wait. The oldest windows go first.
    #[serde(deserialize_with = "written")]
    pub max_bytes: ByteSize,
    /// Longest wait of a window.
    #[serde(deserialize_with = "written")]
    pub max_age: TimeLength,
    /// Most bytes of windows that wait in memory, while the disk takes none.
    #[serde(deserialize_with = "written")]
    pub max_memory: ByteSize,
}

impl Default for SpoolSettings {
    fn default() -> SpoolSettings {
        SpoolSettings {
            max_bytes: ByteSize(256 << 20),
            max_age: TimeLength::seconds(86_400),
            max_memory: ByteSize(8 << 20),
        }
    }
}

/// Reads a length or size from its text, or from a number without a unit.
fn written<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Whole(u64),
        Fraction(f64),
    }
    let text = match Written::deserialize(from)? {
        Written::Text(text) => text,
        Written::Whole(number) => number.to_string(),
        Written::Fraction(number) => number.to_string(),
    };
    text.parse().map_err(serde::de::Error::custom)
}

/// A text that is shown to nobody.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn default_service() -> String {
    "whit".to_owned()
}

fn default_sample_labels() -> Vec<SampleLabel> {
    vec![SampleLabel::Comm, SampleLabel::Cgroup, SampleLabel::Workload]
}

fn default_connect_timeout() -> TimeLength {
    TimeLength::seconds(5)
}

fn default_timeout() -> TimeLength {
    TimeLength::seconds(10)
}

fn default_retry_first() -> TimeLength {
    TimeLength::seconds(1)
}

fn default_retry_longest() -> TimeLength {
    TimeLength::seconds(60)
}

/// Why settings are refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// The name is a directory's.
    #[error(
        "'{0}' is no name of a destination: take up to {NAME_MAX} letters, digits, '-' and '_'"
    )]
    Name(String),
    /// No address of a receiver.
    #[error("url '{url}' is no address of a receiver: it has to be as {example}")]
    Url {
        /// As it stands there, without a password.
        url: String,
        /// For this kind.
        example: &'static str,
    },
    /// No header line.
    #[error("header '{0}' is no header: its name takes letters, digits and '-', its text one line")]
    Header(String),
    /// A bound of zero.
    #[error("{0} is 0: give more")]
    Zero(&'static str),
    /// One needs the other.
    #[error("tls.certificate-file and tls.key-file belong together: {0} is missing")]
    HalfIdentity(&'static str),
    /// A label without a name or a text.
    #[error("label '{0}' has no name or no text")]
    Label(String),
}

impl Settings {
    /// A destination with the defaults.
    pub fn new(kind: Kind, url: &str) -> Settings {
        Settings {
            kind,
            url: url.to_owned(),
            service: default_service(),
            labels: BTreeMap::new(),
            sample_labels: default_sample_labels(),
            headers: BTreeMap::new(),
            headers_file: None,
            tls: Tls::default(),
            connect_timeout: default_connect_timeout(),
            timeout: default_timeout(),
            retry_first: default_retry_first(),
            retry_longest: default_retry_longest(),
            spool: SpoolSettings::default(),
        }
    }

    /// Refuses what cannot work, before anything is sent.
    ///
    /// # Errors
    /// The first wrong setting, with the way out.
    pub fn validate(&self, name: &str) -> Result<(), SettingsError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_word) {
            return Err(SettingsError::Name(name.to_owned()));
        }
        if !is_address(&self.url) {
            let (url, example) = (self.shown_url(), self.kind.example());
            return Err(SettingsError::Url { url, example });
        }
        for (header, text) in &self.headers {
            check_header(header, &text.0)?;
        }
        if let Some((label, _)) =
            self.labels.iter().find(|(label, text)| label.is_empty() || text.is_empty())
        {
            return Err(SettingsError::Label(label.clone()));
        }
        match (&self.tls.certificate_file, &self.tls.key_file) {
            (Some(_), None) => return Err(SettingsError::HalfIdentity("tls.key-file")),
            (None, Some(_)) => return Err(SettingsError::HalfIdentity("tls.certificate-file")),
            _ => {}
        }
        let bounds = [
            ("timeout", self.timeout.0.is_zero()),
            ("connect-timeout", self.connect_timeout.0.is_zero()),
            ("retry-first", self.retry_first.0.is_zero()),
            ("retry-longest", self.retry_longest.0.is_zero()),
            ("spool.max-bytes", self.spool.max_bytes.0 == 0),
            ("spool.max-age", self.spool.max_age.0.is_zero()),
        ];
        match bounds.iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(SettingsError::Zero(name)),
            None => Ok(()),
        }
    }

    /// The address without the password that it may have.
    pub fn shown_url(&self) -> String {
        match self.url.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                let (host, path) = rest.split_at(end);
                let host = host
                    .rsplit_once('@')
                    .map_or(host.to_owned(), |(_, host)| format!("***@{host}"));
                format!("{scheme}://{host}{}", path.split('?').next().unwrap_or_default())
            }
            None => self.url.clone(),
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        let (url, path) = (self.url.trim_end_matches('/'), self.kind.path());
        if url.ends_with(path) { url.to_owned() } else { format!("{url}{path}") }
    }

    pub(crate) fn labels_of_samples(&self) -> SampleLabels {
        let has = |label| self.sample_labels.contains(&label);
        SampleLabels {
            comm: has(SampleLabel::Comm),
            cgroup: has(SampleLabel::Cgroup),
            workload: has(SampleLabel::Workload),
        }
    }
}

impl Kind {
    /// As in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Otlp => "otlp",
            Kind::Pyroscope => "pyroscope",
            Kind::Parca => "parca",
        }
    }

    /// Where a receiver takes profiles.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Kind::Otlp => "/v1development/profiles",
            Kind::Pyroscope => "/push.v1.PusherService/Push",
            Kind::Parca => "/api/profiles/writeraw",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Kind::Otlp => "http://127.0.0.1:4318",
            Kind::Pyroscope => "http://127.0.0.1:4040",
            Kind::Parca => "http://127.0.0.1:7070",
        }
    }
}

fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '#' | '?');
    let has_host = |rest: &str| {
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        !host.is_empty() && !host.starts_with(':')
    };
    rest.is_some_and(|rest| has_host(rest) && rest.chars().all(is_plain))
}

pub(crate) fn check_header(name: &str, text: &str) -> Result<(), SettingsError> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let is_name = !name.is_empty() && name.chars().all(is_token);
    let is_text = !text.is_empty() && text.chars().all(|c| !c.is_control());
    if is_name && is_text { Ok(()) } else { Err(SettingsError::Header(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::new(Kind::Otlp, "http://127.0.0.1:4318");
        settings.validate("collector").expect("the defaults hold");
        change(&mut settings);
        settings.validate("collector").unwrap_err().to_string()
    }

    #[test]
    fn wrong_settings_name_the_way_out() {
        for url in
            ["127.0.0.1:4318", "ftp://x", "http://", "http://:80", "http://a b", "http://a?x=1"]
        {
            let said = refusal(|settings| settings.url = url.to_owned());
            assert!(said.contains("as http://127.0.0.1:4318"), "{url}: {said}");
        }
        let header = |name: &str, text: &str| {
            let (name, text) = (name.to_owned(), Secret(text.to_owned()));
            refusal(|settings| _ = settings.headers.insert(name, text))
        };
        assert!(header("X Y", "z").contains("header 'X Y'"));
        assert!(header("X-Y", "two\r\nlines").contains("one line"));
        assert!(refusal(|it| it.timeout = TimeLength::default()).contains("timeout is 0"));
        assert!(refusal(|it| it.spool.max_bytes.0 = 0).contains("spool.max-bytes is 0"));
        let half = refusal(|it| it.tls.certificate_file = Some("c.pem".into()));
        assert!(half.contains("tls.key-file is missing"), "{half}");
        let label = refusal(|it| _ = it.labels.insert("region".to_owned(), String::new()));
        assert!(label.contains("'region'"), "{label}");
    }

    #[test]
    fn keys_are_words_with_dashes_and_values_have_units() {
        let text = r#"{"kind": "parca", "url": "http://a", "retry-first": "0.5s", "timeout": 3,
            "headers-file": "/token", "sample-labels": ["workload"], "spool": {"max-age": "7d", "max-bytes": "1G"}}"#;
        let settings: Settings = serde_json::from_str(text).unwrap();
        assert_eq!(settings.retry_first.0.as_millis(), 500);
        assert_eq!(settings.timeout, TimeLength::seconds(3));
        assert_eq!(settings.spool.max_age, TimeLength::seconds(7 * 86_400));
        assert_eq!(settings.spool.max_bytes, ByteSize(1 << 30));
        assert_eq!(settings.spool.max_memory, SpoolSettings::default().max_memory);
        assert_eq!(settings.sample_labels, [SampleLabel::Workload]);
        let error = |text: &str| serde_json::from_str::<Settings>(text).unwrap_err().to_string();
        let said = error(r#"{"kind": "otlp", "url": "http://a", "timout": 3}"#);
        assert!(said.contains("timout") && said.contains("`timeout`"), "{said}");
        assert!(error(r#"{"kind": "jaeger", "url": "http://a"}"#).contains("pyroscope"));
        assert!(
            error(r#"{"kind": "otlp", "url": "http://a", "timeout": "3 w"}"#)
                .contains("such as 30s")
        );
    }

    #[test]
    fn names_are_those_of_directories() {
        let settings = Settings::new(Kind::Parca, "https://parca.example");
        for name in ["", "..", "a/b", "a b", &"n".repeat(65)] {
            assert_eq!(settings.validate(name), Err(SettingsError::Name(name.to_owned())));
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let mut settings = Settings::new(Kind::Otlp, "https://me:secret@host/otlp?key=secret");
        settings.headers.insert("Authorization".to_owned(), Secret("Bearer secret".to_owned()));
        assert_eq!(settings.shown_url(), "https://***@host/otlp");
        let shown = format!("{:?}", settings.headers);
        assert!(shown.contains("Authorization") && !shown.contains("secret"), "{shown}");
    }

    #[test]
    fn the_path_of_the_protocol_is_added_once() {
        let endpoint = |url| Settings::new(Kind::Otlp, url).endpoint();
        assert_eq!(endpoint("http://a:1/"), "http://a:1/v1development/profiles");
        assert_eq!(
            endpoint("http://a/x/v1development/profiles"),
            "http://a/x/v1development/profiles"
        );
    }
}
