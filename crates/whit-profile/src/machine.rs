//! Whether a recording was made on this machine: numbers of processes and files mean nothing on another.

use whit_perfdata::feature::Feature;
use whit_perfdata::reader::Recording;

/// The machine that a recording is read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThisMachine {
    /// Its name.
    pub hostname: String,
}

/// The machine that was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RecordedMachine {
    /// It is this one, as far as its name tells.
    pub(crate) is_this: bool,
}

impl RecordedMachine {
    /// By what a recording says of itself.
    pub(crate) fn of(recording: &Recording, this: Option<&ThisMachine>) -> RecordedMachine {
        let Some(this) = this else { return RecordedMachine::default() };
        let name = recording.features.string(Feature::HOSTNAME);
        RecordedMachine { is_this: name.as_deref() == Some(&this.hostname) }
    }
}
