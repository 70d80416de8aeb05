//! The settings of `whit watch`.

use crate::described::{Length, Size, settings};
use crate::server::{Address, default_socket};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use whit_trigger::Rule;
use whit_types::ByteSize;

/// Shortest window, and longest one.
const WINDOW_S: std::ops::RangeInclusive<u64> = 1..=600;
/// Longest time that is kept at full detail.
const FLIGHT_MAX: Duration = Duration::from_secs(600);
/// Budgets that the recorder takes.
const OVERHEAD_PERCENT: std::ops::RangeInclusive<f64> = 0.01..=100.0;
/// Records in memory have at least this.
const SIZE_MIN_BYTES: u64 = 1 << 20;
/// Where a cgroup limits memory, they have by default at most one part in so many of it.
const WINDOW_PART: u64 = 32;
const QUEUE_PART: u64 = 16;
const FLIGHT_PART: u64 = 8;
/// Records of the end of a request have come within two rounds of the recorder, of a second each.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);
/// Forms of files.
const FORMATS: [&str; 3] = ["recording", "parquet", "none"];

settings! {
    /// Everything that a user can choose. A configuration file has these keys, and each one is an option, too.
    pub struct Settings {
        /// Take N samples a second
        freq: u32 = 19, "HZ";
        /// Sample this event [default: cycles, or cpu-clock]
        event: Option<String> = None, "EVENT";
        /// Record context switches, too: the files then have waits
        switches: bool = false, "BOOL";
        /// Take samples of idle CPUs, too, where a timer makes samples
        idle: bool = false, "BOOL";
        /// Choose what takes call chains: ring, bpf, or auto (bpf where the kernel allows it)
        engine: String = "auto".to_owned(), "ENGINE";
        /// Record only these cgroups [default: the whole machine]
        cgroup: Vec<String> = Vec::new(), "NAME,..";
        /// Record less while recording costs more than this share of all CPUs, in percent (`docs/budget.md`)
        max_overhead: Option<f64> = None, "PERCENT";
        /// Give these further options to `whit record`
        record_options: Vec<String> = Vec::new(), "OPTION,..";
        /// Let a window cover so much time; windows begin at multiples of it
        window: Length = Length::seconds(30), "TIME";
        /// Keep so many bytes of records of a window in memory; older ones go, and are counted
        window_bytes: Size = Size(ByteSize(16 << 20)), "SIZE";
        /// Let windows that wait for sinks take so much memory; further ones go, and are counted
        queue_bytes: Size = Size(ByteSize(32 << 20)), "SIZE";
        /// Keep files in this folder
        folder: PathBuf = PathBuf::from("/var/lib/whit"), "FOLDER";
        /// Write windows as: recording (one file each), parquet (a dataset, `docs/tables.md`), or none
        format: String = "recording".to_owned(), "FORM";
        /// Remove files of windows that are older
        keep_age: Length = Length::seconds(7 * 86_400), "TIME";
        /// Remove the oldest files where all take more
        keep_bytes: Size = Size(ByteSize(4 << 30)), "SIZE";
        /// Keep the last so many seconds at full detail, and write them when a trigger comes; 0 keeps none
        flight: Length = Length::seconds(0), "TIME";
        /// With flight, take at least N samples a second; all context switches are recorded
        flight_freq: u32 = 1000, "HZ";
        /// Keep so many bytes of these seconds in memory; a dump that has fewer seconds says so
        flight_bytes: Size = Size(ByteSize(256 << 20)), "SIZE";
        /// Remove dumps that are older
        dump_age: Length = Length::seconds(30 * 86_400), "TIME";
        /// Remove the oldest dumps where all take more
        dump_bytes: Size = Size(ByteSize(4 << 30)), "SIZE";
        /// Answer `whit watch status` on this socket [default: watch.sock in $RUNTIME_DIRECTORY or /run/whit]
        socket: Option<PathBuf> = None, "PATH";
        /// Serve metrics for Prometheus here: an address of loopback with a port, or the path of a socket
        metrics: Option<String> = None, "ADDRESS";
    }
    tables {
        /// Events that write the last seconds into a file.
        trigger: whit_trigger::Settings;
        /// Receivers of windows, each by a name (`docs/push.md`).
        push: BTreeMap<String, whit_push::Settings>;
    }
}

