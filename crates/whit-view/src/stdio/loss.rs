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

/// What the recording cost, in one line without end.
pub fn ledger_line(ledger: &Ledger) -> String {
    let cpu = ledger.user_cpu_ns.saturating_add(ledger.system_cpu_ns);
    let share = crate::hists::percent(cpu, ledger.wall_ns);
    format!(
        "Ledger: recorded for {}; the recorder took {} CPU ({share:.2}% of one CPU), wrote {} in {}, \
         lost {}",
        duration(ledger.wall_ns),
        duration(cpu),
        bytes(ledger.written_bytes),
        counted(ledger.writes, "write"),
        counted(ledger.lost_records, "record"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
