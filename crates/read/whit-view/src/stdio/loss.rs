//! Losses and the ledger, each in one line.

use whit_perfdata::ledger::Ledger;
use whit_profile::model::LossReport;

use crate::units::{bytes, counted, duration};

/// Everything that is known to be missing, in one line without end; `None` where nothing is.
pub fn loss_line(losses: &LossReport) -> Option<String> {
    let mut parts = Vec::new();
    if losses.lost_records > 0 {
        let chunks = counted(losses.lost_chunks, "chunk");
        parts.push(format!("{} in {chunks}", counted(losses.lost_records, "record")));
    }
    if losses.lost_samples > 0 {
        parts.push(counted(losses.lost_samples, "sample"));
    }
    let data_loss = losses.data_loss();
    match data_loss.share() {
        None => parts.push(data_loss.to_string()),
        Some(share) if share > 0.0 => {
            let (paused, elapsed) = (duration(losses.paused_ns), duration(losses.elapsed_ns));
            parts.push(format!("{data_loss} (rings full for {paused} of {elapsed})"));
        }
        Some(_) => {}
    }
    if losses.truncated_bytes > 0 {
        let cut = bytes(losses.truncated_bytes);
        parts.push(format!("{cut} of the recording hold no whole record (it was cut off)"));
    }
    (!parts.is_empty()).then(|| format!("Lost: {}", parts.join(", ")))
}

/// The recording's cost, in one line without end.
pub fn ledger_line(ledger: &Ledger) -> String {
    let cpu = match ledger.recording_cpu_ns() {
        Some(cpu) => format!(
            "{} CPU ({:.2}% of one CPU) meanwhile, and {} in {} of setting up",
            duration(cpu),
            crate::hists::percent(cpu, ledger.recorded_ns()),
            duration(ledger.setup_cpu_ns),
            duration(ledger.setup_ns),
        ),
        // Older versions did not measure the CPU time of setting up by itself.
        None => {
            format!(
                "{} CPU, setting up for {} included",
                duration(ledger.cpu_ns()),
                duration(ledger.setup_ns)
            )
        }
    };
    format!(
        "Ledger: recorded for {}; the recorder took {cpu}; wrote {} in {}, lost {}",
        duration(ledger.recorded_ns()),
        bytes(ledger.written_bytes),
        counted(ledger.writes, "write"),
        counted(ledger.lost_records, "record"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_up_is_no_part_of_the_cost_of_recording() {
        let ledger = Ledger {
            wall_ns: 3_410_000_000,
            setup_ns: 2_400_000_000,
            teardown_ns: 10_000_000,
            user_cpu_ns: 890_000_000,
            setup_cpu_ns: 870_000_000,
            teardown_cpu_ns: 5_000_000,
            ..Ledger::default()
        };
        assert_eq!(
            ledger_line(&ledger),
            "Ledger: recorded for 1.00 s; the recorder took 15.0 ms CPU (1.50% of one CPU) meanwhile, and \
             870.0 ms in 2.40 s of setting up; wrote 0 B in 0 writes, lost 0 records"
        );
        let untold = Ledger { setup_cpu_ns: 0, ..ledger };
        assert_eq!(
            ledger_line(&untold),
            "Ledger: recorded for 1.00 s; the recorder took 890.0 ms CPU, setting up for 2.40 s included; \
             wrote 0 B in 0 writes, lost 0 records"
        );
    }

    #[test]
    fn no_loss_no_line() {
        assert_eq!(loss_line(&LossReport { elapsed_ns: 5, ..LossReport::default() }), None);
    }

    #[test]
    fn a_loss_of_unknown_time_says_so() {
        let losses = LossReport { lost_records: 12, lost_chunks: 2, ..LossReport::default() };
        assert_eq!(loss_line(&losses).unwrap(), "Lost: 12 records in 2 chunks, time unknown");
        let measured = LossReport { elapsed_ns: 100, ..losses };
        assert_eq!(loss_line(&measured).unwrap(), "Lost: 12 records in 2 chunks, time unknown");
    }

    #[test]
    fn every_kind_of_loss_is_named() {
        let losses = LossReport {
            lost_records: 12,
            lost_chunks: 1,
            lost_samples: 1,
            paused_ns: 1_000_000,
            elapsed_ns: 50_000_000,
            truncated_bytes: 2048,
        };
        insta::assert_snapshot!(
            loss_line(&losses).unwrap(),
            @"Lost: 12 records in 1 chunk, 1 sample, data loss 2.00% (rings full for 1.0 ms of 50.0 ms), 2.0 KiB of the recording hold no whole record (it was cut off)"
        );
    }
}
