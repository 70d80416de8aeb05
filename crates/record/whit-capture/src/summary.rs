//! The line after a recording: its size and samples, its losses, and its cost.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use whit_perfdata::ledger::Ledger;
use whit_types::ByteSize;

/// The outcome in numbers; prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Where the recording went.
    pub output: String,
    /// The file or directory that was created.
    pub path: Option<PathBuf>,
    /// Size of the recording, header included, as far as it is known.
    pub size_bytes: u64,
    /// The recording's cost.
    pub ledger: Ledger,
    /// Where recording ended before it should have: for how long the recorder waited for the command after that.
    pub unrecorded: Option<Duration>,
}

impl Summary {
    /// The recorder's CPU time while it recorded over that time, in percent of one CPU.
    pub fn cpu_percent(&self) -> f64 {
        let cpu_ns = self.ledger.recording_cpu_ns().unwrap_or(self.ledger.cpu_ns());
        percent(cpu_ns, self.ledger.recorded_ns())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = &self.ledger;
        write!(
            f,
            "[ whit record: {} samples{}, {} in {}; lost {} ({}{}){}; recorded for {} at {} CPU \
             ({:.2}% of one); set up in {} at {} CPU; {} written ]",
            ledger.samples,
            if ledger.no_thread_ran() { " (no thread ran)" } else { "" },
            ByteSize(self.size_bytes).in_words(),
            self.output,
            ledger.lost_records,
            ledger.data_loss(),
            Unwritten(ledger.unwritten_records),
            Unrecorded(self.unrecorded),
            Seconds(ledger.recorded_ns()),
            Seconds(ledger.recording_cpu_ns().unwrap_or(ledger.cpu_ns())),
            self.cpu_percent(),
            Seconds(ledger.setup_ns),
            Seconds(ledger.setup_cpu_ns),
            ByteSize(ledger.written_bytes).in_words(),
        )
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Lost records that were taken from rings: no ring was full at the time.
struct Unwritten(u64);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            records => write!(f, ", {records} of them could not be written"),
        }
    }
}

/// The time at the end that losses do not count, since nothing was recorded any more.
struct Unrecorded(Option<Duration>);

impl fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(time) => {
                let time = Seconds(time.as_nanos() as u64);
                write!(f, " and everything since recording stopped, {time} before the end")
            }
        }
    }
}

struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 as f64 / 1e9;
        if seconds < 1.0 {
            write!(f, "{:.1} ms", seconds * 1e3)
        } else {
            write!(f, "{seconds:.2} s")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(ledger: Ledger) -> Summary {
        Summary {
            output: "perf.data".into(),
            path: None,
            size_bytes: 3 << 19,
            ledger,
            unrecorded: None,
        }
    }

    #[test]
    fn one_line_says_samples_losses_and_cost_without_that_of_setting_up() {
        let summary = summary(Ledger {
            samples: 1000,
            lost_records: 7,
            paused_ns: 1,
            elapsed_ns: 50,
            user_cpu_ns: 510_000_000,
            system_cpu_ns: 430_000_000,
            setup_cpu_ns: 880_000_000,
            teardown_cpu_ns: 20_000_000,
            wall_ns: 4_500_000_000,
            setup_ns: 2_400_000_000,
            teardown_ns: 100_000_000,
            written_bytes: 512,
            ..Ledger::default()
        });
        assert_eq!(
            summary.to_string(),
            "[ whit record: 1000 samples, 1.5 MiB in perf.data; lost 7 (data loss 2.00%); recorded for \
             2.00 s at 40.0 ms CPU (2.00% of one); set up in 2.40 s at 880.0 ms CPU; 512 B written ]"
        );
        assert_eq!(percent(1, 0), 0.0);
    }

    #[test]
    fn no_thread_ran_only_where_threads_were_watched() {
        let line = |watched_threads, ran_threads| {
            summary(Ledger { watched_threads, ran_threads, ..Ledger::default() }).to_string()
        };
        assert!(line(3, 0).starts_with("[ whit record: 0 samples (no thread ran), "));
        assert!(!line(3, 1).contains("no thread ran") && !line(0, 0).contains("no thread ran"));
    }

    #[test]
    fn time_after_a_failure_is_no_part_of_the_share() {
        let ledger =
            Ledger { lost_records: 4, paused_ns: 1, elapsed_ns: 118_000_000, ..Ledger::default() };
        let unrecorded = Some(Duration::from_millis(882));
        let line = Summary { unrecorded, ..summary(ledger) }.to_string();
        let wanted = "; lost 4 (data loss <0.01%) and everything since recording stopped, 882.0 ms \
                      before the end; ";
        assert!(line.contains(wanted), "{line}");
    }

    #[test]
    fn a_loss_is_never_rounded_to_none() {
        let line = |lost_records, paused_ns, unwritten_records| {
            let ledger = Ledger {
                lost_records,
                paused_ns,
                unwritten_records,
                elapsed_ns: 1_000_000,
                ..Ledger::default()
            };
            let line = summary(ledger).to_string();
            let (_, lost) = line.split_once("; lost ").unwrap();
            lost.split_once("; ").unwrap().0.to_owned()
        };
        assert_eq!(line(0, 0, 0), "0 (data loss 0.00%)");
        assert_eq!(line(185_000, 0, 0), "185000 (time unknown)");
        assert_eq!(line(3, 7, 0), "3 (data loss <0.01%)");
        assert_eq!(line(9, 0, 9), "9 (time unknown, 9 of them could not be written)");
        let both = "30 (data loss 2.00%, 9 of them could not be written)";
        assert_eq!(line(30, 20_000, 9), both);
    }
}