/// A value that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct WrongValue {
    /// As in the file.
    pub key: &'static str,
    /// Why, with the values that can be used.
    pub reason: String,
}

fn wrong(key: &'static str, reason: impl Into<String>) -> Result<(), WrongValue> {
    Err(WrongValue { key, reason: reason.into() })
}

impl Settings {
    /// Checks values against each other and their bounds.
    ///
    /// # Errors
    /// The first one that cannot be used.
    pub fn validate(&self) -> Result<(), WrongValue> {
        for (name, destination) in &self.push {
            if let Err(reason) = destination.validate(name) {
                return wrong("push", format!("{name}: {reason}"));
            }
        }
        let window = self.window.0;
        if window.subsec_nanos() != 0 || !WINDOW_S.contains(&window.as_secs()) {
            return wrong(
                "window",
                format!("takes whole seconds from 1 to 600, not {}", self.window),
            );
        }
        if !(1..=100_000).contains(&self.freq) {
            return wrong("freq", format!("takes 1 to 100000 samples a second, not {}", self.freq));
        }
        if let Some(percent) = self.max_overhead.filter(|it| !OVERHEAD_PERCENT.contains(it)) {
            return wrong("max-overhead", format!("takes 0.01 to 100 percent, not {percent}"));
        }
        if !["auto", "bpf", "ring"].contains(&self.engine.as_str()) {
            return wrong("engine", format!("is auto, bpf or ring, not '{}'", self.engine));
        }
        if !FORMATS.contains(&self.format.as_str()) {
            return wrong("format", format!("is {}, not '{}'", FORMATS.join(", "), self.format));
        }
        let sizes = [
            ("window-bytes", self.window_bytes),
            ("queue-bytes", self.queue_bytes),
            ("flight-bytes", self.flight_bytes),
        ];
        for (key, size) in sizes {
            if size.0.0 < SIZE_MIN_BYTES || size.0.0 > 4 << 30 {
                return wrong(key, format!("takes 1M to 4G, not {size}"));
            }
        }
        if self.flight.0 > FLIGHT_MAX {
            return wrong("flight", format!("takes 0 to 10m, not {}", self.flight));
        }
        if !(1..=100_000).contains(&self.flight_freq) {
            let freq = self.flight_freq;
            return wrong("flight-freq", format!("takes 1 to 100000 samples a second, not {freq}"));
        }
        if let Err(error) = self.trigger.validate() {
            return wrong("trigger", error.to_string());
        }
        self.validate_requests()?;
        match self.metrics_address() {
            Some(Err(reason)) => wrong("metrics", reason),
            _ => Ok(()),
        }
    }

    /// A trigger waits for requests that the recorder follows, and a dump has all of one that is longer.
    fn validate_requests(&self) -> Result<(), WrongValue> {
        for rule in &self.trigger.on {
            let Rule::Request { name, longest } = rule else { continue };
            if !self.recorded_requests().any(|it| it == name) {
                return wrong(
                    "trigger",
                    format!(
                        "'{rule}' needs a recorder with `--request={name}=BINARY:FUNCTION` in record-options"
                    ),
                );
            }
            let least = *longest + NOTICED_WITHIN;
            if self.keeps_seconds() && self.flight.0 < least {
                return wrong(
                    "flight",
                    format!(
                        "'{rule}' needs {} s at least, not {}",
                        least.as_secs_f64(),
                        self.flight
                    ),
                );
            }
        }
        Ok(())
    }

    /// Names of the requests that the recorder is given.
    fn recorded_requests(&self) -> impl Iterator<Item = &str> {
        let before = std::iter::once("").chain(self.record_options.iter().map(String::as_str));
        before.zip(&self.record_options).filter_map(|(before, option)| {
            let own = option.strip_prefix("--request=");
            let spec = own.or((before == "--request").then_some(option.as_str()))?;
            spec.split_once('=').map(|(name, _)| name)
        })
    }

