//! A recording from start to end, in three stages that own their state and hand it on by value.
//!
//! The order matters. *Prepared*: the command is forked before limits are raised; events are opened and
//! rings mapped before the output is touched; what exists already is synthesized while the sideband event runs.
//! *Running*: the readers are at work on threads of their own, then the samples begin. The session itself only waits:
//! for signals, for commands, for its schedule, for the command, for news of its readers. *Drained*: the events have
//! stopped, the readers have emptied the rings; losses are added up, and the header is completed. The same happens to
//! each output that is switched away from, except that nothing stops.
//!
//! `parts` holds what all stages need: the plan and the targets (`context`), the events and the engine
//! (`event_control`), and the outputs (`outputs`). An output has three states of its own (`output_file`).

use whit_host::roots::Roots;

use crate::error::CaptureError;
use crate::notice::Listener;
use crate::options::RecordOptions;
use crate::plan::RecordPlan;

mod budget;
mod choose;
mod clock_notes;
mod code;
mod context;
mod cost_baseline;
mod cpu_watch;
mod drained;
mod event_control;
#[cfg(test)]
mod fault_tests;
mod file_watch;
mod filters;
mod header;
mod java_names;
mod ledger;
mod listing;
mod mapping_watch;
mod metering;
mod names;
mod outcome;
mod output_file;
mod outputs;
mod parts;
mod prepared;
mod quota;
mod reader_event;
mod reader_share;
mod reader_thread;
mod readers;
mod recorded_time;
mod redraw;
mod running;
mod running_readers;
mod schedule;
mod set_up;
mod set_up_watch;
mod stretched_decoder;
mod stretches;
mod synthesis;
mod target_time;
mod unreported_loss;
mod wait;
mod watched;

pub use outcome::{End, Outcome};
use prepared::{Prepared, Started};

/// Records by these options until the command, a signal or another program ends the recording.
pub fn record(
    options: &RecordOptions,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Result<Outcome, CaptureError> {
    let prepared = Prepared::new(RecordPlan::new(options), roots, listener)?;
    let drained = match prepared.start()? {
        Started::Running(mut running) => {
            let end = running.wait()?;
            running.drain(end)
        }
        Started::Unwritable(drained) => drained,
    };
    drained.finish()
}
