//! How latency is to be read, and how much of it is not known.

use std::io::{self, Write};

use whit_profile::parallelism::{ParallelismInfo, ParallelismOf};

use crate::hists::{Hists, WeightColumns, percent};
use crate::units;

/// Prints for how long any thread ran, and for how long that is unknown.
pub(super) fn write_times(
    out: &mut impl Write,
    info: &ParallelismInfo,
    shares: WeightColumns,
) -> io::Result<()> {
    let set = match info.of {
        ParallelismOf::All => "all recorded threads",
        ParallelismOf::Process => "the threads of the sample's process",
        ParallelismOf::Cgroup => "the threads in the sample's cgroup",
    };
    writeln!(out, "# Parallelism: how many of {set} ran (another set: --parallelism-of)")?;
    if shares.has_latency() {
        writeln!(out, "# Latency: each sample counts for 1/parallelism")?;
    }
    let [ran, recorded] = [info.ran_ns, info.recorded_ns].map(units::duration);
    writeln!(out, "# Any recorded thread ran for {ran} of {recorded}")?;
    if info.unknown_ns > 0 {
        let share = percent(info.unknown_ns, info.recorded_ns);
        let unknown = units::duration(info.unknown_ns);
        writeln!(
            out,
            "# Parallelism is unknown for {unknown} ({share:.2}% of the time): records are missing or contradict each other"
        )?;
    }
    Ok(())
}

/// Prints how many samples of an event have no latency.
pub(super) fn write_unknown(out: &mut impl Write, hists: &Hists) -> io::Result<()> {
    let (samples, period) = hists.unknown;
    if samples == 0 {
        return Ok(());
    }
    let share = hists.percent(period);
    let samples = units::counted(samples, "sample");
    writeln!(out, "# Unknown parallelism: {samples} ({share:.2}% of the event){}", left_out(hists))
}

/// The consequence of samples without latency for the shares of the others.
fn left_out(hists: &Hists) -> String {
    match hists.shares.has_latency() {
        true => format!(
            ", without latency: a share of it may be up to {:.2} points too low or too high",
            hists.latency_uncertainty_percent()
        ),
        false => String::new(),
    }
}
