//! Options that people give to `whit switches` and that belong to the recorder.

use super::Unsupported;

/// Options that `whit switches` leaves out.
#[derive(Clone, Debug)]
pub(crate) struct OfSwitches;

impl Unsupported for OfSwitches {
    const SUBCOMMAND: &'static str = "switches";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[(
        "max-overhead",
        None,
        "it reads a recording, whose cost the recorder limits: whit record --switch-events --max-overhead 1 -- PROGRAM",
    )];
}
