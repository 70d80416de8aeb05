//! Stalls (PSI): the file's text, and the kernel's own triggers (`Documentation/accounting/psi.rst`).

use crate::parse::time_text;
use crate::rule::Pressure;
use crate::sliding::Sliding;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use whit_sys::{Errno, Poller};

/// Adds stalls up.
#[derive(Clone, Debug)]
pub(crate) struct PressureMeter {
    rule: Pressure,
    sliding: Sliding<1>,
}

impl PressureMeter {
    pub(crate) fn new(rule: &Pressure) -> PressureMeter {
        let window_ns = u64::try_from(rule.window.as_nanos()).unwrap_or(u64::MAX);
        PressureMeter { rule: rule.clone(), sliding: Sliding::new(window_ns) }
    }

    pub(crate) fn window(&self) -> Duration {
        self.rule.window
    }

    pub(crate) fn restart(&mut self) {
        self.sliding.restart();
    }

    /// Takes the file's text. Gives the stalls of the window where they are too long.
    pub(crate) fn see(&mut self, text: &str, now_ns: u64) -> Result<Option<String>, &'static str> {
        let total_us = total_us(text, self.rule.is_full).ok_or("stall times of this kind")?;
        let growth = self.sliding.add(now_ns, [total_us]);
        let stalled = Duration::from_micros(growth.by[0]);
        let is_event = stalled >= self.rule.stalled;
        let within = Duration::from_millis(growth.within_ns.div_ceil(1_000_000));
        Ok(is_event
            .then(|| format!("stalled {} of {}", time_text(to_ms(stalled)), time_text(within))))
    }
}

fn to_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The words of a line: `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
fn word<'t>(text: &'t str, is_full: bool, name: &str) -> Option<&'t str> {
    let share = if is_full { "full" } else { "some" };
    let mut words = text
        .lines()
        .map(|line| line.split(' '))
        .find_map(|mut words| (words.next() == Some(share)).then_some(words))?;
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn total_us(text: &str, is_full: bool) -> Option<u64> {
    word(text, is_full, "total")?.trim_end().parse().ok()
}

/// Percent of the last 10 s.
pub(crate) fn average(text: &str, is_full: bool) -> Option<f64> {
    word(text, is_full, "avg10")?.parse().ok()
}

/// Has the kernel watch: the file has an exceptional condition when the stalls of a window are too long, at most
/// once per window. `Errno::PERM` for a file without conditions.
pub(crate) fn kernel_trigger(
    path: &Path,
    rule: &Pressure,
    poller: &Poller,
    token: u64,
) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    // Only a file with conditions is written to.
    let error = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
    poller.add_priority(&file, token).map_err(error)?;
    poller.remove(&file).map_err(error)?;
    let share = if rule.is_full { "full" } else { "some" };
    let (stalled, window) = (rule.stalled.as_micros(), rule.window.as_micros());
    file.write_all(format!("{share} {stalled} {window}\0").as_bytes())?;
    poller.add_priority(&file, token).map_err(error)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;
    use proptest::prelude::*;

    const TEXT: &str = "some avg10=8.16 avg60=2.80 avg300=6.54 total=8302507\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=12\n";

    fn pressure(text: &str) -> Pressure {
        match text.parse().unwrap() {
            Rule::Pressure(rule) => rule,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_of_the_share_counts() {
        assert_eq!((total_us(TEXT, false), total_us(TEXT, true)), (Some(8_302_507), Some(12)));
        assert_eq!((average(TEXT, false), average(TEXT, true)), (Some(8.16), Some(0.5)));
        assert_eq!(total_us("some avg10=0.00 total=5\n", true), None);
    }

    #[test]
    fn stalls_of_a_window_are_an_event_when_they_are_too_long() {
        let mut meter = PressureMeter::new(&pressure("psi:cpu:some:30%/1s"));
        let mut at = |ms: u64, total_ms: u64| {
            let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={}", total_ms * 1000);
            meter.see(&text, ms * 1_000_000).unwrap()
        };
        // Stalls before the first look do not count.
        assert_eq!(at(0, 100_000), None);
        assert_eq!(at(500, 100_299), None);
        assert_eq!(at(1000, 100_300), Some("stalled 300ms of 1s".to_owned()));
        assert_eq!(at(1600, 100_300), None);
    }

    #[test]
    fn a_file_without_conditions_is_not_written_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TEXT).unwrap();
        let poller = Poller::new().unwrap();
        let rule = pressure("psi:cpu:some:30%/1s");
        let error = kernel_trigger(file.path(), &rule, &poller, 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::PERM.raw_os_error()));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), TEXT);
    }

    proptest! {
        #[test]
        fn no_text_is_too_bad(text in "(some|full)?[ a-z0-9=.\n]{0,60}", is_full: bool) {
            let _ = (total_us(&text, is_full), average(&text, is_full));
        }
    }
}
