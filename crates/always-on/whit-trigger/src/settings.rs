//! The events to wait for, and how often a dump may follow.

use crate::rule::Rule;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::path::PathBuf;
use whit_types::ByteSize;

/// Rules, and bounds of the dumps that follow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Events that write the last seconds into a file: a list, or a text with commas.
    #[serde(deserialize_with = "rules")]
    pub on: Vec<Rule>,
    /// Path of the datagram socket on which applications report latencies and ask for dumps.
    pub socket: Option<PathBuf>,
    /// Permissions of the socket: who may write to it may report and ask.
    pub socket_mode: u32,
    /// Least seconds between two dumps.
    pub min_interval_s: f64,
    /// Dumps within 24 hours, at most.
    pub dumps_per_day: u32,
    /// Bytes of dumps within 24 hours, at most: a number, or a text such as `10G`.
    #[serde(deserialize_with = "bytes")]
    pub bytes_per_day: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            on: vec![Rule::Signal],
            socket: None,
            socket_mode: 0o600,
            min_interval_s: 10.0,
            dumps_per_day: 100,
            bytes_per_day: 10 << 30,
        }
    }
}

/// Rules that are watched, at most.
pub(crate) const RULES_MAX: usize = 256;
/// Dumps that the limiter remembers.
pub(crate) const DUMPS_PER_DAY_MAX: u32 = 10_000;
/// A day.
pub(crate) const INTERVAL_S_MAX: f64 = 86_400.0;

/// Settings that cannot be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// Nobody could report the latency.
    #[error("'{rule}' needs a socket that latencies are reported on: set `socket` to a path")]
    NoSocket {
        /// As the settings have it.
        rule: String,
    },
    /// More rules than one thread looks after.
    #[error("{rules} triggers are set, and {RULES_MAX} are watched at most: leave some out")]
    TooManyRules {
        /// Their number.
        rules: usize,
    },
    /// Out of range.
    #[error("`min-interval-s` is a number of seconds from 0 to 86400, not {0}")]
    Interval(f64),
    /// No permissions.
    #[error("`socket-mode` is a number from 0o000 to 0o777, not {0:#o}")]
    Mode(u32),
    /// Out of range.
    #[error("`dumps-per-day` is a number from 1 to {DUMPS_PER_DAY_MAX}, not {0}")]
    Dumps(u32),
}

impl Settings {
    /// Whether these settings can be.
    ///
    /// # Errors
    /// The first one that cannot, and the values that can.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if self.on.len() > RULES_MAX {
            return Err(SettingsError::TooManyRules { rules: self.on.len() });
        }
        let latency = self.on.iter().find(|rule| matches!(rule, Rule::Latency { .. }));
        if let (Some(rule), None) = (latency, &self.socket) {
            return Err(SettingsError::NoSocket { rule: rule.to_string() });
        }
        if !(0.0..=INTERVAL_S_MAX).contains(&self.min_interval_s) {
            return Err(SettingsError::Interval(self.min_interval_s));
        }
        if self.socket_mode > 0o777 {
            return Err(SettingsError::Mode(self.socket_mode));
        }
        if !(1..=DUMPS_PER_DAY_MAX).contains(&self.dumps_per_day) {
            return Err(SettingsError::Dumps(self.dumps_per_day));
        }
        Ok(())
    }
}

fn rules<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Rule>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        List(Vec<String>),
    }
    let texts = match Written::deserialize(from)? {
        Written::Text(text) => text.split(',').map(str::to_owned).collect(),
        Written::List(list) => list,
    };
    let named = texts.iter().filter(|text| !text.is_empty());
    named.map(|text| text.parse().map_err(de::Error::custom)).collect()
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }
    match Written::deserialize(from)? {
        Written::Number(number) => Ok(number),
        Written::Text(text) => text.parse().map(|ByteSize(bytes)| bytes).map_err(de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_options_write_rules_and_sizes_as_they_like() {
        let of = |text: &str| serde_json::from_str::<Settings>(text).map_err(|it| it.to_string());
        let both = ["signal", "exit:7"].map(|rule| rule.parse::<Rule>().unwrap());
        assert_eq!(of(r#"{"on": ["signal", "exit:7"]}"#).unwrap().on, both);
        assert_eq!(of(r#"{"on": "signal,exit:7"}"#).unwrap().on, both);
        assert_eq!(of(r#"{"on": ""}"#).unwrap().on, []);
        assert_eq!(of(r#"{"bytes-per-day": "2G"}"#).unwrap().bytes_per_day, 2 << 30);
        assert_eq!(of(r#"{"bytes-per-day": 7}"#).unwrap().bytes_per_day, 7);
        assert!(of(r#"{"on": "psi:disk"}"#).unwrap_err().contains("cpu, memory or io"));
        assert!(of(r#"{"bytes-per-day": "much"}"#).unwrap_err().contains("500M"));
        assert!(of(r#"{"onn": "signal"}"#).unwrap_err().contains("unknown field"));
        let settings = Settings { on: both.to_vec(), ..Settings::default() };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(of(&text), Ok(settings));
    }

    #[test]
    fn settings_that_cannot_be_name_those_that_can() {
        let of = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.validate().map_err(|error| error.to_string())
        };
        assert_eq!(of(&|_| ()), Ok(()));
        let latency: Rule = "latency:a:1ms".parse().unwrap();
        let error = of(&|it| it.on = vec![latency.clone()]).unwrap_err();
        assert!(error.contains("set `socket`"), "{error}");
        let with_socket = |it: &mut Settings| {
            it.on = vec![latency.clone()];
            it.socket = Some("/run/x".into());
        };
        assert_eq!(of(&with_socket), Ok(()));
        assert!(of(&|it| it.min_interval_s = f64::NAN).unwrap_err().contains("0 to 86400"));
        assert!(of(&|it| it.dumps_per_day = 0).unwrap_err().contains("1 to 10000"));
        assert!(of(&|it| it.socket_mode = 660).unwrap_err().contains("0o1224"));
        assert!(of(&|it| it.on = vec![Rule::Signal; 257]).unwrap_err().contains("256"));
    }
}