    /// Sizes that nobody gave become so small that they fit into so much memory, which the recorder and the kernel's
    /// programs need as well.
    pub(crate) fn fit_into(&mut self, memory_bytes: u64, is_given: impl Fn(&str) -> bool) {
        let sizes = [
            ("window-bytes", &mut self.window_bytes, WINDOW_PART),
            ("queue-bytes", &mut self.queue_bytes, QUEUE_PART),
            ("flight-bytes", &mut self.flight_bytes, FLIGHT_PART),
        ];
        for (key, size, part) in sizes {
            if !is_given(key) {
                let most = (memory_bytes / part).max(SIZE_MIN_BYTES);
                size.0.0 = size.0.0.min(most);
            }
        }
    }

    /// Whether the last seconds are kept.
    pub(crate) fn keeps_seconds(&self) -> bool {
        !self.flight.0.is_zero()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<Result<Address, String>> {
        self.metrics.as_ref().map(|text| text.parse())
    }

    /// Where `whit watch status` asks.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_socket)
    }

    /// The command line of a recorder that needs little memory: its call chains are those of frame pointers.
    pub(crate) fn lean_recorder_arguments(&self) -> Vec<String> {
        Settings { engine: "ring".to_owned(), ..self.clone() }.recorder_arguments()
    }

    /// The command line of the recorder.
    pub fn recorder_arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["record", "-o", "-", "--no-buildid"].map(str::to_owned).into();
        if self.cgroup.is_empty() {
            arguments.push("--all-cpus".to_owned());
        }
        arguments.push(format!("--engine={}", self.engine));
        let least = if self.keeps_seconds() { self.flight_freq } else { 0 };
        arguments.push(format!("--freq={}", self.freq.max(least)));
        if !self.idle {
            arguments.push("--exclude-idle".to_owned());
        }
        let budget = self.max_overhead.iter();
        arguments.extend(budget.map(|percent| format!("--max-overhead={percent}")));
        arguments.extend(self.event.iter().map(|event| format!("--event={event}")));
        if !self.cgroup.is_empty() {
            arguments.push(format!("--cgroup={}", self.cgroup.join(",")));
        }
        // A dump has the records that are still in the rings, and a silent recorder is asked for a sign.
        arguments.push("--control=fd:0".to_owned());
        if self.switches || self.keeps_seconds() {
            // Packed switches name stacks of records that may be gone.
            arguments.extend(["--switch-events".to_owned(), "--no-pack".to_owned()]);
        }
        arguments.extend(self.record_options.iter().cloned());
        arguments
    }

    /// How long records stay in memory.
    pub fn keep(&self) -> Duration {
        // A window is written after it has ended.
        self.window.0 * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_of_requests_need_a_recorder_that_follows_them() {
        let with = |options: &[&str], flight, rule: &str| {
            let on = vec![rule.parse().unwrap()];
            let settings = Settings {
                record_options: options.iter().map(|it| (*it).to_owned()).collect(),
                flight: Length::seconds(flight),
                trigger: whit_trigger::Settings { on, ..whit_trigger::Settings::default() },
                ..Settings::default()
            };
            settings.validate().map_err(|error| error.to_string())
        };
        let rule = "request:query:250ms";
        for options in [&["--request=query=postgres:a..b"][..], &["-v", "--request", "query=x:y"]] {
            assert_eq!(with(options, 5, rule), Ok(()));
        }
        for options in [&[][..], &["--request=other=x:y"], &["query=x:y"]] {
            let error = with(options, 5, rule).unwrap_err();
            assert!(error.contains("--request=query="), "{error}");
        }
        let error = with(&["--request=query=x:y"], 2, rule).unwrap_err();
        assert!(error.contains("needs 2.25 s at least, not 2s"), "{error}");
    }

    #[test]
    fn the_budget_is_passed_to_the_recorder() {
        let with = |max_overhead| Settings { max_overhead, ..Settings::default() };
        assert!(with(Some(0.5)).recorder_arguments().contains(&"--max-overhead=0.5".to_owned()));
        let without = with(None).recorder_arguments();
        assert!(!without.iter().any(|it| it.starts_with("--max-overhead")), "{without:?}");
        for percent in [0.0, 101.0, f64::NAN] {
            let error = with(Some(percent)).validate().unwrap_err();
            assert_eq!(error.key, "max-overhead", "{error}");
        }
        assert_eq!(with(Some(100.0)).validate(), Ok(()));
    }
}
